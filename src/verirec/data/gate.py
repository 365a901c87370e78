"""The one gatekeeper: every log, whatever it comes from, has its rows checked here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import as_array, real_number, whole_number
from verirec.data.cells import cell_keys, checked_positions
from verirec.data.levels import Levels, level_indices
from verirec.data.pairs import Agreement, pair_order, repeated_rows, rows_to_keep
from verirec.exceptions import DataError, EmptyLogError, LabelError, MissingValueError, ParameterError
from verirec.formatting import rows_in_words, short

Column = npt.NDArray[Any]

ROW_COLUMNS: Final = ("users", "items", "labels", "ratings", "timestamps", "propensities", "weights", "unbiased")
"""What a log knows of each of its rows."""

MAX_SIZE: Final = 2**31 - 1
"""Positions are int32."""


def grid_size(name: str, value: object) -> int:
    """Accept a number of users or items that int32 positions can address."""
    return whole_number(name, value, min=1, max=MAX_SIZE)


def validate_rows(
    rows: Mapping[str, Any],
    n_users: int,
    n_items: int,
    *,
    positive_from: float | None,
    duplicates: str,
    levels: Levels | None = None,
    called: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Check the rows of a log, apply the label rule and the policy for repeated pairs, and sort by user and item.

    Rows are sorted here, once: whatever is worked out of a log then does not depend on the order that they came in.

    Parameters
    ----------
    rows
        Arrays by the names of `ROW_COLUMNS`; the optional ones may be `None`. `labels` are ratings if there is a rule.
    n_users, n_items
        The grid's size.
    positive_from
        Ratings of at least this are positive; `None` if the labels are 0/1 already.
    duplicates
        The policy for repeated pairs: see `verirec.data.pairs.rows_to_keep`.
    levels
        All values there can be, where labels are to be the places of ratings among them.
    called
        What to call a column in errors, where that is not its name here.

    Returns
    -------
    The columns, in the types and the order that `FeedbackLog` documents.
    """
    names = {name: name for name in ROW_COLUMNS} | dict(called or {})
    columns = _checked_columns(rows, n_users, n_items, names)
    with ThreadPoolExecutor(max_workers=1) as worker:  # Sorting lets go of the lock, and is half of the work.
        sorting = worker.submit(pair_order, columns["users"], columns["items"], n_users, n_items)
        given = _label(columns, positive_from, levels, names["labels"])
    columns = in_order(columns, given, sorting.result(), n_items, duplicates)
    refuse_useless(columns, positive_from, names)
    return columns


def checked_part(
    rows: Mapping[str, Any],
    n_users: int,
    n_items: int,
    *,
    positive_from: float | None,
    levels: Levels | None,
    called: Mapping[str, str],
) -> tuple[dict[str, Any], Column]:
    """Check some rows of a log that does not come at once, and apply the label rule; parameters as in `validate_rows`.

    `in_order` and `refuse_useless` do the rest, once all rows of a pair are together.

    Returns
    -------
    The columns, in the order that they came, and what the labels were made from.
    """
    columns = _checked_columns(rows, n_users, n_items, called)
    return columns, _label(columns, positive_from, levels, called["labels"])


def _label(columns: dict[str, Any], positive_from: float | None, levels: Levels | None, name: str) -> Column:
    """Apply the label rule in place; return what the labels were made from."""
    given: Column = columns["labels"]
    columns["labels"] = labels_by_rule(given, positive_from, levels, name)
    if positive_from is not None:
        columns["ratings"] = given
    if columns["timestamps"] is not None:
        columns["timestamps"] = columns["timestamps"].copy()
    if columns["ratings"] is not None:
        columns["ratings"] = _compact(columns["ratings"], name)
    return given


def in_order(
    columns: dict[str, Any],
    given: Column,
    order: npt.NDArray[np.int64] | None,
    n_items: int,
    duplicates: str,
    agreement: Callable[[Agreement], None] | None = None,
) -> dict[str, Any]:
    """Sort checked columns by user and item, and apply the policy for repeated pairs.

    Parameters
    ----------
    given
        What the labels were made from.
    order
        From `pair_order`.
    n_items, duplicates
        As in `validate_rows`.
    agreement
        See `rows_to_keep`.
    """
    users, items = columns["users"], columns["items"]
    repeated = np.empty(0, np.int64) if order is None else repeated_rows(order, users, items)
    pairs = cell_keys(users[repeated], items[repeated], n_items)
    keep = rows_to_keep(duplicates, repeated, pairs, columns["labels"], given, columns["timestamps"], agreement)
    if order is None:
        return columns
    rows_left = order if keep is None else order[keep[order]]
    return {name: None if values is None else values[rows_left] for name, values in columns.items()}


def refuse_useless(columns: Mapping[str, Any], positive_from: float | None, names: Mapping[str, str]) -> None:
    """Raise where a log's rows are of one class by the label rule, or all weigh nothing."""
    if columns["weights"] is not None and not columns["weights"].any():
        raise DataError(f"{names['weights']} must not be 0 in every row")
    if positive_from is not None:
        _refuse_one_class(columns["labels"], columns["ratings"], positive_from, names["labels"])


def _compact(ratings: Column, name: str) -> Column:
    """Keep ratings in few bytes: integers of up to 16 bits as such, anything else in single precision."""
    if ratings.dtype.kind in "iu":
        low, high = int(ratings.min()), int(ratings.max())
        for kind in (np.int8, np.int16):
            if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
                return ratings.astype(kind)
    with np.errstate(over="ignore"):
        single = ratings.astype(np.float32)
    if not np.isfinite(single).all():
        raise DataError(f"{name} must be within single precision; it goes from {ratings.min():g} to {ratings.max():g}")
    return single


def _checked_columns(rows: Mapping[str, Any], n_users: int, n_items: int, names: Mapping[str, str]) -> dict[str, Any]:
    """Check each column by itself: type, length, range, nothing missing."""
    columns: dict[str, Any] = dict.fromkeys(ROW_COLUMNS)
    columns["users"] = checked_positions(names["users"], rows["users"], n_users)
    columns["items"] = checked_positions(names["items"], rows["items"], n_items)
    length = len(columns["users"])
    _expect_length(columns["items"], names["items"], length)
    for name in ROW_COLUMNS[2:]:
        if rows.get(name) is not None:
            columns[name] = _checked_numbers(rows[name], names[name], length, dates=name == "timestamps")
    if length == 0:
        raise EmptyLogError("the log is empty: it must have at least one row")
    if columns["labels"] is None:
        raise DataError(f"{names['labels']} must be given")
    for name, check in _RANGES.items():
        if columns[name] is not None:
            columns[name] = check(columns[name], names[name])
    return columns


def labels_by_rule(
    ratings: Column, positive_from: float | None, levels: Levels | None, name: str
) -> npt.NDArray[np.int8]:
    """Apply the label rule: the places of ratings among levels, a threshold, or 0/1 already."""
    if levels is None:
        return binary_labels(ratings, positive_from, name)
    if positive_from is not None:
        raise ParameterError(f"give levels or positive_from, not both; got positive_from={short(positive_from)}")
    return level_indices(ratings, levels, name)


def binary_labels(ratings: Column, positive_from: float | None, name: str) -> npt.NDArray[np.int8]:
    """Apply the label rule: a threshold, or 0/1 already.

    Examples
    --------
    >>> binary_labels(np.array([1, 3, 5]), 3, "rating").tolist()
    [0, 1, 1]
    >>> binary_labels(np.array([1, 3, 5]), None, "rating")
    Traceback (most recent call last):
    verirec.exceptions.LabelError: rating must be 0/1, or needs a rule such as positive_from=4; it goes from 1 to 5, \
and 2 of 3 rows (first: 1, 2, counting from 0) are neither 0 nor 1
    """
    if positive_from is None:
        neither = (ratings != 0) & (ratings != 1)
        if neither.any():
            rows = np.flatnonzero(neither)
            verb = "is" if len(rows) == 1 else "are"
            raise LabelError(
                f"{name} must be 0/1, or needs a rule such as positive_from=4; it goes from {ratings.min():g} to "
                f"{ratings.max():g}, and {rows_in_words(rows, len(ratings))} {verb} neither 0 nor 1"
            )
        # A copy: what the caller does with theirs later must not change the log.
        return np.array(ratings, dtype=np.int8)
    return (ratings >= real_number("positive_from", positive_from)).view(np.int8)


def _refuse_one_class(labels: Column, ratings: Column, positive_from: float, name: str) -> None:
    """Raise `LabelError` if the rule leaves one class; labels that came as 0/1 may be of one class."""
    positives = int(labels.sum())
    if positives in (0, len(labels)):
        raise LabelError(
            f"positive_from={positive_from:g} makes all {len(labels):,} labels {'1' if positives else '0'}: "
            f"{name} goes from {ratings.min():g} to {ratings.max():g}"
        )


def _plainly_typed(array: Column) -> Column:
    """Bring byte orders, widths and units that Arrow has no room for to the nearest that it has."""
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    if array.dtype.kind == "M" and np.datetime_data(array.dtype)[0] not in ("D", "s", "ms", "us", "ns"):
        return array.astype("datetime64[us]")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _expect_length(array: Column, name: str, length: int) -> None:
    if array.shape != (length,):
        raise DataError(f"{name} must be as long as users, shape ({length},); got {array.shape}")


def _checked_numbers(values: Any, name: str, length: int, *, dates: bool) -> Column:
    """Accept a flat array of numbers (or dates), of the log's length, without missing values or infinity."""
    array = _plainly_typed(as_array(name, values, error=DataError))
    _expect_length(array, name, length)
    if array.dtype.kind not in ("fiubM" if dates else "fiub"):
        raise DataError(f"{name} must be numbers{' or dates' if dates else ''}; got {array.dtype}")
    missing = np.isnat(array) if array.dtype.kind == "M" else np.isnan(array) if array.dtype.kind == "f" else None
    if missing is not None and missing.any():
        rows = np.flatnonzero(missing)
        raise MissingValueError(f"{name} has missing values in {rows_in_words(rows, length)}; drop or fill them")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        rows = np.flatnonzero(~np.isfinite(array))
        raise DataError(f"{name} must be finite; infinite in {rows_in_words(rows, length)}")
    return array.view(np.int8) if array.dtype.kind == "b" else array


def _checked_propensities(values: Column, name: str) -> npt.NDArray[np.float64]:
    return _within(values, (values > 0) & (values <= 1), name, "above 0 and at most 1").astype(np.float64)


def _checked_weights(values: Column, name: str) -> npt.NDArray[np.float64]:
    return _within(values, values >= 0, name, "at least 0").astype(np.float64)


def _checked_flags(values: Column, name: str) -> npt.NDArray[np.bool_]:
    return _within(values, (values == 0) | (values == 1), name, "0/1 or booleans").astype(np.bool_)


def _within(values: Column, valid: Column, name: str, wanted: str) -> Column:
    if not valid.all():
        rows = np.flatnonzero(~valid)
        raise DataError(
            f"{name} must be {wanted}; not so in {rows_in_words(rows, len(values))}, where row {rows[0]} has "
            f"{values[rows[0]]:g}"
        )
    return values


_RANGES: Final = {"propensities": _checked_propensities, "weights": _checked_weights, "unbiased": _checked_flags}
