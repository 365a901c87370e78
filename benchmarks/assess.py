"""How long a whole assessment takes, and how much memory.

    .venv/bin/python benchmarks/assess.py [--users 100000] [--items 10000] [--observed 0.01] [--recommenders 2]

A log of a simulated world, recommenders given as factors, noise rates from an audit of 500 pairs; with the page.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time

import numpy as np

import verirec as vr
from verirec.assessment import assess


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--observed", type=float, default=0.01)
    parser.add_argument("--recommenders", type=int, default=2)
    options = parser.parse_args()
    world = vr.simulate.world(options.users, options.items, observed=options.observed, random_state=0)
    log, random = world.log, np.random.default_rng(0)
    rows = random.choice(len(log), 500, replace=False)
    users, items = log.users[rows], log.items[rows]
    audit = vr.AuditSample(users, items, world.at(users, items).true_labels)
    recommenders = {
        f"factors {number}": vr.Factors(
            random.normal(0, 0.4, (options.users, 32)).astype(np.float32),
            random.normal(0, 0.4, (options.items, 32)).astype(np.float32),
        )
        for number in range(options.recommenders)
    }
    start = time.perf_counter()
    found = assess(
        log, recommenders, audit=audit, progress=lambda step: print(f"{time.perf_counter() - start:6.1f} s {step}")
    )
    with tempfile.TemporaryDirectory() as folder:
        page = found.save(folder)
        size = page.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{log}: {time.perf_counter() - start:.1f} s, page {size / 1e6:.2f} MB, peak memory {peak:.2f} GB "
        "(the simulated world's included)"
    )


if __name__ == "__main__":
    main()
