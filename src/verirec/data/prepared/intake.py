"""A piece of a file through the gate, into a run: its rows sorted by user, with its own dictionaries of ids."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verirec.data.cleaning import cleaned
from verirec.data.gate import checked_part
from verirec.data.ids import encode_ids
from verirec.data.pairs import stable_order
from verirec.data.prepared.columns_file import dtypes_of, read_columns_file, write_columns
from verirec.data.prepared.ids_file import read_ids, write_ids
from verirec.data.prepared.settings import Settings
from verirec.data.prepared.sources import Sources
from verirec.data.tables import GivenCatalogue, row_values
from verirec.exceptions import DataError, DroppedRowsWarning, EmptyLogError, VerirecWarning

_SIDES = ("user", "item")


@dataclass(frozen=True)
class Intake:
    """Takes pieces of files in.

    Parameters
    ----------
    sources, settings
        What is read, and how rows become a log.
    catalogues
        What was given of users and items.
    """

    sources: Sources
    settings: Settings
    catalogues: dict[str, GivenCatalogue]

    def take(self, table: pa.Table, called: str, folder: Path) -> dict[str, Any]:
        """Check a piece and write its run; errors and warnings name the piece.

        Returns
        -------
        The run's number of rows, how many there were to read, the types of its columns, and what was warned of.
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", VerirecWarning)
            try:
                columns, given = self._columns(table, folder)
            except EmptyLogError as error:  # Of a piece, all rows may be left out.
                warnings.warn(str(error).removeprefix("the log is empty: "), DroppedRowsWarning, stacklevel=2)
                columns, given = {}, np.empty(0)
            except DataError as error:
                raise type(error)(f"{called}: {error}") from None
        told = [(type(one.message).__name__, f"{called}: {one.message}") for one in caught]
        if not columns:
            return {"rows": 0, "read": len(table), "warnings": told, "dtypes": {}}
        if self.settings.duplicates == "highest":
            columns["given"] = given
        there = {name: values for name, values in columns.items() if values is not None}
        order = stable_order(there["users"].astype(np.int64))
        write_columns(folder / "rows.arrow", {name: values[order] for name, values in there.items()})
        return {"rows": len(order), "read": len(table), "warnings": told, "dtypes": dtypes_of(there)}

    def _columns(self, table: pa.Table, folder: Path) -> tuple[dict[str, Any], npt.NDArray[Any]]:
        roles = self.sources.roles
        table = cleaned(table, roles, self.settings.cleaning)
        codes, sizes = {}, {}
        for side in _SIDES:
            given = self.catalogues[side]
            column, name = table[given.column], f"column {given.column!r}"
            if given.ids is not None:
                given.encode(column, self.sources.from_text)  # Refuses what the catalogue lacks.
            codes[f"{side}s"], ids = encode_ids(column, name, from_text=self.sources.from_text)
            sizes[f"n_{side}s"] = len(ids)
            write_ids(folder / f"{side}s.arrow", ids.arrow())
        values, called = row_values(table, roles)
        settings = self.settings
        return checked_part(
            codes | values,
            **sizes,
            positive_from=settings.positive_from,
            levels=settings.levels,
            called=called,
        )


@dataclass(frozen=True)
class Run:
    """A run under a memory map: columns in the order of users, and the ids behind its own positions."""

    columns: dict[str, npt.NDArray[Any]]
    users: pa.Array
    items: pa.Array

    @classmethod
    def of(cls, folder: Path) -> Run:
        """Open a run."""
        return cls(
            read_columns_file(folder / "rows.arrow"),
            read_ids(folder / "users.arrow"),
            read_ids(folder / "items.arrow"),
        )
