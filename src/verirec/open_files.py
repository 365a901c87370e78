"""How many files this process may have open at once: work on many parts has them all mapped."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from verirec.exceptions import OpenFilesError

_ENOUGH: Final = 1 << 20
_MOST_ON_MAC: Final = 10_240
"""More than `OPEN_MAX` is refused there, even where no limit is said."""


@contextmanager
def many_files() -> Iterator[None]:
    """Let this process have as many files open as the system allows it, until the end of the block.

    Examples
    --------
    >>> with many_files():
    ...     pass
    """
    try:
        import resource
    except ImportError:  # Windows, which has no such limit.
        yield
        return
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_ON_MAC if sys.platform == "darwin" else _ENOUGH
    wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
    if before != resource.RLIM_INFINITY and before < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    try:
        with naming_the_limit():
            yield
    finally:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


@contextmanager
def naming_the_limit() -> Iterator[None]:
    """Raise `OpenFilesError` where the system opens no more files, which says nothing of the file in question."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        raise OpenFilesError(
            "the system lets this process have no more files open: raise its limit (ulimit -n), or give fewer and "
            "larger files, or more memory, so that there are fewer parts"
        ) from None
