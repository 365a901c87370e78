"""The users' own ids and our positions, both ways."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from verirec.checks import truth_value
from verirec.data.cells import checked_positions
from verirec.data.parts import parts_of
from verirec.data.text_ids import sorting_keys
from verirec.exceptions import DataError, IdError, MissingValueError, UnknownIdError
from verirec.formatting import rows_in_words, short

_TABLE_SLACK: Final = 4
"""Integer ids are encoded by a look-up table as long as their range is within this many times the rows."""

_WIDEST: Final = 128
"""Characters of an id beyond which an array of one width would take far more room than strings."""
_CANONICAL_INTEGER: Final = r"^(0|-?[1-9][0-9]{0,17})$"
_FLOAT_IN_TEXT: Final = r"^-?[0-9]+\.0+$"


class IdMap:
    """A catalogue of ids in sorted order; an id's position is its place in it.

    Positions do not depend on the order of the rows that the ids came from.

    Parameters
    ----------
    ids
        Arrow array of distinct int64 or string ids, sorted; or a size: then ids and positions are the same.

    Examples
    --------
    >>> ids = IdMap.of(["pear", "apple"])
    >>> ids.positions(["pear", "apple", "pear"]).tolist()
    [1, 0, 1]
    >>> ids.ids([0]).tolist()
    ['apple']
    """

    def __init__(self, ids: pa.Array | int) -> None:
        if not isinstance(ids, int | pa.Array):
            raise IdError(f"an IdMap is made of an Arrow array or a size; of other ids, by IdMap.of; got {short(ids)}")
        self._ids: pa.Array | None = None if isinstance(ids, int) else ids
        self._size = ids if isinstance(ids, int) else len(ids)

    @classmethod
    def of(cls, ids: Any, *, name: str = "ids", from_text: bool = False) -> IdMap:
        """Make a catalogue of any sequence or Arrow array of distinct ids; `from_text` as in `encode_ids`."""
        column = as_id_column(ids, name)
        codes, catalogue = encode_ids(column, name, from_text=truth_value("from_text", from_text))
        if len(catalogue) != len(codes):
            twice = np.flatnonzero(np.bincount(codes) > 1)
            first = catalogue.arrow(twice[:1]).to_pylist()[0]
            raise IdError(f"{name} must be distinct; {len(twice):,} occur more than once (first: {short(first)})")
        return catalogue

    @classmethod
    def in_order(cls, ids: Any, *, name: str = "ids") -> IdMap:
        """Make a catalogue of distinct ids that keeps their order, for callers whose positions refer to it."""
        if isinstance(ids, IdMap):
            return ids
        cls.of(ids, name=name)
        column = as_id_column(ids, name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return cls(_plain(column).combine_chunks())

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        kind = "positions" if self._ids is None else str(self._ids.type)
        return f"IdMap({self._size:,} ids, {kind})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IdMap):
            return NotImplemented
        if self._ids is None and other._ids is None:
            return len(self) == len(other)
        return len(self) == len(other) and bool(self.arrow().equals(other.arrow()))

    __hash__ = None  # type: ignore[assignment]

    def ids(self, positions: npt.ArrayLike | None = None) -> npt.NDArray[Any]:
        """Return the ids at these positions (all of them by default): an array of int64 or of text.

        Text is what NumPy saves without pickling, and `.npz` files of factors take; Python strings in an object array
        where that would lose a null character at the end of an id, or take far more room.

        Examples
        --------
        >>> IdMap.of(["ann", "bob"]).ids()
        array(['ann', 'bob'], dtype='<U3')
        """
        found = self.arrow(positions)
        values = np.asarray(found.to_numpy(zero_copy_only=False))
        return values.astype(str) if values.dtype == object and _is_short_text(found) else values

    def arrow(self, positions: npt.ArrayLike | None = None) -> pa.Array:
        """Return the ids at these positions (all of them by default) as an Arrow array."""
        if positions is None:
            return pa.array(np.arange(self._size)) if self._ids is None else self._ids
        valid = checked_positions("positions", positions, self._size)
        return pa.array(valid.astype(np.int64)) if self._ids is None else self._ids.take(pa.array(valid))

    def positions(self, ids: Any, *, name: str = "ids") -> npt.NDArray[np.int32]:
        """Return the positions of these ids; `UnknownIdError` names what is not in the catalogue."""
        column = as_id_column(ids, name)
        found = self.find(column, name=name)
        unknown = np.flatnonzero(found < 0)
        if unknown.size:
            first = column[int(unknown[0])].as_py()
            rows = rows_in_words(unknown, len(column))
            raise UnknownIdError(f"{name} are not all in the catalogue: unknown in {rows}; the first is {short(first)}")
        return found

    def find(self, ids: Any, *, name: str = "ids") -> npt.NDArray[np.int32]:
        """Return the positions of these ids, -1 for those that are not in the catalogue."""
        column = as_id_column(ids, name)
        if len(column) == 0:
            return np.empty(0, np.int32)
        refuse_missing(column, name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        theirs = kind_of_ids(column.type, column, name)
        ours = "integers" if self._ids is None else kind_of_ids(self._ids.type, column, name)
        if theirs != ours:
            raise UnknownIdError(f"{name}: {theirs} (first: {short(column[0].as_py())}) where the catalogue has {ours}")
        if self._ids is None:
            numbers = pc.fill_null(_plain(column), -1).to_numpy()
            return np.where((numbers >= 0) & (numbers < self._size), numbers, -1).astype(np.int32)
        found = pc.index_in(_plain(column), value_set=_plain(self._ids))
        return np.asarray(pc.fill_null(found, -1).to_numpy(), dtype=np.int32)


def find_spelt(catalogue: IdMap, ids: pa.Array, name: str) -> npt.NDArray[np.int32]:
    """Look up ids that were read as text in a catalogue of integers, -1 for those that are not in it.

    Examples
    --------
    >>> find_spelt(IdMap.of([7, 12]), pa.array(["12", "x", "007"]), "user").tolist()
    [1, -1, -1]
    """
    plain = pc.match_substring_regex(ids, _CANONICAL_INTEGER).to_numpy(zero_copy_only=False)
    if not plain.any():
        return catalogue.find(ids, name=name)  # which says that these are of another kind
    found = np.full(len(ids), -1, np.int32)
    found[plain] = catalogue.find(ids.filter(pa.array(plain)).cast(pa.int64()), name=name)
    return found


def spelt(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a text file's ids as the text that they were read from, where they have become integers."""
    return column.cast(pa.large_string()) if pa.types.is_integer(column.type) else column


def as_id_column(ids: Any, name: str) -> pa.ChunkedArray:
    """Bring ids from a list, an array, a series or Arrow into an Arrow column, without a copy if possible."""
    if isinstance(ids, pa.ChunkedArray):
        return ids
    if not isinstance(ids, pa.Array):
        if isinstance(ids, str):
            raise IdError(f"{name} must be a sequence of ids; got the single string {short(ids)}")
        if isinstance(ids, Iterator):
            ids = list(ids)
        if isinstance(ids, bytes | set | frozenset) or not hasattr(ids, "__iter__") or getattr(ids, "ndim", 1) == 0:
            raise IdError(f"{name} must be a sequence of ids, in order; got {short(ids)}")
        if isinstance(ids, list | tuple) and any(isinstance(one, list | tuple | dict) for one in ids):
            # Arrow would follow them down, and a list that is in itself ends the process.
            raise IdError(f"{name} must hold strings or integers; got lists among them")
        if isinstance(ids, range):
            ids = np.arange(ids.start, ids.stop, ids.step)
        try:
            ids = pa.array(ids, from_pandas=True)
        except (
            pa.ArrowInvalid,
            pa.ArrowTypeError,
            pa.ArrowNotImplementedError,
            TypeError,
            ValueError,
            OverflowError,
            KeyError,
        ):
            raise mixed_ids_error(name, ids) from None
    return ids if isinstance(ids, pa.ChunkedArray) else pa.chunked_array([ids])


def is_gap(value: object) -> bool:
    """Tell whether a Python object says that there is no value: None, NaN, or a missing date."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or str(value) in ("<NA>", "NaT")


def ids_of_one_kind(values: list[Any]) -> list[Any] | None:
    """Return ids that mix numbers and text as one kind: whole numbers, or all as text; `None` for any other objects.

    Examples
    --------
    >>> ids_of_one_kind([7, "7", 7.0, "ann", None]), ids_of_one_kind([7, 8.0]), ids_of_one_kind([7, b"x"])
    (['7', '7', '7', 'ann', None], [7, 8], None)
    >>> ids_of_one_kind([float("inf"), "ann"])
    ['inf', 'ann']
    """
    there = [value for value in values if not is_gap(value)]
    if not all(isinstance(value, str | int | float | np.integer | np.floating) for value in there):
        return None
    plain = [int(value) if not isinstance(value, str) and value % 1 == 0 else value for value in there]
    if any(not isinstance(value, int) for value in plain):
        plain = [str(value) for value in plain]
    found = iter(plain)
    return [None if is_gap(value) else next(found) for value in values]


def mixed_ids_error(name: str, ids: Any, error: type[DataError] = IdError) -> DataError:
    """Say which kinds of Python objects a column mixes, and where the second kind starts."""
    try:
        values = list(ids)
    except (TypeError, NotImplementedError):
        values = [ids]
    there = {row: type(value).__name__ for row, value in enumerate(values) if not is_gap(value)}
    kinds, distinct = [*there.values()], sorted({*there.values()})
    if len(distinct) > 1:
        rows = [*there]
        first, other = rows[0], next(row for row, kind in there.items() if kind != kinds[0])
        mend = "text, by .astype(str)" if error is IdError else "of one"
        return error(
            f"{name} mixes {len(distinct)} types: {', '.join(distinct)} (row {first} has {short(values[first])}, row "
            f"{other} has {short(values[other])}); make them all {mend}"
        )
    if distinct == ["int"]:
        return error(f"{name} holds integers beyond 64 bits (largest: {max(values)}); make them strings")
    wanted = "strings or integers" if error is IdError else "numbers"
    return error(f"{name} must hold {wanted}; got {' '.join(distinct) or 'nothing usable'}")


def refuse_missing(column: pa.ChunkedArray, name: str) -> None:
    """Raise `MissingValueError` if the column has nulls or NaN, with their count and first rows."""
    if pa.types.is_dictionary(column.type) and any(chunk.dictionary.null_count for chunk in column.chunks):
        column = pa.chunked_array([chunk.dictionary.take(chunk.indices) for chunk in column.chunks])
    missing = column.null_count
    if pa.types.is_floating(column.type):
        flags = pc.is_null(column, nan_is_null=True)
        missing = pc.sum(flags).as_py() or 0
    elif missing:
        flags = pc.is_null(column)
    if missing:
        rows = np.flatnonzero(flags.to_numpy())
        raise MissingValueError(f"{name} has missing values in {rows_in_words(rows, len(column))}; drop or fill them")


def encode_ids(column: pa.ChunkedArray, name: str, *, from_text: bool = False) -> tuple[npt.NDArray[np.int32], IdMap]:
    """Turn a column of ids into positions and their catalogue.

    Parameters
    ----------
    column
        Integers, strings, or either of them dictionary-encoded (categoricals).
    name
        What to call the column in errors.
    from_text
        The ids were read from a text file, where every id is a string: ids that are all plain integers become
        integers ("007" is not one: it would lose its zeros), and floats in disguise ("7.0") are refused.

    Examples
    --------
    >>> codes, catalogue = encode_ids(pa.chunked_array([[30, 10, 30]]), "user")
    >>> codes.tolist(), catalogue.ids().tolist()
    ([1, 0, 1], [10, 30])
    """
    refuse_missing(column, name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if kind_of_ids(kind, column, name) == "integers":
        if pa.types.is_dictionary(column.type):
            column = column.cast(kind)
        return _encode_integers(column, name)
    codes, ids = _encode_by_dictionary(column)
    if len(ids) and ids[0].as_py() == "":
        blank = np.flatnonzero(codes == 0)
        raise MissingValueError(f"{name} has empty ids in {rows_in_words(blank, len(codes))}; drop or fill them")
    return (codes, IdMap(ids)) if not from_text else _plain_integers_if_all_are(codes, ids, name)


def kind_of_ids(kind: pa.DataType, column: pa.ChunkedArray, name: str) -> str:
    """Say whether ids are "integers" or "strings"; anything else cannot be an id."""
    if pa.types.is_integer(kind):
        return "integers"
    if is_text(kind):
        return "strings"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        raise _float_ids_error(len(column), column.slice(0, 3).to_pylist(), name)
    raise IdError(f"{name} must hold strings or integers; got {kind}")


def _float_ids_error(count: int, first: list[Any], name: str) -> IdError:
    shown = ", ".join(short(value).strip("'") for value in first)
    return IdError(f"{name} holds {count:,} floats (first: {shown}); ids must be integers or strings: cast them first")


def _encode_integers(column: pa.ChunkedArray, name: str) -> tuple[npt.NDArray[np.int32], IdMap]:
    if len(column) == 0:
        return np.empty(0, np.int32), IdMap(pa.array([], pa.int64()))
    low, high = (bound.as_py() for bound in pc.min_max(column).values())
    if high > np.iinfo(np.int64).max:
        raise IdError(f"{name} holds integers beyond 64 signed bits (largest: {high}); make them strings")
    if high - low > _TABLE_SLACK * len(column) + 1_000_000:
        codes, ids = _encode_by_dictionary(column.cast(pa.int64()))
        return codes, IdMap(ids)
    seen = np.zeros(high - low + 1, bool)
    for chunk in column.chunks:
        seen[_offsets(chunk, low)] = True
    position = np.cumsum(seen, dtype=np.int32)
    position -= 1
    codes = np.empty(len(column), np.int32)
    start = 0
    for chunk in column.chunks:
        codes[start : start + len(chunk)] = position[_offsets(chunk, low)]
        start += len(chunk)
    return codes, IdMap(pa.array(np.flatnonzero(seen) + low))


def _offsets(chunk: pa.Array, low: int) -> npt.NDArray[np.int64]:
    return np.asarray(chunk.to_numpy(zero_copy_only=False).astype(np.int64, copy=False) - low)


def _encode_by_dictionary(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Encode by hashing; the chunks' own dictionaries, where they have them, are merged and not spelt out."""
    if pa.types.is_string_view(column.type):
        column = _plain(column)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if column.num_chunks == 0:
        return np.empty(0, np.int32), pa.array([], column.type.value_type)
    spelt = pa.concat_arrays([chunk.dictionary for chunk in column.chunks])
    if pa.types.is_string_view(spelt.type):
        spelt = _plain(spelt)
    if spelt.null_count:  # no row has it, or the column would have been refused
        spelt = pc.fill_null(spelt, "" if is_text(spelt.type) else 0)
    merged = spelt.dictionary_encode()
    ids, position = _sorted(merged.dictionary)
    of_entry = position[merged.indices.to_numpy()]
    codes = np.empty(len(column), np.int32)
    row = entry = 0
    for chunk in column.chunks:
        codes[row : row + len(chunk)] = of_entry[entry : entry + len(chunk.dictionary)][chunk.indices.to_numpy()]
        row, entry = row + len(chunk), entry + len(chunk.dictionary)
    codes, ids = _without_unused(codes, ids)
    return codes, ids.cast(pa.large_string()) if is_text(ids.type) else ids


def _sorted(ids: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int32]]:
    """Sort distinct ids; give them, and where each went."""
    keys = sorting_keys(ids) if pa.types.is_string(ids.type) else None
    order = pc.sort_indices(ids).to_numpy() if keys is None else np.argsort(keys)
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    return ids.take(pa.array(order)), position


def _without_unused(codes: npt.NDArray[np.int32], ids: pa.Array) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Drop ids that no row has: categoricals may carry them, and they are not of this log."""
    used = np.zeros(len(ids), bool)
    for part in parts_of(len(codes)):
        used[codes[part]] = True
    if used.all():
        return codes, ids
    return (np.cumsum(used, dtype=np.int32) - 1)[codes], ids.filter(pa.array(used))


def _plain_integers_if_all_are(
    codes: npt.NDArray[np.int32], ids: pa.Array, name: str
) -> tuple[npt.NDArray[np.int32], IdMap]:
    if len(ids) == 0:
        return codes, IdMap(ids)
    if _all_match(ids, _CANONICAL_INTEGER):
        numbers, position = _sorted(ids.cast(pa.int64()))
        return position[codes], IdMap(numbers)
    if _all_match(ids, _FLOAT_IN_TEXT):
        raise _float_ids_error(len(codes), ids.take(pa.array(codes[:3])).to_pylist(), name)
    return codes, IdMap(ids)


def _all_match(ids: pa.Array, pattern: str) -> bool:
    """Tell whether all ids match; where not, mostly the first one shows it."""
    return all(pc.all(pc.match_substring_regex(some, pattern), min_count=0).as_py() for some in (ids[:1], ids[1:]))


def _plain(column: Any) -> Any:
    """Bring ids to the one width that catalogues hold; integers beyond it, which none can hold, become null."""
    if is_text(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_uint64(column.type):
        column = pc.if_else(pc.greater(column, pa.scalar(2**63 - 1, pa.uint64())), None, column)
    return column.cast(pa.int64())


def _is_short_text(ids: pa.Array) -> bool:
    """Tell whether ids are of text that an array of one width holds in little room, and to the last character."""
    if not is_text(ids.type) or len(ids) == 0:
        return False
    return pc.max(pc.utf8_length(ids)).as_py() <= _WIDEST and not pc.any(pc.ends_with(ids, "\0")).as_py()


def is_text(kind: pa.DataType) -> bool:
    """Tell whether an Arrow type holds strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
