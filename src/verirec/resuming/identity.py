"""A key of all that a job depends on: the code, what it is given to the last bit, and its settings."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from types import FunctionType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verirec.engine.worker import versions
from verirec.exceptions import ParameterError
from verirec.formatting import short

_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes)
_PART: Final = 1 << 22
"""Entries of an array that are looked at together: those of a memory map need not all be in memory."""

Add = Callable[[bytes], object]
"""Takes bytes into a digest."""


class _Foreign(Exception):
    """Something that cannot be told from another of its kind."""


_REFUSALS: Final = (_Foreign, TypeError, pa.ArrowException)
"""What is raised where something cannot be recognised."""


def job_key(job: str, given: Mapping[str, Any]) -> str:
    """Return a checksum of a job's name, of what it is given by argument, and of the code that does it.

    Examples
    --------
    >>> job_key("count", {"users": np.arange(3)}) == job_key("count", {"users": np.arange(3)})
    True
    >>> job_key("count", {"loss": lambda f, y: f})
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: checkpoint needs what can be recognised in another run; loss is of type function
    """
    digest = hashlib.sha256()
    _take(repr((versions(), job)), digest.update)
    for name in sorted(given):
        _take(name, digest.update)
        _take_argument(name, given[name], digest.update)
    return digest.hexdigest()


def checksum_of(value: Any) -> str:
    """Return a checksum of a value, whatever the code, in any run the same.

    Examples
    --------
    >>> checksum_of([1, "a"]) == checksum_of([1, "a"]), checksum_of([1, "a"]) == checksum_of([2, "a"])
    (True, False)
    """
    digest = hashlib.sha256()
    _take(value, digest.update)
    return digest.hexdigest()


def told_by(value: Any) -> str:
    """Return a checksum of a value; of what cannot be recognised in another run, its class alone.

    Examples
    --------
    >>> told_by([1, "a"]) == checksum_of([1, "a"]), told_by(lambda f: f)
    (True, 'builtins.function')
    """
    try:
        return checksum_of(value)
    except _REFUSALS:
        return f"{type(value).__module__}.{type(value).__qualname__}"


def _take_argument(name: str, value: Any, add: Add) -> None:
    """Take an argument in; of several recommenders, an error says which."""
    if name == "random_state" and (value is None or isinstance(value, np.random.Generator)):
        raise ParameterError(f"checkpoint needs a random_state that is a whole number; got {short(value)}")
    if isinstance(value, Mapping):
        add(f"{len(value)} named;".encode())
        for key, one in value.items():
            _take(key, add)
            _take_argument(f"{name} of {key}", one, add)
        return
    try:
        _take(value, add)
    except _REFUSALS as error:
        kind = error if isinstance(error, _Foreign) else type(value).__name__
        told = f"checkpoint needs what can be recognised in another run; {name} is of type {kind}"
        raise ParameterError(told) from None


def _take(value: Any, add: Add) -> None:
    """Take a value in, with its type, so that no two different ones are the same bytes."""
    kind = type(value)
    if isinstance(value, _PLAIN):
        text = repr(value).encode(errors="surrogatepass")
        add(f"{kind.__name__} {len(text)};".encode() + text)
    elif isinstance(value, np.ndarray | np.generic):
        _take_array(np.asarray(value), add)
    elif isinstance(value, tuple | list | set):
        add(f"{kind.__name__} {len(value)};".encode())
        for one in sorted(value, key=repr) if isinstance(value, set) else value:
            _take(one, add)
    elif isinstance(value, Mapping):
        _take(list(value.items()), add)
    elif hasattr(value, "__arrow_c_stream__") or isinstance(value, pa.Array):
        _take_arrow(value, add)
    elif kind.__module__.startswith("scipy.sparse."):
        entries = value.tocoo()
        _take([value.shape, entries.row, entries.col, entries.data], add)
    elif kind.__module__.partition(".")[0] == "torch":
        _take_torch(value, add)
    else:
        _take_object(value, add)


def _take_object(value: Any, add: Add) -> None:
    """Take in an object of verirec's: of what was trained only what it predicts, which is all that a job asks it."""
    name = _name_of(value)
    if isinstance(getattr(type(value), "predictions", None), property):
        return _take(value.predictions, add)
    _take(name, add)
    return _take(_state_of(value), add)


def _take_array(array: npt.NDArray[Any], add: Add) -> None:
    if array.dtype == object:
        return _take(array.tolist(), add)
    if array.dtype.kind == "T":  # Text of any length, of which the array itself has places alone.
        return _take([str(array.dtype), *array.ravel().tolist()], add)
    add(f"array {array.dtype!r} {array.shape};".encode())
    flat = array.reshape(-1)
    for start in range(0, len(flat), _PART):
        add(np.ascontiguousarray(flat[start : start + _PART]).tobytes())
    return None


def _take_arrow(value: Any, add: Add) -> None:
    """Take a frame or a column in, as Arrow writes it."""
    table = pa.table({"": value}) if isinstance(value, pa.Array | pa.ChunkedArray) else pa.table(value)
    with pa.ipc.new_stream(pa.PythonFile(_Sink(add), "w"), table.schema) as stream:
        stream.write_table(table.combine_chunks(), max_chunksize=_PART)


class _Sink(io.RawIOBase):
    """A file that only takes in what is written."""

    def __init__(self, add: Add) -> None:
        self._add = add

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._add(bytes(content))
        return len(content)


def _take_torch(value: Any, add: Add) -> None:
    """Take in a tensor, or a part of a model by what it says of itself and its tensors."""
    if hasattr(value, "detach"):
        _take_array(value.detach().cpu().numpy(), add)
    elif hasattr(value, "state_dict"):
        for part in value.modules() if hasattr(value, "modules") else ():
            if not type(part).__module__.startswith("torch."):
                raise _Foreign(type(part).__name__)
            # Such as whether it is trained just now, and how many heads there are.
            _take({name: one for name, one in vars(part).items() if isinstance(one, _PLAIN)}, add)
        _take(repr(value), add)
        _take(value.state_dict(), add)
    else:
        _take(repr(value), add)


def _name_of(value: Any) -> str:
    """Return what a class or function of verirec is called, which the code's revision says all of, or an object's."""
    named: Any = value if isinstance(value, type | FunctionType) else type(value)
    if not named.__module__.startswith("verirec.") or "<" in named.__qualname__:
        raise _Foreign(type(value).__name__)
    return f"{named.__module__}:{named.__qualname__}"


def _state_of(value: Any) -> dict[str, Any]:
    """Return what an object was made with, or was left in it since; what it worked out from that says nothing more.

    Nothing is left in a frozen dataclass: what it has beside its fields says where it is, as a prepared log's folder.
    """
    if isinstance(value, type | FunctionType):
        return {}
    kind: Any = type(value)
    if is_dataclass(value) and kind.__dataclass_params__.frozen:
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    if not hasattr(value, "__dict__"):
        raise _Foreign(type(value).__name__)
    worked_out = {name for base in kind.__mro__ for name, one in vars(base).items() if isinstance(one, cached_property)}
    return {name: one for name, one in vars(value).items() if name not in worked_out}
