"""How often 95% intervals of ranking estimates hold the truth: by survey, and by the log alone.

    .venv/bin/python benchmarks/ranking_coverage.py [--surveys 400] [--workers 2] [--data FOLDER] [--only survey top]

By survey: worlds whose selection depends on taste (selectivity 0, 2, 4), and KuaiRec's complete block (a random 200 x
500 of it at a time, 5% positives) with taste-driven selection (delta 0, 1, 2). What people log is not taken at its
word in any of them. Surveys of all pairs, uniform, weighted or clustered, tell AUC; those of top pairs NDCG@5 and
Precision@5; those that a plan chooses for two rankings, and those of all pairs, tell their difference. By the log:
worlds with propensities given, whose metrics are near the ends of their range.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.special import expit, logit

import verirec as vr
from verirec.nuisance.label_model import LabelModel

SIZES = (100, 300, 1000)
DESIGNS = ("uniform", "weighted", "clustered")
WORLDS = ("selectivity 0", "selectivity 2", "selectivity 4", "kuairec 0", "kuairec 1", "kuairec 2")
LOGS = ("half logged", "sparse", "sharp", "rare")
PER_WORLD = 20
RATES = vr.NoiseRates(0.2, 0.1)
Result = dict[tuple[str, ...], tuple[float, float, float]]
"""By case, coverage (0 or 1), error and width."""


def surveyed_world(name: str, seed: int, data: str | None) -> tuple[np.ndarray, np.ndarray, vr.FeedbackLog]:
    """Return true labels, scores and a log of a world."""
    kind, degree = name.split()
    random = np.random.default_rng([seed, 1])
    if kind == "selectivity":
        world = vr.simulate.world(200, 300, selectivity=float(degree), noise_rates=RATES, random_state=seed)
        scores = logit(np.clip(world.preferences, 0.02, 0.98)) + random.normal(size=(200, 300))
        return world.true_labels, scores, world.log
    block = vr.load_dataset("kuairec", data_home=data).complete
    some = (random.choice(block.shape[0], 200, False), random.choice(block.shape[1], 500, False))
    truth = block[np.ix_(*some)]
    logits = random.normal(-3, 0.7, (200, 1)) + random.normal(0, 0.7, (1, 500)) + float(degree) * truth
    log = log_of(truth, random.random(truth.shape) < expit(logits))
    # The recommender is one that knows other watches of the same people and videos.
    elsewhere = log_of(truth, random.random(truth.shape) < 0.3)
    model = LabelModel(penalty=3).fit(elsewhere, np.ones(len(elsewhere)))
    scores = model.cell_logits(np.arange(200)[:, None], np.arange(500)[None, :])
    return truth, scores + 0.3 * random.normal(size=truth.shape), log


def log_of(truth: np.ndarray, seen: np.ndarray) -> vr.FeedbackLog:
    users, items = np.nonzero(seen)
    return vr.FeedbackLog.from_arrays(users, items, truth[users, items], n_users=truth.shape[0], n_items=truth.shape[1])


def survey_of(truth: np.ndarray, probabilities: np.ndarray, size: int, random: np.random.Generator) -> vr.SurveySample:
    """Draw pairs with replacement."""
    chances = probabilities.ravel() / probabilities.sum()
    cells = random.choice(chances.size, size, p=chances)
    users, items = np.divmod(cells, truth.shape[1])
    return vr.SurveySample(users, items, truth[users, items], probabilities=chances[cells])


def clustered_survey(truth: np.ndarray, size: int, random: np.random.Generator) -> vr.SurveySample:
    """Ask random users about 5 random items each."""
    users = np.repeat(random.integers(truth.shape[0], size=size // 5), 5)
    items = random.integers(truth.shape[1], size=len(users))
    return vr.SurveySample(users, items, truth[users, items], clusters=np.repeat(np.arange(size // 5), 5))


def true_values(truth: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    best = np.take_along_axis(truth, np.argsort(-scores, axis=1), axis=1)[:, :5].astype(float)
    discounts = 1 / np.log2(np.arange(2, 7))
    return {
        "auc": vr.metrics.auc(truth.ravel(), scores.ravel()),
        "ndcg@5": float((best @ discounts).mean() / discounts.sum()),
        "precision@5": float(best.mean()),
        "recall@5": float(best.sum() / truth.sum()),
    }


def held(
    found: vr.Estimates, truth: dict[str, float], names: tuple[str, ...], source: str = "survey"
) -> Iterator[tuple[str, tuple]]:
    for name in names:
        one = found[name]
        if one.diagnostics["source"] != source:  # Fewer than three likes: the survey tells no AUC.
            continue
        low, high = one.interval
        yield name, (float(low <= truth[name] <= high), one.value - truth[name], high - low)


def surveys_of_all(name: str, seed: int, data: str | None) -> list[Result]:
    truth, scores, log = surveyed_world(name, seed, data)
    values, found = true_values(truth, scores), []
    taste = expit(scores - scores.mean())
    designs: dict[str, Callable[[int, np.random.Generator], vr.SurveySample]] = {
        "uniform": lambda size, random: survey_of(truth, np.ones_like(taste), size, random),
        "weighted": lambda size, random: survey_of(truth, 0.2 + taste, size, random),
        "clustered": lambda size, random: clustered_survey(truth, size, random),
    }
    for draw in range(PER_WORLD):
        one: Result = {}
        for design, make in designs.items():
            for size in SIZES:
                survey = make(size, np.random.default_rng([seed, draw, size]))
                result = vr.estimate_ranking(scores, log, survey=survey)
                for metric, told in held(result, values, ("auc",)):
                    one[name, design, str(size), metric] = told
        found.append(one)
    return found


def surveys_of_tops(name: str, seed: int, data: str | None) -> list[Result]:
    truth, scores, log = surveyed_world(name, seed, data)
    values, found = true_values(truth, scores), []
    place = np.argsort(np.argsort(-scores, axis=1), axis=1)
    chances = np.where(place < 5, 1 / np.log2(place + 2), 0.0)
    for draw in range(PER_WORLD):
        one: Result = {}
        for size in SIZES:
            survey = survey_of(truth, chances, size, np.random.default_rng([seed, draw, size]))
            result = vr.estimate_ranking(scores, log, survey=survey)
            for metric, told in held(result, values, ("ndcg@5", "precision@5")):
                one[name, "top pairs", str(size), metric] = told
        found.append(one)
    return found


def differences(name: str, seed: int, data: str | None) -> list[Result]:
    """Compare two rankings: by top pairs that a plan chooses, and by pairs of all, which tell recall too."""
    truth, scores, log = surveyed_world(name, seed, data)
    other = scores + 1.5 * np.random.default_rng([seed, 2]).normal(size=scores.shape)
    both = [true_values(truth, one) for one in (scores, other)]
    values, found = {metric: both[0][metric] - both[1][metric] for metric in both[0]}, []
    even = np.ones_like(scores)
    for draw in range(PER_WORLD):
        one: Result = {}
        surveys = {}
        for size in SIZES[:2]:
            plan = vr.plan_labels(log, [scores, other], budget=size, purpose="ndcg@5", random_state=1_000 * seed + draw)
            surveys["planned", str(size)] = plan.survey(truth[plan.users, plan.items])
        surveys["uniform", "3000"] = survey_of(truth, even, 3_000, np.random.default_rng([seed, draw, 3]))
        for (design, size), survey in surveys.items():
            result = vr.compare_rankings(scores, other, log, survey=survey)
            names = ("ndcg@5", "precision@5", *(["recall@5"] if design == "uniform" else []))
            for metric, told in held(result, values, names):
                one[name, design, size, f"{metric}, difference"] = told
        found.append(one)
    return found


def by_log(name: str, seed: int, data: str | None) -> list[Result]:
    """Judge by a log with propensities and noise rates given."""
    rates = RATES if name in ("half logged", "sparse") else vr.NoiseRates(0.1, 0.02)
    options = {"observed": {"half logged": 0.25, "sparse": 0.05}.get(name, 0.1), "noise_rates": rates, "selectivity": 1}
    if name in ("half logged", "sparse"):
        world = vr.simulate.world(120, 100, **options, random_state=seed)
    else:
        base = vr.simulate.world(120, 100, random_state=seed).preferences
        tastes = np.where(base > 0.7, 0.98, 0.01) if name == "sharp" else 0.15 * base**2
        world = vr.simulate.on_matrix(tastes, **options, random_state=seed)
    spread = {"half logged": 0.3, "sparse": 0.05}.get(name, 0.02)
    scores = world.preferences + spread * np.random.default_rng([seed, 7]).normal(size=(120, 100))
    found = vr.estimate_ranking(scores, world.log, propensities=world.propensity_values, noise_rates=rates)
    values = true_values(world.true_labels, scores)
    return [{(name, "log", "", metric): told for metric, told in held(found, values, tuple(values), "log")}]


PARTS = {
    "survey": (surveys_of_all, WORLDS),
    "top": (surveys_of_tops, WORLDS),
    "difference": (differences, WORLDS),
    "log": (by_log, LOGS),
}


def run(task: tuple[str, str, int, str | None]) -> list[Result]:
    part, name, seed, data = task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vr.exceptions.VerirecWarning)
        return PARTS[part][0](name, seed, data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surveys", type=int, default=400)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--data", default=str(Path(__file__).parents[2] / "shared" / "data"))
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--worlds", nargs="+", help="Of these names only, such as 'kuairec 2'.")
    options = parser.parse_args()
    for part in options.only:
        count = options.surveys if part == "log" else -(-options.surveys // PER_WORLD)
        print(f"\n{options.surveys} {'logs' if part == 'log' else 'surveys'} a line, of {count} worlds")
        print("| world | design | pairs | metric | coverage | bias | RMSE | mean width |\n" + "|---" * 8 + "|")
        with ProcessPoolExecutor(options.workers) as workers:
            for name in [name for name in PARTS[part][1] if not options.worlds or name in options.worlds]:
                tasks = [(part, name, seed, options.data) for seed in range(count)]
                show([one for found in workers.map(run, tasks) for one in found])


def show(results: list[Result]) -> None:
    for case in dict.fromkeys(case for one in results for case in one):
        told = np.array([one[case] for one in results if case in one])
        rmse = np.sqrt((told[:, 1] ** 2).mean())
        print(
            f"| {' | '.join(case)} | {told[:, 0].mean():.3f} | {told[:, 1].mean():+.4f} | {rmse:.4f} "
            f"| {told[:, 2].mean():.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
