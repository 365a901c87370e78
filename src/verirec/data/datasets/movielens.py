"""MovieLens 100K and 1M (Harper, Konstan 2015): self-selected ratings of films."""

from __future__ import annotations

from pathlib import Path

from verirec.data.datasets.dataset import Dataset, expect_rows, numbered_log
from verirec.data.files import read_delimited

_COLUMNS = ("user", "item", "rating", "timestamp")


def read_100k(folder: Path, positive_from: float) -> Dataset:
    """Read `u.data`: tabs between user, item, rating and timestamp."""
    return _dataset("movielens-100k", folder / "u.data", "\t", (943, 1_682, 100_000), positive_from)


def read_1m(folder: Path, positive_from: float) -> Dataset:
    """Read `ratings.dat`: two colons between the fields."""
    return _dataset("movielens-1m", folder / "ratings.dat", "::", (6_040, 3_952, 1_000_209), positive_from)


def _dataset(name: str, file: Path, delimiter: str, published: tuple[int, int, int], positive_from: float) -> Dataset:
    n_users, n_items, rows = published
    table = read_delimited(file, delimiter, _COLUMNS)
    expect_rows(file.name, table.num_rows, rows)
    return Dataset(name, train=numbered_log(table, n_users, n_items, positive_from, timestamp="timestamp"))
