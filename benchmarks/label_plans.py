"""What planned pairs save: the variance of a comparison by planned pairs against pairs chosen at random.

    python benchmarks/label_plans.py [--repetitions 100] [--pairs 300] [--data FOLDER]

For each two of five recommenders, in each of several worlds: surveys of as many pairs are drawn, planned and at random,
and survey-ppi compares the two. "saves" is the ratio of the variances around the truth (or of the squared half-widths
that are reported, in brackets, which chance moves less), "promised" the same by the plan itself; "width" is the
reported half-width over what the plan expected, with a pilot of 100 pairs; "covered" is the share of intervals that
hold the truth. Worlds: simulated ones in which taste decides what is logged, KuaiRec's complete block (a part of it),
Coat's random pairs.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

import verirec as vr
from verirec.data.predictions import as_predictions
from verirec.nuisance.label_model import LabelModel


class World(NamedTuple):
    log: vr.FeedbackLog
    truth: Any
    """Labels of all pairs, and -1 where nobody knows: those do not count."""


def simulated(selectivity: float) -> World:
    world = vr.simulate.world(300, 400, selectivity=selectivity, noise_rates=vr.NoiseRates(0.1, 0.05), random_state=0)
    return World(world.log, world.true_labels)


def kuairec(data: str) -> World:
    """A part of the block, logged the more readily the more it is liked: odds times e."""
    random = np.random.default_rng(0)
    complete = vr.load_dataset("kuairec", data_home=data).complete
    truth = complete[np.ix_(np.arange(0, 1411, 4), np.arange(0, 3327, 4))]
    activity = random.normal(size=(len(truth), 1)) + random.normal(size=(1, truth.shape[1]))
    chance = 1 / (1 + np.exp(3.2 - 0.7 * activity - truth))
    users, items = np.nonzero(random.random(truth.shape) < chance)
    shape = {"n_users": truth.shape[0], "n_items": truth.shape[1]}
    return World(vr.FeedbackLog.from_arrays(users, items, truth[users, items], **shape), truth)


def coat(data: str) -> World:
    data = vr.load_dataset("coat", data_home=data)
    truth = np.full(data.train.shape, -1)
    truth[data.test.users, data.test.items] = data.test.labels
    return World(data.train, truth)


def recommenders(log: vr.FeedbackLog) -> dict[str, Any]:
    """Five that differ in kind, two of them near-twins."""
    liked = np.bincount(log.items, log.labels, log.n_items) + 5 * log.labels.mean()
    popular = np.broadcast_to(liked / (np.bincount(log.items, minlength=log.n_items) + 5), log.shape)
    found = {"popular": popular, "additive": LabelModel().fit(log, np.ones(len(log))).cells(*np.indices(log.shape))}
    methods = {"mf": vr.methods.MF(dim=8), "twin": vr.methods.MF(dim=8, random_state=1), "ips": vr.methods.IPS(dim=8)}
    for name, method in methods.items():
        found[name] = as_predictions(method.fit(log), *log.shape).cells(*np.ogrid[: log.n_users, : log.n_items])
    return {name: np.clip(one, 0.01, 0.99) for name, one in found.items()}


class Studied(NamedTuple):
    saves: float
    reported: float
    promised: float
    width: float
    covered: float


def study(world: World, first: Any, second: Any, pairs: int, repetitions: int) -> Studied:
    """Draw surveys again and again."""
    known = np.argwhere(world.truth >= 0)
    unknown = np.nonzero(world.truth < 0)
    exclude = unknown if len(unknown[0]) else None
    errors, widths, covered, expected, promised = {"plan": [], "simple": []}, {"plan": [], "simple": []}, [], [], []
    losses = [-np.where(world.truth == 1, np.log(one), np.log(1 - one)) for one in (first, second)]
    truth = float((losses[0] - losses[1])[world.truth >= 0].mean())
    for seed in range(repetitions):
        random = np.random.default_rng(seed)
        pilot, simple = (known[random.choice(len(known), size, replace=False)].T for size in (100, pairs))
        plan = vr.plan_labels(
            world.log,
            [first, second],
            budget=pairs,
            purpose="difference",
            exclude=exclude,
            pilot=vr.SurveySample(*pilot, world.truth[tuple(pilot)]),
            random_state=seed,
        )
        expected.append(plan.half_width)
        promised.append(plan.simple / len(plan))
        surveys = {
            "plan": plan.survey(world.truth[plan.users, plan.items]),
            "simple": vr.SurveySample(*simple, world.truth[tuple(simple)]),
        }
        for name, survey in surveys.items():
            found = vr.compare(first, second, world.log, survey=survey, exclude=exclude, estimators="survey-ppi")[
                "survey-ppi"
            ]
            errors[name].append(found.value - truth)
            low, high = found.interval
            widths[name].append((high - low) / 2)
            if name == "plan":
                covered.append(low <= truth <= high)
    square = {name: np.mean(np.square(one)) for name, one in errors.items()}
    mean = {name: np.mean(np.square(one)) for name, one in widths.items()}
    return Studied(
        square["simple"] / square["plan"],
        mean["simple"] / mean["plan"],
        float(np.mean(promised)),
        float(np.mean(widths["plan"]) / np.mean(expected)),
        float(np.mean(covered)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--worlds", nargs="*", default=["selectivity 0", "selectivity 2", "kuairec", "coat"])
    parser.add_argument("--data", default="../shared/data")
    options = parser.parse_args()
    made = {
        "selectivity 0": lambda: simulated(0),
        "selectivity 2": lambda: simulated(2),
        "kuairec": lambda: kuairec(options.data),
        "coat": lambda: coat(options.data),
    }
    warnings.simplefilter("ignore")
    print("| world | pair | saves | promised | width | covered |\n|---|---|---|---|---|---|")
    all_saved = []
    for name in options.worlds:
        world = made[name]()
        given = recommenders(world.log)
        for a, b in combinations(given, 2):
            found = study(world, given[a], given[b], options.pairs, options.repetitions)
            all_saved.append((found.saves, found.reported))
            print(
                f"| {name} | {a} - {b} | {found.saves:.2f} ({found.reported:.2f}) | {found.promised:.2f} | "
                f"{found.width:.2f} | {found.covered:.2f} |",
                flush=True,
            )
    saved = np.array(all_saved)
    for column, what in enumerate(("variance around the truth", "reported half-width, squared")):
        reached, middle = int((saved[:, column] >= 1.4).sum()), np.median(saved[:, column])
        print(f"\nBy {what}: at least 1.4 in {reached} of {len(saved)} comparisons, median {middle:.2f}.")


if __name__ == "__main__":
    main()
