"""Functions compiled by numba, whose machine code is kept in the user's cache: the next process does not compile.

numba's own cache is beside the source or in a folder of numba's. It fails where neither can be written, takes damaged
files for sound ones, and numbers its files, so that processes at once may overwrite each other's. Here each file is
named by all that its content depends on, and begins with a checksum.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import numba
import numpy as np
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from verirec.atomic_write import replace_file
from verirec.exceptions import CacheWarning, warn_caller
from verirec.user_cache import CACHE_VARIABLE, cache_folder

_VERSION: Final[str] = sys.modules["verirec"].__version__
"""Not imported: nothing leans on the package as a whole."""
_CHECKSUM: Final = 32
"""Bytes before a file's content."""


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is first called, to run without Python's lock, and keep what came out.

    Parameters
    ----------
    options
        More of `numba.njit`, such as `fastmath`.

    Examples
    --------
    >>> @kernel()
    ... def twice(number):
    ...     return 2 * number
    >>> twice(21)
    42
    """

    def compile_later(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(nogil=True, **options)(function)
        if dispatcher is not function:  # It is where numba is told not to compile.
            dispatcher._cache = KernelCache(function)
        return dispatcher

    return compile_later


class KernelCache:
    """What numba asks for machine code before it compiles, and tells what it compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        self.origin = (
            *(_VERSION, numba.__version__, np.__version__, sys.implementation.cache_tag, sys.abiflags),
            *(function.__module__, function.__qualname__, function.__code__.co_code),
            _source_of(Path(function.__code__.co_filename).parent),
        )

    @property
    def cache_path(self) -> Path | None:
        """The folder of this version's kernels."""
        home = cache_folder()
        return None if home is None else home / "kernels" / _VERSION

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return what was compiled for these types on such a processor; `None` if nothing sound is kept."""
        context.refresh()
        file = self._file(signature, context.codegen())
        try:
            content = file.read_bytes() if file is not None and _is_ours(file) else b""
        except OSError:
            return None
        checksum, content = content[:_CHECKSUM], content[_CHECKSUM:]
        if hashlib.sha256(content).digest() != checksum:
            return None
        try:
            return CompileResult._rebuild(context, *pickle.loads(content))  # type: ignore[no-untyped-call]
        except Exception:  # Whatever else it may be, it is nothing that was kept here: compile.
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled, if the folder can be written."""
        if compiled.library.has_dynamic_globals:  # Addresses of this process are in it.
            return
        file = self._file(signature, compiled.codegen)
        content = dumps(compiled._reduce())  # type: ignore[no-untyped-call]
        try:
            if file is None:
                raise FileNotFoundError(0, "there is no home folder")
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(file, hashlib.sha256(content).digest() + content)
        except OSError as error:
            self._say(error)

    def _say(self, error: OSError) -> None:
        """Say once for all kernels that nothing is kept, by the first reason."""
        folder = str(self.cache_path or "the user's cache")
        if folder not in _SAID:
            _SAID.add(folder)
            warn_caller(
                f"compiled functions cannot be kept in {folder!r} ({error.strerror or error}): each process compiles "
                f"them again; ${CACHE_VARIABLE} names another folder",
                CacheWarning,
            )

    def flush(self) -> None:
        """Do nothing: what is out of date has another name."""

    def _file(self, signature: Any, codegen: Any) -> Path | None:
        """Name the file of a signature by all that its machine code depends on, the processor included."""
        key = hashlib.sha256(repr((self.origin, signature, codegen.magic_tuple())).encode()).hexdigest()
        folder = self.cache_path
        return None if folder is None else folder / f"{self.name}-{key[:40]}"


@cache
def _source_of(folder: Path) -> str:
    """Hash a folder's source: what a function calls is there, and options; who edits them has the same version."""
    found = hashlib.sha256()
    for one in sorted(folder.glob("*.py")):
        found.update(one.read_bytes())
    return found.hexdigest()


_SAID: Final[set[str]] = set()
"""Folders of which it was said that nothing can be kept there."""


def _is_ours(file: Path) -> bool:
    """Whether a file is a regular one in a folder that nobody else can write to: what is read from it is run."""
    if not file.is_file():
        return False
    folder = file.parent.stat()
    mine = not hasattr(os, "getuid") or folder.st_uid == os.getuid()
    return mine and not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
