"""Files of pairs by the ids of a log: how ids are looked up, and predictions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.files import file_ending, read_columns
from verirec.data.ids import IdMap, encode_ids, find_spelt, is_text, refuse_missing, spelt
from verirec.data.roles import Roles, ScoreRoles
from verirec.data.top_lists import TopLists
from verirec.exceptions import (
    EmptyLogError,
    FileFormatError,
    UnknownIdError,
    UnknownIdWarning,
    warn_caller,
)
from verirec.formatting import rows_in_words, short

Columns = Mapping[str, str | None]


def read_scores(
    file: Path, roles: ScoreRoles, log: FeedbackLog, likely: Columns | None = None
) -> tuple[Positions, Positions, Any] | TopLists:
    """Read a file of predictions in any format that `read_log` takes; see `scores_of_table`.

    Parameters
    ----------
    file
        By the log's ids.
    roles, likely
        Of its columns: see `Roles.settle`.
    log
        Whose ids the file uses.
    """
    table, settled, ending = _read(file, roles, "predictions, unless .npy or .npz,", likely)
    return scores_of_table(table, settled, log, file.name, ending)


def scores_of_table(
    table: pa.Table, settled: Roles, log: FeedbackLog, source: str, ending: str = ".parquet"
) -> tuple[Positions, Positions, Any] | TopLists:
    """Make (users, items, scores) of a table or, where its third column is a rank, `TopLists`.

    Rows of users and items that a log does not have are left out, with a warning.

    Parameters
    ----------
    table, settled
        Columns, and the parts that they play.
    log
        Whose ids the table uses.
    source, ending
        What errors call the table, and how it was read: ids of text files may be integers.
    """
    column = table[str(settled.rating)]
    refuse_missing(column, f"{source}: {settled.rating}")
    if not is_number(column.type):
        raise FileFormatError(f"{source}: {settled.rating} must be numbers; got {column.type}")
    infinite = int((~np.isfinite(column.to_numpy())).sum())
    if infinite:
        raise FileFormatError(f"{source}: {settled.rating} has {infinite:,} values that are not finite")
    sides = [find_side(side, table, settled, log, source, ending) for side in ("user", "item")]
    known = (sides[0].positions >= 0) & (sides[1].positions >= 0)
    for side in sides:
        if not (side.positions >= 0).any():
            raise side.unknown_error(source, np.arange(len(known)))
    if not known.any():
        raise UnknownIdError(f"{source}: no row has both a user and an item of the log")
    ranks = isinstance(settled, ScoreRoles) and settled.says_ranks
    if not known.all():
        warn_of_left_out(
            f"{source}: {int((~known).sum()):,} of {len(known):,} rows",
            {side.name: (side.unknown, side.first_unknown) for side in sides},
            "; items that stand behind one in a list move up" if ranks else "",
        )
    users, items, scores = sides[0].positions[known], sides[1].positions[known], column.to_numpy()[known]
    if ranks:
        return TopLists(users, items, scores, log.shape)
    return users, items, scores


def warn_of_left_out(what: str, unknown: Mapping[str, tuple[int, list[Any]]], more: str = "") -> None:
    """Warn that some of a file is left out.

    Parameters
    ----------
    what
        The file, and how much of it.
    unknown
        By "user" and "item": how many ids the log does not have, and the first three.
    more
        What follows from it.
    """
    told = " and ".join(
        f"{count:,} {side}{'s' if count > 1 else ''} (first: {', '.join(map(short, first))})"
        for side, (count, first) in unknown.items()
        if count
    )
    options = " and ".join(f"all_{side}s=..." for side, (count, _) in unknown.items() if count)
    warn_caller(
        f"{what} are left out, of {told} that the log does not have{more}; to have them counted, read the log with "
        f"{options}",
        UnknownIdWarning,
    )


class Side:
    """A column of users or items: positions in a log, -1 where it has no such id, and the ids that it lacks."""

    def __init__(self, name: str, column: str, codes: npt.NDArray[np.int32], ids: IdMap, found: Any) -> None:
        self.name, self.column = name, column
        self.positions: npt.NDArray[np.int32] = found[codes]
        missing = np.flatnonzero(found < 0)
        # In the order of the file: who looks for the first one finds it there.
        first = np.full(len(found), len(codes))
        np.minimum.at(first, codes, np.arange(len(codes)))
        self.unknown = len(missing)
        self.first_unknown: list[Any] = ids.arrow(missing[np.argsort(first[missing])][:3]).to_pylist()

    def unknown_error(self, source: str, rows: npt.NDArray[np.int64], total: int | None = None) -> UnknownIdError:
        """Say which rows are of ids that the log does not have."""
        where = rows_in_words(rows, len(self.positions) if total is None else total)
        return UnknownIdError(
            f"{source}: {self.column} is not in the log in {where}; the first is {short(self.first_unknown[0])}"
        )


def _read(file: Path, roles: Roles, kind: str, likely: Columns | None) -> tuple[pa.Table, Roles, str]:
    ending = file_ending(file, is_text=False, kind=kind)
    table, settled = read_columns(file, ending, roles, likely=likely)
    if len(table) == 0:
        raise EmptyLogError(f"{file.name} is empty: it must have at least one row")
    return table, settled, ending


def find_side(
    side: str, table: pa.Table, settled: Roles, log: FeedbackLog, source: str, ending: str, *, escaped: bool = False
) -> Side:
    """Look a column up; in lists of our own making an apostrophe stands before ids that a spreadsheet would run."""
    column = str(getattr(settled, side))
    catalogue: IdMap = getattr(log, f"{side}_ids")
    name = f"{source}: {column}"
    # In text "12" is what the log says it is: an integer if all of its ids are, else a string.
    from_text = ending != ".parquet" and pa.types.is_integer(catalogue.arrow().type)
    given = spelt(table[column]) if ending != ".parquet" and not from_text else table[column]
    codes, ids = encode_ids(given, name, from_text=from_text)
    distinct = ids.arrow()
    if from_text and is_text(distinct.type):
        return Side(side, column, codes, ids, find_spelt(catalogue, distinct, name))
    found = catalogue.find(distinct, name=name)
    if escaped and is_text(distinct.type):
        plain = catalogue.find(pc.replace_substring_regex(distinct, "^'([-=+@'\\t\\r\\n])", "\\1"), name=name)
        found = np.where(plain < 0, found, plain)
    return Side(side, column, codes, ids, found)


def is_blank(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Tell which values are missing, or empty text."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    missing = pc.is_null(column, nan_is_null=True)
    if is_text(column.type):
        missing = pc.or_(missing, pc.fill_null(pc.equal(column, pa.scalar("", column.type)), False))
    return np.asarray(missing.to_numpy())


def is_number(kind: pa.DataType) -> bool:
    """Tell whether a column holds numbers, or booleans."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))
