"""Where studies keep their runs: a line a run, appended whole; who works on what, by locks that end with a process."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

import verirec
from verirec.atomic_write import replace_file
from verirec.exceptions import DataError, ParameterError

FORMAT: Final = 2
"""Of the lines; a change of what a run means raises it."""
STORE: Final = "store"
"""The store's folder, in the folder of a study's results."""
ROWS: Final = "runs.jsonl"

Row = dict[str, Any]
T = TypeVar("T")


def key_of(**facts: Any) -> str:
    """Return a digest of what decides a run.

    Examples
    --------
    >>> key_of(method="mf", seed=0) == key_of(seed=0, method="mf")
    True
    """
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:20]


def in_turns(tasks: Iterable[T]) -> list[tuple[T, bool]]:
    """Return tasks with whether to wait for them: first what nobody else is at, then what others may have left.

    Examples
    --------
    >>> in_turns("ab")
    [('a', False), ('b', False), ('a', True), ('b', True)]
    """
    listed = list(tasks)
    return [(task, wait) for wait in (False, True) for task in listed]


class Store:
    """Runs of studies in a folder: appended by any number of processes, never changed.

    The first line says by which version the file was written; each other line is a run. Lines are written under a lock,
    in one go and down to the disk. A line that a crash cut short is not there for whoever reads, and its run is done
    again.

    Parameters
    ----------
    folder
        Made if need be.
    is_run
        Tells whether a line with a key is a whole run; others, as hands may have left them, are not there.
    """

    def __init__(self, folder: str | Path, is_run: Callable[[Row], bool] = lambda row: True) -> None:
        self.folder = Path(folder)
        self.file = self.folder / ROWS
        self._is_run = is_run
        self._rows: dict[str, Row] = {}
        self._read_up_to = 0
        try:
            for inside in ("claims", "users"):
                (self.folder / inside).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ParameterError(f"cannot write to {str(folder)!r}: {error.strerror or error}") from None
        self._check_version()

    def _check_version(self) -> None:
        """Write the first line where there is none; refuse another version's."""
        wanted = {"format": FORMAT, "verirec": verirec.__version__}
        with self._locked() as descriptor:
            with self.file.open("rb") as opened:
                first = opened.readline()
            if not first:
                _write(descriptor, wanted)
                return
        found = _parsed(first)
        if found is None or "format" not in found:
            raise DataError(f"{str(self.file)!r} is no store of results: its first line does not say what wrote it")
        if found != wanted:
            raise DataError(
                f"{str(self.file)!r} was written by verirec {found.get('verirec')} (format {found['format']}), and "
                f"this is {verirec.__version__} (format {FORMAT}): name another folder"
            )

    def append(self, row: Row, array: npt.NDArray[np.float32] | None = None) -> None:
        """Add a run, which has its `key`, and an array that goes with it: that first, so that no run is without."""
        if array is not None:
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            replace_file(self._array_file(row["key"]), buffer.getvalue())
        with self._locked() as descriptor:
            _write(descriptor, row)

    def array(self, key: str) -> npt.NDArray[np.float32]:
        """Return the array of a run."""
        try:
            with self._array_file(key).open("rb") as opened:
                return np.asarray(np.load(opened, allow_pickle=False))
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"the store has run {key} and cannot read what belongs to it: {error}") from None

    def _array_file(self, key: str) -> Path:
        return self.folder / "users" / f"{key}.npy"

    def rows(self) -> dict[str, Row]:
        """Return the runs by key, in the order in which they were added; of the same run the first."""
        with self.file.open("rb") as opened:
            opened.seek(self._read_up_to)
            # What is there never changes, and a line that has no end yet may still get one.
            added = opened.read().rpartition(b"\n")[0]
        self._read_up_to += len(added)
        for line in added.split(b"\n"):
            row = _parsed(line)
            if row is not None and isinstance(row.get("key"), str) and self._is_run(row):
                self._rows.setdefault(row["key"], row)
        return dict(self._rows)

    @contextmanager
    def claim(self, name: str, *, wait: bool = False) -> Iterator[bool]:
        """Hold a task, if nobody else does, or with `wait` as soon as nobody does; say whether it is held.

        The lock goes with the process: whatever ends it, others can take over.
        """
        import fcntl

        file = self.folder / "claims" / f"{name}.lock"
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(descriptor)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        import fcntl

        try:
            descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise ParameterError(f"cannot write {str(self.file)!r}: {error.strerror or error}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _write(descriptor: int, row: Row) -> None:
    """Append a line; after one that was cut short, on a line of its own."""
    size = os.fstat(descriptor).st_size
    torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    try:
        line = b"\n" * torn + json.dumps(row, allow_nan=False).encode() + b"\n"
    except ValueError:
        raise DataError(f"a run has figures that are not finite numbers, and is not kept: {row['key']}") from None
    if os.write(descriptor, line) < len(line):
        raise DataError("a result could not be written whole: is the disk full?")
    os.fsync(descriptor)


def _parsed(line: bytes) -> Row | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
