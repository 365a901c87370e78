"""MovieLens 100K and 1M (Harper, Konstan 2015): self-selected ratings of films."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from verirec.data.datasets.dataset import Dataset, expect_rows, numbered_log
from verirec.data.files import read_delimited
from verirec.exceptions import FileFormatError

_COLUMNS = ("user", "item", "rating", "timestamp")


def read_100k(folder: Path, positive_from: float) -> Dataset:
    """Read `u.data`: tabs between user, item, rating and timestamp."""
    table = _table(folder / "u.data", separator=b"\t")
    return _dataset("movielens-100k", table, "u.data", (943, 1_682, 100_000), positive_from)


def read_1m(folder: Path, positive_from: float) -> Dataset:
    """Read `ratings.dat`: two colons between the fields."""
    table = _table(folder / "ratings.dat", separator=b"::")
    return _dataset("movielens-1m", table, "ratings.dat", (6_040, 3_952, 1_000_209), positive_from)


def _table(file: Path, separator: bytes) -> pa.Table:
    content = file.read_bytes()
    try:
        return read_delimited(content if separator == b"\t" else content.replace(separator, b"\t"), "\t", _COLUMNS)
    except pa.ArrowInvalid as error:
        raise FileFormatError(f"{file.name} is truncated or malformed: {' '.join(str(error).split())}") from None


def _dataset(name: str, table: pa.Table, file: str, published: tuple[int, int, int], positive_from: float) -> Dataset:
    n_users, n_items, rows = published
    expect_rows(file, table.num_rows, rows)
    return Dataset(name, train=numbered_log(table, n_users, n_items, positive_from, timestamp="timestamp"))
