"""Turning a file into a log, beside routes that read it and encode both id columns and nothing more.

Ours sorts both catalogues, so that codes do not depend on the order of rows: the fair route is the one that does so
too. Beyond it, ours checks every column, applies the label rule, sorts the rows and looks for repeated pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.speed.case import Case, Contender, Run, Target
from benchmarks.speed.material import file_of

N_USERS, N_ITEMS = 160_000, 60_000
SIDES = ("user", "item")
SORTED = "polars, read and encoded in sorted order"
ENCODED, STREAMED, PLAIN = "polars, read and encoded", "polars, streamed and encoded", "polars, read"


def made(rows: int, name: str) -> Path:
    """Return a file of distinct pairs, popular items more often, in random order: `strings.csv`, `integers.parquet`."""
    return file_of(f"{rows}-{name}", partial(_write, rows))


def _write(rows: int, path: Path) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    random = np.random.default_rng(0)
    drawn = int(rows * 1.05)
    keys = random.integers(N_USERS, size=drawn) * N_ITEMS + (N_ITEMS * random.random(drawn) ** 2).astype(np.int64)
    users, items = np.divmod(random.permutation(np.unique(keys))[:rows], N_ITEMS)
    columns = {"user": pa.array(users * 7), "item": pa.array(items * 3)}
    if "strings" in path.name:
        columns = {
            "user": pa.array([f"user_{one:07d}" for one in range(N_USERS)]).take(pa.array(users)),
            "item": pa.array([f"item-{one:06d}" for one in range(N_ITEMS)]).take(pa.array(items)),
        }
    table = pa.table(columns | {"rating": pa.array(random.integers(1, 6, len(users)).astype(np.int8))})
    write = pa.csv.write_csv if path.suffix == ".csv" else pa.parquet.write_table
    write(table, path)


def ours(file: Path) -> Run:
    """Read it as users do."""
    from verirec import read_log

    return lambda: read_log(file, user="user", item="item", rating="rating", positive_from=3)


def polars_sorted(file: Path) -> Run:
    """Read it, and number both ids in sorted order: quicker than by ranks."""
    import polars as pl

    read = pl.read_csv if file.suffix == ".csv" else pl.read_parquet

    def codes(ids: pl.Series) -> object:
        names = ids.unique().sort().cast(pl.String)
        return ids.cast(pl.String).cast(pl.Enum(names)).to_physical().to_numpy()

    def run() -> object:
        frame = read(file)
        return [codes(frame[side]) for side in SIDES]

    return run


def polars_encoded(file: Path) -> Run:
    """Read it, and make categories of both ids, numbered as they come."""
    import polars as pl

    read = pl.read_csv if file.suffix == ".csv" else pl.read_parquet

    def run() -> object:
        frame = read(file)
        return [frame[side].cast(pl.String).cast(pl.Categorical).to_physical().to_numpy() for side in SIDES]

    return run


def polars_streamed(file: Path) -> Run:
    """Do so by its streaming engine."""
    import polars as pl

    scan = pl.scan_csv if file.suffix == ".csv" else pl.scan_parquet

    def run() -> object:
        encoded = scan(file).with_columns(pl.col(*SIDES).cast(pl.String).cast(pl.Categorical))
        frame = encoded.collect(engine="streaming")
        return [frame[side].to_physical().to_numpy() for side in SIDES]

    return run


def polars_read(file: Path) -> Run:
    """Read it."""
    import polars as pl

    return lambda: pl.read_csv(file)


def arrow_encoded(file: Path) -> Run:
    """Read it by pyarrow, and make dictionaries of both ids."""
    import pyarrow.parquet as pq

    def run() -> object:
        table = pq.read_table(file)
        return [table[side].dictionary_encode().combine_chunks().indices.to_numpy() for side in SIDES]

    return run


def pandas_encoded(file: Path) -> Run:
    """Read it by pandas, and factorise both ids."""
    import pandas as pd

    def run() -> object:
        frame = pd.read_parquet(file)
        return [pd.factorize(frame[side])[0] for side in SIDES]

    return run


POLARS = {SORTED: polars_sorted, ENCODED: polars_encoded, STREAMED: polars_streamed}
ARROW = {"pyarrow, read and encoded": arrow_encoded, "pandas, read and encoded": pandas_encoded}


def _case(
    name: str, title: str, rows: int, routes: dict[str, Callable[[Path], Run]], targets: tuple[Target, ...] = ()
) -> Case:
    kind = ("integers" if "integers" in name else "strings") + (".csv" if "csv" in name else ".parquet")

    def prepared(route: Callable[[Path], Run]) -> Contender:
        return lambda: route(made(rows, kind))

    return Case(
        f"reading/{name}",
        title,
        f"{rows / 1e6:g} million rows",
        {contender: prepared(route) for contender, route in ({"read_log": ours} | routes).items()},
        targets,
        rounds=3 if rows > 5_000_000 else 7,
        apart=True,
        large=rows > 5_000_000,
    )


CASES = [
    _case(
        "csv",
        "CSV, string ids",
        2_500_000,
        POLARS | {PLAIN: polars_read},
        (Target(1.1, SORTED), Target(1.0, SORTED, "extra_gb")),
    ),
    _case("csv-integers", "CSV, integer ids", 2_500_000, {SORTED: polars_sorted, PLAIN: polars_read}),
    _case("parquet", "Parquet, string ids", 2_500_000, POLARS | ARROW),
    _case("parquet-integers", "Parquet, integer ids", 2_500_000, ARROW),
    _case("parquet-25M", "Parquet, string ids", 25_000_000, POLARS),
]
