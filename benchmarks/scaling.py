"""How long a sweep takes, and how much memory, as the log grows: 312 thousand, 3.1 million and 31 million rows.

    .venv/bin/python benchmarks/scaling.py [--rows 312k 3.1M 31M] [--sweeps 3] [--out FOLDER]

Simulated logs of 20 ratings a user; 32 factors, one thread. The first sweep, which compiles, is left out; the least of
the others counts. The peak is that of the whole process, libraries and log included.
`benchmarks/implicit.py` runs implicit's ALS in between.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

SHAPES = {"312k": (15_400, 1_000, 0.02), "3.1M": (154_000, 10_000, 0.002), "31M": (1_540_000, 100_000, 0.0002)}
METHODS = ("ome-dr", "ome-ips")
DIM = 32


def make(size: str, folder: Path) -> Path:
    """Simulate a log, and save it."""
    import verirec as vr

    n_users, n_items, observed = SHAPES[size]
    rates = vr.NoiseRates(0.2, 0.1)
    log = vr.simulate.world(n_users, n_items, observed=observed, noise_rates=rates, random_state=0).log
    path = folder / f"{size}.npz"
    np.savez(path, users=log.users, items=log.items, labels=log.labels)
    return path


class Stopwatch:
    """Waits to be told to start, and says how long it took."""

    def __init__(self) -> None:
        self.wait()

    def wait(self) -> None:
        """Wait for a line, and start."""
        if not sys.stdin.readline():
            raise SystemExit
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def lap(self) -> None:
        """Say how long it took since, and how much memory so far, and wait again."""
        spent = {"wall": time.perf_counter() - self.wall, "cpu": time.process_time() - self.cpu}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps(spent | {"peak_gb": peak}), flush=True)
        self.wait()


def work_ours(name: str, size: str, file: str) -> None:
    """Train by sweeps, one when told to."""
    import torch

    import verirec as vr

    torch.set_num_threads(1)
    n_users, n_items, _ = SHAPES[size]
    with np.load(file) as table:
        log = vr.FeedbackLog.from_arrays(
            table["users"], table["items"], table["labels"], n_users=n_users, n_items=n_items
        )
    # Above the bound, so that no rows have to be held out.
    method = vr.methods.catalogue[name](
        solver="sweep", dim=DIM, epochs=10_000, validation=0, patience=None, penalty_factors=200
    )
    watch = Stopwatch()
    method.fit(
        log,
        noise_rates=vr.NoiseRates(0.2, 0.1),
        propensities=vr.ConstantPropensity(),
        progress=lambda epoch, epochs, value: watch.lap(),
    )


class Worker:
    """A process that sweeps when told to."""

    def __init__(self, python: str, script: str, *arguments: str) -> None:
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [python, script, "--work", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | threads,
        )
        self.seen: list[dict[str, float]] = []

    def sweep(self) -> None:
        """Have it sweep once, and take note of what it says."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.seen.append(json.loads(self.process.stdout.readline()))

    def best(self) -> dict[str, float]:
        """Return the least of all sweeps but the first, which compiles, and the largest memory; end the process."""
        self.process.kill()
        rest = self.seen[1:]
        least = {key: min(one[key] for one in rest) for key in ("wall", "cpu")}
        return least | {"peak_gb": max(one["peak_gb"] for one in self.seen)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--out", type=Path, help="folder for scaling.csv and scaling.png")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work_ours(*options.work)
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in options.rows:
            file = make(size, Path(folder))
            workers = {name: Worker(sys.executable, __file__, name, size, str(file)) for name in METHODS}
            for _ in range(options.sweeps + 1):
                for worker in workers.values():
                    worker.sweep()
            rows += [{"rows": size, "method": name} | worker.best() for name, worker in workers.items()]
            file.unlink()
    report(rows, "method", options.out, "scaling")


def report(rows: list[dict[str, Any]], by: str, out: Path | None, name: str) -> None:
    """Print a table, and write it with a picture."""
    import matplotlib.pyplot as plt
    import pandas as pd

    table = pd.DataFrame(rows)
    table["growth"] = table.groupby(by).cpu.transform(lambda one: one / one.shift())
    print(table.to_string(index=False, float_format="{:.3g}".format))
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    table.to_csv(out / f"{name}.csv", index=False, float_format="%.4g")
    figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
    for label, part in table.groupby(by, sort=False):
        counts = [SHAPES[size][0] * SHAPES[size][1] * SHAPES[size][2] for size in part.rows]
        for axes, column in zip(panels, ("cpu", "peak_gb"), strict=True):
            axes.plot(counts, part[column], marker="o", label=label)
    for axes, title in zip(panels, ("CPU seconds a sweep, 32 factors, one thread", "peak memory, GB"), strict=True):
        axes.set(xscale="log", yscale="log", title=title, xlabel="rows of the log")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False)
    figure.savefig(out / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
