"""Logs that keep their levels: stars and other ordered answers, each row by its place in a list of values."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import as_array
from verirec.exceptions import DataError, LabelError, ParameterError
from verirec.formatting import short

Levels = tuple[float, ...]
Indices = npt.NDArray[np.int8]

MOST_LEVELS: Final = 100
"""Places are int8, and nobody has more stars to give."""
_NAMED: Final = 5
_SAME: Final = 1e-6
"""Of the span of the levels: single precision does not have 3.1 as it is written."""


def checked_levels(levels: Any) -> Levels:
    """Accept values in ascending order, at least two.

    Examples
    --------
    >>> checked_levels([1, 2, 3])
    (1.0, 2.0, 3.0)
    >>> checked_levels([5, 4])
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: levels must be at least 2 and at most 100 finite numbers in ascending order, \
such as [1, 2, 3, 4, 5]; got [5, 4]
    """
    values = as_array("levels", levels)
    proper = values.ndim == 1 and values.dtype.kind in "fiu" and 2 <= len(values) <= MOST_LEVELS
    if not proper or not np.isfinite(values).all() or not (np.diff(values.astype(np.float64)) > 0).all():
        raise ParameterError(
            f"levels must be at least 2 and at most {MOST_LEVELS} finite numbers in ascending order, such as "
            f"[1, 2, 3, 4, 5]; got {short(levels)}"
        )
    return tuple(values.astype(np.float64).tolist())


def level_indices(
    ratings: npt.NDArray[Any], levels: Levels, name: str, *, error: type[DataError] = LabelError
) -> Indices:
    """Return the place of each rating among the levels, from 0; ratings that are none of them are refused.

    Examples
    --------
    >>> level_indices(np.array([0.5, 3.0]), (0.5, 1.0, 3.0), "rating").tolist()
    [0, 2]
    >>> level_indices(np.array([0, 3, 3.5, 0]), (1.0, 2.0, 3.0), "rating")
    Traceback (most recent call last):
    verirec.exceptions.LabelError: rating must be one of the levels 1, 2, 3; 3 of 4 rows are not: 0 (2), 3.5 (1)
    """
    values = np.asarray(levels)
    between = (values[1:] + values[:-1]) / 2
    nearest = np.searchsorted(between, ratings)
    other = np.abs(values[nearest] - ratings) > _SAME * (values[-1] - values[0])
    if other.any():
        found, counts = np.unique(ratings[other], return_counts=True)
        listed = ", ".join(f"{one:g} ({count:,})" for one, count in zip(found[:_NAMED], counts, strict=False))
        more = f" and {len(found) - _NAMED:,} more values" if len(found) > _NAMED else ""
        raise error(
            f"{name} must be one of the levels {in_words(levels)}; {int(other.sum()):,} of {len(ratings):,} rows are "
            f"not: {listed}{more}"
        )
    return nearest.astype(np.int8)


def values_at(places: Any, levels: Levels) -> npt.NDArray[np.float64]:
    """Return the values at places among the levels, which are checked.

    Examples
    --------
    >>> values_at([2, 0], (1.0, 2.0, 3.0)).tolist()
    [3.0, 1.0]
    """
    given = as_array("labels", places, error=LabelError)
    if given.dtype.kind not in "iu" or not ((given >= 0) & (given < len(levels))).all():
        raise LabelError(f"labels of a log of levels must be their places, integers from 0 to {len(levels) - 1}")
    return np.asarray(np.asarray(levels)[given])


def in_words(levels: Levels) -> str:
    """Name all of a few levels, and the ends of many.

    Examples
    --------
    >>> in_words((1.0, 2.0, 2.5)), in_words(tuple(np.arange(0.5, 12.5, 0.5)))
    ('1, 2, 2.5', '0.5, 1, ..., 12')
    """
    words = [f"{one:g}" for one in levels]
    return ", ".join(words) if len(words) <= 2 * _NAMED else f"{words[0]}, {words[1]}, ..., {words[-1]}"
