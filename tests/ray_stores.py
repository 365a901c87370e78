"""How much room the tests give Ray for its objects, and where."""

from __future__ import annotations

import shutil
import tempfile

SIZE = 80 << 20
"""Bytes of a store: about the least that Ray takes."""


def folder_of_stores(count):
    """Return where so many stores go: `None` for where Ray has them, which is /dev/shm.

    A container may have little room there, of which Ray would warn, or none at all, with which it does not start.
    """
    try:
        room = shutil.disk_usage("/dev/shm").free
    except OSError:
        room = 0
    return None if room > 2 * count * SIZE else tempfile.gettempdir()
