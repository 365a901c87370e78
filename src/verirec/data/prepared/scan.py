"""A log that stays on disk: prepared where it is not yet, and opened by memory map."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Unpack

from verirec.checks import byte_count, path_of
from verirec.data.feedback_log import FeedbackLog
from verirec.data.prepared.opening import PreparedLog, is_prepared, refuse_other_settings
from verirec.data.prepared.prepare import prepare_held
from verirec.data.prepared.removal import A_KEY, remove_rests, remove_whole
from verirec.data.prepared.settings import Settings, file_identity, key_of, state_of
from verirec.data.prepared.sources import found_files
from verirec.data.prepared.workplace import sole_preparer
from verirec.data.tables import LogOptions
from verirec.data.text_form import TextForm
from verirec.exceptions import FileFormatError, ParameterError
from verirec.scratch import DEFAULT_MEMORY, limit_memory
from verirec.user_cache import cache_folder

_KEPT_DAYS: Final = 30
"""Logs in the cache that nobody opened for so long are removed when another is prepared."""
_OURS: Final = re.compile(rf"(?P<log>{A_KEY.pattern})|\.(?P<parts_of>{A_KEY.pattern})\.parts")


def scan_log(
    paths: str | Path | Sequence[str | Path],
    *,
    memory: int | str = DEFAULT_MEMORY,
    delimiter: str | None = None,
    columns: Sequence[str] | None = None,
    encoding: str = "utf-8",
    **options: Unpack[LogOptions],
) -> FeedbackLog:
    """Open a log that need not fit into memory: its columns are memory maps, and it is taken wherever a log is.

    Ratings are prepared first (`prepare_log`), in the cache folder ($VERIREC_CACHE, or the user's own), where the same
    files with the same settings and code are found again; of several processes, one prepares them and the others wait.
    A log there that was damaged is prepared again. Logs there that nobody opened for 30 days are removed when another
    is prepared; the folder "logs" can be removed at any time. What is worked out row by row is kept in temporary files
    ($TMPDIR) where it is long.

    Parameters
    ----------
    paths
        The folder of a prepared log; or files of ratings, or a pattern, as in `prepare_log`.
    memory
        Bytes that the work may take, such as "2GB": of one process, from now on, by the least that was asked for.
    delimiter, columns, encoding, options
        As in `read_log`. Of a prepared log, those that it was prepared with, or none.

    Returns
    -------
    The same log that `read_log` makes of the same rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from verirec import prepare_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "ratings.csv")
    ...     _ = file.write_text("user,item,rating\\n1,10,4\\n2,10,1\\n")
    ...     log = scan_log(prepare_log(file, f"{folder}/log", positive_from=3))
    >>> log
    FeedbackLog(2 rows, 2 users x 1 items, 100.00% of the grid, 50.0% positive)
    """
    settings = Settings.of(dict(options), function="scan_log")
    budget = byte_count("memory", memory)
    limit_memory(budget)
    logs = _cached_logs()
    if isinstance(paths, str | Path) and is_prepared(path_of("paths", paths)):
        refuse_other_settings(Path(paths), settings)
        if Path(paths).resolve().parent == logs.resolve():
            _mark_used(Path(paths))
        return PreparedLog.of(Path(paths))
    files = found_files(paths)
    text = [*map(str, (delimiter, columns, encoding))]
    known = [(file_identity(file), state_of(file)) for file in files if file.is_file()]
    key = key_of(known, settings.said(), text)
    folder = logs / key
    log = _opened(folder)
    if log is not None:
        return log
    damaged = folder.is_dir()
    _remove_old(logs)
    form = TextForm(delimiter, columns, encoding, skip_broken=settings.cleaning.drop_missing)
    with sole_preparer(folder, wait=True):
        # Another process may have done either meanwhile.
        if damaged and folder.is_dir() and _opened(folder) is None:
            with suppress(OSError):
                remove_whole(folder)
        if not folder.is_dir():
            prepare_held(files, folder, settings, form, budget)
    return PreparedLog.of(folder)


def _cached_logs() -> Path:
    home = cache_folder()
    return (Path(tempfile.gettempdir()) if home is None else home) / "logs"


def _opened(folder: Path) -> PreparedLog | None:
    """Open a log of the cache; `None` where there is none, or a damaged one."""
    if not folder.is_dir():
        return None
    _mark_used(folder)
    with suppress(FileFormatError):
        return PreparedLog.of(folder)
    return None


def _mark_used(folder: Path) -> None:
    with suppress(OSError):  # A cache that others share may be theirs alone to write to.
        os.utime(folder)


def _remove_old(logs: Path) -> None:
    """Remove logs, and parts of some, that nobody opened for long; what has another name is not the cache's.

    A log that another process has open stays readable there.
    """
    remove_rests(logs)
    for one in list(logs.iterdir()) if logs.is_dir() else ():
        ours = _OURS.fullmatch(one.name)
        # Of two processes one removes it, and who prepares it just now keeps it.
        with suppress(OSError, ParameterError):
            if ours is not None and time.time() - one.stat().st_mtime > _KEPT_DAYS * 86_400:
                with sole_preparer(logs / (ours["log"] or ours["parts_of"])):
                    remove_whole(one)
