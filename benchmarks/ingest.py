"""How long it takes, and how much memory, to turn 25 million rows of Parquet into a log, against the plain routes.

    .venv/bin/python benchmarks/ingest.py [--rows 25000000] [--rounds 3] [--folder DIR]

A plain route reads the file and encodes both id columns, nothing more; ours also checks every column, applies the
label rule, looks for repeated pairs and sorts the catalogues. Each route runs in a process of its own, the rounds
interleaved; the table shows the least wall and CPU seconds and the largest peak of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N_USERS, N_ITEMS = 160_000, 60_000
KINDS = ("string", "integer")


def make_files(folder: Path, rows: int) -> None:
    """Write distinct pairs, popular items more often, in random order: once with string and once with integer ids."""
    if all((folder / f"{kind}.parquet").exists() for kind in KINDS):
        return
    random = np.random.default_rng(0)
    drawn = int(rows * 1.05)
    keys = random.integers(N_USERS, size=drawn) * N_ITEMS + (N_ITEMS * random.random(drawn) ** 2).astype(np.int64)
    keys = random.permutation(np.unique(keys))[:rows]
    users, items = np.divmod(keys, N_ITEMS)
    ratings = pa.array(random.integers(1, 6, len(keys)).astype(np.int8))
    names = {
        "user": pa.array([f"user_{number:07d}" for number in range(N_USERS)]),
        "item": pa.array([f"item-{number:06d}" for number in range(N_ITEMS)]),
    }
    for kind in KINDS:
        schema = pa.schema(
            [(side, pa.string() if kind == "string" else pa.int64()) for side in names] + [("rating", pa.int8())]
        )
        with pq.ParquetWriter(folder / f"{kind}.parquet", schema) as writer:
            for start in range(0, len(keys), 1 << 20):
                part = slice(start, start + (1 << 20))
                columns = []
                for side, positions, scale in (("user", users, 7), ("item", items, 3)):
                    codes = positions[part]
                    columns.append(names[side].take(pa.array(codes)) if kind == "string" else pa.array(codes * scale))
                writer.write_table(pa.table([*columns, ratings[part]], schema=schema))


def ours(file: Path) -> int:
    import verirec as vr

    return len(vr.read_log(file, user="user", item="item", rating="rating", positive_from=3))


def polars_categorical(file: Path) -> int:
    import polars as pl

    frame = pl.read_parquet(file)
    codes = [frame[side].cast(pl.String).cast(pl.Categorical).to_physical().to_numpy() for side in ("user", "item")]
    return len(codes[0])


def polars_streaming(file: Path) -> int:
    import polars as pl

    frame = (
        pl.scan_parquet(file)
        .with_columns(pl.col("user", "item").cast(pl.String).cast(pl.Categorical))
        .collect(engine="streaming")
    )
    codes = [frame[side].to_physical().to_numpy() for side in ("user", "item")]
    return len(codes[0])


def arrow_dictionary(file: Path) -> int:
    table = pq.read_table(file)
    codes = [table[side].dictionary_encode().combine_chunks().indices.to_numpy() for side in ("user", "item")]
    return len(codes[0])


def pandas_factorize(file: Path) -> int:
    import pandas as pd

    frame = pd.read_parquet(file)
    codes = [pd.factorize(frame[side])[0] for side in ("user", "item")]
    return len(codes[0])


ROUTES: dict[str, Callable[[Path], int]] = {
    route.__name__: route for route in (ours, polars_categorical, polars_streaming, arrow_dictionary, pandas_factorize)
}


def run_here(route: str, file: Path) -> None:
    """Run one route in this process and print what it took. Imports are not counted."""
    __import__({"ours": "verirec", "pandas_factorize": "pandas"}.get(route, "polars"))
    wall, cpu = time.perf_counter(), time.process_time()
    rows = ROUTES[route](file)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"rows": rows, "wall": wall, "cpu": cpu, "peak": peak_gigabytes()}))


def peak_gigabytes() -> float:
    """Return this process's own peak; getrusage would count its parent's too, from before the exec."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e9
    raise RuntimeError("no VmHWM in /proc/self/status: this benchmark needs Linux")


def measure(folder: Path, rounds: int) -> dict[tuple[str, str], list[dict[str, float]]]:
    results: dict[tuple[str, str], list[dict[str, float]]] = {}
    for _ in range(rounds):
        for kind in KINDS:
            for route in ROUTES:
                if kind == "integer" and route.startswith("polars"):
                    continue  # polars has no categorical of integers; by way of strings it is the slowest of all
                command = [sys.executable, __file__, "--route", route, "--file", str(folder / f"{kind}.parquet")]
                done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
                results.setdefault((kind, route), []).append(json.loads(done.stdout))
    return results


def show(results: dict[tuple[str, str], list[dict[str, float]]]) -> None:
    for kind in KINDS:
        least = {
            route: {
                "wall": min(run["wall"] for run in runs),
                "cpu": min(run["cpu"] for run in runs),
                "peak": max(run["peak"] for run in runs),
            }
            for (of_kind, route), runs in results.items()
            if of_kind == kind
        }
        fastest = min(figures["wall"] for route, figures in least.items() if route != "ours")
        print(f"\n{kind} ids, {int(results[kind, 'ours'][0]['rows']):,} rows")
        print(f"{'route':<20}{'wall s':>9}{'cpu s':>9}{'peak GB':>9}{'wall / fastest plain':>22}")
        for route, figures in least.items():
            print(
                f"{route:<20}{figures['wall']:>9.2f}{figures['cpu']:>9.2f}{figures['peak']:>9.2f}"
                f"{figures['wall'] / fastest:>22.2f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=25_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to keep the files between runs")
    parser.add_argument("--route", choices=ROUTES, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.route:
        run_here(options.route, options.file)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        make_files(folder, options.rows)
        show(measure(folder, options.rounds))


if __name__ == "__main__":
    main()
