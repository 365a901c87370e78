"""How often 95% intervals hold the truth of predicted stars and distributions, with noise between neighbouring levels.

    .venv/bin/python benchmarks/stars_coverage.py [--runs 400] [--workers 2] [--only movielens]

Two worlds of five levels on real data, of 150 users and 250 items each. "movielens": ratings of MovieLens 100K
completed by matrix factorisation, with a residual of the size that real ratings have, and sorted into levels with the
log's own shares. "kuairec": watch ratios cut at .2, .5, 1 and 2; above 2 it is the complete block's own label, the
others are known where the random sample has them and completed elsewhere.

What is logged depends on the true level (the higher, the likelier), and 30% of what is logged is said to be a
neighbouring level. Each run draws log, audit and survey anew. Judged are completed stars, shrunk and shifted as a
model's are, and a distribution around them. By each of: known p of each pair and noise (naive and ome-dr); known p and
an audit of 500 logged pairs, no noise given (audited-dr; with strata of a score as control variate too); a survey of
500 random pairs, nothing else given (survey-ppi); and known p of each level and noise, where nobody knows a pair's true
level ("p by level").
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import verirec as vr
from verirec.simulate import complete_ratings, levels_by_rank, on_stars

DATA = Path(os.environ.get("VERIREC_DATA", Path(__file__).parents[2] / "shared" / "data"))
SHAPE, ASKED = (150, 250), 500
STARS = (1.0, 2.0, 3.0, 4.0, 5.0)
BAND = vr.TransitionMatrix.band(5, 0.3)
CHANCES = (0.1, 0.13, 0.2, 0.3, 0.5)
CUTS = (0.2, 0.5, 1.0, 2.0)
LOSSES = ("rmse", "mae", "log")
WORLDS = ("movielens", "kuairec")
Array = np.ndarray
Row = tuple[str, str, float, float, float, float, float]


class Judged(NamedTuple):
    """True stars of all pairs, and what is judged: two recommenders' stars, and a distribution."""

    true_values: Array
    stars: Array
    other: Array
    distribution: Array


@cache
def world_of(name: str) -> Judged:
    true_values, scores = _movielens() if name == "movielens" else _kuairec()
    spread = true_values.std() / scores.std()
    stars = 0.3 + true_values.mean() + 0.7 * spread * (scores - scores.mean())
    other = np.broadcast_to(true_values.mean(axis=0) + 0.2, true_values.shape)
    near = 0.02 + np.exp(-0.7 * (stars[..., None] - np.array(STARS)) ** 2)
    return Judged(true_values, stars, other, near / near.sum(axis=-1, keepdims=True))


def _movielens() -> tuple[Array, Array]:
    log = vr.load_dataset("movielens-100k", data_home=DATA, positive_from=4).train
    scores, random = complete_ratings(log), np.random.default_rng(0)
    users, items = (np.argsort(-np.bincount(side), kind="stable") for side in (log.users, log.items))
    scores = scores[np.ix_(users[: SHAPE[0]], items[: SHAPE[1]])]
    shares = tuple(np.bincount(log.ratings.astype(int), minlength=6)[1:] / len(log))
    return levels_by_rank(scores + random.normal(0, 0.9, SHAPE), shares).astype(float), scores


def _kuairec() -> tuple[Array, Array]:
    data, random = vr.load_dataset("kuairec", data_home=DATA), np.random.default_rng(0)
    levels = vr.FeedbackLog.from_arrays(
        data.test.users,
        data.test.items,
        1 + np.digitize(data.test.ratings, CUTS),
        n_users=data.test.n_users,
        n_items=data.test.n_items,
        levels=STARS,
    )
    scores = complete_ratings(levels)
    shares = np.bincount(levels.labels, minlength=5)[:4].astype(float)
    below = levels_by_rank(scores + random.normal(0, 0.9, scores.shape), (*(shares / shares.sum()), 0.0))
    truth = np.where(data.complete == 1, 5, below)
    # The binary block is right where it and the sample differ: it has all pairs.
    truth[levels.users, levels.items] = np.where(truth[levels.users, levels.items] == 5, 5, levels.labels + 1)
    block = np.ix_(*(random.permutation(full)[:part] for full, part in zip(truth.shape, SHAPE, strict=True)))
    return truth[block].astype(float), scores[block]


def one_run(task: tuple[str, int]) -> list[Row]:
    """Return world, loss, estimator and error, standard error and ends of each interval around the truth."""
    name, seed = task
    judged = world_of(name)
    random = np.random.default_rng([seed, WORLDS.index(name)])
    world = on_stars(judged.true_values, noise=BAND, propensities=CHANCES, random_state=random)
    audit = vr.AuditSample(*world.audit(ASKED, random), levels=STARS)
    survey = vr.SurveySample(*world.survey(ASKED, random), levels=STARS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(_rows(name, judged, world, audit, survey))


def _rows(
    name: str, judged: Judged, world: vr.simulate.GradedWorld, audit: vr.AuditSample, survey: vr.SurveySample
) -> Iterator[Row]:
    known = {"propensities": world.propensity_values}
    roads = (
        {"noise_rates": BAND, "estimators": ("naive", "ome-dr"), **known},
        {"audit": audit, "estimators": ("audited-dr",), **known},
        {"survey": survey, "estimators": ("survey-ppi",)},
    )
    by_level = {"propensities": vr.LevelPropensity(CHANCES), "noise_rates": BAND, "audit": audit}
    errors = vr.AuditErrors(strata_of="score").fit(world.log, audit=audit)
    more = {
        "ome-dr, p by level": by_level | {"estimators": ("ome-dr",)},
        "audited-dr, p by level": by_level | {"estimators": ("audited-dr",)},
        "audited-dr, strata of the score": known | {"audit": audit, "errors": errors, "estimators": ("audited-dr",)},
    }
    for loss in LOSSES:
        given = judged.distribution if loss == "log" else judged.stars
        truth = _truth(world, given, loss)
        for road in roads:
            for estimator, found in vr.estimate(given, world.log, loss=loss, **road).items():
                yield _row(name, loss, estimator, found, truth)
        for called, road in more.items():
            (found,) = vr.estimate(given, world.log, loss=loss, **road).values()
            yield _row(name, loss, called, found, truth)
    truth = _truth(world, judged.stars, "rmse") - _truth(world, judged.other, "rmse")
    for road in roads:
        alone = {"estimators": road["estimators"][-1:]}
        for estimator, found in vr.compare(
            judged.stars, judged.other, world.log, loss="rmse", **(road | alone)
        ).items():
            yield _row(name, "rmse, difference", estimator, found, truth)


def _truth(world: vr.simulate.GradedWorld, given: Array, loss: str) -> float:
    named = {"rmse": "squared", "mae": "absolute"}.get(loss, loss)
    mean = world.true_inaccuracy(given, named)
    return float(np.sqrt(mean)) if loss == "rmse" else mean


def _row(world: str, loss: str, estimator: str, found: vr.Estimate, truth: float) -> Row:
    ends = [end - truth for end in found.interval]
    return (f"{world} | {loss}", estimator, truth, found.value - truth, found.standard_error, *ends)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="+", default=list(WORLDS), choices=WORLDS)
    options = parser.parse_args()
    tasks = [(name, seed) for name in options.only for seed in range(options.runs)]
    with ProcessPoolExecutor(options.workers) as workers:
        rows = [row for found in workers.map(one_run, tasks, chunksize=5) for row in found]
    print(f"{options.runs} logs of {SHAPE[0]} x {SHAPE[1]}, with an audit and a survey of {ASKED} each")
    print("| world | of | estimator | truth | coverage (s.e.) | bias | sd | mean half-width |")
    print("|---|---|---|---|---|---|---|---|")
    for key in dict.fromkeys(row[:2] for row in rows):
        truths, errors, _, low, high = np.array([row[2:] for row in rows if row[:2] == key]).T
        share = float(((low <= 0) & (high >= 0)).mean())
        spread = np.sqrt(share * (1 - share) / len(errors))
        print(
            f"| {' | '.join(key)} | {truths.mean():.4f} | {share:.3f} ({spread:.3f}) | {errors.mean():+.4f} | "
            f"{errors.std():.4f} | {(high - low).mean() / 2:.4f} |"
        )


if __name__ == "__main__":
    main()
