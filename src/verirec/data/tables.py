"""From an Arrow table to the columns of a log: ids encoded, catalogues and features lined up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from verirec.data.cleaning import DECIMAL_COMMA, Cleaning, cleaned, numbers_of
from verirec.data.feature_columns import NUMBER
from verirec.data.feature_files import feature_table
from verirec.data.features import catalogue_of, features_by_id
from verirec.data.gate import validate_rows
from verirec.data.id_files import read_id_file
from verirec.data.ids import IdMap, encode_ids, is_text, refuse_missing, spelt
from verirec.data.levels import checked_levels
from verirec.data.pairs import DuplicatePolicy
from verirec.data.roles import Roles
from verirec.exceptions import DataError, EmptyLogError, LabelError, UnknownIdError
from verirec.formatting import rows_in_words, short

_ISO: Final = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}(:\d{2}(:\d{2}(\.\d+)?)?)?(Z|[-+]\d{2}(:?\d{2})?)?)?$"

FIELD_OF_ROLE: Final = {
    "rating": "labels",
    "timestamp": "timestamps",
    "propensity": "propensities",
    "weight": "weights",
    "unbiased": "unbiased",
}
"""The log's name for what a role's column holds."""


class LogOptions(TypedDict, total=False):
    """What `FeedbackLog.from_frame` and `read_log` both take; see the first."""

    user: str | None
    item: str | None
    rating: str | None
    positive_from: float | None
    levels: Any
    duplicates: DuplicatePolicy
    timestamp: str | None
    propensity: str | None
    weight: str | None
    unbiased: str | None
    all_users: Any
    all_items: Any
    user_features: Any
    item_features: Any
    drop_missing: bool
    clean_ids: bool
    scale: tuple[float, float] | None
    clicks: bool


def log_columns(
    table: pa.Table,
    roles: Roles,
    *,
    positive_from: float | None = None,
    levels: Any = None,
    duplicates: str = "error",
    all_users: Any = None,
    all_items: Any = None,
    user_features: Any = None,
    item_features: Any = None,
    drop_missing: bool = False,
    clean_ids: bool = False,
    scale: tuple[float, float] | None = None,
    from_text: bool = False,
) -> dict[str, Any]:
    """Turn a table into the columns of a `FeedbackLog`, through the gate.

    Parameters
    ----------
    table
        Has the columns that `roles` names.
    from_text
        Whether ids were read as text.

    The rest is as in `FeedbackLog.from_frame`.
    """
    if table.num_rows == 0:
        raise EmptyLogError("the log is empty: it must have at least one row")
    table = cleaned(table, roles, Cleaning(drop_missing, clean_ids, scale))
    given = {"all_users": all_users, "all_items": all_items}
    given |= {"user_features": user_features, "item_features": item_features}
    sides = given_catalogues(roles, given, lambda name: from_text or is_integer_column(table.schema.field(name).type))
    with ThreadPoolExecutor(max_workers=2) as workers:  # Arrow and NumPy let go of the lock in the long parts.
        user_work, item_work = (workers.submit(one.encode, table[one.column], from_text) for one in sides.values())
        (users, user_ids), (items, item_ids) = user_work.result(), item_work.result()
    columns = catalogue_columns(sides, user_ids, item_ids, levels)
    values, called = row_values(table, roles)
    return columns | validate_rows(
        {"users": users, "items": items} | values,
        len(user_ids),
        len(item_ids),
        positive_from=positive_from,
        levels=columns["levels"],
        duplicates=duplicates,
        called=called,
    )


def catalogue_columns(
    sides: Mapping[str, GivenCatalogue], user_ids: IdMap, item_ids: IdMap, levels: Any
) -> dict[str, Any]:
    """Return what a log knows besides its rows: sizes, ids, levels, and features in the order of ids."""
    columns: dict[str, Any] = {
        "n_users": len(user_ids),
        "n_items": len(item_ids),
        "user_ids": user_ids,
        "item_ids": item_ids,
        "levels": None if levels is None else checked_levels(levels),
    }
    for side, one in sides.items():
        if one.features is not None:
            found = features_by_id(one.features, one.column, columns[f"{side}_ids"], f"{side}_features")
            columns |= dict(zip((f"{side}_features", f"{side}_feature_names"), found, strict=True))
    return columns


def row_values(table: pa.Table, roles: Roles) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what a table's rows have besides ids, by the log's names, and what errors call all of its columns."""
    rows: dict[str, Any] = {}
    called = {"users": f"column {roles.user!r}", "items": f"column {roles.item!r}"}
    if roles.rating is None:
        rows["labels"], called["labels"] = np.ones(table.num_rows, np.int8), "the label of a click"
    for role, field in FIELD_OF_ROLE.items():
        name = getattr(roles, role)
        if name is not None:
            rows[field], called[field] = _values(table, name, role), f"column {name!r}"
    return rows, called


def is_integer_column(kind: pa.DataType) -> bool:
    """Tell whether a column of this type holds integers, as they are or in a dictionary."""
    return bool(pa.types.is_integer(kind.value_type if pa.types.is_dictionary(kind) else kind))


def given_catalogues(
    roles: Roles, given: Mapping[str, Any], reads_integers: Callable[[str], bool]
) -> dict[str, GivenCatalogue]:
    """Read what was given of users and items.

    Parameters
    ----------
    roles
        Settled.
    given
        By the names of `LogOptions`: all_users, all_items, user_features, item_features.
    reads_integers
        Tells of a column whether plain integers in a text file of ids are the integers of the log.
    """
    return {
        side: GivenCatalogue.of(
            side, name, given.get(f"all_{side}s"), given.get(f"{side}_features"), reads_integers=reads_integers(name)
        )
        for side, name in (("user", str(roles.user)), ("item", str(roles.item)))
    }


@dataclass(frozen=True)
class GivenCatalogue:
    """What was given of the users, or the items, that could have been logged.

    Parameters
    ----------
    column
        The log's column of their ids.
    ids
        The whole catalogue: the ids that were given, or those that have features; `None` if the log shows all.
    features
        Of these, if there are any.
    where
        Says of ids that the catalogue does not have what lacks them.
    """

    column: str
    ids: IdMap | None
    features: pa.Table | None
    where: str

    @classmethod
    def of(cls, side: str, column: str, all_ids: Any, features: Any, *, reads_integers: bool) -> GivenCatalogue:
        """Read what was given, if anything; `reads_integers` as in `feature_table`."""
        name = f"{side}_features"
        table = None if features is None else feature_table(features, name, column, reads_integers=reads_integers)
        ids: IdMap | None
        if isinstance(all_ids, Path):
            ids = IdMap.of(read_id_file(all_ids), name=f"all_{side}s, {all_ids.name},", from_text=reads_integers)
        elif all_ids is not None:
            ids = IdMap.of(all_ids, name=f"all_{side}s")
        else:
            ids = None if table is None else catalogue_of(table, column, name)
        return cls(column, ids, table, "outside the catalogue" if all_ids is not None else f"that {name} lacks")

    def encode(self, column: pa.ChunkedArray, from_text: bool) -> tuple[npt.NDArray[np.int32], IdMap]:
        """Turn ids into positions in the catalogue, or in one of just these ids."""
        name = f"column {self.column!r}"
        # Ids of a text file stay text if that is what the catalogue has.
        to_integers = from_text and (self.ids is None or not is_text(self.ids.arrow().type))
        codes, ids = encode_ids(spelt(column) if from_text and not to_integers else column, name, from_text=to_integers)
        if self.ids is None:
            return codes, ids
        found = self.ids.find(ids.arrow(), name=name)
        unknown = np.flatnonzero((found < 0)[codes])
        if unknown.size:
            first = ids.ids(codes[unknown[:1]]).tolist()[0]
            raise UnknownIdError(
                f"{name} has ids {self.where} in {rows_in_words(unknown, len(codes))}; the first is {short(first)}"
            )
        return found[codes], self.ids


def _values(table: pa.Table, name: str, role: str) -> npt.NDArray[Any]:
    """Return a column of numbers or dates as an array; whatever else it holds is refused."""
    column = table[name]
    kind = column.type
    refuse_missing(column, f"column {name!r}")
    if role == "timestamp" and is_text(kind):
        return _moments(column, name)
    if is_text(kind) and pc.any(pc.match_substring_regex(column, DECIMAL_COMMA)).as_py():
        numbers = numbers_of(column)
        column, kind = (column, kind) if numbers.null_count else (numbers, numbers.type)
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_time(kind) or pa.types.is_duration(kind):
        raise DataError(f"column {name!r} must hold numbers, dates or timestamps; got {kind}")
    elif not (pa.types.is_primitive(kind) or pa.types.is_boolean(kind)):
        raise _not_numbers(column, name, LabelError if role == "rating" else DataError)
    return np.asarray(column.to_numpy())


def _moments(column: pa.ChunkedArray, name: str) -> npt.NDArray[Any]:
    """Read dates and times that a frame holds as ISO text, as a text file's are; those with a zone become UTC."""
    texts = _day_last_to_first(column.cast(pa.string()))
    for kind in (pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return np.asarray(texts.cast(kind).to_numpy())
        except pa.ArrowInvalid:
            continue
    iso = pc.match_substring_regex(texts, _ISO).to_numpy()
    rows = np.flatnonzero(~iso) if not iso.all() else np.arange(len(texts))
    raise DataError(
        f"column {name!r} must hold numbers, dates or ISO text such as 1998-03-01T12:30:00 (or 01.03.1998), all of one "
        f"kind; not so in {rows_in_words(rows, len(texts))}, where row {rows[0]} has "
        f"{short(texts[int(rows[0])].as_py())}"
    )


def _day_last_to_first(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Bring 31.12.1998 to ISO's order: with dots the day is first everywhere. With slashes it is not: refused."""
    return pc.replace_substring_regex(texts, r"^(\d{2})\.(\d{2})\.(\d{4})($|[T ])", r"\3-\2-\1\4")


def _not_numbers(column: pa.ChunkedArray, name: str, error: type[DataError]) -> DataError:
    """Say where a column first holds something that is not a number: one stray word turns all of it into text."""
    rows = np.arange(len(column))
    if is_text(column.type):
        column = column.cast(pa.large_string())
        numeric = pc.match_substring_regex(column, NUMBER).to_numpy()
        rows = rows if numeric.all() else np.flatnonzero(~numeric)
    return error(
        f"column {name!r} must hold numbers; got {column.type} in {rows_in_words(rows, len(column))}, where row "
        f"{rows[0]} has {short(column[int(rows[0])].as_py())}"
    )
