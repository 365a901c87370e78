"""What is tidied in a table, or left out of it, before it becomes a log: only what was asked for, and it is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from verirec.checks import real_number, truth_value
from verirec.data.feature_columns import NUMBER
from verirec.data.ids import is_text
from verirec.data.roles import Roles
from verirec.exceptions import DroppedRowsWarning, EmptyLogError, LabelError, ParameterError, warn_caller
from verirec.formatting import rows_in_words, short

Flags = npt.NDArray[np.bool_]

MISSING_WORDS: Final = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "\\n")
"""How programs write that a value is missing, in lower case: what pandas takes for it, and a database's \\N."""
DECIMAL_COMMA: Final = r"^\s*[-+]?[0-9]+,[0-9]+\s*$"
_WHOLE: Final = r"^[-+]?[0-9]{1,18}$"
FLOAT_ID: Final = r"^\s*(-?[0-9]+)\.0+\s*$"
_EXACT: Final = 2**53
"""Below it every whole number is a float of its own."""


@dataclass(frozen=True)
class Cleaning:
    """What is asked for.

    Parameters
    ----------
    drop_missing
        Leave out rows without a value in one of the columns that are read: empty, one of `MISSING_WORDS`, and ratings
        that are no numbers or outside of `scale`.
    clean_ids
        Take spaces off the ends of ids, and ".0" off whole numbers.
    scale
        The lowest and the highest rating that there can be; others are refused, or left out with `drop_missing`.
    """

    drop_missing: bool = False
    clean_ids: bool = False
    scale: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name in ("drop_missing", "clean_ids"):
            truth_value(name, getattr(self, name))
        if self.scale is not None:
            self._check_scale()

    def _check_scale(self) -> None:
        """Refuse what is not two numbers, the lower one first."""
        given: Any = self.scale
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise ParameterError(f"scale must be the lowest and the highest rating, such as (1, 5); got {short(given)}")
        low, high = (real_number("scale", one) for one in given)
        if low >= high:
            raise ParameterError(f"scale must have its lowest rating first; got {short(given)}")


def cleaned(table: pa.Table, roles: Roles, cleaning: Cleaning) -> pa.Table:
    """Tidy a table, and leave out of it what was asked for, with a warning that counts it.

    Examples
    --------
    >>> import warnings
    >>> table = pa.table({"user": [" ann", "bob", None], "item": ["7.0", "8", "9"], "rating": ["5", "five", "4"]})
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     tidy = cleaned(table, Roles("user", "item", "rating"), Cleaning(drop_missing=True, clean_ids=True))
    >>> tidy.to_pylist()
    [{'user': 'ann', 'item': '7', 'rating': 5}]
    """
    if cleaning == Cleaning():
        return table
    if cleaning.clean_ids:
        for name in (str(roles.user), str(roles.item)):
            table = _replaced(table, name, over_dictionary(table[name], clean_ids))
    rating = str(roles.rating)
    outside = None if cleaning.scale is None else outside_scale(numbers_of(table[rating]), cleaning.scale)
    if not cleaning.drop_missing:
        if outside is not None and outside.any():
            raise _outside_error(np.flatnonzero(outside), table[rating], rating, cleaning)
        return table
    return _without_missing(table, roles, outside, cleaning)


def row_faults(table: pa.Table, roles: Roles, outside: Flags | None, cleaning: Cleaning) -> dict[str, Flags]:
    """Return what rows lack, in words, with the rows that do: what `drop_missing` leaves out."""
    faults: dict[str, Flags] = {}
    for name in roles.names():
        faults[f"column {name!r} has no value"] = is_missing(table[name])
    if roles.rating is None:
        return {what: rows for what, rows in faults.items() if rows.any()}
    rating = str(roles.rating)
    unread = is_missing(numbers_of(table[rating])) & ~faults[f"column {rating!r} has no value"]
    if unread.any():
        first = short(table[rating][int(np.flatnonzero(unread)[0])].as_py())
        faults[f"column {rating!r} is no number (first: {first})"] = unread
    if outside is not None and cleaning.scale is not None:
        low, high = cleaning.scale
        faults[f"column {rating!r} is not within {low:g} and {high:g}"] = outside
    return {what: rows for what, rows in faults.items() if rows.any()}


def _without_missing(table: pa.Table, roles: Roles, outside: Flags | None, cleaning: Cleaning) -> pa.Table:
    """Leave out rows that lack something, and say how many and what."""
    faults = row_faults(table, roles, outside, cleaning)
    if faults:
        left_out = np.logical_or.reduce([*faults.values()])
        told = ", ".join(f"{what} in {int(rows.sum()):,}" for what, rows in faults.items())
        counted = f"{int(left_out.sum()):,} of {len(left_out):,} rows are left out: {told}"
        if left_out.all():
            raise EmptyLogError(f"the log is empty: {counted}")
        warn_caller(counted, DroppedRowsWarning)
        table = table.filter(pa.array(~left_out))
    # One word among numbers had made all of the column text.
    for name in dict.fromkeys(roles.names()[2:]):
        numbers = numbers_of(table[name])
        table = table if numbers.null_count else _replaced(table, name, numbers)
    return table


def _outside_error(rows: npt.NDArray[np.int64], column: pa.ChunkedArray, name: str, cleaning: Cleaning) -> LabelError:
    low, high = cleaning.scale or (math.nan, math.nan)
    return LabelError(
        f"column {name!r} must be within the scale from {low:g} to {high:g}; it is not in "
        f"{rows_in_words(rows, len(column))}, where row {rows[0]} has {short(column[int(rows[0])].as_py())}"
    )


def _replaced(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def over_dictionary(column: pa.ChunkedArray, change: Callable[[Any], Any]) -> pa.ChunkedArray:
    """Change each value of a column; where it is dictionary-encoded, each distinct value once."""
    if not pa.types.is_dictionary(column.type):
        return change(column)
    chunks = [pa.DictionaryArray.from_arrays(one.indices, change(one.dictionary)) for one in column.chunks]
    return pa.chunked_array(chunks) if chunks else column


def clean_ids(ids: Any) -> Any:
    """Take spaces off the ends of ids, and ".0" off whole numbers; floats that are whole become integers."""
    if is_text(ids.type):
        plain = pc.replace_substring_regex(ids.cast(pa.large_string()), FLOAT_ID, "\\1")
        return pc.utf8_trim_whitespace(plain)
    if pa.types.is_floating(ids.type):
        there = pc.if_else(pc.is_nan(ids), None, ids)
        whole = pc.all(pc.equal(pc.floor(there), there)).as_py()
        largest = pc.max(pc.abs(there)).as_py() or 0
        return there.cast(pa.int64()) if whole and largest < _EXACT else ids
    return ids


def is_missing(column: pa.ChunkedArray) -> Flags:
    """Tell which values are not there: null, NaN, blank, or a word that says so."""
    if pa.types.is_dictionary(column.type):
        flags = [_missing_codes(chunk) for chunk in column.chunks]
        return np.concatenate([np.empty(0, bool), *flags])
    missing = pc.is_null(column, nan_is_null=True)
    if is_text(column.type):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(column))
        missing = pc.or_(missing, pc.is_in(words, value_set=pa.array(MISSING_WORDS, words.type)))
    return np.asarray(missing.to_numpy(zero_copy_only=False) if isinstance(missing, pa.Array) else missing.to_numpy())


def _missing_codes(chunk: pa.DictionaryArray) -> Flags:
    of_value = np.append(is_missing(pa.chunked_array([chunk.dictionary])), True)
    codes = pc.fill_null(chunk.indices, len(chunk.dictionary)).to_numpy(zero_copy_only=False)
    return np.asarray(of_value[codes])


def outside_scale(numbers: pa.ChunkedArray, scale: tuple[float, float]) -> Flags:
    """Tell which numbers are beyond the ends of a scale; what is no number is not."""
    values = numbers.to_numpy().astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray((values < scale[0]) | (values > scale[1]))


def numbers_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read a column as numbers, null where it has none; true and false are 1 and 0, and 4,5 is 4.5.

    Examples
    --------
    >>> numbers_of(pa.chunked_array([["4,5", "3", "two", "true"]])).to_pylist()
    [4.5, 3.0, None, 1.0]
    """
    if pa.types.is_boolean(column.type):
        return column.cast(pa.int8())
    if not is_text(column.type):
        return column if _is_numeric(column.type) else pa.chunked_array([pa.nulls(len(column), pa.float64())])
    spelt = pc.replace_substring_regex(pc.utf8_trim_whitespace(pc.utf8_lower(column.cast(pa.string()))), r"^\+", "")
    spelt = pc.replace_substring_regex(pc.replace_substring_regex(spelt, "^true$", "1"), "^false$", "0")
    commas = pc.match_substring_regex(spelt, DECIMAL_COMMA)
    spelt = pc.if_else(commas, pc.replace_substring(spelt, ",", "."), spelt)
    found = pc.if_else(pc.match_substring_regex(spelt, NUMBER), spelt, None)
    whole = pc.all(pc.match_substring_regex(found, _WHOLE)).as_py()
    return found.cast(pa.int64() if whole else pa.float64())


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
