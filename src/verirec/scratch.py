"""Long arrays on disk: mapped files, whose pages leave memory again as soon as they are too many."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.exceptions import DiskSpaceError
from verirec.formatting import bytes_in_words, short
from verirec.open_files import naming_the_limit

_TICK: Final = 0.02
"""Seconds between two looks at how many pages are in memory."""
_SHARE_OF_PAGES: Final = 10
"""Mapped pages may take one part in so many of the memory that was asked for: work in progress takes the rest."""
_SHARE_OF_ARRAY: Final = 48
"""Longer arrays than one part in so many of it are kept on disk."""
_PART: Final = 1 << 18
DEFAULT_MEMORY: Final = 2_000_000_000
"""Bytes that work on a prepared log may take, unless it is said."""


class _Keeper:
    """Knows all maps, and lets their pages go where too many are in memory.

    What a map holds is in its file: a page that is let go is read again when it is asked for, so nothing depends on
    when that happens. Before a log is opened by memory map, nothing is limited, and arrays are ordinary.
    """

    def __init__(self) -> None:
        self.memory: int | None = None
        # Not a WeakSet, which would run code when a map goes: giving back a long file takes seconds, and a Ctrl-C
        # meanwhile would be raised in there, where exceptions are ignored.
        self._refs: list[weakref.ref[mmap.mmap]] = []
        self._lock = threading.Lock()
        self._watching = False
        self._counted = 0.0
        self._of_others = 0
        """Bytes of files, such as libraries, that are in memory beside the maps."""

    def limit(self, memory: int) -> None:
        """Bound memory from now on, by the least that was asked for."""
        self.memory = memory if self.memory is None else min(memory, self.memory)

    def add(self, opened: mmap.mmap) -> None:
        with self._lock:
            if not self._maps():
                self._of_others = _mapped_bytes() or 0
            self._refs.append(weakref.ref(opened))
            if not self._watching and hasattr(mmap, "MADV_DONTNEED"):
                self._watching = True
                threading.Thread(target=self._watch, name="verirec-pages", daemon=True).start()

    def _watch(self) -> None:
        waiting = threading.Event()
        while True:
            waiting.wait(_TICK)
            with self._lock:
                if not self._maps():
                    self._watching = False
                    return
                self._hold()

    def hold(self) -> None:
        """Let the pages of all maps go if they are too many and were not counted just now."""
        if self._watching and time.monotonic() > self._counted + _TICK / 4:
            with self._lock:
                self._hold()

    def _hold(self) -> None:
        self._counted = time.monotonic()
        mapped = _mapped_bytes()
        allowed = (self.memory or DEFAULT_MEMORY) // _SHARE_OF_PAGES
        if mapped is None or mapped > self._of_others + allowed:
            self._let_go()
            self._of_others = _mapped_bytes() or 0

    def let_go(self) -> None:
        """Let the pages of all maps go."""
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        for one in self._maps():
            _let_go(one)

    def _maps(self) -> list[mmap.mmap]:
        """Return the maps that are still there, and forget the others."""
        found = [(ref, one) for ref in self._refs if (one := ref()) is not None]
        self._refs = [ref for ref, _ in found]
        return [one for _, one in found]

    def after_fork(self) -> None:
        """Start anew in a process that was forked, which has the maps and not the thread."""
        self._lock, self._watching = threading.Lock(), False


def _let_go(one: mmap.mmap) -> None:
    if hasattr(mmap, "MADV_DONTNEED"):
        with suppress(ValueError):  # It was closed.
            one.madvise(mmap.MADV_DONTNEED)


_KEEPER: Final = _Keeper()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_KEEPER.after_fork)


def _mapped_bytes() -> int | None:
    """Return how much of files is in this process's memory; `None` where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[2])
    except (OSError, IndexError, ValueError):
        return None
    return pages * mmap.PAGESIZE


def limit_memory(memory: int) -> None:
    """Bound what long arrays take of memory from now on, by the least that was asked for so far."""
    _KEEPER.limit(memory)


def hold_pages() -> None:
    """Take the pages of mapped files out of memory if they are too many: the watch may wait for NumPy meanwhile."""
    _KEEPER.hold()


def let_pages_go() -> None:
    """Take the pages of mapped files out of memory now: a step that will not come back to them is done."""
    _KEEPER.let_go()


def let_pages_of_go(*arrays: npt.NDArray[Any]) -> None:
    """Take the pages of the files that some arrays are in out of memory now: there may be thousands of others.

    Arrays that are in no file are left as they are.
    """
    for one in {id(found): found for values in arrays if (found := _map_under(values)) is not None}.values():
        _let_go(one)


def _map_under(values: npt.NDArray[Any]) -> mmap.mmap | None:
    base: Any = values
    while isinstance(base, np.ndarray):
        base = base.base
    found = base.obj if isinstance(base, memoryview) else None
    return found if isinstance(found, mmap.mmap) else None


def memory_limit() -> int | None:
    """Return what long arrays were bounded by; `None` where nothing is."""
    return _KEEPER.memory


def mapped_file(file: Path, *, writable: bool = False) -> mmap.mmap:
    """Map a file that is not empty; its pages leave memory where they are too many."""
    with naming_the_limit(), file.open("r+b" if writable else "rb") as opened:
        found = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ)
    _KEEPER.add(found)
    return found


def reserve(descriptor: int, size: int, folder: Path, hint: str = "") -> None:
    """Give a file its length, and room on the disk for all of it, or raise `DiskSpaceError`.

    A process that writes to the map of a file for which there is no room is ended by the system without a word.
    """
    free = shutil.disk_usage(folder).free
    if size <= free:
        try:
            _allocate(descriptor, size)
            return
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
    raise DiskSpaceError(
        f"the work needs {bytes_in_words(size)} in {short(str(folder), max=300)}, which has {bytes_in_words(free)} "
        f"free{hint}"
    )


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.truncate(descriptor, size)


def long_array(
    shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64, *, together: int = 1
) -> npt.NDArray[Any]:
    """Make an array to be filled: an ordinary one or, where memory is limited and it is long, one in a temporary file.

    The file has no name: the system frees it with the array.

    Parameters
    ----------
    shape, dtype
        As of `numpy.empty`.
    together
        How many of its kind there are at once: they are long if all of them together are.

    Examples
    --------
    >>> long_array(3, np.int8).shape
    (3,)
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size == 0 or _KEEPER.memory is None or size * together <= _KEEPER.memory // _SHARE_OF_ARRAY:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile() as file:
        reserve(file.fileno(), size, Path(tempfile.gettempdir()), "; $TMPDIR names another place")
        found = mmap.mmap(file.fileno(), size)
    _KEEPER.add(found)
    return np.frombuffer(found, dtype).reshape(shape)


def each(
    function: Callable[..., Any], *arrays: Any, dtype: npt.DTypeLike = np.float64, columns: tuple[int, ...] = ()
) -> npt.NDArray[Any]:
    """Apply an element-wise function to arrays of one length, and numbers, part by part: nothing else takes their room.

    Of shape (length, *columns).

    Examples
    --------
    >>> each(lambda p, floor: 1 - np.maximum(p, floor), np.array([0.25, 0.5]), 0.3).tolist()
    [0.7, 0.5]
    """
    length = next(len(one) for one in arrays if isinstance(one, np.ndarray))
    whole = long_array((length, *columns), dtype)
    for start in range(0, length, _PART):
        part = slice(start, start + _PART)
        whole[part] = function(*(one[part] if isinstance(one, np.ndarray) else one for one in arrays))
    return whole


def those(values: npt.NDArray[Any], mask: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Return the entries that a mask names, part by part, as `values[mask]` does; both of one length.

    Examples
    --------
    >>> those(np.array([3, 4, 5]), np.array([True, False, True])).tolist()
    [3, 5]
    """
    found = long_array((int(np.count_nonzero(mask)), *values.shape[1:]), values.dtype)
    filled = 0
    for start in range(0, len(mask), _PART):
        part = values[start : start + _PART][mask[start : start + _PART]]
        found[filled : filled + len(part)] = part
        filled += len(part)
    return found


def joined(*arrays: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Put flat arrays of one type one after the other, as `numpy.concatenate` does.

    Examples
    --------
    >>> joined(np.array([3, 4]), np.array([5])).tolist()
    [3, 4, 5]
    """
    found = long_array(sum(map(len, arrays)), arrays[0].dtype)
    start = 0
    for one in arrays:
        found[start : start + len(one)] = one
        start += len(one)
    return found


def rows_where(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the numbers of the entries that a mask names, as `numpy.flatnonzero` does.

    Examples
    --------
    >>> rows_where(np.array([True, False, True])).tolist()
    [0, 2]
    """
    found = long_array(int(np.count_nonzero(mask)), np.int64)
    filled = 0
    for start in range(0, len(mask), _PART):
        part = start + np.flatnonzero(mask[start : start + _PART])
        found[filled : filled + len(part)] = part
        filled += len(part)
    return found
