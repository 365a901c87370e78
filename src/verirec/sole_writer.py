"""One writer a folder: a second process is refused, or waits; and where one can write at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from verirec.checks import can_be_encoded
from verirec.exceptions import ParameterError
from verirec.formatting import short


def named_place(given: Any) -> Path:
    """Accept the name of a file or folder, text or a `Path`.

    Examples
    --------
    >>> named_place("a\\0b")
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: the place to write to must be named by text or a Path; got 'a\\x00b'
    """
    if not isinstance(given, str | Path) or not str(given) or "\0" in str(given) or not can_be_encoded(str(given)):
        raise ParameterError(f"the place to write to must be named by text or a Path; got {short(given)}")
    return Path(given)


def check_writable(folder: str | Path) -> None:
    """Raise `ParameterError` at once where a report could not be written in the end."""
    target = named_place(folder)
    existing = next(place for place in (target, *target.absolute().parents) if place.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise ParameterError(f"cannot write to {str(target)!r}: {str(existing)!r} is not a folder one can write to")


@contextmanager
def sole_writer(folder: str | Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a folder, made if need be, while something is written into it; a second process is refused meanwhile.

    The lock goes with the process. Where nothing was written in the end, a folder that was made is taken away again.

    Parameters
    ----------
    wait
        Wait for a process that has the folder, rather than be refused.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home, sole_writer(Path(home, "out")), sole_writer(Path(home, "out")):
    ...     pass
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: another run is writing to '...out': wait for it, or name another folder
    """
    check_writable(folder)
    target = Path(folder).absolute()
    missing = [place for place in (target, *target.parents) if not place.exists()]
    descriptor = _locked(target, wait)
    try:
        yield
    finally:
        for place in missing:
            with suppress(OSError):
                place.rmdir()
        if descriptor is not None:
            os.close(descriptor)


def _locked(folder: Path, wait: bool) -> int | None:
    """Make a folder and lock it, where the system can lock one; return what has to be closed in the end."""
    try:
        import fcntl
    except ImportError:
        folder.mkdir(parents=True, exist_ok=True)
        return None
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue  # Who had it took it away just now.
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            raise ParameterError(
                f"another run is writing to {str(folder)!r}: wait for it, or name another folder"
            ) from None
        except OSError:
            return descriptor  # A file system without locks: what is written is whole all the same.
        except BaseException:
            os.close(descriptor)
            raise
        if _is_there(folder, descriptor):
            return descriptor
        os.close(descriptor)


def _is_there(folder: Path, descriptor: int) -> bool:
    """Whether the folder of this name is the one that was opened: who had it may have taken it away meanwhile."""
    try:
        return os.path.samestat(folder.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
