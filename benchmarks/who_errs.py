"""Who errs: whether groups' tests have their size, error curves are within their bands, and audits gain by them.

    .venv/bin/python benchmarks/who_errs.py [--runs 400]
    .venv/bin/python benchmarks/who_errs.py --picture docs/who-errs

Worlds of 150 users and 200 items, a fifth of the pairs logged, selection by user, item and taste with known
propensities; an audit of 500 logged pairs. "careless": every second answer of half of the users is a coin's. "bots": a
third of the users likes nine in ten of what it rates. "threshold": rates of .45 and .35 where people are undecided,
falling to 0 where they are sure. "alike": rates of .2 and .1 for all.

- Size: p-values of the test in "alike", with groups of users of 2, 5, 20 and 75.
- Intervals: share of groups whose 95% interval holds their true rate; careless users and others are apart.
- Curve: share of scores, over the middle nine tenths of the audited rows, at which the true rate is within the 95%
  band of single scores; the score is what the world prefers, and a model's, whose true curve is the mean of the
  pairs' rates.
- Gain: coverage, spread and mean half-width of audited-dr, alone and with who errs as its control variate. "one group"
  has what is expected of all users alike: what the others gain beyond it they owe to groups or score.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import verirec as vr
from verirec.nuisance.label_model import LabelModel

SHAPE, ASKED = (150, 200), 500
WORLDS = {
    "alike": {},
    "careless": {"careless": 0.5},
    "bots": {"bots": 0.33},
    "threshold": {"near_threshold": True, "noise_rates": vr.NoiseRates(0.45, 0.35)},
}
SIZES = (2, 5, 20, 75)
Array = np.ndarray


def drawn(name: str, seed: int) -> tuple[vr.simulate.World, vr.AuditSample]:
    world = vr.simulate.world(*SHAPE, observed=0.2, random_state=seed, **WORLDS[name])
    rows = np.random.default_rng([seed, 1]).choice(len(world.log), ASKED, replace=False)
    pairs = world.log.users[rows], world.log.items[rows]
    return world, vr.AuditSample(*pairs, world.at(*pairs).true_labels)


def sizes(runs: int) -> Iterator[str]:
    found: dict[int, list[float]] = {size: [] for size in SIZES}
    for seed in range(runs):
        world, audit = drawn("alike", seed)
        for size in SIZES:
            groups = np.arange(SHAPE[0]) % size
            found[size].append(vr.AuditErrors(user_groups=groups).fit(world.log, audit=audit).test.p_value)
    for size, values in found.items():
        shares = [np.mean(np.array(values) <= level) for level in (0.01, 0.05, 0.1)]
        errors = [np.sqrt(level * (1 - level) / runs) for level in (0.01, 0.05, 0.1)]
        told = " | ".join(f"{share:.3f} ({error:.3f})" for share, error in zip(shares, errors, strict=True))
        yield f"| {size} | {told} |"


def intervals(runs: int) -> Iterator[str]:
    for name, parts in (("careless", 1), ("careless", 10), ("alike", 10)):
        inside: list[list[float]] = [[], []]
        for seed in range(runs):
            world, audit = drawn(name, seed)
            groups = parts * world.careless_users + np.arange(SHAPE[0]) % parts
            if name == "alike":
                groups = np.arange(SHAPE[0]) % (2 * parts)
            found = vr.AuditErrors(user_groups=groups).fit(world.log, audit=audit)
            low, high = found.interval()
            careless = (np.array([int(one) for one in found.names]) >= parts) & (name == "careless")
            for truth, rates in ((1, (0.2, 0.35)), (0, (0.1, 0.3))):
                true = np.where(careless, rates[1], rates[0])
                inside[1 - truth].append(float(((low[:, truth] <= true) & (true <= high[:, truth])).mean()))
        told = " | ".join(f"{np.mean(one):.3f} ({np.std(one) / np.sqrt(runs):.3f})" for one in inside)
        yield f"| {name} | {2 * parts} | {told} |"


def curves(runs: int) -> Iterator[str]:
    for name, scored in (("threshold", "the world's"), ("threshold", "a model's"), ("alike", "a model's")):
        inside: list[list[float]] = [[], []]
        for seed in range(runs):
            world, audit = drawn(name, seed)
            log, own = world.log, scored == "the world's"
            scores = None if own else LabelModel().cross_fit(log, np.ones(len(log)), 5, 0)
            given = world.preferences if own else (log.users, log.items, scores)
            curve = vr.AuditErrorCurve().fit(log, audit=audit, scores=given)
            for place, (which, truth) in enumerate((("rho01", 1), ("rho10", 0))):
                at, true = _true_curve(world, truth, scores, curve.span)
                band = getattr(curve, which)(at)
                inside[place].append(float(((band.low <= true) & (true <= band.high)).mean()))
        told = " | ".join(f"{np.mean(one):.3f} ({np.std(one) / np.sqrt(runs):.3f})" for one in inside)
        yield f"| {name} | {scored} | {told} |"


def _true_curve(
    world: vr.simulate.World, truth: int, scores: Array | None, span: tuple[float, float]
) -> tuple[Array, Array]:
    """Return scores all over a span, and how often labels of a class are wrong there."""
    if scores is None:
        at = np.linspace(*span, 50)
        rates = WORLDS["threshold"]["noise_rates"]
        return at, (rates.rho01 if truth else rates.rho10) * 4 * at * (1 - at)
    log = world.log
    own = np.flatnonzero(
        (world.at(log.users, log.items).true_labels == truth) & (scores > span[0]) & (scores < span[1])
    )
    order = own[np.argsort(scores[own])]
    wrong = world.wrong_chances(log.users, log.items)
    parts = np.array_split(order, 20)
    return np.array([scores[one].mean() for one in parts]), np.array([wrong[one].mean() for one in parts])


def gains(runs: int) -> Iterator[str]:
    for name in WORLDS:
        found: dict[str, list[tuple[float, float, bool]]] = {}
        for seed in range(runs):
            world, audit = drawn(name, seed)
            predicted = 0.15 + 0.6 * world.preferences
            truth = world.true_inaccuracy(predicted)
            for way, errors in _ways(world, audit).items():
                one = vr.estimate(
                    predicted, world.log, propensities=world.propensities, audit=audit, errors=errors,
                    estimators="audited-dr",
                )["audited-dr"]  # fmt: skip
                low, high = one.interval
                found.setdefault(way, []).append((one.value - truth, (high - low) / 2, low <= truth <= high))
        for way, rows in found.items():
            off, half, covered = np.array(rows, float).T
            share = covered.mean()
            yield (
                f"| {name} | {way} | {share:.3f} ({np.sqrt(share * (1 - share) / runs):.3f}) | {off.mean():+.4f} | "
                f"{off.std():.4f} | {half.mean():.4f} |"
            )


def _ways(world: vr.simulate.World, audit: vr.AuditSample) -> dict[str, object]:
    log = world.log
    kinds = np.where(world.bot_users, "bot", np.where(world.careless_users, "careless", "ordinary"))
    ways: dict[str, object] = {"alone": None, "one group": vr.AuditErrors().fit(log, audit=audit)}
    ways["20 groups by chance"] = vr.AuditErrors(user_groups=np.arange(SHAPE[0]) % 20).fit(log, audit=audit)
    if len(set(kinds)) > 1:
        ways["groups of users"] = vr.AuditErrors(user_groups=kinds).fit(log, audit=audit)
    ways["strata of the score"] = vr.AuditErrors(strata_of="score").fit(log, audit=audit)
    ways["curve"] = vr.AuditErrorCurve().fit(log, audit=audit)
    return ways


def picture(folder: Path) -> None:
    """Draw the curve of people who err near their threshold, by the score of a recommender."""
    from verirec.assessment.error_plots import errors_plot
    from verirec.pages.figures import write_pictures

    world = vr.simulate.world(200, 300, observed=0.2, random_state=0, **WORLDS["threshold"])
    rows = np.random.default_rng(1).choice(len(world.log), 1_000, replace=False)
    pairs = world.log.users[rows], world.log.items[rows]
    audit = vr.AuditSample(*pairs, world.at(*pairs).true_labels)
    curve = vr.AuditErrorCurve().fit(world.log, audit=audit, scores=0.15 + 0.7 * world.preferences)
    write_pictures(folder, "curve", errors_plot(curve))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument(
        "--picture", type=Path, help="Write curve.png and curve.svg into this folder, and nothing else."
    )
    options = parser.parse_args()
    runs = options.runs
    if options.picture is not None:
        picture(options.picture)
        return
    warnings.simplefilter("ignore")
    print(f"{runs} worlds each; standard errors in brackets\n")
    for head, rows in (
        ("| groups | p <= .01 | p <= .05 | p <= .1 |", sizes(runs)),
        ("| world | groups | intervals that hold rho01 | that hold rho10 |", intervals(runs)),
        ("| world | score | rho01 within band | rho10 within band |", curves(runs)),
        ("| world | control variate | coverage (s.e.) | bias | sd | mean half-width |", gains(runs)),
    ):
        print(head)
        print("|" + "---|" * (head.count("|") - 1))
        for row in rows:
            print(row, flush=True)
        print()


if __name__ == "__main__":
    main()
