"""How long estimates take, against just computing the predictions, block by block.

    .venv/bin/python benchmarks/estimators.py [--rounds 3] [--users 100000] [--items 10000] [--observed 0.01]

First all 16 estimators at once on a grid of MovieLens-100K's size, with a dense matrix of predictions; then four
estimators on a large grid with factors of 32, where the comparison is a walk over the same factors that adds up the
predictions, with as many threads. All in one process, rounds interleaved, least wall and CPU seconds; peak memory of
the process.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import verirec as vr
from verirec.data.grid import Grid
from verirec.data.predictions import as_predictions

UNCERTAIN = vr.NoiseRates(0.2, 0.1, covariance=((4e-4, 0.0), (0.0, 4e-4)))


def timed(function: Callable[[], Any], least: dict[str, tuple[float, float]], name: str) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    taken = time.perf_counter() - wall, time.process_time() - cpu
    before = least.get(name, (np.inf, np.inf))
    least[name] = min(before[0], taken[0]), min(before[1], taken[1])
    return result


def walk(factors: vr.Factors, shape: tuple[int, int]) -> float:
    cells = as_predictions(factors, *shape)
    return Grid(shape, block_cells=1 << 17).total(cells.cells)


def small(rounds: int) -> None:
    world = vr.simulate.world(943, 1682, observed=0.063, random_state=0)
    predictions = np.clip(0.2 + 0.6 * world.preferences, 0.01, 0.99)
    least: dict[str, tuple[float, float]] = {}
    for _ in range(rounds):
        p = timed(lambda: vr.LogisticPropensity().fit(world.log), least, "logistic propensity")
        for imputation in ("constant", "model"):
            timed(
                lambda p=p, imputation=imputation: vr.estimate(
                    predictions,
                    world.log,
                    propensities=p,
                    noise_rates=UNCERTAIN,
                    estimators="all",
                    imputation=imputation,
                ),
                least,
                f"all 16 estimators, imputation {imputation}",
            )
    print(f"943 x 1,682, {len(world.log):,} rows")
    show(least)


def large(rounds: int, n_users: int, n_items: int, observed: float) -> None:
    random = np.random.default_rng(0)
    keys = np.unique(random.integers(n_users * n_items, size=int(n_users * n_items * observed)))
    users, items = np.divmod(keys, n_items)
    log = vr.FeedbackLog.from_arrays(users, items, random.integers(2, size=len(keys)), n_users=n_users, n_items=n_items)
    del keys, users, items
    factors = vr.Factors(
        random.normal(0, 0.4, (n_users, 32)).astype(np.float32), random.normal(0, 0.4, (n_items, 32)).astype(np.float32)
    )
    least: dict[str, tuple[float, float]] = {}
    for _ in range(rounds):
        timed(lambda: walk(factors, (n_users, n_items)), least, "predictions alone")
        p = timed(lambda: vr.LogisticPropensity().fit(log), least, "logistic propensity")
        timed(
            lambda p=p: vr.estimate(
                factors,
                log,
                propensities=p,
                noise_rates=vr.NoiseRates(0.2, 0.1),
                estimators=("naive", "ips", "dr", "ome-dr"),
            ),
            least,
            "four estimators",
        )
    print(f"{n_users:,} x {n_items:,}, {len(log):,} rows, factors of 32")
    show(least)
    ratios = [ours / theirs for ours, theirs in zip(least["four estimators"], least["predictions alone"], strict=True)]
    print(f"four estimators to predictions alone: wall {ratios[0]:.2f}, cpu {ratios[1]:.2f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def show(least: dict[str, tuple[float, float]]) -> None:
    print("| | wall s | cpu s |\n|---|---|---|")
    for name, (wall, cpu) in least.items():
        print(f"| {name} | {wall:.3f} | {cpu:.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--observed", type=float, default=0.01)
    options = parser.parse_args()
    small(options.rounds)
    large(options.rounds, options.users, options.items, options.observed)


if __name__ == "__main__":
    main()
