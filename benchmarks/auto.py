"""How good `auto` is, against constants at their defaults, on data that shaped its search and on data that did not.

    .venv/bin/python benchmarks/auto.py --data FOLDER [--only coat simulated-2 ...] [--first 100] [--seeds 12]

Labels are flipped at (.2, .1), noise rates are given, test labels are clean and of random pairs (MovieLens: of random
ratings), and nothing is chosen by them. Seeds below 100 had a part in the design of the search; those from 100 on had
none. `--survey` gives `auto` the true labels of so many random pairs, which are not tested on. One thread; means over
seeds, with their standard errors.

- coat: its self-selected ratings. movielens: 100,000 ratings, liked from 4 stars, 30% held out.
- kuairec: 400 x 600 of the block in which every pair has a label, 8% logged, with log-odds that rise by 2 where a user
  likes the video. kuairec-whole: all of it, 2% logged. kuairec-0, -1, -3: other sizes, densities and selectivities.
- simulated-0, simulated-2: 400 x 600, 8% logged, selectivity 0 and 2; simulated-thin (1,000 x 500, 2%), simulated-dense
  (300 x 300, 30%), simulated-complaints (selectivity -2), simulated-clean (no noise, selectivity 3).
- music: 15,400 x 1,000, some 20 rows a user, five levels liked from 3, chosen by popularity, taste and rating.
- habits: what people come across follows habits that say nothing of what they like (groups of users and of items), and
  what they like of it is logged more readily. On these, held-out rows mislead, and no log can tell.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import expit

import verirec as vr
from verirec.studies.table2.problems import load_problem

RATES = vr.NoiseRates(0.2, 0.1)
METRICS = ("auc", "ndcg@5", "recall@5", "log_loss")


class Problem(NamedTuple):
    """What is trained on, and clean labels of random pairs."""

    log: vr.FeedbackLog
    test: vr.FeedbackLog


def coat(data: str, seed: int) -> Problem:
    found = vr.load_dataset("coat", data_home=data)
    return Problem(found.train.with_noise(RATES, random_state=seed), found.test)


def movielens(data: str, seed: int) -> Problem:
    log = vr.load_dataset("movielens-100k", data_home=data, positive_from=4).train
    train, test = vr.split(log, 0.3, random_state=seed)
    return Problem(train.with_noise(RATES, random_state=seed), test)


def kuairec(data: str, seed: int, size: tuple[int, int], observed: float, selectivity: float) -> Problem:
    labels = vr.load_dataset("kuairec", data_home=data).complete
    random = np.random.default_rng([seed, 1])
    users, items = (random.choice(n, some, replace=False) for n, some in zip(labels.shape, size, strict=True))
    block = labels[np.ix_(np.sort(users), np.sort(items))]
    world = vr.simulate.on_matrix(
        block, noise_rates=RATES, observed=observed, selectivity=selectivity, random_state=seed
    )
    return Problem(world.log, _random_pairs(world, seed))


def kuairec_whole(data: str, seed: int) -> Problem:
    problem = load_problem("kuairec", data)
    return Problem(problem.noisy(RATES, seed), problem.random)


def simulated(seed: int, size: tuple[int, int], observed: float, selectivity: float, rates: vr.NoiseRates) -> Problem:
    world = vr.simulate.world(*size, observed=observed, selectivity=selectivity, noise_rates=rates, random_state=seed)
    return Problem(world.log, _random_pairs(world, seed))


def _random_pairs(world: vr.simulate.World, seed: int) -> vr.FeedbackLog:
    """A hundred random pairs a user, with their true labels."""
    n_users, n_items = world.log.shape
    random = np.random.default_rng([seed, 2])
    items = np.concatenate([random.choice(n_items, 100, replace=False) for _ in range(n_users)])
    users = np.repeat(np.arange(n_users), 100)
    labels = world.at(users, items).true_labels
    return vr.FeedbackLog.from_arrays(users, items, labels, n_users=n_users, n_items=n_items)


def music(seed: int, n_users: int = 15_400, n_items: int = 1_000, tested: int = 5_400) -> Problem:
    """Ratings by taste, chosen by popularity, taste and the rating itself; ten random songs of some users tested."""
    random = np.random.default_rng([seed, 5])
    taste = random.normal(size=(n_users, 6)) @ random.normal(size=(n_items, 6)).T / 6**0.5
    z = 0.9 * taste + random.normal(0, 0.8, (n_users, 1)) + random.normal(0, 0.6, (1, n_items))
    z += random.normal(size=z.shape)
    rating = np.searchsorted(np.quantile(z[:500], [0.5, 0.67, 0.83, 0.93]), z)
    odds = random.normal(0, 1.2, n_items) + 1.2 * np.maximum(taste, -1) + np.array([0, 0.1, 0.4, 0.9, 1.4])[rating]
    first = np.argsort(-odds - random.gumbel(size=odds.shape), axis=1)
    counts = np.minimum(10 + random.geometric(0.1, n_users), n_items // 4)
    users = np.repeat(np.arange(n_users), counts)
    items = np.concatenate([row[:count] for row, count in zip(first, counts, strict=True)])
    asked_users = np.repeat(np.arange(tested), 10)
    asked_items = np.concatenate([random.choice(n_items, 10, replace=False) for _ in range(tested)])
    return _of(rating >= 2, (users, items), (asked_users, asked_items), seed)


def habits(seed: int, n_users: int = 400, n_items: int = 500, groups: int = 6, observed: float = 0.1) -> Problem:
    """Log-odds of being logged: habits of groups of users with groups of items, three times stronger where liked."""
    random = np.random.default_rng([seed, 9])
    habit = 2 * random.normal(size=(groups, groups))
    habit = habit[random.integers(groups, size=n_users)][:, random.integers(groups, size=n_items)]
    z = random.normal(0, 0.5, (n_users, 1)) + random.normal(0, 0.8, (1, n_items)) - 0.3
    z += 0.4 * random.normal(size=(n_users, 4)) @ random.normal(size=(n_items, 4)).T
    liked = random.random(z.shape) < expit(z)
    odds = habit * np.where(liked, 1, 0.3) + random.normal(0, 0.5, (n_users, 1)) + random.normal(0, 0.8, (1, n_items))
    level = brentq(lambda one: expit(odds + one).mean() - observed, -30, 30)
    logged = np.nonzero(random.random(z.shape) < expit(odds + level))
    tested = np.concatenate([random.choice(n_items, 100, replace=False) for _ in range(n_users)])
    return _of(liked, logged, (np.repeat(np.arange(n_users), 100), tested), seed)


def _of(liked: np.ndarray, logged: tuple[np.ndarray, ...], tested: tuple[np.ndarray, ...], seed: int) -> Problem:
    n_users, n_items = liked.shape
    train, test = (
        vr.FeedbackLog.from_arrays(users, items, liked[users, items].astype(np.int8), n_users=n_users, n_items=n_items)
        for users, items in (logged, tested)
    )
    return Problem(train.with_noise(RATES, random_state=seed), test)


PROBLEMS: dict[str, Callable[[str, int], Problem]] = {
    "coat": coat,
    "kuairec": lambda data, seed: kuairec(data, seed, (400, 600), 0.08, 2.0),
    "kuairec-whole": kuairec_whole,
    "kuairec-0": lambda data, seed: kuairec(data, seed, (300, 1000), 0.04, 0.0),
    "kuairec-1": lambda data, seed: kuairec(data, seed, (500, 500), 0.05, 1.0),
    "kuairec-3": lambda data, seed: kuairec(data, seed, (300, 800), 0.15, 3.0),
    "movielens": movielens,
    "simulated-0": lambda data, seed: simulated(seed, (400, 600), 0.08, 0.0, RATES),
    "simulated-2": lambda data, seed: simulated(seed, (400, 600), 0.08, 2.0, RATES),
    "simulated-thin": lambda data, seed: simulated(seed, (1000, 500), 0.02, 2.0, RATES),
    "simulated-dense": lambda data, seed: simulated(seed, (300, 300), 0.3, 2.0, RATES),
    "simulated-complaints": lambda data, seed: simulated(seed, (400, 600), 0.08, -2.0, RATES),
    "simulated-clean": lambda data, seed: simulated(seed, (500, 400), 0.06, 3.0, vr.NoiseRates(0, 0)),
    "music": lambda data, seed: music(seed),
    "habits": lambda data, seed: habits(seed),
}


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
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--only", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--objective", default="ranking")
    parser.add_argument("--survey", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in options.only:
        seeds = range(options.first, options.first + options.seeds)
        print(f"\n{name}, {len(seeds)} seeds, objective {options.objective}, survey of {options.survey}")
        rows, fell_back, seconds = [], 0, []
        for seed in seeds:
            problem = PROBLEMS[name](options.data, seed)
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
        print(f"Least difference in AUC {least:+.4f}; constants returned in {fell_back} of {len(seeds)}; "
              f"{np.mean(seconds):.1f} CPU s a fit, at most {max(seconds):.1f}", flush=True)  # fmt: skip


def _print(name: str, values: np.ndarray) -> None:
    error = values.std(0, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.zeros(values.shape[1])
    cells = " | ".join(f"{mean:.4f} ± {one:.4f}" for mean, one in zip(values.mean(0), error, strict=True))
    print(f"| {name} | {cells} |")


if __name__ == "__main__":
    main()
