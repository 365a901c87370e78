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
_LARGEST: Final = 1e100
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
    proper = proper and bool(np.isfinite(values).all())
    if proper and np.abs(values.astype(np.float64)).max() > _LARGEST:
        raise ParameterError(f"levels must be of at most {_LARGEST:g}, so that they have squares; got {short(levels)}")
    if not proper or not (np.diff(values.astype(np.float64)) > 0).all():
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


def checked_labels(
    name: str,
    labels: npt.NDArray[Any],
    levels: Levels | None,
    *,
    error: type[DataError] = LabelError,
    hint: str = "",
) -> Indices:
    """Accept 0/1 labels or, if there are levels, values among them, which become places.

    Examples
    --------
    >>> checked_labels("the labels", np.array([3.0, 1.0]), (1.0, 2.0, 3.0)).tolist()
    [2, 0]
    """
    if levels is not None:
        return level_indices(labels, levels, name, error=error)
    wrong = ~np.isin(labels, (0, 1))
    if wrong.any():
        raise error(f"{name} must be 0/1; {int(wrong.sum()):,} are not{hint}")
    return labels.astype(np.int8)


def check_scale(
    name: str, levels: Levels | None, of_log: Levels | None, *, error: type[DataError] = LabelError
) -> None:
    """Refuse labels on another scale than the log's.

    Examples
    --------
    >>> check_scale("the survey", None, (1.0, 2.0, 3.0))
    Traceback (most recent call last):
    verirec.exceptions.LabelError: the survey must have labels on the log's scale, levels 1, 2, 3; its are 0/1
    """
    if levels != of_log:
        wanted, got = ("0/1" if one is None else f"levels {in_words(one)}" for one in (of_log, levels))
        raise error(
            f"{name} must have labels on the log's scale, {wanted}; its are {'on ' * (levels is not None)}{got}"
        )


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


def said_of(labels: npt.NDArray[Any], levels: Levels | None, positive: str = "positive") -> str:
    """Sum up labels in words: the share of positive ones or, of levels, their mean.

    Examples
    --------
    >>> said_of(np.array([1, 0]), None), said_of(np.array([1, 0]), (1.0, 2.0, 3.0))
    ('50.0% positive', '3 levels with a mean of 1.50')
    """
    if levels is None:
        return f"{labels.mean():.1%} {positive}"
    return f"{len(levels)} levels with a mean of {values_at(labels, levels).mean():.2f}"


def rows_on(labels: npt.NDArray[Any], levels: Levels | None, positive: str) -> dict[str, str]:
    """Return what a table of facts says of labels: how many are positive, in these words, or the levels' mean."""
    if levels is not None:
        return {"labels": said_of(labels, levels)}
    return {positive: f"{int(labels.sum()):,} ({labels.mean():.1%})"}


def in_words(levels: Levels) -> str:
    """Name all of a few levels, and the ends of many.

    Examples
    --------
    >>> in_words((1.0, 2.0, 2.5)), in_words(tuple(np.arange(0.5, 12.5, 0.5)))
    ('1, 2, 2.5', '0.5, 1, ..., 12')
    """
    words = [f"{one:g}" for one in levels]
    return ", ".join(words) if len(words) <= 2 * _NAMED else f"{words[0]}, {words[1]}, ..., {words[-1]}"
