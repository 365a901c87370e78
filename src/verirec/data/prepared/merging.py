"""Runs of rows into one order: range by range, each of which fits into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verirec.data.gate import ROW_COLUMNS, in_order
from verirec.data.ids import IdMap
from verirec.data.pairs import Agreement, pair_order, stable_order
from verirec.data.prepared.columns_file import read_columns_file, write_columns
from verirec.data.prepared.intake import Run
from verirec.data.tables import GivenCatalogue
from verirec.scratch import let_pages_go, let_pages_of_go, long_array

Array = npt.NDArray[Any]

BY_ITEM = ("users", "items", "labels")
"""What is kept in the order of items too."""


def ranges_of(counts: npt.NDArray[np.int64], rows: int) -> list[tuple[int, int]]:
    """Cut positions into ranges with at most so many rows each, or of a single position.

    Examples
    --------
    >>> ranges_of(np.array([3, 1, 0, 5, 1]), 4)
    [(0, 3), (3, 4), (4, 5)]
    """
    ends, found, start = np.cumsum(counts), [], 0
    while start < len(counts):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + rows, side="right")))
        found.append((start, stop))
        start = stop
    return found


def merged_types(each: Sequence[dict[str, str]]) -> dict[str, np.dtype[Any]]:
    """Find types that hold the columns of all runs: integers among floats become such."""
    names = list(dict.fromkeys(name for one in each for name in one))
    return {name: _common([np.dtype(one[name]) for one in each if name in one], name) for name in names}


def _common(types: list[np.dtype[Any]], name: str) -> np.dtype[Any]:
    # Ratings that are integers here have 16 bits at most, which single precision has room for.
    single = name == "ratings" and any(one.kind == "f" for one in types)
    return np.dtype(np.float32) if single else np.result_type(*types)


class MergedRun:
    """A run whose ids are looked up among those of the whole log.

    Parameters
    ----------
    folder
        Of the run.
    users, items
        The log's ids, and the columns that they came from.
    from_text
        Whether ids were read as text.
    runs
        How many there are.
    """

    def __init__(self, folder: Path, users: GivenCatalogue, items: GivenCatalogue, from_text: bool, runs: int) -> None:
        run = Run.of(folder)
        self.columns = run.columns
        self._user_of = _places(run.users, users, from_text, runs)
        self._item_of = _places(run.items, items, from_text, runs)

    def add_counts(self, counts: npt.NDArray[np.int64]) -> None:
        """Add the number of rows of each of the log's users."""
        begins = np.searchsorted(self.columns["users"], np.arange(len(self._user_of) + 1))
        counts[self._user_of] += np.diff(begins)

    @cached_property
    def _in_order(self) -> bool:
        """Whether the run's order is the log's: not if its ids are integers and the log's, in the end, text."""
        return bool((np.diff(self._user_of) > 0).all())

    def rows(self, start: int, stop: int) -> dict[str, Array]:
        """Return the rows of a range of the log's users, in its positions."""
        own = self.columns["users"]
        if self._in_order:
            within = np.searchsorted(self._user_of, [start, stop])
            at: Any = slice(*np.searchsorted(own, within).tolist())
        else:
            places = self._user_of[own]
            at = np.flatnonzero((places >= start) & (places < stop))
        found = _copied(self.columns, at)
        found |= {"users": self._user_of[found["users"]], "items": self._item_of[found["items"]]}
        let_pages_of_go(self._user_of, self._item_of)
        return found


def _copied(columns: dict[str, Array], at: Any) -> dict[str, Array]:
    """Copy rows out of a map, whose pages then leave memory: one that is touched may bring megabytes of others."""
    found = {name: np.array(values[at]) for name, values in columns.items()}
    let_pages_of_go(*columns.values())
    return found


def _places(ids: Any, catalogue: GivenCatalogue, from_text: bool, runs: int) -> npt.NDArray[np.int32]:
    found, _ = catalogue.encode(pa.chunked_array([ids]), from_text)
    places = long_array(len(found), np.int32, together=runs)
    places[:] = found
    return places


@dataclass(frozen=True)
class UserMerge:
    """Merges runs by user."""

    runs: list[MergedRun]
    types: dict[str, np.dtype[Any]]
    user_ids: IdMap
    item_ids: IdMap
    duplicates: str

    def counts(self) -> npt.NDArray[np.int64]:
        """Count the rows of each user."""
        counts = np.zeros(len(self.user_ids), np.int64)
        for run in self.runs:
            run.add_counts(counts)
            let_pages_go()
        return counts

    def make(self, start: int, stop: int, folder: Path) -> dict[str, Any]:
        """Write the rows of a range of users, sorted by user and item, and again by item.

        Returns
        -------
        The number of rows, and what was found of pairs that occur more than once.
        """
        found: list[Agreement] = []
        columns = self._range(start, stop)
        given = columns.pop("given", columns["labels"])
        order = pair_order(columns["users"] - np.int32(start), columns["items"], stop - start, len(self.item_ids))
        whole: dict[str, Any] = dict.fromkeys(ROW_COLUMNS) | columns
        rows = in_order(whole, given, order, len(self.item_ids), self.duplicates, found.append)
        there = {name: rows[name] for name in columns}
        write_columns(folder / "by_user.arrow", there)
        by_item = stable_order(there["items"].astype(np.int64))
        write_columns(folder / "by_item.arrow", {name: there[name][by_item] for name in BY_ITEM})
        return {"rows": len(by_item), "repeats": [self._told(one, columns) for one in found]}

    def _told(self, found: Agreement, columns: dict[str, Array]) -> dict[str, Any]:
        """Return what was found of repeated pairs as JSON can hold it, with the first pair that is in conflict."""
        first = found.wrong[:1]
        users, items = self.user_ids.ids(columns["users"][first]), self.item_ids.ids(columns["items"][first])
        return found._asdict() | {"wrong": len(found.wrong), "first": [*users.tolist(), *items.tolist()]}

    def _range(self, start: int, stop: int) -> dict[str, Array]:
        parts = [run.rows(start, stop) for run in self.runs]
        return {
            name: np.concatenate([part[name] for part in parts], dtype=dtype, casting="same_kind")
            for name, dtype in self.types.items()
        }


@dataclass(frozen=True)
class ItemMerge:
    """Merges what is sorted by item in each range of users, in the order of these."""

    files: list[Path]
    n_items: int

    @cached_property
    def _runs(self) -> list[dict[str, Array]]:
        return [read_columns_file(file) for file in self.files]

    def counts(self) -> npt.NDArray[np.int64]:
        """Count the rows of each item."""
        begins, counts = np.arange(self.n_items + 1), np.zeros(self.n_items, np.int64)
        for run in self._runs:
            counts += np.diff(np.searchsorted(run["items"], begins))
            let_pages_go()
        return counts

    def make(self, start: int, stop: int, folder: Path) -> dict[str, Any]:
        """Write the rows of a range of items, sorted by item and user."""
        parts = [_copied(run, slice(*np.searchsorted(run["items"], [start, stop]).tolist())) for run in self._runs]
        rows = {name: np.concatenate([part[name] for part in parts]) for name in BY_ITEM}
        order = stable_order(rows["items"].astype(np.int64) - start)
        write_columns(folder / "by_item.arrow", {name: values[order] for name, values in rows.items()})
        return {"rows": len(order)}
