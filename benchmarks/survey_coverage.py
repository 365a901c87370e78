"""How often the 95% intervals of a survey hold the truth, how wide they are, and how often they mislead.

    .venv/bin/python benchmarks/survey_coverage.py [--surveys 400] [--only kuairec]

Each row is one world, one log of it, one design and one size, over many surveys; six recommenders and five pairs of
them are judged on each. Worlds: `simulate.world`, where taste decides more and more of what is logged (noise rates from
an audit of 200 pairs); KuaiRec's complete block (4.6% positive), where a liked pair has exp(delta) times the odds of
being logged; and Coat, with the pairs of its random test for a population. Designs: each pair as likely; by what a
level or a difference needs (Neyman); and some users, asked about 5 or 10 items each. Coat's `split` takes nothing for
granted: a part of the random test is the survey and the rest, with an error of its own, the truth.

Coverage is the mean over recommenders (levels) or pairs of them (differences), with its standard error over surveys,
the smallest and the largest; `narrower` is what the log takes off the survey's width (mean, smallest); `wrong` is the
share of comparisons that are established the wrong way.
"""

from __future__ import annotations

import argparse
import itertools
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import expit, logit

import verirec as vr
from verirec.data.predictions import as_predictions
from verirec.estimation.survey.draws import Draws
from verirec.estimation.survey.inference import inferred, intercept
from verirec.estimation.survey.problem import FORMULAS, Judged
from verirec.losses import correct_labels
from verirec.nuisance.label_model import LabelModel
from verirec.nuisance.surveys import FEWEST

DATA = Path(os.environ.get("VERIREC_DATA", Path(__file__).parents[2] / "shared" / "data"))
SIZES = (100, 300, 500, 1000)
A_USER = {100: 5, 300: 5, 500: 10, 1000: 10}
PAIRS = (("mf", "constants"), ("mf", "popularity"), ("mf", "shrunk"), ("ome-dr", "mf"), ("sharp", "constants"))
Array = np.ndarray


@dataclass(frozen=True)
class Population:
    """Pairs with known labels, what a log says of them, and recommenders: one entry a pair, flat."""

    users: Array
    items: Array
    labels: Array
    logits: Array
    predictions: Mapping[str, Array]
    designs: dict[object, tuple[Array, Array]] = field(default_factory=dict)

    def losses(self, key: str | tuple[str, str]) -> tuple[Array, Array]:
        if isinstance(key, tuple):
            one, two = (self.losses(name) for name in key)
            return one[0] - two[0], one[1] - two[1]
        f = self.predictions[key]
        return -np.log1p(-f), -logit(f)

    @cached_property
    def judged(self) -> dict[str | tuple[str, str], Estimand]:
        return {key: Estimand.of(self, key) for key in (*self.predictions, *PAIRS)}


@dataclass(frozen=True)
class Estimand:
    negative: Array
    difference: Array
    truth: float
    mean: CubicSpline
    """Of l0 + q d over the population, by the shift of q's logits: smooth, so that no survey has to walk over it."""

    @classmethod
    def of(cls, population: Population, key: str | tuple[str, str]) -> Estimand:
        negative, difference = population.losses(key)
        truth = float((negative + population.labels * difference).mean())
        shifts = np.linspace(-6, 4, 51)
        # e^-(z + c) is a product: an exponential a pair, and not one for each shift.
        odds = np.exp(-population.logits)
        means = [float((difference / (1 + odds * np.exp(-c))).mean()) + float(negative.mean()) for c in shifts]
        return cls(negative, difference, truth, CubicSpline(shifts, means))


@dataclass(frozen=True)
class Surveyed:
    """What the formulas ask of a `SurveyProblem`, with the walk over the pairs replaced by its spline."""

    draws: Draws
    expected_labels: _Known


class _Known:
    def __init__(self, values: Array) -> None:
        self.values = values

    def cells(self, users: Array, items: Array) -> Array:
        return self.values


def draw(population: Population, design: str, key: object, n: int, random: np.random.Generator) -> tuple[Array, Draws]:
    """Draw pairs of a population, as places in it, with what they stand for."""
    size = len(population.labels)
    chances, clusters = np.ones(n), np.arange(n)
    if design == "clustered":
        each = A_USER[n]
        asked = random.choice(len(np.unique(population.users)), n // each, replace=True)
        starts = np.searchsorted(population.users, asked)
        counts = np.searchsorted(population.users, asked, side="right") - starts
        places = np.concatenate(
            [start + random.choice(count, each, replace=False) for start, count in zip(starts, counts, strict=True)]
        )
        clusters = np.repeat(np.arange(n // each), each)
    elif design == "weighted":
        if key not in population.designs:
            population.designs[key] = _neyman(population, key)
        cumulative, h = population.designs[key]
        places = np.searchsorted(cumulative, random.random(n) * cumulative[-1])
        chances = h[places]
    else:
        places = random.choice(size, n, replace=False) if design == "split" else random.integers(size, size=n)
    weights = chances.max() / chances
    labels = population.labels[places]
    facts = {"liked": int(labels.sum()), "disliked": int(n - labels.sum())}
    corrected = correct_labels(labels, None, population.users[places], population.items[places])
    shares = weights / weights.sum()
    return places, Draws(
        population.users[places], population.items[places], corrected, shares, clusters, np.zeros(n, bool), facts
    )


def _neyman(population: Population, key: object) -> tuple[Array, Array]:
    """Return chances of all pairs, cumulated and each: by what the estimand's variance is made of."""
    # The design is made before the survey: q is at the level that a log suggests.
    q = expit(population.logits)
    _, difference = population.losses(key)
    lever = np.abs(difference) * np.sqrt(q * (1 - q))
    h = lever if not isinstance(key, tuple) else 0.9 * lever / lever.mean() + 0.1
    return np.cumsum(h), h


def judge(population: Population, places: Array, draws: Draws, keys: Sequence[object]) -> Iterator[tuple]:
    """Give survey and survey-ppi of some estimands."""
    logits = population.logits[places]
    shift = intercept(logits, draws)
    problem = Surveyed(draws, _Known(expit(logits + shift)))
    for key in keys:
        one = population.judged[key]
        judged = Judged(one.negative[places], one.difference[places], float(one.mean(shift)), 0.0)
        yield key, {name: inferred(formula(problem, judged), draws, 0.95) for name, formula in FORMULAS.items()}


def rows_of(population: Population, design: str, n: int, surveys: int) -> dict[str, Array]:
    """Return, by kind and estimator, an array (survey, estimand, [error, covered, width, wrong])."""
    found: dict[str, list] = {f"{kind} {name}": [] for kind in ("level", "difference") for name in FORMULAS}
    keys = list(population.judged)
    for survey in range(surveys):
        random = np.random.default_rng([survey, n, len(design)])
        results: list = []
        for asked in [[key] for key in keys] if design == "weighted" else [keys]:
            places, draws = draw(population, design, asked[0], n, random)
            truths = {key: truth_for(population.judged[key], population, design, places) for key in asked}
            results += [(key, one, truths[key]) for key, one in judge(population, places, draws, asked)]
        for kind in ("level", "difference"):
            those = [(one, truth) for key, one, truth in results if isinstance(key, tuple) == (kind == "difference")]
            for name in FORMULAS:
                found[f"{kind} {name}"].append([_row(one[name], *truth) for one, truth in those])
    return {name: np.array(values) for name, values in found.items()}


def truth_for(one: Estimand, population: Population, design: str, places: Array) -> tuple[float, float]:
    """Return the truth and its own standard error: that of the pairs that were not surveyed, where a test is split."""
    if design != "split":
        return one.truth, 0.0
    rest = np.delete(one.negative + population.labels * one.difference, places)
    return float(rest.mean()), float(rest.std() / np.sqrt(len(rest)))


def _row(one: vr.Estimate, truth: float, error: float) -> tuple[float, ...]:
    low, high = one.interval
    wider = np.hypot(1, error / one.standard_error)
    covers = one.value + wider * (low - one.value) <= truth <= one.value + wider * (high - one.value)
    enough = min(one.diagnostics["liked"], one.diagnostics["disliked"]) >= FEWEST
    return one.value - truth, covers, high - low, enough and (high < 0 if truth > 0 else low > 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surveys", type=int, default=400)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print(f"{options.surveys} surveys a row; 95% intervals")
    head = "| world | design | n | of | survey covers | survey-ppi covers | narrower | RMSE, ppi / survey | wrong |"
    print(head + "\n|" + "---|" * head.count(" |"))
    for name, make in WORLDS.items():
        if options.only not in name:
            continue
        population = make()
        designs = ("uniform", "weighted", "clustered", *(["split"] if name == "coat" else []))
        for design, n in itertools.product(designs, SIZES):
            if n != 500 or design in ("uniform", "split"):
                found = rows_of(population, design, n, options.surveys)
                for kind in ("level", "difference"):
                    print(line(name, design, n, kind, found[f"{kind} survey"], found[f"{kind} survey-ppi"]), flush=True)


def line(name: str, design: str, n: int, kind: str, survey: Array, ppi: Array) -> str:
    def covers(found: Array) -> str:
        by_survey = found[:, :, 1].mean(axis=1)
        return f"{by_survey.mean():.3f} ± {by_survey.std() / np.sqrt(len(found)):.3f}"

    least, most = ppi[:, :, 1].mean(axis=0).min(), ppi[:, :, 1].mean(axis=0).max()
    narrower = 1 - ppi[:, :, 2].mean(axis=0) / survey[:, :, 2].mean(axis=0)
    rmse = [np.sqrt((found[:, :, 0] ** 2).mean(axis=0)).mean() for found in (ppi, survey)]
    wrong = f"{ppi[:, :, 3].mean():.2%}" if kind == "difference" else ""
    return (
        f"| {name} | {design} | {n} | {kind} | {covers(survey)} | {covers(ppi)} ({least:.3f}-{most:.3f}) | "
        f"{narrower.mean():.1%} ({narrower.min():.1%}) | {rmse[0]:.4f} / {rmse[1]:.4f} | {wrong} |"
    )


def kuairec(delta: float) -> Population:
    with np.load(DATA / "kuairec" / "kuairec_small_binary_gt2.npz") as archive:
        labels = np.unpackbits(archive["Y"], axis=1)[:, : archive["video_id"].size]
    random = np.random.default_rng(int(delta))
    n_users, n_items = labels.shape
    odds = random.normal(0, 0.7, n_users)[:, None] + random.normal(0, 1, n_items) + delta * labels
    level = brentq(lambda c: expit(odds + c).mean() - 0.05, -20, 5)
    users, items = np.nonzero(random.random(labels.shape) < expit(odds + level))
    log = vr.FeedbackLog.from_arrays(users, items, labels[users, items], n_users=n_users, n_items=n_items)
    return of_matrix(labels, log, None)


def simulated(selectivity: float) -> Population:
    rates = vr.NoiseRates(0.2, 0.1)
    world = vr.simulate.world(
        600, 800, noise_rates=rates, observed=0.1, selectivity=selectivity, random_state=int(selectivity)
    )
    rows = np.random.default_rng(0).choice(len(world.log), 200, replace=False)
    users, items = world.log.users[rows], world.log.items[rows]
    audit = vr.AuditSample(users, items, world.at(users, items).true_labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audited = vr.AuditNoiseRates().fit(world.log, audit=audit)
    return of_matrix(world.true_labels, world.log, audited)


def coat() -> Population:
    dataset = vr.load_dataset("coat", data_home=DATA)
    test = dataset.test
    order = np.lexsort((test.items, test.users))
    return population_of(dataset.train, None, test.users[order], test.items[order], test.labels[order])


def of_matrix(labels: Array, log: vr.FeedbackLog, rates: vr.NoiseRates | None) -> Population:
    users, items = (side.ravel() for side in np.indices(labels.shape, dtype=np.int32))
    return population_of(log, rates, users, items, labels.ravel())


def population_of(
    log: vr.FeedbackLog, rates: vr.NoiseRates | None, users: Array, items: Array, labels: Array
) -> Population:
    fitted = LabelModel().fit(log, np.ones(len(log)), rates)
    counts = np.bincount(log.items, minlength=log.n_items)
    popularity = (np.bincount(log.items, log.labels, log.n_items) + 5 * log.labels.mean()) / (counts + 5)
    quick = {"epochs": 30, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mf = vr.methods.MF(**quick).fit(log)
        ome = vr.methods.OMEDR(**quick).fit(log, noise_rates=rates or vr.NoiseRates(0.05, 0.02))
    found = {"constants": expit(fitted.cell_logits(users, items)), "popularity": popularity[items]}
    for name, method in (("mf", mf), ("ome-dr", ome)):
        found[name] = as_predictions(method.recommender_.predictions, *log.shape).at(users, items)
    found["shrunk"] = 0.6 * found["mf"] + 0.2 * log.labels.mean()
    found["sharp"] = expit(1.5 * logit(np.clip(found["mf"], 1e-6, 1 - 1e-6)))
    kept = {name: np.clip(f, 1e-3, 1 - 1e-3) for name, f in found.items()}
    return Population(users, items, labels.astype(float), fitted.cell_logits(users, items), kept)


WORLDS = {
    "selectivity 0": lambda: simulated(0),
    "selectivity 2": lambda: simulated(2),
    "selectivity 4": lambda: simulated(4),
    "kuairec, delta 0": lambda: kuairec(0),
    "kuairec, delta 1": lambda: kuairec(1),
    "kuairec, delta 2": lambda: kuairec(2),
    "coat": coat,
}

if __name__ == "__main__":
    main()
