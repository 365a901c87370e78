"""What survey-ppi of two recommenders costs beside one walk over the grid with the losses of both.

    .venv/bin/python benchmarks/survey_speed.py [--users 20000] [--items 5000] [--rounds 3]

Both in one process and in turn, the least of several rounds; wall seconds and the processor's own. The log has ten rows
a user; fitting the label model to it, and all that the survey needs besides, is in the time.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import verirec as vr
from verirec.estimation.setup import cell_losses
from verirec.estimation.survey.problem import survey_results
from verirec.estimation.survey.target import Target


def timed(function: Callable[[], object]) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    shape, random = (options.users, options.items), np.random.default_rng(0)
    cells = np.unique(random.integers(options.users * options.items, size=10 * options.users))
    labels = (random.random(len(cells)) < 0.3).astype(int)
    log = vr.FeedbackLog.from_arrays(*np.divmod(cells, options.items), labels, n_users=shape[0], n_items=shape[1])
    asked = np.unique(random.integers(options.users * options.items, size=500))
    answers = (random.random(len(asked)) < 0.2).astype(int)
    survey = vr.SurveySample(*np.divmod(asked, options.items), answers)
    losses = [
        cell_losses(
            vr.Factors(*(random.normal(0, 0.3, (size, 32)) for size in shape)), log, "log", None, counts_grid=True
        )
        for _ in range(2)
    ]

    def walk() -> object:
        return Target(shape).means(lambda users, items: [one.cells(users, items)[0] for one in losses])

    def judge() -> object:
        given = {"confidence": 0.95, "exclude": None, "sample": None, "seed": 0}
        return survey_results(losses, ["survey-ppi"], survey, log, None, **given)

    rounds = [(timed(walk), timed(judge)) for _ in range(options.rounds)]
    least = np.array(rounds).min(axis=0)
    print(f"{shape[0]:,} x {shape[1]:,}, least of {options.rounds} rounds")
    print("| | wall, s | processor, s |\n|---|---|---|")
    for name, (wall, processor) in zip(("walk over the grid, both losses", "survey-ppi of both"), least, strict=True):
        print(f"| {name} | {wall:.2f} | {processor:.2f} |")
    print(f"| ratio | {least[1, 0] / least[0, 0]:.2f} | {least[1, 1] / least[0, 1]:.2f} |")


if __name__ == "__main__":
    main()
