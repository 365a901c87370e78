"""Ray beside processes on one machine: wall and CPU time of the same jobs, and whether their bits are the same.

    python -m benchmarks.scale.engines [--users 20000] [--items 10000] [--rounds 3] [--workers 2]

Both engines are started before anything is timed, and take turns. Two jobs: an estimate over all pairs of a grid, and
two sweeps of OME-DR with the rows at workers. Prints a line a job and engine, as JSON.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from typing import Any

import numpy as np

import verirec as vr
from verirec.engine import as_engine

FACTORS = 32
RATES = vr.NoiseRates(0.2, 0.1)


def made(users: int, items: int) -> tuple[vr.FeedbackLog, vr.Factors]:
    """Return a log of random pairs, 50 a user, and factors."""
    random = np.random.default_rng(0)
    keys = np.unique(random.integers(users * items, size=50 * users))
    pairs = np.divmod(keys, items)
    log = vr.FeedbackLog.from_arrays(*pairs, random.integers(0, 2, len(keys)), n_users=users, n_items=items)
    sides = (random.normal(0, 0.1, (size, FACTORS)).astype(np.float32) for size in (users, items))
    return log, vr.Factors(*sides, link="logistic")


def estimated(log: vr.FeedbackLog, factors: vr.Factors, engine: Any) -> list[float]:
    found = vr.estimate(factors, log, estimators=("dr",), engine=engine)["dr"]
    return [found.value, found.standard_error]


def swept(log: vr.FeedbackLog, factors: vr.Factors, engine: Any) -> list[float]:
    method = vr.methods.OMEDR(dim=FACTORS, epochs=2, solver="sweep", random_state=0)
    fitted = method.fit(log, noise_rates=RATES, engine=engine)
    return fitted.predict(log.user_ids.ids()[:100], log.item_ids.ids()[:100]).tolist()


JOBS = {"estimate": estimated, "sweeps": swept}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("users", 20_000), ("items", 10_000), ("rounds", 3), ("workers", 2)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    log, factors = made(options.users, options.items)
    seconds: dict[str, dict[str, list[float]]] = {job: defaultdict(list) for job in JOBS}
    with as_engine("processes", options.workers) as processes, as_engine("ray", options.workers) as ray:
        engines = {"processes": processes, "ray": ray}
        for job, work in JOBS.items():
            found = {}
            for round_ in range(options.rounds + 1):
                for name, engine in engines.items():
                    start = time.perf_counter()
                    found[name] = work(log, factors, engine)
                    if round_:  # The first starts workers and compiles.
                        seconds[job][name].append(time.perf_counter() - start)
            medians = {name: float(np.median(all_)) for name, all_ in seconds[job].items()}
            ratio = medians["ray"] / medians["processes"]
            same = found["ray"] == found["processes"]
            print(json.dumps({"job": job, "seconds": seconds[job], "ratio": round(ratio, 3), "same_bits": same}))


if __name__ == "__main__":
    main()
