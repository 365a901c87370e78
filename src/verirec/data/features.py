"""Features of users and items, lined up with their positions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verirec.checks import as_array
from verirec.data.feature_columns import Features, encode_features
from verirec.data.ids import IdMap
from verirec.exceptions import ColumnError, DataError, UnknownIdError


def feature_matrix(name: str, values: npt.ArrayLike, size: int) -> Features:
    """Accept a finite matrix of features with one row per position, shape (size, d).

    Examples
    --------
    >>> feature_matrix("user_features", [[1, 0], [0, 1]], 3)
    Traceback (most recent call last):
    verirec.exceptions.DataError: user_features must have one row per position, shape (3, d); got (2, 2)
    """
    matrix = as_array(name, values, error=DataError)
    if matrix.dtype.kind not in "fiub":
        raise DataError(f"{name} must be numbers; got {matrix.dtype}")
    if matrix.ndim != 2 or matrix.shape[0] != size:
        raise DataError(f"{name} must have one row per position, shape ({size}, d); got {matrix.shape}")
    matrix = matrix.astype(np.float64)
    wrong = int((~np.isfinite(matrix)).sum())
    if wrong:
        raise DataError(f"{name} must be finite; {wrong:,} of {matrix.size:,} values are NaN or infinite")
    return matrix


def catalogue_of(table: pa.Table, id_column: str, name: str) -> IdMap:
    """Return the catalogue that a table of features spans: every id in it, each exactly once."""
    if id_column not in table.column_names:
        raise ColumnError(f"{name} must have the id column {id_column!r}; it has {', '.join(table.column_names)}")
    return IdMap.of(table[id_column], name=f"{name}' column {id_column!r}")


def features_by_id(table: pa.Table, id_column: str, catalogue: IdMap, name: str) -> tuple[Features, tuple[str, ...]]:
    """Line a table of features up with a catalogue: one row per id of it; categories are encoded.

    Returns the matrix, and the names of its columns.
    """
    others = [column for column in table.column_names if column != id_column]
    ids = catalogue_of(table, id_column, name)
    place = ids.find(catalogue.arrow(), name=name)
    uncovered = np.flatnonzero(place < 0)
    if uncovered.size:
        first = catalogue.ids(uncovered[:1]).tolist()[0]
        raise UnknownIdError(
            f"{name} must cover every id of the log; {uncovered.size:,} of {len(catalogue):,} are missing "
            f"(first: {first!r})"
        )
    values, names = encode_features(table, others, name)
    in_id_order = np.argsort(ids.positions(table[id_column]))[place]
    return feature_matrix(name, values[in_id_order], len(catalogue)), names
