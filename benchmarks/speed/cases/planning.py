"""Choosing which labels to ask for, and propensities that look at features."""

from __future__ import annotations

from benchmarks.speed.case import Case, Run, Target
from benchmarks.speed.material import random_factors, simulated_log

SHAPE, OBSERVED = (154_000, 10_000), 0.002


def plan_rates() -> Run:
    """Choose 500 logged pairs to learn the noise rates from."""
    import verirec as vr

    log = simulated_log(*SHAPE, OBSERVED)
    return lambda: vr.plan_labels(log, budget=500)


def plan_level() -> Run:
    """Choose 500 random pairs to learn a recommender's error from."""
    import verirec as vr

    log, factors = simulated_log(*SHAPE, OBSERVED), random_factors(*SHAPE)
    return lambda: vr.plan_labels(log, {"factors": factors}, budget=500)


def propensities() -> Run:
    """Fit the logistic propensity to a log that depends on features of users and items."""
    import numpy as np

    import verirec as vr

    random, (n_users, n_items) = np.random.default_rng(0), (15_400, 1_000)
    x, y = (random.normal(size=(size, 20)) for size in (n_users, n_items))
    constants = 0.7 * random.normal(size=(n_users, 1)) + 0.7 * random.normal(size=(1, n_items)) - 4.6
    logits = x @ (0.05 * random.normal(size=(20, 20))) @ y.T + constants
    users, items = np.nonzero(random.random(logits.shape) < 1 / (1 + np.exp(-logits)))
    labels = random.integers(2, size=len(users))
    sides = {"n_users": n_users, "n_items": n_items, "user_features": x, "item_features": y}
    log = vr.FeedbackLog.from_arrays(users, items, labels, **sides)
    return lambda: vr.LogisticPropensity(l2=1.0).fit(log)


_ROWS = "3.1 million rows, 154,000 x 10,000"
CASES = [
    Case(
        "plan/rates",
        "plan 500 pairs for the noise rates",
        _ROWS,
        {"plan": plan_rates},
        (Target(7.0),),
        rounds=2,
        units=SHAPE[0] * SHAPE[1] * OBSERVED,
    ),
    Case(
        "plan/level", "plan 500 pairs for a recommender's error", _ROWS, {"plan": plan_level}, (Target(7.0),), rounds=2
    ),
    Case(
        "plan/propensities",
        "fit propensities with features",
        "15,400 x 1,000, 20 x 20 features",
        {"fit": propensities},
        (Target(1.5),),
        rounds=2,
    ),
]
