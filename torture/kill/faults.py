"""A file layer that fails: the n-th write, fsync, rename, open for writing, folder made or file removed ends in an error.

It stands between a process and its C library (`faults.c`), so that what Arrow or safetensors write counts as what Python
does. A process has it from its start, by `preloaded`; a fork of it sets it going by `Disk.install`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("faults.c")
OPERATIONS = {
    "o": "open", "w": "write", "f": "fsync", "r": "rename", "m": "mkdir", "u": "remove", "t": "truncate"
}  # fmt: skip


def preloaded(folder: Path) -> dict[str, str]:
    """Compile the layer into a folder; return what the environment of a process that has it needs, or nothing."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or os.uname().sysname != "Linux":
        return {}
    library = folder / "faults.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


def available() -> bool:
    """Whether this process has the layer."""
    return hasattr(ctypes.CDLL(None), "faults_arm")


@dataclass(frozen=True)
class Disk:
    """Counts operations under a folder, and fails one of them.

    Parameters
    ----------
    folder
        Only what is done to files in it counts.
    fails
        The number of the operation to fail; 0 for none.
    code
        The error's.
    """

    folder: str
    fails: int = 0
    code: int = errno.ENOSPC

    def install(self) -> None:
        """Count, and fail, from here on; for a fork, which does not outlive it."""
        ctypes.CDLL(None).faults_arm(os.fsencode(self.folder), self.fails, self.code)

    @staticmethod
    def done() -> list[str]:
        """Return the operations since then, in order."""
        layer = ctypes.CDLL(None)
        layer.faults_done.restype = ctypes.c_char_p
        return [OPERATIONS[letter] for letter in layer.faults_done().decode()]
