"""Choosing which labels to ask for, and propensities that look at features."""

from __future__ import annotations

from benchmarks.speed.case import Case, Run, Target
from benchmarks.speed.material import random_factors, simulated_log

SHAPE = (154_000, 10_000)


def plan_rates() -> Run:
    """Choose 500 logged pairs to learn the noise rates from."""
    import verirec as vr

    log = simulated_log(*SHAPE, 0.002)
    return lambda: vr.plan_labels(log, budget=500)


def plan_level() -> Run:
    """Choose 500 random pairs to learn a recommender's error from."""
    import verirec as vr

    log, factors = simulated_log(*SHAPE, 0.002), random_factors(*SHAPE)
    return lambda: vr.plan_labels(log, {"factors": factors}, budget=500)


def propensities() -> Run:
    """Fit the logistic propensity with features of users and items."""
    import numpy as np

    import verirec as vr

    plain, random = simulated_log(15_400, 1_000, 0.02), np.random.default_rng(0)
    user_features, item_features = (random.normal(size=(size, 20)) for size in plain.shape)
    log = vr.FeedbackLog.from_arrays(
        plain.users,
        plain.items,
        plain.labels,
        n_users=plain.n_users,
        n_items=plain.n_items,
        user_features=user_features,
        item_features=item_features,
    )
    return lambda: vr.LogisticPropensity().fit(log)


_ROWS = "3.1 million rows, 154,000 x 10,000"
CASES = [
    Case("plan/rates", "plan 500 pairs for the noise rates", _ROWS, {"plan": plan_rates}, (Target(7.0),), rounds=2),
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
