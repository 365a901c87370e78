"""How good `auto` is, against constants at their defaults: Coat, KuaiRec's block and simulated worlds.

    .venv/bin/python benchmarks/auto.py --data FOLDER [--seeds 12] [--only coat kuairec simulated] [--objective ranking]

Labels are flipped at (.2, .1), noise rates are given, test labels are clean and of random pairs, and nothing is chosen
by them. Coat: its self-selected ratings. KuaiRec: 400 users and 600 videos of the block in which every pair has a
label, 8% of the pairs logged, with log-odds that rise by 2 where the user likes the video. Simulated: 400 x 600, 8% of
the pairs logged, selectivity 0 and 2. One thread; means over seeds, with their standard errors. `--survey` gives `auto`
the true labels of so many random pairs, which are not tested on.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

import verirec as vr

RATES = vr.NoiseRates(0.2, 0.1)
METRICS = ("auc", "ndcg@5", "recall@5", "log_loss")


class Problem(NamedTuple):
    """What is trained on, and clean labels of random pairs."""

    log: vr.FeedbackLog
    test: vr.FeedbackLog


def coat(data: str, seed: int) -> Problem:
    found = vr.load_dataset("coat", data_home=data)
    return Problem(found.train.with_noise(RATES, random_state=seed), found.test)


def kuairec(data: str, seed: int) -> Problem:
    labels = vr.load_dataset("kuairec", data_home=data).complete
    random = np.random.default_rng([seed, 1])
    users, items = (random.choice(n, size, replace=False) for n, size in zip(labels.shape, (400, 600), strict=True))
    block = labels[np.ix_(np.sort(users), np.sort(items))]
    world = vr.simulate.on_matrix(block, noise_rates=RATES, observed=0.08, selectivity=2.0, random_state=seed)
    return Problem(world.log, _random_pairs(world, seed))


def simulated(selectivity: float, seed: int) -> Problem:
    world = vr.simulate.world(
        n_users=400, n_items=600, observed=0.08, selectivity=selectivity, noise_rates=RATES, random_state=seed
    )
    return Problem(world.log, _random_pairs(world, seed))


def _random_pairs(world: vr.simulate.World, seed: int) -> vr.FeedbackLog:
    """A hundred random pairs a user, with their true labels."""
    n_users, n_items = world.log.shape
    random = np.random.default_rng([seed, 2])
    items = np.concatenate([random.choice(n_items, 100, replace=False) for _ in range(n_users)])
    users = np.repeat(np.arange(n_users), 100)
    labels = world.at(users, items).true_labels
    return vr.FeedbackLog.from_arrays(users, items, labels, n_users=n_users, n_items=n_items)


def problems(only: list[str], data: str, seeds: int) -> Iterator[tuple[str, list[Problem]]]:
    if "coat" in only:
        yield "Coat", [coat(data, seed) for seed in range(seeds)]
    if "kuairec" in only:
        yield "KuaiRec's block", [kuairec(data, seed) for seed in range(seeds)]
    if "simulated" in only:
        for selectivity in (0.0, 2.0):
            yield f"simulated, selectivity {selectivity:g}", [simulated(selectivity, seed) for seed in range(seeds)]


def asked(problem: Problem, size: int, seed: int) -> tuple[vr.SurveySample | None, vr.FeedbackLog]:
    """Ask about some of the random pairs; the others test."""
    if not size:
        return None, problem.test
    chosen = np.zeros(len(problem.test), bool)
    chosen[np.random.default_rng([seed, 3]).choice(len(problem.test), size, replace=False)] = True
    rows = problem.test.select(chosen)
    return vr.SurveySample(rows.users, rows.items, rows.labels), problem.test.select(~chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with the data sets")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--only", nargs="+", default=["coat", "kuairec", "simulated"])
    parser.add_argument("--objective", default="ranking")
    parser.add_argument("--survey", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name, found in problems(options.only, options.data, options.seeds):
        print(f"\n{name}, {len(found)} seeds, objective {options.objective}, survey of {options.survey}")
        rows, fell_back, seconds = [], 0, []
        for seed, problem in enumerate(found):
            survey, test = asked(problem, options.survey, seed)
            constants = vr.methods.MF(model="constants", random_state=seed).fit(problem.log, noise_rates=RATES)
            start = time.process_time()
            auto = vr.methods.Auto(objective=options.objective, random_state=seed)
            auto.fit(problem.log, noise_rates=RATES, survey=survey)
            seconds.append(time.process_time() - start)
            both = [vr.metrics.evaluate(one.predictions, test, k=5) for one in (constants, auto)]
            rows.append([[one[metric] for metric in METRICS] for one in both])
            search = auto.report_.search
            fell_back += search["chosen"] == search["reference"]
            print(f"  seed {seed}: {search['trials'][search['chosen']]}, AUC {rows[-1][1][0]:.4f}, "
                  f"constants {rows[-1][0][0]:.4f}", flush=True)  # fmt: skip
        table = np.array(rows)
        print("| | AUC | NDCG@5 | Recall@5 | log loss |\n|---|---|---|---|---|")
        _print("constants", table[:, 0])
        _print("auto", table[:, 1])
        _print("difference", table[:, 1] - table[:, 0])
        least = (table[:, 1, 0] - table[:, 0, 0]).min()
        print(f"Least difference in AUC {least:+.4f}; constants returned in {fell_back} of {len(found)}; "
              f"{np.mean(seconds):.1f} CPU s a fit, at most {max(seconds):.1f}", flush=True)  # fmt: skip


def _print(name: str, values: np.ndarray) -> None:
    error = values.std(0, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.zeros(values.shape[1])
    cells = " | ".join(f"{mean:.4f} ± {one:.4f}" for mean, one in zip(values.mean(0), error, strict=True))
    print(f"| {name} | {cells} |")


if __name__ == "__main__":
    main()
