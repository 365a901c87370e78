"""The folder for what can be made again: machine code, downloads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CACHE_VARIABLE: Final = "VERIREC_CACHE"


def cache_folder() -> Path | None:
    """Return $VERIREC_CACHE, or the system's place for a user's caches; `None` where there is no user and no home.

    It need not exist, nor be writable.

    Examples
    --------
    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, {"VERIREC_CACHE": "/var/cache/ours"}):
    ...     print(cache_folder().as_posix())
    /var/cache/ours
    """
    from platformdirs import user_cache_path

    named = os.environ.get(CACHE_VARIABLE)
    try:
        folder = (Path(named) if named else user_cache_path("verirec")).expanduser()
    except RuntimeError:  # "~" of nobody
        return None
    return folder if named or folder.is_absolute() else None
