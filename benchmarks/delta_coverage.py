"""How often the 95% intervals of delta-dr hold the truth, beside survey-ppi's, and how often the test tells them apart.

    .venv/bin/python benchmarks/delta_coverage.py [--surveys 200] [--only kuairec]

Delta-dr assumes that one delta holds for all pairs. Simulated worlds (300 x 400, about 7% logged) are drawn anew for
each survey, with one delta, or with one that varies: over users at random, with users' activity, with items' popularity
or from pair to pair; `noisy` has noise rates of .2 and .1, given. KuaiRec: its complete block of 1,411 x 3,327 (4.6%
positive), of which 3% are logged anew for each survey. Coat: a fifth of the log is held out from training, a part of
the random test is the survey and the rest, with an error of its own, the truth; ten splits of the log in turn.

Three recommenders and two differences are judged. Coverage has its standard error over surveys; `narrower` is the
half-width of delta-dr beside that of survey-ppi; `worth` is the ratio of the mean squared errors of survey-ppi and
delta-dr, or how many times the survey it would take without the model; `rejects` is how often the test at 5% tells
delta-dr from survey-ppi, by the mean over estimands, and `warns` how often at least one sign speaks against one delta.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

import verirec as vr
from verirec.data.predictions import as_predictions
from verirec.estimation.setup import cell_losses
from verirec.estimation.survey.problem import LossDifference, survey_results
from verirec.nuisance.label_model import LabelModel

DATA = Path(os.environ.get("VERIREC_DATA", Path(__file__).parents[2] / "shared" / "data"))
SHAPE = (300, 400)
SIZES = (100, 500)
NAMES = ("survey-ppi", "delta-dr")
RATES = vr.NoiseRates(0.2, 0.1)
Array = np.ndarray


class Drawn(NamedTuple):
    """A log, a survey, the true values of the estimands with their errors, and what is judged."""

    log: vr.FeedbackLog
    survey: vr.SurveySample
    losses: list
    truths: Array
    errors: Array
    rates: vr.NoiseRates | None = None
    exclude: vr.FeedbackLog | None = None


def simulated(delta: float, varies: str = "", *, noisy: bool = False) -> Callable[[int, int], Drawn]:
    def draw(seed: int, n: int) -> Drawn:
        random = np.random.default_rng([seed, n, int(10 * delta)])
        taste = -0.7 + 0.7 * random.normal(size=SHAPE[0])[:, None] + 0.7 * random.normal(size=SHAPE[1])
        taste = taste + 0.7 * random.normal(size=(SHAPE[0], 3)) @ random.normal(size=(3, SHAPE[1])) / np.sqrt(3)
        labels = (random.random(SHAPE) < expit(taste)).astype(int)
        active, popular = 0.7 * random.normal(size=SHAPE[0])[:, None], 0.7 * random.normal(size=SHAPE[1])
        by_pair = {
            "": 0.0,
            "users": random.normal(size=SHAPE[0])[:, None],
            "activity": active / 0.7,
            "popularity": popular / 0.7,
            "pairs": random.normal(size=SHAPE),
        }[varies]
        log = logged(labels, active + popular + (delta + by_pair) * labels, 0.07, random, RATES if noisy else None)
        items = np.broadcast_to(labels.mean(axis=0), SHAPE)
        scores = expit(0.8 * taste + 0.8 * random.normal(size=SHAPE)), expit(taste / 2), items
        return on_matrix(labels, log, n, random, scores, RATES if noisy else None)

    return draw


def logged(
    labels: Array, odds: Array, share: float, random: np.random.Generator, rates: vr.NoiseRates | None = None
) -> vr.FeedbackLog:
    level = brentq(lambda c: expit(odds + c).mean() - share, -20, 5)
    users, items = np.nonzero(random.random(labels.shape) < expit(odds + level))
    log = vr.FeedbackLog.from_arrays(users, items, labels[users, items], n_users=len(labels), n_items=labels.shape[1])
    return log if rates is None else log.with_noise(rates, random_state=random)


def on_matrix(
    labels: Array,
    log: vr.FeedbackLog,
    n: int,
    random: np.random.Generator,
    scores: tuple[Array, ...],
    rates: vr.NoiseRates | None = None,
) -> Drawn:
    users, items = random.integers(len(labels), size=n), random.integers(labels.shape[1], size=n)
    survey = vr.SurveySample(users, items, labels[users, items])
    losses = estimands(scores, log)
    rows, columns = (side.ravel() for side in np.indices(labels.shape))
    truths = []
    for one in losses:
        negative, difference = one.cells(rows, columns)
        truths.append(float((negative + labels.ravel() * difference).mean()))
    return Drawn(log, survey, losses, np.array(truths), np.zeros(len(truths)), rates)


def estimands(scores: tuple[object, ...], log: vr.FeedbackLog) -> list:
    """Levels, then the first less each of the others."""
    levels = [cell_losses(one, log, "log", 1e-3, counts_grid=True) for one in scores]
    return [*levels, *(LossDifference(levels[0], other) for other in levels[1:])]


def kuairec(delta: float) -> Callable[[int, int], Drawn]:
    with np.load(DATA / "kuairec" / "kuairec_small_binary_gt2.npz") as archive:
        labels = np.unpackbits(archive["Y"], axis=1)[:, : archive["video_id"].size].astype(int)
    random = np.random.default_rng(0)
    odds = random.normal(0, 0.7, len(labels))[:, None] + random.normal(0, 1, labels.shape[1])
    shrunk = [(labels.sum(axis=axis) + 2) / (labels.shape[axis] + 40) for axis in (0, 1)]
    both = expit(np.log(shrunk[0])[None, :] + np.log(shrunk[1])[:, None] + 3)
    scores = both, np.broadcast_to(shrunk[0], labels.shape), 0.5 * both + 0.02

    def draw(seed: int, n: int) -> Drawn:
        again = np.random.default_rng([seed, n, int(delta)])
        return on_matrix(labels, logged(labels, odds + delta * labels, 0.03, again), n, again, scores)

    return draw


def coat() -> Callable[[int, int], Drawn]:
    dataset = vr.load_dataset("coat", data_home=DATA)
    test, splits = dataset.test, {}

    def draw(seed: int, n: int) -> Drawn:
        split = seed % 10
        if split not in splits:
            train, held_out = vr.split(dataset.train, 0.2, by="random", random_state=split)
            splits[split] = train, held_out, _trained(train)
        train, held_out, scores = splits[split]
        inside = ~np.isin(_keys(test), _keys(train))
        rows = np.flatnonzero(inside)
        chosen = np.zeros(len(test), bool)
        chosen[np.random.default_rng([seed, n]).choice(rows, n, replace=False)] = True
        survey = vr.SurveySample(test.users[chosen], test.items[chosen], test.labels[chosen])
        losses = estimands(scores, held_out)
        rest = inside & ~chosen
        truths, errors = [], []
        for one in losses:
            negative, difference = one.cells(test.users[rest], test.items[rest])
            of_rows = negative + test.labels[rest] * difference
            truths.append(float(of_rows.mean()))
            errors.append(float(of_rows.std() / np.sqrt(len(of_rows))))
        return Drawn(held_out, survey, losses, np.array(truths), np.array(errors), None, train)

    return draw


def _keys(log: vr.FeedbackLog) -> Array:
    return log.users.astype(np.int64) * log.n_items + log.items


def _trained(train: vr.FeedbackLog) -> tuple[object, ...]:
    counts = np.bincount(train.items, minlength=train.n_items)
    popular = (np.bincount(train.items, train.labels, train.n_items) + 5 * train.labels.mean()) / (counts + 5)
    fitted = LabelModel().fit(train, np.ones(len(train)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mf = vr.methods.MF(epochs=30, random_state=0).fit(train)
    every = np.arange(train.n_users), np.arange(train.n_items)
    return (
        as_predictions(mf.recommender_.predictions, *train.shape).block(*every),
        fitted.block(*every),
        np.broadcast_to(popular, train.shape),
    )


def judge(one: Drawn) -> Array:
    """Return, by estimator and estimand: error, covered, half-width, rejected, warned."""
    given = {"confidence": 0.95, "exclude": one.exclude, "sample": None, "seed": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = survey_results(one.losses, NAMES, one.survey, one.log, one.rates, **given)
    rows = []
    for name in NAMES:
        for at, estimates in enumerate(found):
            each, facts = estimates[name], estimates["delta-dr"].diagnostics
            wider = np.hypot(1, one.errors[at] / each.standard_error)
            low, high = (each.value + wider * (end - each.value) for end in each.interval)
            error, half = each.value - one.truths[at], (each.interval[1] - each.interval[0]) / 2
            covers = low <= one.truths[at] <= high
            rows.append([error, covers, half, facts["test"].p_value < 0.05, not facts["one_delta"], one.errors[at]])
    return np.array(rows, float).reshape(len(NAMES), len(found), -1)


def line(name: str, n: int, found: Array) -> str:
    """Tell of an array (survey, estimator, estimand, what)."""

    def covers(of: Array) -> str:
        by_survey = of[:, :, 1].mean(axis=1)
        return f"{by_survey.mean():.3f} ± {by_survey.std() / np.sqrt(len(of)):.3f}"

    ppi, delta = found[:, 0], found[:, 1]
    # What the truth itself is off by is in both.
    squares = [(of[:, :, 0] ** 2 - of[:, :, 5] ** 2).mean(axis=0).sum() for of in (ppi, delta)]
    narrower = (delta[:, :, 2].mean(axis=0) / ppi[:, :, 2].mean(axis=0)).mean()
    return (
        f"| {name} | {n} | {covers(ppi)} | {covers(delta)} | {narrower:.2f} | "
        f"{squares[0] / max(squares[1], 1e-9):.1f} | "
        f"{delta[:, :, 3].mean():.0%} | {delta[:, :, 4].max(axis=1).mean():.0%} |"
    )


WORLDS = {
    "delta 0": lambda: simulated(0),
    "delta 1": lambda: simulated(1),
    "delta 2": lambda: simulated(2),
    "delta 1, noisy": lambda: simulated(1, noisy=True),
    "delta 1 ± 1 by user": lambda: simulated(1, "users"),
    "delta 1 ± 1 by activity": lambda: simulated(1, "activity"),
    "delta 1 ± 1 by popularity": lambda: simulated(1, "popularity"),
    "delta 1 ± 1 by pair": lambda: simulated(1, "pairs"),
    "coat": coat,
    "kuairec, delta 0": lambda: kuairec(0),
    "kuairec, delta 1": lambda: kuairec(1),
    "kuairec, delta 2": lambda: kuairec(2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surveys", type=int, default=200)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print(f"{options.surveys} surveys a row; 95% intervals")
    head = "| world | n | survey-ppi covers | delta-dr covers | half-width, delta-dr / ppi | worth | rejects | warns |"
    print(head + "\n|" + "---|" * head.count(" |"))
    for name, make in WORLDS.items():
        if options.only in name:
            draw = make()
            for n in SIZES:
                found = np.array([judge(draw(seed, n)) for seed in range(options.surveys)])
                print(line(name, n, found), flush=True)


if __name__ == "__main__":
    main()
