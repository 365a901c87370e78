"""A file layer that fails: the n-th write, fsync, rename, open for writing or folder made ends in an error."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

OPERATIONS = ("open", "write", "fsync", "replace", "rename", "mkdir", "unlink", "fdopen")
_WRITES = os.O_WRONLY | os.O_RDWR


class Disk:
    """Counts operations under a folder, and fails one of them.

    Parameters
    ----------
    folder
        Only what is done to files in it counts; by descriptor, only those that were opened in it.
    fails
        The number of the operation to fail; `None` for none.
    code
        The error's.
    """

    def __init__(self, folder: str, fails: int | None = None, code: int = errno.ENOSPC) -> None:
        self.folder, self.fails, self.code = folder, fails, code
        self.done: list[str] = []
        self.ours: set[int] = set()

    def install(self) -> None:
        """Put it in place of `os`' own; there is no way back, as there is none from a fork."""
        for name in OPERATIONS:
            setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            if not self._counts(name, given):
                return real(*given, **more)
            self.done.append(name)
            if self.fails == len(self.done):
                raise OSError(self.code, os.strerror(self.code))
            found = real(*given, **more)
            if name == "open":
                self.ours.add(found)
            return self._opened(found) if name == "fdopen" else found

        return call

    def _counts(self, name: str, given: tuple[Any, ...]) -> bool:
        first = given[0]
        if isinstance(first, int):
            return first in self.ours
        inside = str(Path(os.fsdecode(first)).absolute()).startswith(self.folder)
        return inside and (name != "open" or bool(given[1] & _WRITES))

    def _opened(self, file: Any) -> Any:
        """Have a file's own writes counted too: the error comes half-way through what is written."""
        disk, real = self, file.write

        class Watched:
            def __enter__(self) -> Watched:
                return self

            def __exit__(self, *_: object) -> None:
                file.close()

            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

            def write(self, content: bytes) -> int:
                disk.done.append("write")
                if disk.fails == len(disk.done):
                    real(content[: len(content) // 2])
                    raise OSError(disk.code, os.strerror(disk.code))
                return int(real(content))

        return Watched()
