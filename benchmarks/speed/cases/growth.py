"""How the verbs' time grows with the log: ten times as many users and ratings, the same catalogue of items.

The time at ten times the rows is divided by that of the smaller log, in turn and in one process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.speed.case import Case, Run, Target
from benchmarks.speed.material import file_of, random_factors, simulated_log

if TYPE_CHECKING:
    from pathlib import Path

    import verirec as vr

USERS, ITEMS, OBSERVED = 15_400, 2_000, 0.01
SIZES = {1: "0.31 million rows", 10: "3.1 million rows", 100: "31 million rows"}
ASKED = 2_000


def log_of(times: int) -> vr.FeedbackLog:
    """Return the log, this many times as large as the smallest."""
    return simulated_log(times * USERS, ITEMS, OBSERVED)


def read(times: int) -> Run:
    """Read it from a CSV file of integer ids."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv

    import verirec as vr

    def write(path: Path) -> None:
        log = log_of(times)
        columns = {"user": log.users, "item": log.items, "rating": log.labels}
        order = np.random.default_rng(0).permutation(len(log))
        pa.csv.write_csv(pa.table({name: column[order] for name, column in columns.items()}), path)

    file = file_of(f"growth-{times}.csv", write)
    return lambda: vr.read_log(file, user="user", item="item", rating="rating")


def estimate(times: int) -> Run:
    """Estimate the loss of factors with all that is the default."""
    import verirec as vr

    log, factors = log_of(times), random_factors(times * USERS, ITEMS)
    return lambda: vr.estimate(factors, log, noise_rates=vr.NoiseRates(0.2, 0.1))


def rank(times: int) -> Run:
    """Estimate how they rank."""
    import verirec as vr

    log, factors = log_of(times), random_factors(times * USERS, ITEMS)
    return lambda: vr.estimate_ranking(factors, log, noise_rates=vr.NoiseRates(0.2, 0.1))


def plan(times: int) -> Run:
    """Choose pairs to learn the noise rates from."""
    import verirec as vr

    log = log_of(times)
    return lambda: vr.plan_labels(log, budget=500)


def trained(log: vr.FeedbackLog) -> vr.methods.OMEDR:
    """Fit by as many sweeps at every size."""
    import verirec as vr

    method = vr.methods.OMEDR(solver="sweep", penalty_factors=200, epochs=5, patience=None)
    return method.fit(log, noise_rates=vr.NoiseRates(0.2, 0.1))


def train(times: int) -> Run:
    """Train, propensities and all."""
    log = log_of(times)
    return lambda: trained(log)


def evaluate(times: int) -> Run:
    """Evaluate the trained one on the log."""
    import verirec as vr

    log = log_of(times)
    fitted = trained(log)
    return lambda: vr.metrics.evaluate(fitted.predictions, log, k=5)


def recommend(times: int) -> Run:
    """Recommend to all users, a few at a time."""
    import numpy as np

    fitted = trained(log_of(times))
    everyone = np.arange(times * USERS)
    return lambda: [fitted.recommend(part, 10) for part in np.array_split(everyone, -(-len(everyone) // ASKED))]


def assess(times: int) -> Run:
    """Assess a recommender, with an audit of 500 pairs; without writing the page."""
    import numpy as np

    import verirec as vr

    log = log_of(times)
    rows = np.random.default_rng(0).choice(len(log), 500, replace=False)
    audit = vr.AuditSample(log.users[rows], log.items[rows], log.labels[rows])
    factors = random_factors(times * USERS, ITEMS)
    return lambda: vr.assess(log, {"factors": factors}, audit=audit)


def _case(verb: str, run: Callable[[int], Run], title: str, times: int, **given: Any) -> Case:
    large, small = f"{verb}, {SIZES[times]}", f"{verb}, {SIZES[times // 10]}"
    return Case(
        f"growth/{verb}" if times == 10 else f"growth/{verb}-31M",
        title,
        f"{SIZES[times // 10].removesuffix(' rows')} to {SIZES[times]}",
        {large: partial(run, times), small: partial(run, times // 10)},
        (Target(12.0, small),),
        **{"rounds": 3 if times == 10 else 2, "large": times > 10} | given,
    )


VERBS: dict[str, tuple[Callable[[int], Run], str]] = {
    "read": (read, "read a CSV file"),
    "estimate": (estimate, "estimate a loss"),
    "rank": (rank, "estimate rankings"),
    "plan": (plan, "plan labels"),
    "train": (train, "train by five sweeps"),
    "evaluate": (evaluate, "evaluate on the log"),
    "recommend": (recommend, "recommend to all users"),
    "assess": (assess, "assess a recommender"),
}
CASES = [
    _case(verb, run, title, times, **({"large": True} if verb in ("assess", "recommend") else {}))
    for times in (10, 100)
    for verb, (run, title) in VERBS.items()
]
