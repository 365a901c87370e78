"""How often 95% intervals hold the loss of scores that the survey which judges them has calibrated.

    .venv/bin/python benchmarks/calibration_coverage.py [--surveys 1000]

In each of some worlds of 150 users and 120 items, whose log is selective by taste and noisy, two recommenders give
scores: noisy stars, and others with less information. Every repetition draws a survey, calibrates both by it with
`calibrate_by_survey`, and judges them by the same survey: the survey alone, and survey-ppi.

Printed are how often the intervals hold the true loss of what was calibrated ("made"), and the loss of the scores at
their best, by the curve of all true labels ("best"); the mean error of both, and the mean width. Standard errors are
those of the repetitions.
"""

from __future__ import annotations

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import verirec as vr
from verirec.estimation.calibration import calibrate
from verirec.estimation.cross_calibration import calibrate_by_survey
from verirec.estimation.setup import cell_losses
from verirec.estimation.survey.problem import LossDifference, survey_results

SHAPE = 150, 120
FEWEST = 10
"""Likes, and dislikes, without which a survey is left out: each fold's others need both."""
EVERYWHERE = np.arange(SHAPE[0]), np.arange(SHAPE[1])
NAMES = ("survey", "survey-ppi")
JUDGED = ("first", "second", "difference")
RUNS = ((100, 2.0), (200, 2.0), (300, 2.0), (300, 0.0), (1000, 4.0))
"""Surveyed pairs, and how strongly taste decides what is logged."""


def scores_of(world: vr.simulate.World) -> dict[str, np.ndarray]:
    """Return noisy stars, and noisier numbers of another size."""
    random, gamma = np.random.default_rng(9), np.asarray(world.preferences)
    stars = 1 + 4 * gamma + random.normal(0, 1.0, SHAPE)
    return {"first": stars, "second": 3 * gamma**2 - 1 + random.normal(0, 1.5, SHAPE)}


def with_difference(first: float, second: float) -> np.ndarray:
    """Return two numbers and what parts them."""
    return np.array([first, second, first - second])


def repeated(world: vr.simulate.World, scores: dict[str, np.ndarray], pairs: int, seed: int) -> np.ndarray | None:
    """Return value and ends of each interval and the truth of what was calibrated: (judged, names, 4)."""
    drawn = np.random.default_rng([pairs, seed]).choice(SHAPE[0] * SHAPE[1], pairs, replace=False)
    users, items = np.divmod(drawn, SHAPE[1])
    survey = vr.SurveySample(users, items, world.true_labels[users, items])
    if np.bincount(survey.labels, minlength=2).min() < FEWEST:
        return None
    made = calibrate_by_survey(scores, survey, world.log, seed=seed)
    one, two = (cell_losses(each, world.log, "log", None, counts_grid=True) for each in made.values())
    options = {"confidence": 0.95, "seed": 0, "exclude": None, "sample": None, "audited": None}
    found = survey_results([one, two, LossDifference(one, two)], list(NAMES), survey, world.log, None, **options)
    truths = with_difference(*(world.true_inaccuracy(each.block(*EVERYWHERE)) for each in made.values()))
    return np.array(
        [
            [(each[name].value, *each[name].interval, truth) for name in NAMES]
            for each, truth in zip(found, truths, strict=True)
        ]
    )


def best_losses(world: vr.simulate.World, scores: dict[str, np.ndarray]) -> np.ndarray:
    """Return the losses by the curves of all true labels."""
    users, items = np.divmod(np.arange(SHAPE[0] * SHAPE[1]), SHAPE[1])
    every = vr.SurveySample(users, items, world.true_labels.ravel())
    return with_difference(
        *(world.true_inaccuracy(calibrate(one, world.log, survey=every).block(*EVERYWHERE)) for one in scores.values())
    )


def report(pairs: int, selectivity: float, surveys: int) -> None:
    """Print a world's figures."""
    rates = vr.NoiseRates(0.2, 0.1)
    world = vr.simulate.world(*SHAPE, observed=0.1, selectivity=selectivity, noise_rates=rates, random_state=1)
    scores = scores_of(world)
    best = best_losses(world, scores)
    constant = world.true_inaccuracy(np.full(SHAPE, world.true_labels.mean()))
    print(
        f"{pairs} pairs, selectivity {selectivity:g}; best {best[0]:.3f} and {best[1]:.3f}, a constant {constant:.3f}"
    )
    runs = np.array([one for seed in range(surveys) if (one := repeated(world, scores, pairs, seed)) is not None])
    error = (0.95 * 0.05 / len(runs)) ** 0.5
    for place, judged in enumerate(JUDGED):
        for number, name in enumerate(NAMES):
            value, low, high, made = runs[:, place, number].T
            held = [float(((low <= truth) & (truth <= high)).mean()) for truth in (made, best[place])]
            off = [float((value - truth).mean()) for truth in (made, best[place])]
            print(
                f"  {judged:10s} {name:10s} holds made {held[0]:.3f} best {held[1]:.3f} (se {error:.3f}); error made "
                f"{off[0]:+.4f} best {off[1]:+.4f}; width {float((high - low).mean()):.3f}"
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--surveys", type=int, default=1000)
    for size, strength in RUNS:
        report(size, strength, parser.parse_args().surveys)
