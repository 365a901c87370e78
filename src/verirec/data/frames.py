"""Frames of any library into Arrow, which the gate reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from verirec.data.ids import mixed_ids_error
from verirec.data.roles import Roles
from verirec.exceptions import ColumnError, DataError, IdError

_ARROW_REFUSALS: Final = (pa.ArrowException, OverflowError, TypeError, ValueError)


def as_arrow(frame: Any, name: str, columns: Sequence[str] | None = None, id_columns: Collection[str] = ()) -> pa.Table:
    """Bring any frame to Arrow; columns that are in Arrow's memory already are not copied.

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
        return eager.to_arrow()
    except _ARROW_REFUSALS:
        raise _refusal(eager, id_columns) from None


def arrow_columns(frame: Any, roles: Roles, name: str = "the log") -> tuple[pa.Table, Roles]:
    """Settle which columns of a frame play which part, and bring those to Arrow; `name` is what errors call it."""
    settled = roles.settle(_known_frame(frame, name).collect_schema().names())
    return as_arrow(frame, name, settled.names(), (str(settled.user), str(settled.item))), settled


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


def _refusal(frame: Any, id_columns: Collection[str]) -> DataError:
    """Find the column that Arrow refuses and say what it mixes."""
    for column in frame.columns:
        try:
            frame.select(column).to_arrow()
        except _ARROW_REFUSALS:
            error = IdError if column in id_columns else DataError
            return mixed_ids_error(f"column {column!r}", frame[column].to_list(), error)
    return DataError("the frame cannot be converted to Arrow")
