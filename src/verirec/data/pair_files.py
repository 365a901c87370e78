"""Files of pairs with a number each, by the ids of a log: predictions, and audited true labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from verirec.data.cells import Positions, cell_keys
from verirec.data.feedback_log import FeedbackLog
from verirec.data.files import file_ending, read_columns
from verirec.data.ids import IdMap, encode_ids, find_spelt, is_text, refuse_missing
from verirec.data.roles import Roles, ScoreRoles, TruthRoles
from verirec.exceptions import (
    AuditError,
    EmptyLogError,
    FileFormatError,
    MissingValueError,
    UnknownIdError,
    UnknownIdWarning,
    warn_caller,
)
from verirec.formatting import rows_in_words, short

Columns = Mapping[str, str | None]

_NEGATIVE: Final = ("0", "0.0", "no", "false")
_POSITIVE: Final = ("1", "1.0", "yes", "true")


class Truths(NamedTuple):
    """Pairs with true labels, as a file has them; probabilities of being asked about, if it has them."""

    users: Positions
    items: Positions
    labels: npt.NDArray[np.int8]
    probabilities: npt.NDArray[np.float64] | None


def read_scores(
    file: Path, roles: ScoreRoles, log: FeedbackLog, likely: Columns | None = None
) -> tuple[Positions, Positions, Any]:
    """Read (users, items, scores); rows of users and items that a log does not have are left out, with a warning.

    Parameters
    ----------
    file
        In any format that `read_log` takes.
    roles, likely
        Of its columns: see `Roles.settle`.
    log
        Whose ids the file uses.
    """
    table, settled, ending = _read(file, roles, "predictions, unless .npy or .npz,", likely)
    column = table[str(settled.rating)]
    refuse_missing(column, f"{file.name}: {settled.rating}")
    if not _is_number(column.type):
        raise FileFormatError(f"{file.name}: {settled.rating} must be numbers; got {column.type}")
    sides = [_found(side, table, settled, log, file, ending) for side in ("user", "item")]
    known = (sides[0].positions >= 0) & (sides[1].positions >= 0)
    for side in sides:
        if not (side.positions >= 0).any():
            raise side.unknown_error(file, np.arange(len(known)))
    if not known.any():
        raise UnknownIdError(f"{file.name}: no row has both a user and an item of the log")
    scores = column.to_numpy()
    if known.all():
        return sides[0].positions, sides[1].positions, scores
    warn_of_left_out(
        f"{file.name}: {int((~known).sum()):,} of {len(known):,} rows",
        {side.name: (side.unknown, side.first_unknown) for side in sides},
    )
    return sides[0].positions[known], sides[1].positions[known], scores[known]


def read_truths(file: Path, roles: TruthRoles, log: FeedbackLog, likely: Columns | None = None) -> Truths:
    """Read pairs with true labels; rows without a label are left out, as of a list not filled in to the end.

    A column `probability`, or one over a column `weight` as plans write it, are the pairs' probabilities. Parameters
    are those of `read_scores`. An id that the log does not have is an `UnknownIdError`: nobody was asked about it.
    """
    table, settled, ending = _read(file, roles, "an audit", likely)
    name = str(settled.rating)
    rows = np.flatnonzero(pc.is_valid(table[name]).to_numpy())
    if len(rows) == 0:
        raise EmptyLogError(f"{file.name} has no row with a {roles.rating_word}")
    total, table = len(table), table.take(pa.array(rows))
    for column in (str(settled.user), str(settled.item)):
        blank = np.flatnonzero(_is_blank(table[column]))
        if blank.size:
            raise MissingValueError(
                f"{file.name}: {column} is missing in {rows_in_words(rows[blank], total)}, which have a {name}; fill "
                f"it in, or empty the {name}"
            )
    sides = [_found(side, table, settled, log, file, ending, escaped=True) for side in ("user", "item")]
    for side in sides:
        if (side.positions < 0).any():
            raise side.unknown_error(file, rows[side.positions < 0], total)
    labels = _labels(table[name], rows, total, f"{file.name}: {name}")
    _refuse_repeated(cell_keys(sides[0].positions, sides[1].positions, log.n_items), rows, total, file)
    return Truths(sides[0].positions, sides[1].positions, labels, _probabilities(table, settled, rows, total, file))


def _probabilities(
    table: pa.Table, settled: Roles, rows: npt.NDArray[np.int64], total: int, file: Path
) -> npt.NDArray[np.float64] | None:
    """Take the probabilities, or one over the weights; each row must have one."""
    by_weight = getattr(settled, "probability", None) is None
    name = settled.weight if by_weight else settled.probability  # type: ignore[attr-defined]
    if name is None:
        return None
    missing = np.flatnonzero(_is_blank(table[name]))
    if missing.size:
        raise MissingValueError(f"{file.name}: {name} is missing in {rows_in_words(rows[missing], total)}")
    if not _is_number(table[name].type):
        raise FileFormatError(f"{file.name}: {name} must be numbers; got {table[name].type}")
    values = table[name].to_numpy().astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if wrong.size:
        raise FileFormatError(
            f"{file.name}: {name} must be finite and above 0; it is not in {rows_in_words(rows[wrong], total)}"
        )
    return np.asarray(1 / values if by_weight else values)


def warn_of_left_out(what: str, unknown: Mapping[str, tuple[int, list[Any]]]) -> None:
    """Warn that some of a file is left out.

    Parameters
    ----------
    what
        The file, and how much of it.
    unknown
        By "user" and "item": how many ids the log does not have, and the first three.
    """
    told = " and ".join(
        f"{count:,} {side}{'s' if count > 1 else ''} (first: {', '.join(map(short, first))})"
        for side, (count, first) in unknown.items()
        if count
    )
    options = " and ".join(f"all_{side}s=..." for side, (count, _) in unknown.items() if count)
    warn_caller(
        f"{what} are left out, of {told} that the log does not have; to have them counted, read the log with {options}",
        UnknownIdWarning,
    )


class _Side:
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

    def unknown_error(self, file: Path, rows: npt.NDArray[np.int64], total: int | None = None) -> UnknownIdError:
        """Say which rows are of ids that the log does not have."""
        where = rows_in_words(rows, len(self.positions) if total is None else total)
        return UnknownIdError(
            f"{file.name}: {self.column} is not in the log in {where}; the first is {short(self.first_unknown[0])}"
        )


def _read(file: Path, roles: Roles, kind: str, likely: Columns | None) -> tuple[pa.Table, Roles, str]:
    ending = file_ending(file, is_text=False, kind=kind)
    table, settled = read_columns(file, ending, roles, likely=likely)
    if len(table) == 0:
        raise EmptyLogError(f"{file.name} is empty: it must have at least one row")
    return table, settled, ending


def _found(
    side: str, table: pa.Table, settled: Roles, log: FeedbackLog, file: Path, ending: str, *, escaped: bool = False
) -> _Side:
    """Look a column up; in lists of our own making an apostrophe stands before ids that a spreadsheet would run."""
    column = str(getattr(settled, side))
    catalogue: IdMap = getattr(log, f"{side}_ids")
    name = f"{file.name}: {column}"
    # In text "12" is what the log says it is: an integer if all of its ids are, else a string.
    from_text = ending != ".parquet" and pa.types.is_integer(catalogue.arrow().type)
    codes, ids = encode_ids(table[column], name, from_text=from_text)
    spelt = ids.arrow()
    if from_text and is_text(spelt.type):
        return _Side(side, column, codes, ids, find_spelt(catalogue, spelt, name))
    found = catalogue.find(spelt, name=name)
    if escaped and is_text(spelt.type):
        plain = catalogue.find(pc.replace_substring_regex(spelt, "^'([-=+@'\\t\\r\\n])", "\\1"), name=name)
        found = np.where(plain < 0, found, plain)
    return _Side(side, column, codes, ids, found)


def _is_blank(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    missing = pc.is_null(column, nan_is_null=True)
    if is_text(column.type):
        missing = pc.or_(missing, pc.fill_null(pc.equal(column, pa.scalar("", column.type)), False))
    return np.asarray(missing.to_numpy())


def _refuse_repeated(keys: npt.NDArray[Any], rows: npt.NDArray[np.int64], total: int, file: Path) -> None:
    """Say which rows name a pair that a row before them has named."""
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        again = np.setdiff1d(np.arange(len(keys)), first)
        raise AuditError(
            f"{file.name} must name each pair once; a pair is named again in {rows_in_words(rows[again], total)}"
        )


def _labels(column: pa.ChunkedArray, rows: npt.NDArray[np.int64], total: int, name: str) -> npt.NDArray[np.int8]:
    """Take 0 and 1, yes and no, true and false."""
    if is_text(column.type):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(column))
        codes = pc.index_in(words, value_set=pa.array([*_NEGATIVE, *_POSITIVE], words.type))
        labels = pc.fill_null(codes, -1).to_numpy()
        labels = np.where(labels < 0, -1, labels >= len(_NEGATIVE))
    elif _is_number(column.type):
        values = column.to_numpy()
        labels = np.where(np.isin(values, (0, 1)), values == 1, -1)
    else:
        raise AuditError(f"{name} must be 0 or 1, yes or no, true or false; got {column.type}")
    wrong = np.flatnonzero(labels < 0)
    if wrong.size:
        raise AuditError(
            f"{name} must be 0 or 1, yes or no, true or false; it is not in {rows_in_words(rows[wrong], total)}, where "
            f"row {rows[wrong[0]]} has {short(column[int(wrong[0])].as_py())}"
        )
    return labels.astype(np.int8)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))
