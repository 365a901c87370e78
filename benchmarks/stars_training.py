"""Training on stars: how far predictions are off beside Cornac's and Surprise's, what a sweep costs beside implicit's.

    pip install cornac scikit-surprise implicit      # in an environment of its own that has verirec
    python benchmarks/stars_training.py accuracy --data FOLDER [--seeds 5]
    python benchmarks/stars_training.py speed [--rounds 7]

"accuracy": MovieLens 100K, a random tenth as test, and of the rest a random tenth to tune by. Every library is tuned on
the same validation rows over a grid of the same kind (factors, penalty), and the best is fitted on all but the test
rows. All predictions are kept within the scale. "mf as it comes" has no parameter set and sees no validation row beyond
those that it holds out itself.

"speed": one log, the same number of factors, sweeps of both in turn; the least of several, in seconds of wall and CPU.
implicit's are alternating least squares by conjugate gradients, as it comes; BLAS has one thread, as it asks for.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import verirec as vr

STARS = (1.0, 2.0, 3.0, 4.0, 5.0)
SIZES = {"movielens-100k": (943, 1_682, 100_000), "1 million": (20_000, 4_000, 1_000_000)}
Log = vr.FeedbackLog
Fit = Callable[[Log, Log], np.ndarray]
"""From rows to train on and rows to predict to predicted stars."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("accuracy", "speed"))
    parser.add_argument("--data", help="the folder that holds movielens-100k")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.what == "speed":
        speed(options.rounds)
    else:
        accuracy(Path(options.data), options.seeds)


# How far predictions are off


def accuracy(data: Path, seeds: int) -> None:
    log = vr.load_dataset("movielens-100k", data_home=data, positive_from=4).train
    log = Log.from_arrays(log.users, log.items, log.ratings, n_users=log.n_users, n_items=log.n_items, levels=STARS)
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        rest, test = vr.split(log, 0.1, by="random", random_state=seed)
        train, valid = vr.split(rest, 0.1, by="random", random_state=100 + seed)
        for name, fits in candidates().items():
            tried = {key: rmse(fit(train, valid), valid) for key, fit in fits.items()} if len(fits) > 1 else {}
            best = min(tried, key=tried.__getitem__) if tried else next(iter(fits))
            found.setdefault(name, []).append(rmse(fits[best](rest, test), test))
            print(f"seed {seed}  {name:<24}{found[name][-1]:.4f}  {best}", flush=True)
    print(f"\n{'test RMSE':<24}{'mean':>8}{'s.e.':>8}{'s.e. of the difference from verirec mf':>40}")
    for name, values in found.items():
        beside = np.subtract(values, found["verirec mf"])
        print(f"{name:<24}{np.mean(values):>8.4f}{standard_error(values):>8.4f}{standard_error(beside):>40.4f}")


def standard_error(values: Any) -> float:
    return float(np.std(values, ddof=1) / len(values) ** 0.5)


def rmse(stars: np.ndarray, log: Log) -> float:
    return float(np.sqrt(((np.clip(stars, 1, 5) - log.label_values) ** 2).mean()))


def candidates() -> dict[str, dict[Any, Fit]]:
    return {
        "verirec mf as it comes": {(): lambda train, test: ours(train, test)},
        "verirec mf": {
            key: lambda train, test, key=key: ours(train, test, dim=key[0], penalty_factors=key[1])
            for key in itertools.product((8, 16, 32, 64), (11.0, 13.0, 15.0, 17.0))
        },
        "verirec mf, ordinal": {(): lambda train, test: ours(train, test, head="ordinal", dim=16)},
        "Cornac MF": {
            key: lambda train, test, key=key: cornac_mf(train, test, *key)
            for key in itertools.product((10, 30, 100), (0.05, 0.1, 0.15), (50, 100))
        },
        "Surprise SVD": {
            key: lambda train, test, key=key: surprise_svd(train, test, *key)
            for key in itertools.product((20, 100), (0.05, 0.1, 0.15), (30, 60))
        },
    }


def ours(train: Log, test: Log, **parameters: Any) -> np.ndarray:
    recommender = vr.methods.MF(random_state=0, **parameters).fit(train).recommender_
    return recommender.predict(train.user_ids.ids(test.users), train.item_ids.ids(test.items))


def cornac_mf(train: Log, test: Log, factors: int, penalty: float, epochs: int) -> np.ndarray:
    import cornac

    rows = cornac.data.Dataset.from_uir(
        list(zip(train.users.tolist(), train.items.tolist(), train.label_values.tolist(), strict=True)), seed=0
    )
    model = cornac.models.MF(
        k=factors, max_iter=epochs, learning_rate=0.01, lambda_reg=penalty, use_bias=True, seed=0, verbose=False
    ).fit(rows)
    # What it does not know is predicted by the constants of the rest, as its own evaluation does.
    users = [rows.uid_map.get(user, rows.num_users) for user in test.users.tolist()]
    items = [rows.iid_map.get(item, rows.num_items) for item in test.items.tolist()]
    return np.array([model.rate(user, item) for user, item in zip(users, items, strict=True)])


def surprise_svd(train: Log, test: Log, factors: int, penalty: float, epochs: int) -> np.ndarray:
    import pandas as pd
    from surprise import SVD, Dataset, Reader

    frame = pd.DataFrame({"user": train.users, "item": train.items, "rating": train.label_values})
    rows = Dataset.load_from_df(frame, Reader(rating_scale=(1, 5))).build_full_trainset()
    model = SVD(n_factors=factors, n_epochs=epochs, reg_all=penalty, lr_all=0.005, random_state=0).fit(rows)
    return np.array([model.predict(*pair).est for pair in zip(test.users.tolist(), test.items.tolist(), strict=True)])


# What a sweep costs


def speed(rounds: int) -> None:
    import torch

    threads = torch.get_num_threads()
    print(f"{threads} threads; seconds of a sweep, the least of {rounds}: wall (CPU)")
    for name, (n_users, n_items, rows) in SIZES.items():
        log = drawn_log(n_users, n_items, rows)
        for factors, method in itertools.product((16, 32, 64), ("mf", "dr")):
            best: dict[str, list[float]] = {}
            for _ in range(rounds):
                for who, sweeps in (
                    ("ours", our_sweeps(log, factors, method)),
                    ("implicit's", their_sweeps(log, factors, threads)),
                ):
                    least = [min(column) for column in zip(*sweeps, strict=True)]
                    best[who] = [min(pair) for pair in zip(best.get(who, least), least, strict=True)]
            shown = "   ".join(f"{who} {wall:.4f} ({cpu:.4f})" for who, (wall, cpu) in best.items())
            ratios = [one / two for one, two in zip(best["ours"], best["implicit's"], strict=True)]
            print(
                f"{name:<16}{method:<4}{factors:>3} factors   {shown}   ratio {ratios[0]:.2f} ({ratios[1]:.2f})",
                flush=True,
            )


def drawn_log(n_users: int, n_items: int, rows: int) -> Log:
    """Draw a log whose users and items are as unequal as in practice."""
    random = np.random.default_rng(0)
    users = (n_users * random.random(3 * rows) ** 2).astype(np.int64)
    items = (n_items * random.random(3 * rows) ** 3).astype(np.int64)
    cells = np.unique(users * n_items + items)
    users, items = np.divmod(np.sort(random.choice(cells, min(rows, len(cells)), replace=False)), n_items)
    stars = random.integers(1, 6, len(users))
    return Log.from_arrays(users, items, stars, n_users=n_users, n_items=n_items, levels=STARS)


def our_sweeps(log: Log, factors: int, method: str) -> Iterator[tuple[float, float]]:
    marks: list[tuple[float, float]] = []

    def mark(*_: Any) -> None:
        marks.append((time.perf_counter(), time.process_time()))

    how = {"dim": factors, "validation": 0, "refit": False, "epochs": 6, "solver": "sweep"}
    flat = vr.ConstantPropensity().fit(log)
    vr.methods.catalogue[method](**how).fit(log, propensities=flat, progress=mark)
    return ((two[0] - one[0], two[1] - one[1]) for one, two in itertools.pairwise(marks))


def their_sweeps(log: Log, factors: int, threads: int) -> Iterator[tuple[float, float]]:
    from implicit.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    matrix = csr_matrix((log.label_values.astype(np.float32), (log.users, log.items)), shape=log.shape)
    model = AlternatingLeastSquares(factors=factors, iterations=6, random_state=0, num_threads=threads)
    marks: list[tuple[float, float]] = []

    def mark(*_: Any) -> None:
        marks.append((time.perf_counter(), time.process_time()))

    model.fit(matrix, show_progress=False, callback=mark)
    return ((two[0] - one[0], two[1] - one[1]) for one, two in itertools.pairwise(marks))


if __name__ == "__main__":
    main()
