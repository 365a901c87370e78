"""Frames of any library into Arrow, which the gate reads."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from verirec.data.ids import ids_of_one_kind, mixed_ids_error
from verirec.data.roles import Roles
from verirec.exceptions import ColumnError, DataError, IdError

_ARROW_REFUSALS: Final = (pa.ArrowException, OverflowError, TypeError, ValueError)
_ROW_LABELS: Final = re.compile(r"__index_level_\d+__")


def as_arrow(
    frame: Any,
    name: str,
    columns: Sequence[str] | None = None,
    id_columns: Collection[str] = (),
    *,
    clean_ids: bool = False,
) -> pa.Table:
    """Bring any frame to Arrow; columns that are in Arrow's memory already are not copied.

    Parameters
    ----------
    frame, name
        Of any library that narwhals reads, and what errors call it.
    columns, id_columns
        Which are wanted, all by default, and which of them hold ids.
    clean_ids
        Whether ids that mix numbers and text are made one kind (`ids_of_one_kind`); they are refused otherwise.

    Examples
    --------
    >>> import pandas as pd
    >>> as_arrow(pd.DataFrame({"user": ["ann"], "age": [30]}), "users", ["user"]).column_names
    ['user']
    """
    import narwhals.stable.v2 as nw  # Takes long to import, and only frames need it.

    known = _known_frame(frame, name)
    names = list(columns) if columns is not None else known.collect_schema().names()
    unnamed = [column for column in names if not isinstance(column, str)]
    if unnamed:
        raise ColumnError(f"{name} must have columns named by strings; got {unnamed[0]!r}")
    try:
        selected = known.select(names)
        eager = selected.collect() if isinstance(selected, nw.LazyFrame) else selected
    except Exception as error:  # a lazy frame's plan can fail in any way its library knows
        raise DataError(f"{name} cannot be read: {' '.join(str(error).split())[:200]}") from None
    try:
        return _without_row_labels(eager.to_arrow(), names)
    except _ARROW_REFUSALS:
        return _column_by_column(eager, id_columns, clean_ids=clean_ids)


def arrow_columns(
    frame: Any,
    roles: Roles,
    name: str = "the log",
    *,
    clean_ids: bool = True,
    likely: Mapping[str, str | None] | None = None,
) -> tuple[pa.Table, Roles]:
    """Settle which columns of a frame play which part, and bring those to Arrow: see `as_arrow` and `Roles.settle`."""
    settled = roles.settle(frame_columns(frame, name), likely)
    ids = (str(settled.user), str(settled.item))
    return as_arrow(frame, name, settled.names(), ids, clean_ids=clean_ids), settled


def frame_columns(frame: Any, name: str = "the log") -> list[str]:
    """Return the names of a frame's columns."""
    return list(_known_frame(frame, name).collect_schema().names())


def is_labelled(given: Any) -> bool:
    """Tell whether something is a frame with labels of its own, and not just the numbers that its library gives.

    Examples
    --------
    >>> import pandas as pd
    >>> is_labelled(pd.DataFrame([[1, 2]])), is_labelled(pd.DataFrame([[1, 2]], columns=["a", "b"])), is_labelled(3)
    (False, True, False)
    """
    if not hasattr(given, "columns"):
        return False
    if not hasattr(given, "index"):
        return list(given.columns) != [f"column_{place}" for place in range(len(given.columns))]
    sides = [np.asarray(labels) for labels in (given.index, given.columns)]
    return not all(side.dtype.kind in "iu" and np.array_equal(side, np.arange(len(side))) for side in sides)


def _known_frame(frame: Any, name: str) -> Any:
    import narwhals.stable.v2 as nw

    try:
        return nw.from_native(frame)
    except TypeError:
        raise DataError(
            f"{name} must be a pandas, polars or pyarrow frame (or another that narwhals reads); "
            f"got {type(frame).__name__}"
        ) from None
    except (ValueError, nw.exceptions.NarwhalsError) as error:  # a column that occurs twice
        raise ColumnError(f"{name} cannot be read: {' '.join(str(error).split())}") from None


def _without_row_labels(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Leave out what pandas calls its rows, where these have no name of their own: it is no column of the frame."""
    return table.drop_columns([one for one in table.column_names if _ROW_LABELS.fullmatch(one) and one not in names])


def _column_by_column(frame: Any, id_columns: Collection[str], *, clean_ids: bool) -> pa.Table:
    """Bring what Arrow refuses as it stands to it, ids that are cleaned as one kind; or say what a column mixes."""
    found = {}
    for column in frame.columns:
        try:
            found[column] = frame.select(column).to_arrow()[column]
        except _ARROW_REFUSALS:
            values, is_id = frame[column].to_list(), column in id_columns
            one_kind = ids_of_one_kind(values) if is_id and clean_ids else None
            if one_kind is None:
                error = mixed_ids_error(f"column {column!r}", values, IdError if is_id else DataError)
                mend = ", or with clean_ids=True" if is_id and not clean_ids and ids_of_one_kind(values) else ""
                raise type(error)(f"{error}{mend}") from None
            found[column] = pa.chunked_array([one_kind])
    return pa.table(found)
