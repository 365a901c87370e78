"""A column of few different numbers, looked up as they are asked for: nothing of the column's length is made."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_SHORT: Final = 1 << 16
"""A shorter column is an ordinary array; of a longer one, so many numbers are made at a time."""


class LookedUp:
    """`table[places]`, as far as it is asked for: to be sliced, and multiplied with another column.

    Parameters
    ----------
    table
        The different numbers, shape (k,).
    places
        Which of them each entry is, shape (n,).

    Examples
    --------
    >>> column = LookedUp(np.array([0.0, 2.5]), np.array([1, 0, 1], np.int8))
    >>> column[1:].tolist(), column @ np.array([1.0, 1.0, 2.0])
    ([0.0, 2.5], 7.5)
    """

    __array_ufunc__ = None
    """NumPy leaves products with a column to this class."""
    ndim: Final = 1

    def __init__(self, table: Array, places: npt.NDArray[Any]) -> None:
        self.table, self.places = table, places

    @property
    def shape(self) -> tuple[int, ...]:
        """(n,)."""
        return self.places.shape

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, which: Any) -> Array:
        own = which[-1] if isinstance(which, tuple) else which
        return np.asarray(self.table[self.places[own]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self[:].astype(dtype or np.float64, copy=False)

    def copy(self) -> Array:
        """Return all of it as an ordinary array."""
        return self[:]

    def __matmul__(self, other: Array) -> float:
        parts = (slice(start, start + _SHORT) for start in range(0, len(self), _SHORT))
        return float(sum(float(self[part] @ other[part]) for part in parts))

    __rmatmul__ = __matmul__


def looked_up(table: npt.ArrayLike, places: npt.NDArray[Any]) -> Array:
    """Return `table[places]`: an array or, of a long column, what is one to whoever slices it.

    Examples
    --------
    >>> looked_up([0.0, 2.5], np.array([1, 0])).tolist()
    [2.5, 0.0]
    """
    found = LookedUp(np.asarray(table, np.float64), places)
    return found[:] if len(places) <= _SHORT else cast(Array, found)


def along(function: Any, *columns: Array) -> Array:
    """Apply a function to columns of one length, entry by entry; to those that are looked up, to their tables."""
    looked: list[Any] = list(columns)
    if all(isinstance(one, LookedUp) for one in looked):
        return looked_up(function(*(one.table for one in looked)), looked[0].places)
    return np.asarray(function(*columns))
