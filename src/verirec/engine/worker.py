"""What a worker does, whatever started it: parts one after the other, by one thread, and what came of them."""

from __future__ import annotations

import functools
import os
import pickle
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import cloudpickle

from verirec.exceptions import EngineError, VerirecError, VerirecWarning, warn_caller
from verirec.formatting import short
from verirec.scratch import limit_memory

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""The environment of a worker: sums over threads depend on their number, and workers share the cores."""
KEPT_FUNCTIONS: Final = 4
"""Functions that a worker keeps: several searches may take turns."""
_MARK = "VERIREC_WORKER"


def in_worker() -> bool:
    """Whether this process works for another one: it then has one thread."""
    return _MARK in os.environ


def usable_cores() -> int:
    """Count the processor's cores that this process may use; one that works for another has one."""
    if in_worker():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def begin_worker() -> None:
    """Turn this process into a worker."""
    os.environ |= {_MARK: "1", **ONE_THREAD}
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


class Reply(NamedTuple):
    """What came of a request.

    Parameters
    ----------
    found
        The result, or what was raised: see `in_pieces`.
    raised
        Whether it was raised.
    warned
        Warnings on the way: message, pickled category, file and line of each.
    """

    found: Sequence[Any]
    raised: bool
    warned: tuple[tuple[str, bytes, str, int], ...] = ()

    def result(self) -> Any:
        """Return what was found, or raise what was raised, after the warnings."""
        for message, pickled, file, line in self.warned:
            category = _category(pickled)
            if issubclass(category, VerirecWarning):
                warn_caller(message, category)
            else:
                warnings.warn_explicit(message, category, file, line)
        found = put_together(self.found)
        if self.raised:
            raise found
        return found


def answered(work: Callable[[], Any], memory: int | None) -> Reply:
    """Do some work, and keep what it returns or raises and what it warns of.

    Parameters
    ----------
    work
        All of it, from where what was sent is loaded.
    memory
        What long arrays are bounded by where the work comes from, see `verirec.scratch.memory_limit`.
    """
    begin_worker()
    if memory is not None:
        limit_memory(memory)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found, raised = in_pieces(work()), False
        except Exception as error:
            found, raised = [memoryview(pickled_error(error))], True
    return Reply(found, raised, tuple((str(w.message), _pickled(w.category), w.filename, w.lineno) for w in caught))


def in_pieces(value: Any) -> list[memoryview]:
    """Pickle a value; its arrays are not copied.

    Examples
    --------
    >>> import numpy as np
    >>> array = np.arange(3)
    >>> pieces = in_pieces({"a": array})
    >>> array[0] = 7
    >>> put_together(pieces)["a"].tolist()
    [7, 1, 2]
    """
    buffers: list[pickle.PickleBuffer] = []
    main = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return [memoryview(main), *(one.raw() for one in buffers)]


def put_together(pieces: Sequence[Any]) -> Any:
    """Return the value of pieces; its arrays are views of theirs."""
    return pickle.loads(pieces[0], buffers=pieces[1:])


def _pickled(category: type[Warning]) -> bytes:
    """Pickle a category of warnings, by value where it is the user's own; one that cannot be is a `UserWarning`."""
    try:
        return bytes(cloudpickle.dumps(category))
    except Exception:
        return pickle.dumps(UserWarning)


def _category(pickled: bytes) -> type[Warning]:
    """Return a category of warnings; one that is not known in this process is a `UserWarning`."""
    try:
        found: type[Warning] = pickle.loads(pickled)
    except Exception:
        return UserWarning
    return found


def pickled_error(error: Exception) -> bytes:
    """Pickle what was raised as it is, or what it says where that cannot be."""
    if not isinstance(error, VerirecError):
        error.add_note("in a worker:\n" + "".join(traceback.format_exception(error)))
    error.__cause__ = error.__context__ = error.__traceback__ = None
    try:
        found = cloudpickle.dumps(error)
        pickle.loads(found)
    except Exception:
        found = cloudpickle.dumps(EngineError(f"a worker raised {type(error).__name__}: {error}"))
    return bytes(found)


def applied(function: Callable[[Any], Any], chunk: bytes) -> list[Any]:
    """Apply a function to the parts of a message."""
    return [function(part) for part in pickle.loads(chunk)]


def sendable(what: str, value: Any) -> bytes:
    """Pickle what is sent to a worker, or say what cannot be."""
    with naming_what_stays(what):
        return bytes(cloudpickle.dumps(value, protocol=5))


class naming_what_stays:
    """Say in one line that something cannot be sent to another process."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, (TypeError, pickle.PicklingError, AttributeError, RecursionError)):
            # Ray tells at length what it looked at.
            lines = str(error).splitlines()
            reason = next((line for line in lines if "cannot pickle" in line), lines[0] if lines else type(error))
            raise EngineError(
                f"{self.what} cannot be sent to another process ({short(reason, max=200)}): take engine='serial'"
            ) from None


class Versions(NamedTuple):
    """What must be the same everywhere for results to be the same."""

    verirec: str
    libraries: tuple[tuple[str, str], ...]

    def difference(self, theirs: Versions) -> str | None:
        """Say in what another's differ; `None` if in nothing. What only one of both has installed counts."""
        here, there = ({"verirec": one.verirec, **dict(one.libraries)} for one in (self, theirs))
        apart = (name for name in here if there[name] != here[name])
        return next((f"{name} {there[name]} where this process has {here[name]}" for name in apart), None)


@functools.cache
def versions() -> Versions:
    """Return this process's versions."""
    from importlib.metadata import PackageNotFoundError, version

    from verirec.engine.revision import revision

    def found() -> Iterator[tuple[str, str]]:
        for name in ("numpy", "scipy", "torch", "numba"):
            try:
                yield name, version(name)
            except PackageNotFoundError:
                yield name, "not installed"

    return Versions(revision(), (("python", ".".join(map(str, sys.version_info[:2]))), *found()))


def reissued(replies: Iterable[Reply]) -> Iterator[Any]:
    """Return the results of replies, a message's parts one by one."""
    for reply in replies:
        yield from reply.result()
