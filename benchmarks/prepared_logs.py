"""CPU time and memory of work on prepared logs, beside polars' streaming sort of the same files.

    .venv/bin/python benchmarks/prepared_logs.py FOLDER [--rows 10000000] [--users 300000] [--items 30000]
        [--memory 2GB] [--sample 10000000] [--job estimate]

Ratings are written to FOLDER in parts of two million rows, and sorted, prepared and judged there, each by a process of
its own; FOLDER is left with all that was written. Prints a line of JSON a job: CPU seconds, and the most memory
resident. Those that docs/scale.md tells of are in benchmarks/scale/prepared.json (`benchmarks.scale.prepared`).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import verirec as vr

PART = 2_000_000
FACTORS = 32


def ratings(options) -> None:
    """Write ratings of users who differ in activity and items that differ in popularity."""
    shapes = np.random.default_rng(0)
    popularity = shapes.lognormal(0, 1.2, options.items).cumsum()
    activity = shapes.lognormal(0, 0.8, options.users).cumsum()
    for part in range(-(-options.rows // PART)):
        random = np.random.default_rng([1, part])
        count = min(PART, options.rows - part * PART)
        columns = {
            "user": np.searchsorted(activity / activity[-1], random.random(count)),
            "item": np.searchsorted(popularity / popularity[-1], random.random(count)),
            "rating": random.integers(1, 6, count).astype(np.int8),
        }
        pq.write_table(pa.table(columns), options.folder / f"part-{part:04}.parquet")


def polars_sort(options) -> None:
    import polars

    frame = polars.scan_parquet(options.folder / "part-*.parquet").sort(["user", "item"])
    frame.sink_parquet(options.folder / "polars.parquet")


def prepare(options) -> None:
    vr.prepare_log(
        options.folder / "part-*.parquet",
        options.folder / "log",
        positive_from=4,
        duplicates="last",
        memory=options.memory,
    )


def recommender(log, seed) -> vr.Factors:
    """Make factors, which know nothing of the log."""
    random = np.random.default_rng(seed)
    sides = (random.normal(0, 0.15, (size, FACTORS)).astype(np.float32) for size in log.shape)
    return vr.Factors(*sides, link="logistic")


def estimate(options) -> None:
    log = vr.scan_log(options.folder / "log", memory=options.memory)
    vr.estimate(recommender(log, 0), log, sample=options.sample)


def assess(options) -> None:
    log = vr.scan_log(options.folder / "log", memory=options.memory)
    vr.assess(log, {"a": recommender(log, 0), "b": recommender(log, 1)}, sample=options.sample)


JOBS = {"ratings": ratings, "polars": polars_sort, "prepare": prepare, "estimate": estimate, "assess": assess}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    for name, size in (("rows", 10_000_000), ("users", 300_000), ("items", 30_000), ("sample", 10_000_000)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--job", choices=JOBS, help="Run one of them in this process.")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    if options.job is None:
        for job in JOBS:
            subprocess.run([sys.executable, __file__, *sys.argv[1:], "--job", job], check=True)
        return
    warnings.simplefilter("ignore")
    JOBS[options.job](options)
    used = resource.getrusage(resource.RUSAGE_SELF)
    found = {name: value for name, value in vars(options).items() if name != "folder"}
    found |= {"cpu": round(used.ru_utime + used.ru_stime, 1), "megabytes": used.ru_maxrss // 1024}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
