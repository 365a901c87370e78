"""A sweep of training beside one of implicit's ALS (conjugate gradients) on the same log.

implicit's ALS solves another problem: it takes all that is not in the log for a weak no. A sweep improves all users and
all items once, in both; OME-DR has two models to improve, predictions and imputations.
"""

from __future__ import annotations

from functools import partial

from benchmarks.speed.case import Case, Run, Target
from benchmarks.speed.material import simulated_log
from benchmarks.speed.watch import Laps

DIM, SWEEPS = 32, 4
ALS = "implicit ALS"
Shape = tuple[int, int, float]


def ours(method: str, shape: Shape, threads: int) -> Run:
    """Fit with a few sweeps; the least of them counts, what comes before and after does not."""
    import torch

    import verirec as vr

    torch.set_num_threads(threads)
    log = simulated_log(*shape)
    # A penalty above the bound, so that no rows have to be held out.
    settings = {"solver": "sweep", "dim": DIM, "validation": 0, "patience": None, "penalty_factors": 200}

    def run() -> object:
        laps = Laps()
        vr.methods.catalogue[method](epochs=SWEEPS, **settings).fit(
            log,
            noise_rates=vr.NoiseRates(0.2, 0.1),
            propensities=vr.ConstantPropensity(),
            progress=laps.lap,
        )
        return laps.least()

    return run


def als(shape: Shape, threads: int) -> Run:
    """Fit implicit's ALS likewise."""
    import numpy as np
    from implicit.cpu.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    log = simulated_log(*shape)
    ratings = csr_matrix((np.ones(len(log), np.float32), (log.users, log.items)), shape=log.shape)

    def run() -> object:
        laps = Laps()
        model = AlternatingLeastSquares(
            factors=DIM, num_threads=threads, iterations=SWEEPS, use_cg=True, random_state=0
        )
        model.fit(ratings, show_progress=False, callback=laps.lap)
        return laps.least()

    return run


def _case(rows: str, shape: Shape, threads: int, method: str = "ome-dr") -> Case:
    target = Target(0.55, ALS) if threads == 1 else Target(0.75, ALS, "wall")
    contenders = {method: partial(ours, method, shape, threads), ALS: partial(als, shape, threads)}
    large = rows == "31M"
    return Case(
        f"sweep/{rows}-{threads}" if method == "ome-dr" else f"sweep/{method}-{rows}-{threads}",
        f"a sweep of {method.upper()}, k = {DIM}",
        f"{rows} rows, {shape[0]:,} x {shape[1]:,}",
        contenders,
        (target,) if method == "ome-dr" else (),
        threads=threads,
        rounds=1 if large else 3,
        apart=True,
        large=large,
        units=shape[0] * shape[1] * shape[2],
    )


SHAPES: dict[str, Shape] = {
    "308k": (15_400, 1_000, 0.02),
    "3.1M": (154_000, 10_000, 0.002),
    "31M": (1_540_000, 100_000, 0.0002),
}
CASES = [
    *(_case(rows, shape, threads) for rows, shape in SHAPES.items() for threads in (1, 2)),
    _case("3.1M", SHAPES["3.1M"], 1, "ome-ips"),
]
