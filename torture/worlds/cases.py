"""The corner worlds themselves: what is odd about each, in a few lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import verirec as vr

Array = np.ndarray
RATES = vr.NoiseRates(0.2, 0.1)
BY_LOG = ("ome-ips", "ome-snips", "ome-dr")
CLEAN = ("ips", "snips", "dr")
EASY = (80, 60)


@dataclass(frozen=True)
class Case:
    """One draw of a world.

    Parameters
    ----------
    predictions, log
        What is judged, and by what.
    truth
        The mean log loss over the grid, by true labels.
    estimators
        Those that claim to hold here.
    given
        What else `estimate` is given.
    """

    predictions: Array
    log: vr.FeedbackLog
    truth: float
    estimators: tuple[str, ...]
    given: dict[str, Any] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """Return what `estimate` is called with."""
        return {"estimators": self.estimators} | self.given


@dataclass(frozen=True)
class World:
    """A world by name; `draw` makes a case of it."""

    name: str
    draw: Callable[[np.random.Generator], Case]


@dataclass(frozen=True)
class Grid:
    """All there is to know of all pairs, shape (n_users, n_items) each."""

    tastes: Array
    likes: Array
    p: Array
    logged: Array
    said: Array

    def cloned(self, times: int) -> Grid:
        """Let each user be there several times, with the same likes, rows and answers."""
        return Grid(*(np.repeat(part, times, axis=0) for part in vars(self).values()))

    def case(self, estimators: tuple[str, ...], predictions: Array | None = None, **given: Any) -> Case:
        """Put it together; by default p and the noise rates are known."""
        f = 0.15 + 0.7 * self.tastes if predictions is None else predictions
        users, items = np.nonzero(self.logged)
        shape = {"n_users": self.p.shape[0], "n_items": self.p.shape[1]}
        log = vr.FeedbackLog.from_arrays(users, items, self.said[users, items], **shape)
        inside = np.clip(f, 1e-6, 1 - 1e-6)
        truth = float(-np.where(self.likes, np.log(inside), np.log(1 - inside)).mean())
        options = {"propensities": self.p, "noise_rates": RATES, "clip": 1e-6} | given
        return Case(f, log, truth, estimators, {name: one for name, one in options.items() if one is not None})


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + e^-x)."""
    return 1 / (1 + np.exp(-x))


def with_mean(logits: Array, share: float) -> Array:
    """Shift logits until their probabilities have this mean."""
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sigmoid(logits + middle).mean() < share else (low, middle)
    return sigmoid(logits + low)


def tastes(random: np.random.Generator, shape: tuple[int, int], liked: float = 0.4) -> Array:
    """Draw probabilities of being liked: constants of users and items, and two factors."""
    n_users, n_items = shape
    logits = random.normal(0, 0.6, (n_users, 1)) + random.normal(0, 0.8, n_items)
    return with_mean(logits + 0.6 * random.normal(size=(n_users, 2)) @ random.normal(size=(2, n_items)), liked)


def drawn(random: np.random.Generator, gamma: Array, p: Array, rates: vr.NoiseRates = RATES) -> Grid:
    """Draw likes, what is logged, and what is said."""
    likes = random.random(p.shape) < gamma
    return Grid(gamma, likes, p, random.random(p.shape) < p, rates.observe(likes, random.random(p.shape)))


def by_user_and_item(random: np.random.Generator, shape: tuple[int, int], share: float, spread: float = 0.6) -> Array:
    """Draw propensities that a logistic model of users and items can learn."""
    return with_mean(random.normal(0, spread, (shape[0], 1)) + random.normal(0, spread, shape[1]), share)


def easy(random: np.random.Generator, shape: tuple[int, int] = EASY, share: float = 0.15, **more: Any) -> Grid:
    """Draw an ordinary world."""
    return drawn(random, tastes(random, shape), by_user_and_item(random, shape, share), **more)


def usual(random: np.random.Generator) -> Case:
    """Draw a world that is not odd at all."""
    return easy(random).case(BY_LOG)


def usual_estimated(random: np.random.Generator) -> Case:
    """Have propensities learnt from the log."""
    return easy(random).case(BY_LOG, propensities=None)


def clones(random: np.random.Generator) -> Case:
    """Let each user be there ten times."""
    return easy(random, (40, 60)).cloned(10).case(BY_LOG)


def near_clones(random: np.random.Generator) -> Case:
    """Let each user be there ten times, a tenth of the rows left out and as many others added in each."""
    one = easy(random, (40, 60)).cloned(10)
    kept = one.logged & (random.random(one.p.shape) < 0.9)
    added = random.random(one.p.shape) < 0.1 * one.p
    said = RATES.observe(one.likes, random.random(one.p.shape))
    return replace(one, logged=kept | added, p=one.p * 0.9 + (1 - one.p * 0.9) * 0.1 * one.p, said=said).case(BY_LOG)


def groups(random: np.random.Generator) -> Case:
    """Let users of one group look at the same things: half of what decides who logs what is the group's."""
    shape, members = (200, 60), 10
    p = by_user_and_item(random, shape, 0.15)
    common = np.repeat(random.random((shape[0] // members, shape[1])), members, axis=0)
    chance = np.where(random.random(shape) < 0.5, common, random.random(shape))
    gamma = np.repeat(tastes(random, (shape[0] // members, shape[1])), members, axis=0)
    one = drawn(random, gamma, p)
    members_of = np.arange(shape[0]) // members
    return bootstrapped(replace(one, logged=chance < p).case(BY_LOG), user_groups=members_of)


def one_user(random: np.random.Generator) -> Case:
    """Let one user have nine tenths of the rows, and have propensities learnt."""
    shape = (60, 400)
    p = by_user_and_item(random, shape, 0.0016)
    p[0] = with_mean(random.normal(0, 0.6, shape[1]), 0.85)
    return drawn(random, tastes(random, shape), p).case(BY_LOG, propensities=None)


def complete(random: np.random.Generator) -> Case:
    """Log every pair, and have propensities learnt."""
    one = easy(random, (40, 30))
    return replace(one, logged=np.ones(one.p.shape, bool)).case(("ome-ips", "ome-dr"), propensities=None)


def complete_block(random: np.random.Generator) -> Case:
    """Log every pair of half the users and half the items, and nothing else."""
    one = easy(random, (40, 30))
    block = np.zeros(one.p.shape, bool)
    block[:20, :15] = True
    return replace(one, logged=block).case(BY_LOG, propensities=None)


def little_signal(random: np.random.Generator) -> Case:
    """Let noise leave 6% of the signal."""
    rates = vr.NoiseRates(0.5, 0.44)
    return easy(random, rates=rates).case(("ome-ips", "ome-dr"), noise_rates=rates)


def audited(random: np.random.Generator, size: int, rates: vr.NoiseRates = RATES) -> Case:
    """Audit some logged pairs, and know nothing else of the noise."""
    one = easy(random, (150, 100), rates=rates)
    users, items = np.nonzero(one.logged)
    asked = random.choice(len(users), size, replace=False)
    audit = vr.AuditSample(users[asked], items[asked], one.likes[users[asked], items[asked]])
    return one.case(("ome-ips", "ome-dr", "audited-dr"), noise_rates=None, audit=audit)


def tiny(random: np.random.Generator) -> Case:
    """Have some twenty rows."""
    return easy(random, (20, 10), 0.1).case(BY_LOG)


def tiny_estimated(random: np.random.Generator) -> Case:
    """Have some twenty rows, and propensities learnt."""
    return easy(random, (20, 10), 0.1).case(BY_LOG, propensities=None)


def rare_class(random: np.random.Generator) -> Case:
    """Let one pair in a hundred be liked."""
    p = by_user_and_item(random, (100, 80), 0.15)
    return drawn(random, tastes(random, p.shape, 0.01), p, vr.NoiseRates(0.0, 0.0)).case(CLEAN, noise_rates=None)


def poor_overlap(random: np.random.Generator) -> Case:
    """Let half of the items, which are liked more, hardly ever be logged."""
    p = by_user_and_item(random, EASY, 0.3)
    p[:, 30:] = 1e-4
    gamma = tastes(random, EASY)
    gamma[:, 30:] = 0.5 + gamma[:, 30:] / 2
    f = np.broadcast_to(0.15 + 0.7 * gamma[:, :30].mean(), EASY)
    return drawn(random, gamma, p).case(BY_LOG, f)


def one_rating(random: np.random.Generator) -> Case:
    """Have items with one row or none, and propensities learnt."""
    shape = (60, 400)
    return drawn(random, tastes(random, shape), by_user_and_item(random, shape, 0.025, 0.4)).case(
        BY_LOG, propensities=None
    )


def heavy_tail(random: np.random.Generator) -> Case:
    """Draw weights with so heavy a tail that they have no variance."""
    p = np.clip(random.random(EASY) ** 1.5, 1e-4, 1) * 0.5
    return drawn(random, tastes(random, EASY), p).case(BY_LOG)


def constant(random: np.random.Generator) -> Case:
    """Predict the same of all pairs."""
    return easy(random).case(BY_LOG, np.full(EASY, 0.4))


def omniscient(random: np.random.Generator) -> Case:
    """Predict what people truly like, and no more."""
    one = easy(random)
    return one.case(("ome-ips", "ome-dr"), np.where(one.likes, 0.95, 0.05))


def by_heart(random: np.random.Generator) -> Case:
    """Predict the logged labels of the logged pairs, which judge it, and the average elsewhere."""
    one = easy(random)
    known = np.where(one.said == 1, 0.95, 0.05)
    return one.case(("ome-ips", "ome-dr"), np.where(one.logged, known, 0.4))


def doubled(random: np.random.Generator) -> Case:
    """Give propensities that are twice as large as they are."""
    one = easy(random)
    return one.case(BY_LOG, propensities=np.minimum(2 * one.p, 1))


def flat(random: np.random.Generator) -> Case:
    """Give one propensity for all, where active users and liked items are logged far more."""
    gamma = tastes(random, EASY)
    of_items = np.log(gamma.mean(axis=0) / (1 - gamma.mean(axis=0)))
    one = drawn(random, gamma, with_mean(random.normal(0, 0.8, (EASY[0], 1)) + 1.5 * of_items, 0.15))
    return one.case(BY_LOG, propensities=np.full(EASY, 0.15))


def surveyed(random: np.random.Generator, size: int) -> Case:
    """Ask about a few random pairs."""
    one = easy(random)
    cells = random.choice(one.p.size, size, replace=False)
    users, items = np.divmod(cells, one.p.shape[1])
    survey = vr.SurveySample(users, items, one.likes[users, items])
    return one.case(("survey", "survey-ppi"), survey=survey)


def sampled(random: np.random.Generator, size: int, **more: Any) -> Case:
    """Visit a few of the unobserved pairs, where the visit is what varies most."""
    one = easy(random, (60, 60), 0.6, rates=vr.NoiseRates(0.0, 0.0))
    f = random.choice([0.03, 0.3, 0.9], one.p.shape)
    return one.case(("dr",), f, noise_rates=None, sample=size, random_state=int(random.integers(2**31)), **more)


def bootstrapped(case: Case, **more: Any) -> Case:
    """Ask for a bootstrap."""
    return replace(case, given=case.given | {"interval": "bootstrap", "draws": 200} | more)


WORLDS = (
    World("ordinary", usual),
    World("ordinary, propensities learnt", usual_estimated),
    World("ordinary, bootstrap", lambda random: bootstrapped(usual(random))),
    World("users cloned ten times", clones),
    World("users cloned ten times, bootstrap", lambda random: bootstrapped(clones(random))),
    World("near-clones", near_clones),
    World("near-clones, bootstrap", lambda random: bootstrapped(near_clones(random))),
    World("users alike within known groups, bootstrap", groups),
    World("one user with 90% of the rows, propensities learnt", one_user),
    World("all pairs logged, propensities learnt", complete),
    World("a complete block and nothing else, propensities learnt", complete_block),
    World("kappa .06", little_signal),
    *(World(f"audit of {size}", lambda random, size=size: audited(random, size)) for size in (5, 10, 20, 50, 100)),
    World("audit of 50, rates 0", lambda random: audited(random, 50, vr.NoiseRates(0.0, 0.0))),
    World("audit of 50, rates .02 and .45", lambda random: audited(random, 50, vr.NoiseRates(0.02, 0.45))),
    World("20 rows", tiny),
    World("20 rows, propensities learnt", tiny_estimated),
    World("one pair in 100 liked", rare_class),
    World("poor overlap", poor_overlap),
    World("items with one row, propensities learnt", one_rating),
    World("weights with a heavy tail", heavy_tail),
    World("one prediction for all", constant),
    World("predictions are the true labels", omniscient),
    World("predictions are the logged labels", by_heart),
    World("propensities given twice too large", doubled),
    World("one propensity given for all", flat),
    *(World(f"survey of {size}", lambda random, size=size: surveyed(random, size)) for size in (5, 10, 20, 50)),
    *(World(f"sample={size}", lambda random, size=size: sampled(random, size)) for size in (5, 10, 30)),
    World("sample=100, bootstrap", lambda random: bootstrapped(sampled(random, 100))),
)
