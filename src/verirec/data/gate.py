"""The one gatekeeper: every log, whatever it comes from, has its columns checked here and nowhere else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from verirec.checks import real_number, whole_number
from verirec.data.grid import checked_positions
from verirec.data.ids import IdMap, encode_ids, is_text, refuse_missing
from verirec.data.pairs import rows_to_keep
from verirec.exceptions import (
    ColumnError,
    DataError,
    EmptyLogError,
    LabelError,
    MissingValueError,
    UnknownIdError,
    rows_in_words,
)

Column = npt.NDArray[Any]

MAX_SIZE: Final = 2**31 - 1
"""Positions are int32."""

_NUMBER: Final = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"

_USUAL_NAMES: Final[dict[str, frozenset[str]]] = {
    "user": frozenset({"user", "userid", "uid", "customer", "customerid", "reviewerid"}),
    "item": frozenset(
        {
            "item",
            "itemid",
            "iid",
            "movie",
            "movieid",
            "video",
            "videoid",
            "song",
            "songid",
            "product",
            "productid",
            "asin",
        }
    ),
    "rating": frozenset({"rating", "ratings", "label", "stars", "watchratio", "click", "clicked"}),
}


@dataclass(frozen=True)
class Roles:
    """Which column plays which part. The first three may be left open: then the usual names are tried."""

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    timestamp: str | None = None
    propensity: str | None = None
    weight: str | None = None
    unbiased: str | None = None

    def resolve(self, columns: list[str]) -> Roles:
        """Settle every part on a column that exists, or say which ones there are."""
        named = {role: name for role, name in vars(self).items() if name is not None}
        for role, usual in _USUAL_NAMES.items():
            if role not in named:
                named[role] = _guess(role, usual, columns)
        for role, name in named.items():
            if name not in columns:
                raise ColumnError(f"no column {name!r} (for {role}); the columns are: {', '.join(columns) or 'none'}")
        return Roles(**named)

    def names(self) -> list[str]:
        """Give the columns that are needed, each once."""
        return list(dict.fromkeys(name for name in vars(self).values() if name is not None))


def _guess(role: str, usual: frozenset[str], columns: list[str]) -> str:
    matches = [column for column in columns if "".join(filter(str.isalnum, column)).lower() in usual]
    if len(matches) == 1:
        return matches[0]
    found = "several could be it: " + ", ".join(matches) if matches else "none has a usual name"
    if len(columns) == 1:
        found += "; if fields are not parted as the file's ending says, give delimiter=..."
    raise ColumnError(
        f"cannot tell which column is the {role} ({found}); name it: {role}=...; the columns are: {', '.join(columns)}"
    )


def log_columns(
    table: pa.Table,
    roles: Roles,
    *,
    positive_from: float | None,
    duplicates: str,
    all_users: IdMap | None,
    all_items: IdMap | None,
    from_text: bool = False,
) -> dict[str, Any]:
    """Check a table and turn it into the columns of a `FeedbackLog`.

    Parameters
    ----------
    table
        Has the columns that `roles` names.
    positive_from
        Ratings of at least this are positive; `None` if they are 0/1 already.
    duplicates
        The policy for repeated pairs: see `verirec.data.pairs`.
    all_users, all_items
        The whole catalogues, where they are larger than what the log shows.
    from_text
        Whether ids were read as text.
    """
    refuse_empty(table.num_rows)
    with ThreadPoolExecutor(max_workers=2) as workers:  # Arrow and NumPy let go of the lock in the long parts.
        user_work, item_work = (
            workers.submit(_encode, table, str(column), catalogue, from_text)
            for column, catalogue in ((roles.user, all_users), (roles.item, all_items))
        )
        (users, user_ids), (items, item_ids) = user_work.result(), item_work.result()
    ratings = _numbers(table, str(roles.rating))
    labels = binary_labels(ratings, positive_from, f"column {roles.rating!r}")
    times = None if roles.timestamp is None else _times(table, roles.timestamp)
    columns: dict[str, Any] = {
        "users": users,
        "items": items,
        "labels": labels,
        "ratings": None if positive_from is None else ratings.astype(np.float32, copy=False),
        "timestamps": times,
    }
    for role, field, check in (
        ("propensity", "propensities", checked_propensities),
        ("weight", "weights", checked_weights),
        ("unbiased", "unbiased", _checked_flags),
    ):
        name = getattr(roles, role)
        columns[field] = None if name is None else check(_numbers(table, name), f"column {name!r}")
    keep = rows_to_keep(duplicates, users, items, len(user_ids), len(item_ids), labels, ratings, times)
    if keep is not None:
        columns = {name: None if column is None else column[keep] for name, column in columns.items()}
    return columns | {
        "n_users": len(user_ids),
        "n_items": len(item_ids),
        "user_ids": user_ids,
        "item_ids": item_ids,
    }


def refuse_empty(rows: int) -> None:
    """Raise `EmptyLogError` if there is no row."""
    if rows == 0:
        raise EmptyLogError("the log is empty: it must have at least one row")


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
        return np.asarray(ratings, dtype=np.int8)
    threshold = real_number("positive_from", positive_from)
    labels = (ratings >= threshold).astype(np.int8)
    positives = int(labels.sum())
    if positives in (0, len(labels)):
        raise LabelError(
            f"positive_from={threshold:g} makes all {len(labels):,} labels {'1' if positives else '0'}: {name} goes "
            f"from {ratings.min():g} to {ratings.max():g}"
        )
    return labels


def checked_propensities(values: Column, name: str) -> npt.NDArray[np.float64]:
    """Accept propensities in (0, 1]."""
    return _checked_range(values, (values > 0) & (values <= 1), name, "above 0 and at most 1")


def checked_weights(values: Column, name: str) -> npt.NDArray[np.float64]:
    """Accept weights of at least 0 that are not all 0."""
    weights = _checked_range(values, (values >= 0) & np.isfinite(values), name, "finite and at least 0")
    if not weights.any():
        raise DataError(f"{name} must not be 0 in every row")
    return weights


def _checked_flags(values: Column, name: str) -> npt.NDArray[np.bool_]:
    return _checked_range(values, (values == 0) | (values == 1), name, "0/1 or booleans").astype(bool)


def _checked_range(values: Column, valid: Column, name: str, wanted: str) -> npt.NDArray[np.float64]:
    if not valid.all():
        rows = np.flatnonzero(~valid)
        raise DataError(
            f"{name} must be {wanted}; not so in {rows_in_words(rows, len(values))}, where row {rows[0]} has "
            f"{values[rows[0]]:g}"
        )
    return values.astype(np.float64)


def checked_arrays(columns: dict[str, Any], n_users: int, n_items: int) -> dict[str, Any]:
    """Check flat arrays of positions, labels and the rest: one length, valid values, int32 positions, int8 labels."""
    for name in ("users", "items"):
        columns[name] = checked_positions(name, columns[name], n_users if name == "users" else n_items)
    length = len(columns["users"])
    for name, values in columns.items():
        if values is not None:
            columns[name] = values = np.asarray(values)
            if values.shape != (length,):
                raise DataError(f"{name} must be as long as users, shape ({length},); got {values.shape}")
            if values.dtype.kind not in "fiubM":
                raise DataError(f"{name} must be numbers; got {values.dtype}")
            if values.dtype.kind == "f" and np.isnan(values).any():
                rows = np.flatnonzero(np.isnan(values))
                raise MissingValueError(f"{name} has NaN in {rows_in_words(rows, length)}; drop or fill them")
    for name, check in (
        ("propensities", checked_propensities),
        ("weights", checked_weights),
        ("unbiased", _checked_flags),
    ):
        if columns.get(name) is not None:
            columns[name] = check(columns[name], name)
    return columns


def _encode(
    table: pa.Table, name: str, catalogue: IdMap | None, from_text: bool
) -> tuple[npt.NDArray[np.int32], IdMap]:
    codes, ids = encode_ids(table[name], f"column {name!r}", from_text=from_text)
    if catalogue is not None:
        try:
            return catalogue.positions(ids.arrow())[codes], catalogue
        except UnknownIdError as error:
            raise UnknownIdError(f"column {name!r} has ids outside the catalogue it was given: {error}") from None
    return codes, ids


def _numbers(table: pa.Table, name: str) -> Column:
    column = table[name]
    refuse_missing(column, f"column {name!r}")
    kind = column.type
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise _not_numbers(column, name)
    values: Column = column.to_numpy()
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        rows = np.flatnonzero(~np.isfinite(values))
        raise DataError(f"column {name!r} must be finite; infinite in {rows_in_words(rows, len(values))}")
    return values.astype(np.int8) if values.dtype.kind == "b" else values


def _not_numbers(column: pa.ChunkedArray, name: str) -> LabelError:
    """Say where a column first holds something that is not a number: one stray word turns all of it into text."""
    rows = np.arange(len(column))
    if is_text(column.type):
        numeric = pc.match_substring_regex(column, _NUMBER).to_numpy()
        rows = rows if numeric.all() else np.flatnonzero(~numeric)
    return LabelError(
        f"column {name!r} must hold numbers; got {column.type} in {rows_in_words(rows, len(column))}, where row "
        f"{rows[0]} has {column[int(rows[0])].as_py()!r}"
    )


def _times(table: pa.Table, name: str) -> Column:
    kind = table.schema.field(name).type
    if not pa.types.is_temporal(kind):
        return _numbers(table, name)
    refuse_missing(table[name], f"column {name!r}")
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        raise DataError(f"column {name!r} must hold dates, timestamps or numbers; got {kind}")
    return np.asarray(table[name].to_numpy())


def grid_size(name: str, value: object) -> int:
    """Accept a number of users or items that int32 positions can address."""
    return whole_number(name, value, least=1, most=MAX_SIZE)
