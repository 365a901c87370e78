"""Results as bytes and back, exactly: plain JSON, and arrays as they are in memory; nothing that is read is run."""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from dataclasses import fields, is_dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

_MAGIC: Final = b"verirec piece 1\n"
_SIZE: Final = struct.Struct("<Q")
_DIGEST: Final = hashlib.sha256().digest_size
_PLAIN: Final = (type(None), bool, int, float, str)
MOST_BYTES: Final = 1 << 28
"""Larger results are not kept: they are what is as long as the log."""
_NUMBERS: Final = "biufcSUmM"
"""Kinds of arrays that are their bytes."""


class CannotBeKeptError(TypeError):
    """A result has something in it that bytes cannot stand for: it is worked out again."""


class DamagedError(ValueError):
    """Bytes are not those of a result, or not all of them."""


class _Arrays:
    """The bytes of a tree's arrays, one after the other."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def append(self, part: bytes) -> None:
        self.parts.append(part)
        self.size += len(part)


def as_bytes(value: Any) -> bytes:
    """Write a tree of numbers, text, tuples, lists, dictionaries, arrays, and dataclasses and named tuples of verirec.

    Examples
    --------
    >>> from_bytes(as_bytes({"a": (1.5, float("inf"), None), 2: np.arange(3)}))
    {'a': (1.5, inf, None), 2: array([0, 1, 2])}
    >>> as_bytes(len)
    Traceback (most recent call last):
    verirec.resuming.values.CannotBeKeptError: builtin_function_or_method
    """
    arrays = _Arrays()
    tree = json.dumps(_written(value, arrays)).encode()
    body, digest = [_SIZE.pack(len(tree)), tree, *arrays.parts], hashlib.sha256()
    for one in body:
        digest.update(one)
    return b"".join([_MAGIC, digest.digest(), *body])


def from_bytes(content: bytes) -> Any:
    """Read it back; what was changed, cut short or is of another kind is a `DamagedError`."""
    body = memoryview(content)[len(_MAGIC) + _DIGEST :]
    checksum = content[len(_MAGIC) : len(_MAGIC) + _DIGEST]
    if not content.startswith(_MAGIC) or hashlib.sha256(body).digest() != checksum:
        raise DamagedError("not a whole piece")
    try:
        (length,) = _SIZE.unpack_from(body)
        arrays = body[_SIZE.size + length :]
        return _read(json.loads(bytes(body[_SIZE.size : _SIZE.size + length])), arrays)
    except (struct.error, ValueError, LookupError, TypeError) as error:
        raise DamagedError("not a piece of this version") from error


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
    """Put an array's bytes aside; in which order they were matters to the last bit of products."""
    if value.dtype.kind not in _NUMBERS or (type(value) is not np.ndarray and not isinstance(value, np.generic)):
        raise CannotBeKeptError(f"{type(value).__name__} of {value.dtype}")
    order: Literal["C", "F"] = "F" if value.flags.fnc else "C"
    start = arrays.size
    if start + value.nbytes > MOST_BYTES:
        raise CannotBeKeptError(f"more than {MOST_BYTES:,} bytes")
    arrays.append(value.tobytes(order))
    kind = "scalar" if isinstance(value, np.generic) else "array"
    return {kind: [value.dtype.str, list(value.shape), order, start]}


def _read(tree: Any, arrays: memoryview) -> Any:
    if not isinstance(tree, dict):
        return tree
    ((name, inside),) = tree.items()
    if name in ("tuple", "list"):
        found = [_read(one, arrays) for one in inside]
        return tuple(found) if name == "tuple" else found
    if name == "dict":
        return {_read(key, arrays): _read(value, arrays) for key, value in inside}
    if name in ("array", "scalar"):
        return _array_of(arrays, *inside)[()] if name == "scalar" else _array_of(arrays, *inside)
    kind = _class_called(name)
    if kind is None:
        raise DamagedError(f"no class {name}")
    return _made(kind, {field: _read(inside[field], arrays) for field in _fields_of(kind)})


def _array_of(arrays: memoryview, dtype: str, shape: list[int], order: Any, start: int) -> npt.NDArray[Any]:
    """Return an array of its own, that can be written to."""
    return np.ndarray(shape, dtype, arrays, start, order=order).copy("K")


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class_called(name: str) -> type | None:
    """Return the dataclass or named tuple of verirec that has this name, if it is loaded: nothing is imported."""
    module, _, within = name.partition(":")
    found: Any = sys.modules.get(module) if module.startswith("verirec.") else None
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
