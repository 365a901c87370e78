"""Ids of a text file, taken in part by part, so that the text of no more than a part is held at a time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from verirec.data.parts import parts_of

MOST_DIGITS: Final = 18
"""Integers of more are text: not all of 19 digits fit into 64 bits."""
_KEY_BYTES: Final = 8


class TextIds:
    """A column of ids as it is read: numbers while all of them are plain integers, else text that is encoded at once.

    Examples
    --------
    >>> ids = TextIds()
    >>> ids.add(pa.chunked_array([["7", "12", "7"]]))
    >>> ids.column().to_pylist()
    [7, 12, 7]
    >>> ids.add(pa.chunked_array([["007"]]))
    >>> ids.column().to_pylist()
    ['7', '12', '7', '007']
    """

    def __init__(self) -> None:
        self._chunks: list[pa.Array] = []
        self._are_numbers = True

    def add(self, part: pa.ChunkedArray) -> None:
        """Take in some more rows: strings, none of them missing."""
        numbers = plain_integers(part) if self._are_numbers else None
        if numbers is not None:
            self._chunks += numbers.chunks
            return
        if self._are_numbers and self._chunks:
            self._chunks = [_encoded(pa.chunked_array(self._chunks).cast(pa.string()))]
        self._are_numbers = False
        self._chunks.append(_encoded(part))

    def column(self) -> pa.ChunkedArray:
        """Return all rows so far: int64, or strings in a dictionary of each part."""
        return pa.chunked_array(self._chunks, None if self._chunks else pa.int64())


def _encoded(part: pa.ChunkedArray) -> pa.DictionaryArray:
    return part.dictionary_encode().combine_chunks()


def plain_integers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return strings as int64 if each is written as an integer is, so that its text can be had back; else `None`.

    No text is shorter than the plain spelling of its number, unless it is hexadecimal: so if both take as many
    characters in all, each is plain.

    Examples
    --------
    >>> [plain_integers(pa.chunked_array([[text]])) is None for text in ("-7", "0", "007", "-0", "7.0", "0x1F", "x")]
    [False, False, True, True, True, True, True]
    """
    try:
        column[:1].cast(pa.int64())  # Most columns of text are told by their first id.
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    length = pc.sum(pc.binary_length(column)).as_py() or 0
    if any(_has_byte(chunk, b"xX") for chunk in column.chunks):
        return None
    return numbers if length == sum(_plain_length(np.asarray(chunk)) for chunk in numbers.chunks) else None


def _has_byte(texts: pa.Array, which: bytes) -> bool:
    """Tell whether any of these bytes is in the memory of an array of strings."""
    memory = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    return any((memory == one).any() for one in which)


def _plain_length(numbers: npt.NDArray[np.int64]) -> float:
    """Count the characters of all numbers; infinite where one has more than `MOST_DIGITS`."""
    total = 0
    for part in parts_of(len(numbers)):
        sizes: Any = np.abs(numbers[part])
        largest = int(sizes.max())
        if largest >= 10**MOST_DIGITS or largest < 0:  # the least int64 has no positive counterpart
            return float("inf")
        total += len(sizes) + int((numbers[part] < 0).sum())
        total += sum(int(np.count_nonzero(sizes >= 10**power)) for power in range(1, len(str(largest))))
    return total


def sorting_keys(texts: pa.StringArray) -> npt.NDArray[np.uint64] | None:
    """Return numbers that sort as texts do, none of them missing: the bytes after those that all begin with.

    Returns
    -------
    Shape (n,); `None` if texts differ in more than eight bytes, or have bytes of zero.

    Examples
    --------
    >>> np.argsort(sorting_keys(pa.array(["user_9", "user_10", "user_"]))).tolist()
    [2, 1, 0]
    >>> sorting_keys(pa.array(["user_1", "item_1000"])) is None
    True
    """
    if len(texts) == 0:
        return None
    least, largest = (bound.as_py().encode() for bound in pc.min_max(texts).values())
    pairs = enumerate(zip(least, largest, strict=False))
    shared = next((place for place, (one, other) in pairs if one != other), min(len(least), len(largest)))
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    starts = ends[:-1] + shared
    lengths = ends[1:] - starts
    longest = int(lengths.max())
    memory = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[: ends[-1]]
    if longest > _KEY_BYTES or not memory[ends[0] :].all():
        return None
    padded = np.append(memory, np.zeros(_KEY_BYTES, np.uint8))
    keys = np.zeros(len(texts), np.uint64)
    for place in range(longest):
        keys <<= np.uint64(8)
        keys |= np.where(lengths > place, padded[starts + place], np.uint8(0))
    return keys
