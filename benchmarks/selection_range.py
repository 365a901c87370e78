"""How often the range of a log alone holds the truth, and what comparisons it establishes, rightly and wrongly.

    .venv/bin/python benchmarks/selection_range.py [--runs 200] [--workers 2] [--cases worlds kuairec coat adverse]

Simulated worlds (taste enters through the preference; selectivity 0, 2, 4; without noise, with noise whose rates are
known, and with a region of rates), random parts of KuaiRec's complete block (5% positive, 5% logged, selection by
sigma(b + a_u + c_i + delta r*), delta 0, 1, 2), and Coat, whose random test is the truth: its log is split in halves,
one to train on and one to judge by. Then what an adversary would try: items with deltas of their own, deltas that are
worst for one recommender, negative ones, noise that depends on the pair, next to no rows, 5% liked. Propensities are
learnt throughout, delta is allowed 0 to 3.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import combinations
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.special import expit, logit

import verirec as vr
from verirec.data.cells import DenseCells
from verirec.estimation.cell_losses import CellLosses
from verirec.estimation.range_ends import judge_by_range
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.selection_range import RangeProblem
from verirec.estimation.survey.problem import LossDifference
from verirec.losses import get_loss

RATES = vr.NoiseRates(0.2, 0.1)
REGION = vr.NoiseRegion(0.25, 0.15)
KUAIREC = (500, 700)


class Case(NamedTuple):
    """A log, what is known of its noise, recommenders, and labels whose mean loss is the truth."""

    name: str
    log: vr.FeedbackLog
    noise: vr.NoiseRates | vr.NoiseRegion | None
    recommenders: dict[str, np.ndarray]
    truth: tuple[np.ndarray, np.ndarray, np.ndarray] | np.ndarray
    exclude: vr.FeedbackLog | None = None


def worlds(seed: int) -> Iterator[Case]:
    """Make one world of each selectivity, with noise and without."""
    for selectivity in (0.0, 2.0, 4.0):
        for kind, rates, known in (
            ("clean", vr.NoiseRates(0, 0), None),
            ("noisy", RATES, RATES),
            ("region", RATES, REGION),
        ):
            world = vr.simulate.world(
                200, 300, noise_rates=rates, observed=0.1, selectivity=selectivity, random_state=seed
            )
            liked = world.preferences
            recommenders = {
                "sharp": 0.15 + 0.7 * liked,
                "blunt": 0.4 + 0.2 * liked,
                "over": np.clip(0.5 + 0.48 * liked, 0.02, 0.98),
                "constant": np.full(liked.shape, 0.4),
            }
            yield Case(f"world {selectivity:g} {kind}", world.log, known, recommenders, world.true_labels)


def kuairec(seed: int) -> Iterator[Case]:
    """Log a random part of the block by taste."""
    random = np.random.default_rng(seed)
    block = vr.load_dataset("kuairec", data_home=_home()).complete
    assert block is not None
    users, items = (random.choice(size, part, replace=False) for size, part in zip(block.shape, KUAIREC, strict=True))
    truth = block[np.ix_(users, items)]
    by_user, by_item = (logit(np.clip(truth.mean(axis), 0.005, 0.9)) for axis in (1, 0))
    recommenders = {
        "constants": expit(0.8 * (by_user[:, None] + by_item - logit(truth.mean()))),
        "items": np.broadcast_to(expit(by_item), truth.shape),
        "knowing": expit(logit(truth.mean()) + 2.0 * truth + random.normal(0, 1, truth.shape)),
        "over": np.broadcast_to(expit(1.0 + by_item), truth.shape),
    }
    constants = random.normal(0, 1, truth.shape[0])[:, None] + random.normal(0, 1, truth.shape[1])
    for delta in (0.0, 1.0, 2.0):
        level = _level(constants + delta * truth, 0.05)
        users, items = np.nonzero(random.random(truth.shape) < expit(level + constants + delta * truth))
        log = vr.FeedbackLog.from_arrays(users, items, truth[users, items], n_users=KUAIREC[0], n_items=KUAIREC[1])
        yield Case(f"kuairec {delta:g}", log, None, recommenders, truth)


def _level(logits: np.ndarray, share: float) -> float:
    low, high = -30.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(logits + middle).mean() < share else (low, middle)
    return low


def coat(seed: int) -> Iterator[Case]:
    """Train on a half of the log and judge by the other; the random test is the truth."""
    data = vr.load_dataset("coat", data_home=_home())
    train, test = data.train, data.test
    assert test is not None
    half = np.random.default_rng(seed).random(len(train)) < 0.5
    taught, judged = train.select(half), train.select(~half)
    model = vr.LabelModel().fit(taught, np.ones(len(taught)))
    logits = model.level + model.users[:, None] + model.items
    liked = np.bincount(taught.items, taught.labels, taught.n_items)
    items = (liked + 2) / (np.bincount(taught.items, minlength=taught.n_items) + 8)
    recommenders = {
        "constants": expit(logits),
        "steep": expit(3 * logits),
        "items": np.broadcast_to(items, train.shape),
        "constant": np.full(train.shape, 0.3),
    }
    yield Case("coat", judged, None, recommenders, (test.users, test.items, test.labels), taught)


ADVERSE_SHAPE = (150, 200)


def adverse(seed: int) -> Iterator[Case]:
    """Log by user, item and a delta of each pair's own, in forms that were chosen to defeat the range."""
    random = np.random.default_rng([seed, 11])
    taste = _tastes(random, ADVERSE_SHAPE)
    likes = expit(1.5 * taste)
    rare = expit(1.5 * taste + _level(1.5 * taste, 0.05))
    items = random.uniform(0, 3, ADVERSE_SHAPE[1])
    against = np.where(0.15 + 0.7 * likes < 0.5, 3.0, 0.0)
    rates_near = 4 * likes * (1 - likes)
    for name, liked, delta, observed, noise, known in (
        ("items' deltas 0 to 3", likes, items, 0.1, None, None),
        ("items' deltas 1 to 5", likes, 1 + 4 / 3 * items, 0.1, None, None),
        ("worst for sharp", likes, against, 0.1, None, None),
        ("worst for sharp, noisy", likes, against, 0.1, np.ones_like(likes), RATES),
        ("best for sharp", likes, 3 - against, 0.1, None, None),
        ("delta -1.5", likes, -1.5, 0.1, None, None),
        ("noise near threshold, mean rates", likes, 1.0, 0.1, rates_near, _mean_rates(likes, rates_near)),
        ("noise near threshold, region", likes, 1.0, 0.1, rates_near, REGION),
        ("1% logged", likes, 2.0, 0.01, None, None),
        ("1% logged, noisy", likes, 2.0, 0.01, np.ones_like(likes), RATES),
        ("5% liked, delta 0", rare, 0.0, 0.05, None, None),
        ("5% liked, delta 2", rare, 2.0, 0.05, None, None),
        ("5% liked, worst for sharp", rare, np.where(0.02 + 0.9 * rare < 0.5, 3.0, 0.0), 0.05, None, None),
    ):
        yield _logged_by(random, name, liked, np.broadcast_to(delta, liked.shape), observed, noise, known)


def _logged_by(
    random: np.random.Generator,
    name: str,
    liked: np.ndarray,
    delta: np.ndarray,
    observed: float,
    noise: np.ndarray | None,
    known: vr.NoiseRates | vr.NoiseRegion | None,
) -> Case:
    """Draw labels, a log by user, item and delta, and what was said; `noise` is a factor of the rates."""
    truth = (random.random(liked.shape) < liked).astype(np.int8)
    constants = random.normal(0, 1, (liked.shape[0], 1)) + random.normal(0, 1, liked.shape[1])
    logits = constants + delta * truth
    users, items = np.nonzero(random.random(liked.shape) < expit(logits + _level(logits, observed)))
    said = truth
    if noise is not None:
        flipped = random.random(liked.shape) < noise * np.where(truth, RATES.rho01, RATES.rho10)
        said = np.where(flipped, 1 - truth, truth)
    log = vr.FeedbackLog.from_arrays(users, items, said[users, items], n_users=liked.shape[0], n_items=liked.shape[1])
    low, high = (0.02, 0.9) if liked.mean() < 0.2 else (0.15, 0.7)
    recommenders = {
        "sharp": low + high * liked,
        "blunt": liked.mean() + 0.2 * (liked - liked.mean()),
        "over": np.clip(liked.mean() + 0.98 * liked, 0.02, 0.98),
        "constant": np.full(liked.shape, liked.mean()),
    }
    return Case(name, log, known, recommenders, truth)


def _tastes(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    users, items = (random.normal(size=(size, 3)) for size in shape)
    drawn = users @ items.T / np.sqrt(3) + random.normal(size=(shape[0], 1)) + random.normal(size=shape[1])
    return np.asarray(drawn / drawn.std())


def _mean_rates(liked: np.ndarray, factor: np.ndarray) -> vr.NoiseRates:
    """Return the rates that all labels have on average, whatever the pair."""
    of_liked, of_others = ((weights * factor).sum() / weights.sum() for weights in (liked, 1 - liked))
    return vr.NoiseRates(RATES.rho01 * float(of_liked), RATES.rho10 * float(of_others))


CASES = {"worlds": worlds, "kuairec": kuairec, "coat": coat, "adverse": adverse}


def judged(case: Case) -> dict[tuple[str, str], tuple[bool, bool, bool, float]]:
    """Return, for each recommender and pair of them: truth in range, in interval, established, and width."""
    losses = {name: CellLosses(DenseCells(given), get_loss("log")) for name, given in case.recommenders.items()}
    asked = losses | {f"{a}-{b}": LossDifference(losses[a], losses[b]) for a, b in combinations(losses, 2)}
    pairs = LoggedPairs(case.log, vr.LogisticPropensity(l2=0.1).fit(case.log))
    problem = RangeProblem.of(pairs, vr.SelectionRange(0, 3), case.noise, exclude=case.exclude)
    found = {}
    for (name, one), range_ in zip(asked.items(), judge_by_range(problem, list(asked.values()), 0.95), strict=True):
        truth = _truth(case, one)
        low, high = range_.interval
        inside = range_.range[0] <= truth <= range_.range[1]
        established = not low <= 0 <= high
        kind = "difference" if "-" in name else "level"
        found[kind, name] = inside, low <= truth <= high, established, high - low
    return found


def _truth(case: Case, losses: CellLosses | LossDifference) -> float:
    if isinstance(case.truth, tuple):
        users, items, labels = case.truth
    else:
        labels = case.truth
        users, items = np.arange(labels.shape[0])[:, None], np.arange(labels.shape[1])[None, :]
    negative, difference = losses.cells(users, items)
    return float((negative + labels * difference).mean())


def run(seed: int, names: list[str]) -> list[tuple[str, dict[tuple[str, str], tuple[bool, bool, bool, float]]]]:
    """Judge one of each."""
    return [(case.name, judged(case)) for name in names for case in CASES[name](seed)]


def _home() -> str:
    return os.environ.get("VERIREC_DATA", "../shared/data")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    options = parser.parse_args()
    by_case: dict[tuple[str, str, str], list[tuple[bool, bool, bool, float]]] = defaultdict(list)
    with ProcessPoolExecutor(options.workers) as workers:
        for results in workers.map(partial(run, names=options.cases), range(options.runs)):
            for name, found in results:
                for (kind, which), one in found.items():
                    by_case[name, kind, which].append(one)
    print("| case | of | in range | in interval | worst | established | wrongly | width |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for name, kind in dict.fromkeys(key[:2] for key in by_case):
        groups = [np.array(found, float) for key, found in by_case.items() if key[:2] == (name, kind)]
        every = np.concatenate(groups)
        worst = min(group[:, 1].mean() for group in groups)
        # An established difference points the wrong way only where the interval misses the truth.
        wrongly = (every[:, 2] * (1 - every[:, 1])).mean()
        established = f"{every[:, 2].mean():.1%} | {wrongly:.2%}" if kind == "difference" else " | "
        held = f"{every[:, 0].mean():.1%} | {every[:, 1].mean():.1%} | {worst:.1%}"
        print(f"| {name} | {kind} | {held} | {established} | {every[:, 3].mean():.3f} |")


if __name__ == "__main__":
    main()
