"""Finds what the race's cases are given: the plain loop's and our Adam's best of six settings, and the goal.

    python -m benchmarks.speed.tune_race [--sizes coat music kuairec] [--rounds 2] [--budget 60]

The goal is the log loss that the worst of the three gets to, and the AUC likewise, within .001. Takes half an hour.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
import torch
from benchmarks.speed.race import CONTENDERS, Seen, course, problem

RATES_TRIED, BATCHES_TRIED = (0.003, 0.01, 0.03), (2_048, 8_192)
Runs = list[tuple[float, int, list[Seen]]]


def all_runs(size: str, rounds: int, budget: float) -> dict[str, Runs]:
    """Run all contenders with all settings; sweeps have none."""
    given = problem(size)

    def stop(seen: list[Seen]) -> bool:
        losses = [one.log_loss for one in seen]
        return seen[-1].taken.cpu > budget or (len(seen) > 8 and min(losses[-6:]) > min(losses) + 0.003)

    runs: dict[str, Runs] = {name: [] for name in CONTENDERS}
    course(CONTENDERS["sweep"], given, 0.01, 2_048, stop=lambda seen: True)  # compiles
    for _ in range(rounds):
        for number, (rate, batch) in enumerate(itertools.product(RATES_TRIED, BATCHES_TRIED)):
            for name, run in CONTENDERS.items():
                if name != "sweep" or number == 0:
                    runs[name].append((rate, batch, course(run, given, rate, batch, stop=stop)))
    return runs


def show(size: str, runs: dict[str, Runs]) -> None:
    """Print the goal, and when each got there with its best settings."""
    reached = {name: min(one.log_loss for *_, seen in all_ for one in seen) for name, all_ in runs.items()}
    goal = max(reached.values()) + 0.001
    areas = {
        name: max(one.auc for *_, seen in all_ for one in seen if one.log_loss <= goal) for name, all_ in runs.items()
    }
    area = min(areas.values()) - 0.001
    print(f"{size}: to a log loss of {goal:.4f} and an AUC of {area:.4f}")
    for name, all_ in runs.items():
        times = [
            min((one.taken.cpu for one in seen if one.log_loss <= goal and one.auc >= area), default=np.inf)
            for *_, seen in all_
        ]
        rate, batch, _ = all_[int(np.argmin(times))]
        print(f"  {name}: {min(times):.3f} CPU s, rate {rate}, batch {batch}, best log loss {reached[name]:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["coat", "music", "kuairec"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--budget", type=float, default=60.0, help="CPU seconds of one run, at most")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for size in options.sizes:
        show(size, all_runs(size, options.rounds, options.budget))


if __name__ == "__main__":
    main()
