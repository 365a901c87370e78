"""From a table of features to numbers: numbers as they are, categories and lists as a 0/1 column a level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from verirec.data.ids import is_text, refuse_missing
from verirec.exceptions import ColumnError, DataError, FeatureWarning, warn_caller
from verirec.formatting import names_in_words, rows_in_words, short

Features = npt.NDArray[np.float64]

MOST_LEVELS: Final = 1_000
"""Of one column: with more it is a name or a text, and no category."""
_FEWEST_ROWS: Final = 30
"""Of which each may well have a level of its own."""
NUMBER: Final = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
"""A number as text spells it."""
_LEVEL, _WITHIN = "=", "|"


def encode_features(table: pa.Table, columns: list[str], name: str) -> tuple[Features, tuple[str, ...]]:
    """Return the columns as a matrix, and what each column of it is called.

    Numbers and booleans are taken as they are. Text is a category: a 0/1 column a level, called "colour=red"; what is
    left blank has none. Where values have a "|" in them they are lists, and a row may have several levels.

    Parameters
    ----------
    table
        One row per id.
    columns
        Which of its columns.
    name
        What errors call the table.

    Examples
    --------
    >>> table = pa.table({"age": [30, 40], "colour": ["red", "blue"], "kind": ["a|b", "b"]})
    >>> values, names = encode_features(table, ["age", "colour", "kind"], "users")
    >>> names
    ('age', 'colour=blue', 'colour=red', 'kind=a', 'kind=b')
    >>> values.tolist()
    [[30.0, 0.0, 1.0, 1.0, 1.0], [40.0, 1.0, 0.0, 0.0, 1.0]]
    """
    parts: list[Features] = [np.empty((len(table), 0))]
    names: list[str] = []
    for column in columns:
        values, own = _encoded(table[column], column, f"{name}' column {column!r}")
        parts.append(values)
        names += own
        if len(table) > 1 and values.size and (values == values[0]).all():
            warn_caller(
                f"{name}' column {column!r} is the same in all {len(table):,} rows: it says nothing", FeatureWarning
            )
    return np.concatenate(parts, axis=1), tuple(names)


def _encoded(column: pa.ChunkedArray, name: str, called: str) -> tuple[Features, list[str]]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        refuse_missing(column, called)
        numbers = column.cast(pa.float64(), safe=False).to_numpy()
        return np.asarray(numbers)[:, None], [name]
    if pa.types.is_null(kind):
        raise DataError(f"{called} is empty: leave it out")
    if not is_text(kind):
        raise DataError(f"{called} must hold numbers or text; got {kind}")
    texts = pc.fill_null(pc.utf8_trim_whitespace(column.cast(pa.large_string())), "")
    _refuse_stray_text(texts, called)
    return _levels(texts.to_pylist(), name, called)


def _refuse_stray_text(texts: pa.ChunkedArray, called: str) -> None:
    """Say where a column of numbers has something else in it: one stray word turns all of it into text."""
    numeric = pc.match_substring_regex(texts, NUMBER).to_numpy()
    stray = np.flatnonzero(~numeric)
    if stray.size and numeric.sum() > len(numeric) / 2:
        raise DataError(
            f"{called} must hold numbers, as most of its rows do; not so in {rows_in_words(stray, len(numeric))}, "
            f"where row {stray[0]} has {short(texts[int(stray[0])].as_py())}"
        )


def _levels(texts: list[str], name: str, called: str) -> tuple[Features, list[str]]:
    """Make a 0/1 column of each level."""
    rows = [[one.strip() for one in text.split(_WITHIN) if one.strip()] for text in texts]
    levels = sorted({one for row in rows for one in row})
    if len(levels) > MOST_LEVELS or (len(rows) >= _FEWEST_ROWS and len(levels) > max(len(rows) / 2, 2)):
        raise DataError(
            f"{called} has {len(levels):,} levels in {len(rows):,} rows, too many for a category (first: "
            f"{names_in_words(levels[:3])}): leave it out, or make it coarser"
        )
    place = {level: number for number, level in enumerate(levels)}
    values = np.zeros((len(rows), len(levels)))
    for number, row in enumerate(rows):
        values[number, [place[one] for one in row]] = 1
    return values, [f"{name}{_LEVEL}{level}" for level in levels]


@dataclass(frozen=True, eq=False)
class FeatureScale:
    """How features were standardised, and what they are called: what another table's are brought to.

    Each column is shifted to mean 0 and scaled to standard deviation 1; 0/1 columns are shifted only. Scaled, a rare
    kind would have values so large that its weight, under one penalty for all, is hardly penalised.

    Parameters
    ----------
    shift, scale
        Of each column, shape (d,).
    names
        Of the columns; `None` where features came as an array.
    """

    shift: Features
    scale: Features
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, values: Features, names: tuple[str, ...] | None = None) -> Self:
        """Find it of a matrix, shape (n, d)."""
        spread = values.std(axis=0)
        kept = np.isin(values, (0, 1)).all(axis=0) | (spread == 0)
        return cls(values.mean(axis=0), np.where(kept, 1.0, spread), names)

    def apply(self, values: Features) -> Features:
        """Standardise a matrix of the same columns."""
        return np.asarray((values - self.shift) / self.scale)

    def align(self, values: Features, names: tuple[str, ...] | None, name: str) -> Features:
        """Bring another table's columns to these, and standardise.

        A level that was not there then has no weight: whoever has it is taken to have none of the known ones, with a
        warning. A number that is missing, or that nobody knows, is a `ColumnError`.
        """
        if self.names is None or names is None:
            if values.shape[1] != len(self.shift):
                raise DataError(f"{name} must have {len(self.shift)} columns, as in training; got {values.shape[1]}")
            return self.apply(values)
        strange = [one for one in names if one not in self.names]
        columns = {one.partition(_LEVEL)[0] for one in self.names}
        theirs = {one.partition(_LEVEL)[0] for one in names}
        for wrong, what in ((theirs - columns, "was not there in training"), (columns - theirs, "is missing")):
            if wrong:
                raise ColumnError(
                    f"{name}' column {min(wrong)!r} {what}; the columns were: {names_in_words(sorted(columns))}"
                )
        if strange:
            warn_caller(
                f"{name} has levels that were not there in training, which have no weight: {names_in_words(strange)}",
                FeatureWarning,
            )
        place = {one: number for number, one in enumerate(names)}
        found = [values[:, place[one]] if one in place else np.zeros(len(values)) for one in self.names]
        return self.apply(np.column_stack(found) if found else np.empty((len(values), 0)))

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"shift": self.shift.tolist(), "scale": self.scale.tolist(), "names": self.names}

    @classmethod
    def read(cls, held: dict[str, Any]) -> Self:
        """Read back what `plain` made; what is none is a `ValueError`."""
        names = None if held["names"] is None else tuple(held["names"])
        shift, scale = (np.array(held[name], dtype=np.float64) for name in ("shift", "scale"))
        sizes = {shift.shape, scale.shape, (len(shift) if names is None else len(names),)}
        if len(sizes) > 1 or not np.isfinite([shift, scale]).all() or not (scale > 0).all():
            raise ValueError("the features' scale is none")
        return cls(shift, scale, names)
