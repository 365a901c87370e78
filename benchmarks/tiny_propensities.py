"""How often 95% intervals hold where some pairs are hardly ever logged, and how often a warning says so.

    .venv/bin/python benchmarks/tiny_propensities.py [--runs 200] [--workers 2] [--worlds chosen|fresh]

Each run is a new world: who likes what, how likely each pair is to be logged, what was logged and which labels are
wrong. Propensities are the world's own, given for all pairs, for the rows alone or raised to a floor, or estimated by
user and item. The form and the bound of the warning were chosen on the worlds "chosen"; "fresh" are of other shapes
and sizes, and had no part in it.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.special import expit

import verirec as vr
from verirec.exceptions import MisfitWarning, OverlapWarning

RATES = vr.NoiseRates(0.2, 0.1)
ESTIMATORS = ("ome-dr", "ome-ips", "ome-snips", "dr", "audited-dr")
AUDITED = 300


class World(NamedTuple):
    """Of all pairs: how likely they are to be liked, and to be logged."""

    liked: np.ndarray
    p: np.ndarray


class Setting(NamedTuple):
    """A world to draw, and what is known of its propensities: "given", "floor x", "rows" or "estimated"."""

    name: str
    make: Callable[[np.random.Generator], World]
    propensities: str = "given"
    clean: bool = False


def tastes(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Draw tastes with variance 1: constants and three factors."""
    users, items = (random.normal(size=(size, 3)) for size in shape)
    constants = random.normal(size=(shape[0], 1)) + random.normal(size=shape[1])
    drawn = users @ items.T / np.sqrt(3) + constants
    return np.asarray(drawn / drawn.std())


def level(logits: np.ndarray, share: float) -> np.ndarray:
    """Move logits until their probabilities have a mean."""
    low, high = -60.0, 60.0
    some = logits.ravel()[::7]
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(some + middle).mean() < share else (low, middle)
    return np.asarray(expit(logits + low))


def simulated(random: np.random.Generator, selectivity: float, observed: float) -> World:
    """Make a world of the library's own: disliked pairs are the rarer the larger the selectivity."""
    seed = int(random.integers(2**31))
    made = vr.simulate.world(200, 300, observed=observed, selectivity=selectivity, random_state=seed)
    return World(made.preferences, made.propensities)


def spread(random: np.random.Generator, by: float, with_taste: float, observed: float) -> World:
    """Make logits of p normal, of a standard deviation, correlated with taste."""
    taste = tastes(random, (200, 300))
    own = random.normal(size=taste.shape)
    logits = by * (with_taste * taste + np.sqrt(1 - with_taste**2) * own)
    return World(expit(1.5 * taste), level(logits, observed))


def pareto(random: np.random.Generator, tail: float, with_taste: float, observed: float) -> World:
    """Make 1/p a Pareto variable of a tail index."""
    taste = tastes(random, (200, 300))
    mixed = with_taste * taste + np.sqrt(1 - with_taste**2) * random.normal(size=taste.shape)
    ranks = (np.argsort(np.argsort(mixed.ravel())) + 0.5).reshape(mixed.shape) / mixed.size
    p = ranks ** (1 / tail)
    return World(expit(1.5 * taste), np.clip(p * observed / p.mean(), 1e-9, 0.9))


def hidden(random: np.random.Generator, share: float, rarely: float, shift: float, observed: float) -> World:
    """Log a random part of the pairs, which people like less by `shift` in logits, next to never."""
    taste = tastes(random, (200, 300))
    rare = random.random(taste.shape) < share
    p = level(0.5 * random.normal(size=taste.shape), observed)
    return World(expit(1.5 * taste - shift * rare), np.where(rare, rarely, p))


def two_way(random: np.random.Generator, by: float, observed: float, with_taste: float = 0.7) -> World:
    """Log by user and item alone; popular items are liked more."""
    users, items = random.normal(size=(200, 1)), random.normal(size=(1, 300))
    taste = with_taste * items + np.sqrt(1 - with_taste**2) * tastes(random, (200, 300))
    return World(expit(1.5 * taste), level(by * (0.6 * users + 0.8 * items), observed))


def aged(random: np.random.Generator, by: float, observed: float) -> World:
    """Log items less the older they are, exponentially; old ones are liked less. A wide, short grid."""
    shape = (80, 900)
    age = random.uniform(0, by, shape[1])
    taste = tastes(random, shape)
    p = np.exp(-age) * random.uniform(0.5, 1.5, shape)
    return World(expit(1.2 * taste - 0.5 * (age - by / 2)), np.clip(p * observed / p.mean(), 1e-12, 0.95))


def beta(random: np.random.Generator, by: float, observed: float) -> World:
    """Draw p of each user's favourite and other genres from beta distributions that pile up at 0."""
    shape = (300, 250)
    p = np.clip(random.beta(by, by * (1 - observed) / observed, shape), 1e-12, 0.99)
    taste = 0.6 * np.log(p / p.mean()) / np.log(p).std() + tastes(random, shape)
    return World(expit(taste - taste.mean()), p)


def genres(random: np.random.Generator, rarely: float, share: float, observed: float) -> World:
    """Never show some users' clusters some items' clusters, but for an accident; they would like these more."""
    shape = (250, 400)
    unseen = (random.random((10, 1)) < share)[random.integers(10, size=shape[0])] & (
        (random.random((1, 12)) < 0.5)[:, random.integers(12, size=shape[1])]
    )
    p = level(random.normal(size=(shape[0], 1)) + 0.7 * random.normal(size=shape[1]), observed)
    return World(expit(1.2 * tastes(random, shape) + 1.5 * unseen), np.where(unseen, rarely, p))


CHOSEN = (
    *(
        Setting(f"simulated, selectivity {s:g}, {o:g} logged", partial(simulated, selectivity=s, observed=o))
        for s, o in ((0, 0.1), (2, 0.05), (4, 0.05), (8, 0.05), (12, 0.02))
    ),
    *(
        Setting(f"spread {s:g}, taste {c:g}, {o:g} logged", partial(spread, by=s, with_taste=c, observed=o))
        for s, c, o in (
            (1, 0.5, 0.05),
            (2, 0.0, 0.05),
            (2, 0.9, 0.05),
            (2, 0.9, 0.01),
            (3, 0.0, 0.05),
            (3, 0.9, 0.1),
            (4, 0.7, 0.1),
        )
    ),
    *(
        Setting(f"pareto {a:g}, taste {c:g}", partial(pareto, tail=a, with_taste=c, observed=0.05))
        for a, c in ((2.0, 0.6), (1.2, 0.6), (0.7, 0.6), (0.5, 0.6), (0.3, 0.6), (0.5, 0.0))
    ),
    *(
        Setting(f"hidden {a:g} at {e:g}", partial(hidden, share=a, rarely=e, shift=2.0, observed=0.05), clean=clean)
        for a, e, clean in (
            (0.3, 1e-2, False),
            (0.3, 1e-3, False),
            (0.1, 1e-4, False),
            (0.03, 1e-4, False),
            (0.3, 1e-6, False),
            (0.01, 1e-6, False),
            (0.002, 1e-6, False),
        )
    ),
    *(
        Setting(
            f"hidden {a:g} at {e:g}, clean", partial(hidden, share=a, rarely=e, shift=2.0, observed=0.05), clean=True
        )
        for a, e in ((0.1, 1e-3), (0.05, 1e-5))
    ),
    *(
        Setting(f"simulated, selectivity 4, {how}", partial(simulated, selectivity=4, observed=0.05), how)
        for how in ("floor 0.002", "floor 0.02", "rows")
    ),
    *(
        Setting(f"spread 3, taste 0.9, {how}", partial(spread, by=3, with_taste=0.9, observed=0.05), how)
        for how in ("floor 0.0005", "rows")
    ),
    *(
        Setting(f"two-way {s:g}, {how}", partial(two_way, by=s, observed=0.05), how)
        for s in (1.0, 2.0, 3.0)
        for how in ("given", "estimated")
    ),
)
FRESH = (
    *(Setting(f"aged {s:g}", partial(aged, by=s, observed=0.05)) for s in (1.0, 3.0, 6.0, 10.0)),
    Setting("aged 3, clean", partial(aged, by=3.0, observed=0.05), clean=True),
    Setting("aged 8, clean", partial(aged, by=8.0, observed=0.1), clean=True),
    Setting("aged 6, floor 0.001", partial(aged, by=6.0, observed=0.05), "floor 0.001"),
    Setting("aged 2, estimated", partial(aged, by=2.0, observed=0.05), "estimated"),
    Setting("aged 6, estimated", partial(aged, by=6.0, observed=0.05), "estimated"),
    *(Setting(f"beta {s:g}", partial(beta, by=s, observed=0.08)) for s in (3.0, 1.5, 0.8, 0.4)),
    Setting("beta 0.8, clean", partial(beta, by=0.8, observed=0.08), clean=True),
    *(
        Setting(f"genres {a:g} at {e:g}", partial(genres, share=a, rarely=e, observed=0.06))
        for a, e in ((0.5, 5e-3), (0.5, 1e-4), (0.2, 1e-5), (0.5, 1e-6))
    ),
    Setting("genres 0.5 at 0.0001, rows", partial(genres, share=0.5, rarely=1e-4, observed=0.06), "rows"),
)
WORLDS = {"chosen": CHOSEN, "fresh": FRESH}


class Drawn(NamedTuple):
    """What a run starts from: predictions, a log, its propensities, an audit and the truth."""

    predictions: np.ndarray
    log: vr.FeedbackLog
    propensities: object
    audit: vr.AuditSample
    truth: float


def drawn(setting: Setting, seed: int) -> Drawn:
    """Draw a world, its labels and a log."""
    random = np.random.default_rng([seed, 7 if setting in CHOSEN else 8])
    world = setting.make(random)
    truth = (random.random(world.liked.shape) < world.liked).astype(np.int8)
    users, items = np.nonzero(random.random(truth.shape) < world.p)
    flips = 0.0 if setting.clean else np.where(truth, RATES.rho01, RATES.rho10)
    said = np.where(random.random(truth.shape) < flips, 1 - truth, truth)
    log = vr.FeedbackLog.from_arrays(
        users,
        items,
        said[users, items],
        n_users=truth.shape[0],
        n_items=truth.shape[1],
        propensities=world.p[users, items] if setting.propensities == "rows" else None,
    )
    asked = random.choice(len(log), min(AUDITED, len(log)), replace=False)
    audit = vr.AuditSample(users[asked], items[asked], truth[users[asked], items[asked]])
    f = 0.1 + 0.8 * world.liked
    loss = np.where(truth, -np.log(f), -np.log(1 - f)).mean()
    return Drawn(f, log, propensities_of(setting, world.p, log), audit, float(loss))


def propensities_of(setting: Setting, p: np.ndarray, log: vr.FeedbackLog) -> object:
    """Make what an estimate is given."""
    how = setting.propensities
    if how == "estimated":
        return vr.LogisticPropensity().fit(log)
    if how == "rows":
        return vr.LoggedPropensity(log)
    return vr.GivenPropensity(p, floor=float(how.split()[1]) if how.startswith("floor") else 0.0)


def run(task: tuple[Setting, int]) -> list[bool]:
    """Return whether each estimator's interval holds the truth, whether anything warned, and the new warning alone."""
    setting, seed = task
    made = drawn(setting, seed)
    rates = vr.NoiseRates(0, 0) if setting.clean else RATES
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        given = {"propensities": made.propensities, "noise_rates": rates, "audit": made.audit, "estimators": ESTIMATORS}
        found = vr.estimate(made.predictions, made.log, **given)
    held = [found[name].interval[0] <= made.truth <= found[name].interval[1] for name in ESTIMATORS]
    of_weights = [str(one.message) for one in told if one.category in (OverlapWarning, MisfitWarning)]
    without = [one for one in of_weights if "make up half of the variance" not in one]
    return [*held, bool(of_weights), bool(without)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--worlds", choices=WORLDS, default="fresh")
    options = parser.parse_args()
    print("| world | " + " | ".join(ESTIMATORS) + " | warned | without the reach |")
    print("|---|" + "--:|" * (len(ESTIMATORS) + 2))
    with ProcessPoolExecutor(options.workers) as workers:
        for setting in WORLDS[options.worlds]:
            tasks = [(setting, seed) for seed in range(options.runs)]
            shares = np.mean(list(workers.map(run, tasks, chunksize=10)), axis=0)
            print(f"| {setting.name} | " + " | ".join(f"{share:.3f}" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
