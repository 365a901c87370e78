"""Estimates beside the predictions that they judge, computed block by block in double precision and added up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.speed.case import Case, Run, Target
from benchmarks.speed.material import random_factors, random_log, real_data

if TYPE_CHECKING:
    import numpy as np

FOUR = ("naive", "ips", "dr", "ome-dr")
PREDICTIONS = "predictions in float64"
Shape = tuple[int, int]


def estimators(shape: Shape, rows: int, which: Any) -> Run:
    """Estimate the log loss of factors, with fitted propensities and known noise rates."""
    import verirec as vr

    log, factors = random_log(*shape, rows), random_factors(*shape)
    p = vr.LogisticPropensity().fit(log)
    rates = vr.NoiseRates(0.2, 0.1)
    return lambda: vr.estimate(factors, log, propensities=p, noise_rates=rates, estimators=which)


def predictions(shape: Shape) -> Run:
    """Add up all predictions: products of 32 factors and a sigmoid in float64, by two threads, a block at a time."""
    import numpy as np
    from scipy.special import expit

    factors = random_factors(*shape)
    height = max(1, (1 << 17) // shape[1])

    def block(start: int) -> np.floating[Any]:
        logits = factors.user_factors[start : start + height] @ factors.item_factors.T
        return expit(logits.astype(np.float64)).sum()

    def run() -> float:
        with ThreadPoolExecutor(2) as pool:
            return float(sum(pool.map(block, range(0, shape[0], height))))

    return run


def movielens() -> Run:
    """Estimate by all 16 on MovieLens 100K, with uncertain noise rates and a dense matrix of predictions."""
    import numpy as np

    import verirec as vr

    log = real_data("movielens-100k").train
    p = vr.LogisticPropensity().fit(log)
    dense = np.random.default_rng(0).uniform(0.05, 0.95, log.shape)
    rates = vr.NoiseRates(0.2, 0.1, covariance=((4e-4, 0.0), (0.0, 4e-4)))
    return lambda: vr.estimate(dense, log, propensities=p, noise_rates=rates, estimators="all")


def survey_ppi() -> Run:
    """Judge two recommenders by a survey of 500 pairs; fitting the label model is in the time."""
    import numpy as np

    import verirec as vr

    shape, random = (10_000, 5_000), np.random.default_rng(1)
    log = random_log(*shape, 100_000)
    asked = np.unique(random.integers(shape[0] * shape[1], size=500))
    survey = vr.SurveySample(*np.divmod(asked, shape[1]), (random.random(len(asked)) < 0.2).astype(int))
    both = [vr.Factors(*(random.normal(0, 0.3, (size, 32)).astype(np.float32) for size in shape)) for _ in range(2)]
    return lambda: [vr.estimate(one, log, survey=survey, estimators="survey-ppi") for one in both]


def _cases(name: str, size: str, shape: Shape, rows: int, large: bool) -> list[Case]:
    beside = {PREDICTIONS: partial(predictions, shape)}
    memory = (Target(1.5, measure="extra_gb"),) if large else ()
    given: dict[str, Any] = {"threads": 2, "apart": large, "large": large, "rounds": 2 if large else 3}
    given["units"] = shape[0] * shape[1]
    return [
        Case(
            f"estimate/four-{name}",
            "naive, ips, dr and ome-dr",
            size,
            {"four estimators": partial(estimators, shape, rows, FOUR)} | beside,
            (Target(1.35, PREDICTIONS), *memory),
            **given,
        ),
        Case(
            f"estimate/all-{name}",
            "all 16 estimators",
            size,
            {"all estimators": partial(estimators, shape, rows, "all")} | beside,
            (Target(2.0, PREDICTIONS), *memory),
            **given,
        ),
    ]


CASES = [
    *_cases("500k", "10,000 x 5,000, 0.5 million rows", (10_000, 5_000), 500_000, large=False),
    *_cases("10M", "100,000 x 10,000, 10 million rows", (100_000, 10_000), 10_000_000, large=True),
    Case(
        "estimate/ml-100k",
        "all 16 estimators, dense predictions",
        "MovieLens 100K, 943 x 1,682",
        {"all estimators": movielens},
        (Target(0.12),),
        threads=2,
        rounds=5,
    ),
    Case(
        "estimate/survey",
        "survey-ppi of two recommenders",
        "10,000 x 5,000, 0.1 million rows",
        {"survey-ppi": survey_ppi, PREDICTIONS: partial(predictions, (10_000, 5_000))},
        threads=2,
        rounds=2,
    ),
]
