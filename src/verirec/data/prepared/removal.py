"""What is removed goes at once, by a rename: a stop on the way leaves nothing that is taken for whole."""

from __future__ import annotations

import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

A_KEY: Final = re.compile("[0-9a-f]{24}")
"""As of `key_of`: the names of logs in the cache, and of the places of work on a log."""
_GONE: Final = re.compile(rf"\.?{A_KEY.pattern}(\.parts)?\.[0-9a-f]{{8}}\.gone")


def remove_whole(folder: Path) -> None:
    """Remove a folder that is named by a key; its files that cannot be removed now are rests, under another name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     Path(home, f"{7:024x}").mkdir()
    ...     remove_whole(Path(home, f"{7:024x}"))
    ...     list(Path(home).iterdir())
    []
    """
    away = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}.gone")
    folder.rename(away)
    shutil.rmtree(away, ignore_errors=True)


def remove_rests(home: Path) -> None:
    """Remove what was left of folders that were removed from this one."""
    with suppress(OSError):
        for one in list(home.iterdir()):
            if _GONE.fullmatch(one.name):
                shutil.rmtree(one, ignore_errors=True)
