"""How often the 95% intervals of audited-dr hold the truth, where people err near their threshold and p is known.

    .venv/bin/python benchmarks/audit_coverage.py [--audits 400] [--workers 2] [--sizes 100 300 1000]

Three worlds. "simulated": a pair is liked if its utility is above a threshold, and what is said of it goes by the
utility with an error of its own; "rarely wrong": the same with an error in one pair of sixty. "movielens": ratings
completed from MovieLens 100K; said is 1[stars >= 4], and true 1[stars + N(0, .6) >= 3.75]. Each repetition draws
truth, log and audit anew; an audit is a simple random one, or one whose pairs were drawn with unequal probabilities.
Beside it: ome-dr at the rates that the same audit gives by its joint likelihood, which takes the noise for the same in
all pairs of a class.
"""

from __future__ import annotations

import argparse
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import verirec as vr
from verirec.metrics import auc
from verirec.simulate.completion import complete_ratings

SHAPE, OBSERVED = (300, 400), 0.08
DATA = os.environ.get("VERIREC_DATA", Path(__file__).parents[1].parent / "shared" / "data")
DESIGNS = ("simple random", "unequal")
WHAT = ("level", "difference", "auc", "ndcg@5", "recall@5")

Found = dict[tuple[str, str, int, str, str], tuple[float, float, float, float]]


@cache
def utilities(world: str) -> np.ndarray:
    """Return what decides, in stars, of all pairs."""
    random = np.random.default_rng(0)
    if world == "movielens":
        log = vr.load_dataset("movielens-100k", data_home=DATA, positive_from=4).train
        stars = complete_ratings(log)
        users = np.argsort(-np.bincount(log.users, minlength=log.n_users))[: SHAPE[0]]
        items = np.argsort(-np.bincount(log.items, minlength=log.n_items))[: SHAPE[1]]
        return np.clip(np.round(stars[np.ix_(users, items)] + random.normal(0, 0.8, SHAPE)), 1, 5)
    u, v = random.normal(size=(SHAPE[0], 4)), random.normal(size=(SHAPE[1], 4))
    return 3.5 + 0.3 * u @ v.T + random.normal(0, 0.4, (SHAPE[0], 1)) + random.normal(0, 0.5, SHAPE[1])


def opinions(world: str, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return true labels and what is said of all pairs: they differ near the threshold."""
    stars = utilities(world)
    if world == "movielens":
        return (stars + random.normal(0, 0.6, SHAPE) >= 3.75).astype(int), (stars >= 4).astype(int)
    felt, error = stars + random.normal(0, 0.5, SHAPE), random.normal(0, 0.6 if world == "simulated" else 0.05, SHAPE)
    return (felt >= 3.75).astype(int), (felt + error >= 3.85 - 0.1 * (world != "simulated")).astype(int)


def grid_propensities(world: str) -> np.ndarray:
    """Return p: by user, item and taste, known to whoever estimates."""
    random = np.random.default_rng(1)
    logits = random.normal(0, 0.6, (SHAPE[0], 1)) + random.normal(0, 0.6, SHAPE[1]) + 0.4 * utilities(world)
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (1 + np.exp(-logits - middle))).mean() < OBSERVED else (low, middle)
    return 1 / (1 + np.exp(-logits - low))


def draw_audit(
    log: vr.FeedbackLog, truth: np.ndarray, p: np.ndarray, size: int, design: str, random: np.random.Generator
) -> vr.AuditSample:
    """Audit logged pairs, simply at random or each with a probability of its own."""
    if design == "simple random":
        rows, probabilities = random.choice(len(log), size, replace=False), None
    else:
        wanted = np.where(log.labels == 1, 1.0, 2.0) / np.sqrt(p[log.users, log.items])
        chance = np.minimum(wanted * size / wanted.sum(), 1)
        rows = np.flatnonzero(random.random(len(log)) < chance)
        probabilities = chance[rows]
    users, items = log.users[rows], log.items[rows]
    return vr.AuditSample(users, items, truth[users, items], probabilities)


def one_repetition(task: tuple[str, int, tuple[int, ...]]) -> Found:
    """Return error, standard error and ends of each interval around the truth, of one log."""
    world, seed, sizes = task
    random = np.random.default_rng([seed, 2])
    stars, p = utilities(world), grid_propensities(world)
    truth, said = opinions(world, random)
    users, items = np.nonzero(random.random(SHAPE) < p)
    log = vr.FeedbackLog.from_arrays(users, items, said[users, items], n_users=SHAPE[0], n_items=SHAPE[1])
    one = 1 / (1 + np.exp(-1.2 * (stars - 3.8)))
    two = np.clip(0.8 * one.mean(axis=0, keepdims=True) + 0.1 + 0 * one, 0.02, 0.98)

    def loss(f: np.ndarray) -> float:
        return float(-np.where(truth == 1, np.log(f), np.log(1 - f)).mean())

    order = np.argsort(-(stars + 1e-6 * np.arange(SHAPE[1])), axis=1)[:, :5]
    top = np.take_along_axis(truth, order, axis=1)
    discounts = 1 / np.log2(np.arange(2, 7))
    scores = stars + 1e-6 * np.arange(SHAPE[1])
    truths = {
        "level": loss(one),
        "difference": loss(one) - loss(two),
        "auc": auc(truth.ravel(), scores.ravel()),
        "ndcg@5": float((top @ discounts).mean() / discounts.sum()),
        "recall@5": float(top.sum() / truth.sum()),
    }
    found: Found = {}
    for size in sizes:
        for design in DESIGNS:
            options = {"propensities": p, "audit": draw_audit(log, truth, p, size, design, random)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                level = vr.estimate(one, log, **options, estimators=("ome-dr", "audited-dr"))
                difference = vr.compare(one, two, log, **options, estimators=("ome-dr", "audited-dr"))
                ranking = vr.estimate_ranking(scores, log, **options, k=5)
            estimates = {("level", name): level[name] for name in level}
            estimates |= {("difference", name): difference[name] for name in difference}
            estimates |= {(name, "audited-dr"): ranking[name] for name in WHAT[2:] if name in ranking}
            for (what, name), estimate in estimates.items():
                error = estimate.value - truths[what]
                ends = [end - truths[what] for end in estimate.interval]
                found[world, design, size, what, name] = (error, estimate.standard_error, *ends)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=400)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--worlds", nargs="+", default=["simulated", "rarely wrong", "movielens"])
    options = parser.parse_args()
    tasks = [(world, seed, tuple(options.sizes)) for world in options.worlds for seed in range(options.audits)]
    with ProcessPoolExecutor(options.workers) as workers:
        results = list(workers.map(one_repetition, tasks, chunksize=5))
    print(f"{options.audits} logs of {SHAPE[0]} x {SHAPE[1]}, {OBSERVED:.0%} observed, an audit of each")
    print("| world | audit | n | of | estimator | coverage (s.e.) | bias / sd | sd / s.e. | mean half-width |")
    print("|---|---|---|---|---|---|---|---|---|")
    for key in dict.fromkeys(key for result in results for key in result):
        errors, widths, low, high = np.array([result[key] for result in results if key in result]).T
        covered = (low <= 0) & (high >= 0)
        share, spread = covered.mean(), errors.std()
        error = np.sqrt(share * (1 - share) / len(covered))
        print(
            f"| {' | '.join(map(str, key))} | {share:.3f} ({error:.3f}) | {errors.mean() / spread:+.2f} | "
            f"{spread / np.sqrt((widths**2).mean()):.2f} | {(high - low).mean() / 2:.4f} |"
        )


if __name__ == "__main__":
    main()
