"""MovieLens 100K and 1M (Harper, Konstan 2015): self-selected ratings of films."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from verirec.data.datasets.dataset import Dataset, Published, expect_rows, numbered_log
from verirec.data.text_files import read_delimited

SIZE_100K: Final = Published(943, 1_682, 100_000)
SIZE_1M: Final = Published(6_040, 3_952, 1_000_209)

_COLUMNS: Final = ("user", "item", "rating", "timestamp")


def read_100k(folder: Path, positive_from: float) -> Dataset:
    """Read `u.data`: tabs between user, item, rating and timestamp."""
    return _dataset("movielens-100k", folder / "u.data", "\t", SIZE_100K, positive_from)


def read_1m(folder: Path, positive_from: float) -> Dataset:
    """Read `ratings.dat`: two colons between the fields."""
    return _dataset("movielens-1m", folder / "ratings.dat", "::", SIZE_1M, positive_from)


def _dataset(name: str, file: Path, delimiter: str, size: Published, positive_from: float) -> Dataset:
    table = read_delimited(file, delimiter, _COLUMNS)
    expect_rows(file.name, table.num_rows, size.ratings)
    return Dataset(name, train=numbered_log(table, size, positive_from, timestamp="timestamp"))
