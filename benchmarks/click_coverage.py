"""How often 95% intervals hold the truth where a log has clicks alone and a survey has the labels.

    .venv/bin/python benchmarks/click_coverage.py [--surveys 1000] [--pairs 300]

Every repetition is a world, a log and a survey of its own: 200 users and 300 items of which some are shown, by user,
item and taste (`selectivity`); of what is shown and liked 70% is clicked, and 5% of what is shown and not liked. All
that the log keeps are the clicks. Judged are the levels of three recommenders and the differences of two pairs of
them, by `survey-ppi`, whose control variate is the model of what was clicked, and by the survey alone.

Printed are coverage with its standard error over repetitions, the mean half-width, how much narrower `survey-ppi` is,
and the share of comparisons that are established the wrong way.
"""

from __future__ import annotations

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import verirec as vr

SHAPE = 200, 300
RATES = vr.NoiseRates(0.3, 0.05)
WORLDS = {
    "shown by user and item": {"selectivity": 0.0, "observed": 0.1},
    "shown by taste": {"selectivity": 2.0, "observed": 0.1},
    "shown by strong taste": {"selectivity": 4.0, "observed": 0.1},
    "few clicks": {"selectivity": 2.0, "observed": 0.02},
}
PAIRS = (("sharp", "blunt"), ("sharp", "wrong"))
NAMES = ("survey", "survey-ppi")
Run = dict[tuple[str, str], tuple[float, float, float]]


def recommenders(world: vr.simulate.World, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Return one that knows much, one that knows little, and one that errs."""
    gamma = np.asarray(world.preferences)
    noise = random.normal(0, 0.25, gamma.shape)
    return {
        "sharp": 0.1 + 0.8 * gamma,
        "blunt": 0.4 + 0.2 * gamma,
        "wrong": np.clip(0.15 + 0.7 * gamma + noise, 0.05, 0.95),
    }


def repeated(options: dict[str, float], pairs: int, seed: int) -> Run:
    """Return the ends of intervals, and the truth, by what is judged and by estimator."""
    random = np.random.default_rng([seed, 20])
    world = vr.simulate.world(*SHAPE, noise_rates=RATES, random_state=seed, **options)
    clicks = world.log.select(world.log.labels == 1)
    users, items = random.integers([[SHAPE[0]], [SHAPE[1]]], size=(2, pairs))
    survey = vr.SurveySample(users, items, world.true_labels[users, items])
    given = recommenders(world, random)
    truths = {name: world.true_inaccuracy(one) for name, one in given.items()}
    found = {}
    for name, one in given.items():
        found[name] = (vr.estimate(one, clicks, survey=survey), truths[name])
    for a, b in PAIRS:
        difference = vr.compare(given[a], given[b], clicks, survey=survey)
        found[f"{a} - {b}"] = (difference, truths[a] - truths[b])
    return {
        (what, name): (*results[name].interval, truth) for what, (results, truth) in found.items() for name in NAMES
    }


def main() -> None:
    """Print a table."""
    given = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    given.add_argument("--surveys", type=int, default=1000)
    given.add_argument("--pairs", type=int, default=300)
    options = given.parse_args()
    warnings.simplefilter("ignore", vr.exceptions.SurveyWarning)
    print(f"{options.surveys} repetitions, surveys of {options.pairs} pairs")
    print("| world | of | survey-ppi covers | survey covers | half-width | narrower by | wrong |")
    print("|---|---|---|---|---|---|---|")
    for world, of_world in WORLDS.items():
        runs = [repeated(of_world, options.pairs, seed) for seed in range(options.surveys)]
        for kind in ("level", "difference"):
            keys = sorted({what for what, _ in runs[0] if (" - " in what) == (kind == "difference")})
            print(f"| {world} | {kind} | {row(runs, keys, kind)} |", flush=True)


def row(runs: list[Run], keys: list[str], kind: str) -> str:
    """Put the figures of some estimands into cells: coverage is a run's mean over them, so runs are independent."""
    cells, widths = [], {}
    for name in reversed(NAMES):
        ends = np.array([[run[key, name] for key in keys] for run in runs])
        low, high, truth = np.moveaxis(ends, -1, 0)
        held = ((low <= truth) & (truth <= high)).mean(axis=1)
        cells.append(f"{held.mean():.3f} ± {held.std(ddof=1) / np.sqrt(len(runs)):.3f}")
        widths[name] = float((high - low).mean()) / 2
    wrong = "" if kind == "level" else f"{_misleading(runs, keys):.2%}"
    narrower = f"{1 - widths['survey-ppi'] / widths['survey']:.1%}"
    return " | ".join([*cells, f"{widths['survey-ppi']:.4f}", narrower, wrong])


def _misleading(runs: list[Run], keys: list[str]) -> float:
    """Return how often survey-ppi establishes the wrong one."""
    found = [run[key, "survey-ppi"] for run in runs for key in keys]
    return float(np.mean([(low > 0 and truth < 0) or (high < 0 and truth > 0) for low, high, truth in found]))


if __name__ == "__main__":
    main()
