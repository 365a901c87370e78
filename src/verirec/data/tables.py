"""From an Arrow table to the columns of a log: ids encoded, catalogues and features lined up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
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
    user, item = str(roles.user), str(roles.item)
    if table.num_rows == 0:
        raise EmptyLogError("the log is empty: it must have at least one row")
    table = cleaned(table, roles, Cleaning(drop_missing, clean_ids, scale))
    reads = {name: _reads_integers(table, name, from_text) for name in (user, item)}
    user_table, item_table = (
        None if given is None else feature_table(given, f"{side}_features", name, reads_integers=reads[name])
        for side, given, name in (("user", user_features, user), ("item", item_features, item))
    )
    with ThreadPoolExecutor(max_workers=2) as workers:  # Arrow and NumPy let go of the lock in the long parts.
        of_users = _catalogue("user", all_users, user_table, user, reads[user])
        of_items = _catalogue("item", all_items, item_table, item, reads[item])
        user_work = workers.submit(_encode, table, user, of_users, from_text, _where("user", all_users))
        item_work = workers.submit(_encode, table, item, of_items, from_text, _where("item", all_items))
        (users, user_ids), (items, item_ids) = user_work.result(), item_work.result()
    columns: dict[str, Any] = {
        "n_users": len(user_ids),
        "n_items": len(item_ids),
        "user_ids": user_ids,
        "item_ids": item_ids,
        "levels": None if levels is None else checked_levels(levels),
    }
    for side, features, name, ids in (("user", user_table, user, user_ids), ("item", item_table, item, item_ids)):
        if features is not None:
            found = features_by_id(features, name, ids, f"{side}_features")
            columns |= dict(zip((f"{side}_features", f"{side}_feature_names"), found, strict=True))
    rows = {"users": users, "items": items}
    called = {"users": f"column {user!r}", "items": f"column {item!r}"}
    for role, field in FIELD_OF_ROLE.items():
        name = getattr(roles, role)
        if name is not None:
            rows[field], called[field] = _values(table, name, role), f"column {name!r}"
    return columns | validate_rows(
        rows,
        len(user_ids),
        len(item_ids),
        positive_from=positive_from,
        levels=columns["levels"],
        duplicates=duplicates,
        called=called,
    )


def _reads_integers(table: pa.Table, name: str, from_text: bool) -> bool:
    """Tell whether plain integers in a text file of ids are the integers of a log."""
    kind = table[name].type
    return from_text or pa.types.is_integer(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _catalogue(
    side: str, all_ids: Any, features: pa.Table | None, id_column: str, reads_integers: bool
) -> IdMap | None:
    """Settle the whole catalogue: the ids that were given, or those that have features, or just what the log shows."""
    if isinstance(all_ids, Path):
        return IdMap.of(read_id_file(all_ids), name=f"all_{side}s, {all_ids.name},", from_text=reads_integers)
    if all_ids is not None:
        return IdMap.of(all_ids, name=f"all_{side}s")
    return None if features is None else catalogue_of(features, id_column, f"{side}_features")


def _where(side: str, all_ids: Any) -> str:
    """Say of ids that a catalogue does not have what lacks them."""
    return "outside the catalogue" if all_ids is not None else f"that {side}_features lacks"


def _encode(
    table: pa.Table, name: str, catalogue: IdMap | None, from_text: bool, where: str
) -> tuple[npt.NDArray[np.int32], IdMap]:
    # Ids of a text file stay text if that is what the catalogue has.
    to_integers = from_text and (catalogue is None or not is_text(catalogue.arrow().type))
    column = spelt(table[name]) if from_text and not to_integers else table[name]
    codes, ids = encode_ids(column, f"column {name!r}", from_text=to_integers)
    if catalogue is None:
        return codes, ids
    found = catalogue.find(ids.arrow(), name=f"column {name!r}")
    unknown = np.flatnonzero((found < 0)[codes])
    if unknown.size:
        first = ids.ids(codes[unknown[:1]]).tolist()[0]
        raise UnknownIdError(
            f"column {name!r} has ids {where} in {rows_in_words(unknown, len(codes))}; the first is {short(first)}"
        )
    return found[codes], catalogue


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
    texts = column.cast(pa.string())
    for kind in (pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return np.asarray(texts.cast(kind).to_numpy())
        except pa.ArrowInvalid:
            continue
    iso = pc.match_substring_regex(texts, _ISO).to_numpy()
    rows = np.flatnonzero(~iso) if not iso.all() else np.arange(len(texts))
    raise DataError(
        f"column {name!r} must hold numbers, dates or ISO text such as 1998-03-01T12:30:00, all of one kind; not so in "
        f"{rows_in_words(rows, len(texts))}, where row {rows[0]} has {short(texts[int(rows[0])].as_py())}"
    )


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
