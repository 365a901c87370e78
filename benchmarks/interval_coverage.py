"""How often 95% intervals hold the truth, in simulated worlds.

    .venv/bin/python benchmarks/interval_coverage.py [--worlds 1000] [--workers 2]

Each world is new: preferences, who rates what, noise. Its true inaccuracy is known, and an interval covers it or not.
Propensities are the world's own, or learnt by logistic regression (in worlds where that model is right: selection by
user and item alone); noise rates are the true ones, or estimated from an audit of 200 or 500 logged pairs.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import verirec as vr

SHAPE, OBSERVED = (300, 400), 0.1
RATES = vr.NoiseRates(0.2, 0.1)
ESTIMATORS = ("ome-ips", "ome-snips", "ome-dr", "ome-mrdr", "ome-sdr", "ome-tdr")
NOISE = ("true", "audit 200", "audit 500")
SETTINGS = (("given", 1.0), ("given", 0.0), ("learnt", 0.0))

Key = tuple[str, float, str, str]


def one_world(seed: int) -> dict[Key, tuple[float, float]]:
    """Return error and standard error of each estimate in a world of its own."""
    found: dict[Key, tuple[float, float]] = {}
    worlds = {
        selectivity: vr.simulate.world(
            *SHAPE,
            noise_rates=RATES,
            observed=OBSERVED,
            selectivity=selectivity,
            weak_separability=False,
            random_state=seed,
        )
        for selectivity in (0.0, 1.0)
    }
    for propensity, selectivity in SETTINGS:
        world = worlds[selectivity]
        random = np.random.default_rng([seed, 1])
        predictions = np.clip(0.15 + 0.7 * world.preferences, 0.02, 0.98)
        truth = world.true_inaccuracy(predictions)
        given = vr.LogisticPropensity().fit(world.log) if propensity == "learnt" else world.propensity_values
        for noise in NOISE:
            rates = RATES if noise == "true" else audited(world, int(noise.split()[1]), random)
            result = vr.estimate(predictions, world.log, propensities=given, noise_rates=rates, estimators=ESTIMATORS)
            for name in ESTIMATORS:
                one = result[name]
                found[propensity, selectivity, noise, name] = one.value - truth, one.standard_error
    return found


def audited(world: vr.simulate.World, size: int, random: np.random.Generator) -> vr.NoiseRates:
    rows = random.choice(len(world.log), size, replace=False)
    users, items = world.log.users[rows], world.log.items[rows]
    audit = vr.AuditSample(users, items, world.at(users, items).true_labels)
    return vr.AuditNoiseRates().fit(world.log, audit=audit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers) as workers:
        results = list(workers.map(one_world, range(options.worlds), chunksize=10))
    print(f"{options.worlds} worlds of {SHAPE[0]} x {SHAPE[1]}, {OBSERVED:.0%} observed; coverage (bias / sd, sd / se)")
    print("| propensities | selection by | noise rates | " + " | ".join(ESTIMATORS) + " |")
    print("|" + "---|" * (3 + len(ESTIMATORS)))
    for propensity, selectivity in SETTINGS:
        by = "user, item, preference" if selectivity else "user, item"
        for noise in NOISE:
            cells = []
            for name in ESTIMATORS:
                pairs = np.array([result[propensity, selectivity, noise, name] for result in results])
                errors, widths = pairs.T
                covered = (np.abs(errors) < 1.96 * widths).mean()
                ratio = errors.std() / np.sqrt((widths**2).mean())
                cells.append(f"{covered:.3f} ({errors.mean() / errors.std():+.2f}, {ratio:.2f})")
            print(f"| {propensity} | {by} | {noise} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
