"""Results as files and back, exactly: plain JSON, and arrays as they are in memory; nothing that is read is run."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.scratch import long_array

_MAGIC: Final = b"verirec piece 2\n"
_CHECKSUM: Final = 64
_PLAIN: Final = (type(None), bool, int, float, str)
MOST_BYTES: Final = 1 << 28
"""Larger results are not kept: they are what is as long as the log."""
_PART: Final = 1 << 18
"""Entries of an array that are written and read together."""
_NUMBERS: Final = "biufcSUmM"
"""Kinds of arrays that are their bytes."""
_A_MODULE: Final = re.compile(r"verirec(\.[a-z][a-z0-9_]*)+")


class CannotBeKeptError(TypeError):
    """A result has something in it that bytes cannot stand for: it is worked out again."""


class DamagedError(ValueError):
    """A file is not that of a result, or not all of it."""


class _Array(NamedTuple):
    """An array, and in which order its entries are: that matters to the last bit of products."""

    values: npt.NDArray[Any]
    order: Literal["C", "F"]

    def parts(self) -> Iterator[bytes]:
        """Give its bytes, some at a time."""
        how = {"flags": ["external_loop", "buffered", "zerosize_ok"], "order": self.order, "buffersize": _PART}
        return (part.tobytes() for part in np.nditer(self.values, **how))  # type: ignore[call-overload]


class _Arrays(list[_Array]):
    """The arrays of a tree, in the order in which they are met."""

    size = 0

    def take(self, array: _Array) -> None:
        """Put one more aside, if there are not too many bytes."""
        self.size += array.values.nbytes
        if self.size > MOST_BYTES:
            raise CannotBeKeptError(f"more than {MOST_BYTES:,} bytes")
        self.append(array)


def as_parts(label: Any, value: Any) -> Iterator[bytes]:
    """Give what a file holds that keeps a value under a label, of plain JSON, part after part.

    The value is a tree of numbers, text, tuples, lists, dictionaries, arrays, and dataclasses and named tuples of
    verirec. Its file has a line that says what it is, one of the label and one of the tree, each with its checksum, and
    the bytes of the arrays, whose checksums are in the tree.

    Examples
    --------
    >>> from io import BytesIO
    >>> content = b"".join(as_parts("of three", {"a": (1.5, float("inf"), None), 2: np.arange(3)}))
    >>> label_in(BytesIO(content)), value_in(BytesIO(content))
    ('of three', {'a': (1.5, inf, None), 2: array([0, 1, 2])})
    >>> as_parts(None, len)
    Traceback (most recent call last):
    verirec.resuming.values.CannotBeKeptError: builtin_function_or_method
    """
    arrays = _Arrays()
    lines = [_MAGIC, _line(label), _line(_written(value, arrays))]
    return (part for parts in (lines, *(one.parts() for one in arrays)) for part in parts)


def label_in(opened: BinaryIO) -> Any:
    """Read the label alone; what was changed, cut short or is of another kind is a `DamagedError`."""
    if opened.readline(len(_MAGIC)) != _MAGIC:
        raise DamagedError("not a piece of this version")
    return _content(opened.readline())


def value_in(opened: BinaryIO) -> Any:
    """Read the value; what was changed, cut short or is of another kind is a `DamagedError`."""
    label_in(opened)
    tree = _content(opened.readline())
    try:
        value = _read(tree, opened)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DamagedError("not a whole piece of this version") from error
    if opened.read(1):
        raise DamagedError("something else is behind it")
    return value


def _line(content: Any) -> bytes:
    text = json.dumps(content).encode()
    return b"%s %s\n" % (hashlib.sha256(text).hexdigest().encode(), text)


def _content(line: bytes) -> Any:
    """Return what a line holds, if it is whole."""
    text = line[_CHECKSUM + 1 : -1]
    if line != b"%s %s\n" % (hashlib.sha256(text).hexdigest().encode(), text):
        raise DamagedError("not a whole piece")
    return json.loads(text)


def _written(value: Any, arrays: _Arrays) -> Any:
    """Return a value as JSON has it, and put its arrays aside."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in (tuple, list):
        return {kind.__name__: [_written(one, arrays) for one in value]}
    if kind is dict:
        return {"dict": [[_written(one, arrays) for one in entry] for entry in value.items()]}
    if isinstance(value, np.ndarray | np.generic):
        return _array(value, arrays)
    if _class_called(_name_of(kind)) is kind:
        return {_name_of(kind): {name: _written(getattr(value, name), arrays) for name in _fields_of(kind)}}
    raise CannotBeKeptError(kind.__name__)


def _array(value: npt.NDArray[Any] | np.generic, arrays: _Arrays) -> dict[str, Any]:
    """Put an array aside, and say what there is to know of it."""
    if value.dtype.kind not in _NUMBERS or (type(value) is not np.ndarray and not isinstance(value, np.generic)):
        raise CannotBeKeptError(f"{type(value).__name__} of {value.dtype}")
    array, checksum = _Array(np.asarray(value), "F" if value.flags.fnc else "C"), hashlib.sha256()
    arrays.take(array)
    for part in array.parts():
        checksum.update(part)
    kind = "scalar" if isinstance(value, np.generic) else "array"
    return {kind: [value.dtype.str, list(value.shape), array.order, checksum.hexdigest()]}


def _read(tree: Any, opened: BinaryIO) -> Any:
    """Make a value again; arrays stand in the file in the order in which they are met."""
    if not isinstance(tree, dict):
        return tree
    ((name, inside),) = tree.items()
    if name in ("tuple", "list"):
        found = [_read(one, opened) for one in inside]
        return tuple(found) if name == "tuple" else found
    if name == "dict":
        return {_read(key, opened): _read(value, opened) for key, value in inside}
    if name in ("array", "scalar"):
        array = _array_in(opened, *inside)
        return array[()] if name == "scalar" else array
    kind = _class_called(name)
    if kind is None:
        raise DamagedError(f"no class {name}")
    return _made(kind, {field: _read(inside[field], opened) for field in _fields_of(kind)})


def _array_in(opened: BinaryIO, dtype: str, shape: list[int], order: Any, checksum: str) -> npt.NDArray[Any]:
    """Return an array of its own, that can be written to, as the work would have made one of its length."""
    whole, found = long_array(math.prod(shape), dtype), hashlib.sha256()
    for start in range(0, len(whole), _PART):
        part = whole[start : start + _PART]
        content = opened.read(part.nbytes)
        found.update(content)
        part[:] = np.frombuffer(content, dtype)
    if found.hexdigest() != checksum:
        raise DamagedError("an array was changed")
    return whole.reshape(shape, order=order)


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class_called(name: str) -> type | None:
    """Return the dataclass or named tuple of verirec that has this name: no other package's module is imported."""
    module, _, within = name.partition(":")
    if not _A_MODULE.fullmatch(module):
        return None
    try:
        found: Any = import_module(module)
    except ImportError:
        return None
    for part in within.split("."):
        found = getattr(found, part, None)
    ours = isinstance(found, type) and found.__module__ == module and (is_dataclass(found) or _is_named_tuple(found))
    return found if ours else None


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _fields_of(kind: Any) -> tuple[str, ...]:
    return tuple(kind._fields) if _is_named_tuple(kind) else tuple(field.name for field in fields(kind))


def _made(kind: Any, values: dict[str, Any]) -> Any:
    """Make an object of its fields; they were checked, and warned of, when it was made first."""
    if _is_named_tuple(kind):
        return kind(**values)
    made = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made
