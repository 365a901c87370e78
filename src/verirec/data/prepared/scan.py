"""A log that stays on disk: prepared where it is not yet, and opened by memory map."""

from __future__ import annotations

import os
import shutil
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
from verirec.data.prepared.settings import Settings, file_identity, key_of
from verirec.data.prepared.sources import found_files
from verirec.data.prepared.workplace import sole_preparer
from verirec.data.tables import LogOptions
from verirec.data.text_form import TextForm
from verirec.scratch import DEFAULT_MEMORY, limit_memory
from verirec.user_cache import cache_folder

_KEPT_DAYS: Final = 30
"""Logs in the cache that nobody opened for so long are removed when another is prepared."""


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
    Logs there that nobody opened for 30 days are removed when another is prepared; the folder "logs" can be removed at
    any time. What is worked out row by row is kept in temporary files ($TMPDIR) where it is long.

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
    if isinstance(paths, str | Path) and is_prepared(path_of("paths", paths)):
        refuse_other_settings(Path(paths), settings)
        return PreparedLog.of(Path(paths))
    files = found_files(paths)
    text = [*map(str, (delimiter, columns, encoding))]
    key = key_of([file_identity(file) for file in files if file.is_file()], settings.said(), text)
    home = cache_folder()
    folder = (Path(tempfile.gettempdir()) if home is None else home) / "logs" / key
    if folder.is_dir():
        with suppress(OSError):  # A cache that others share may be theirs alone to write to.
            os.utime(folder)
    else:
        _remove_old(folder.parent)
        form = TextForm(delimiter, columns, encoding, skip_broken=settings.cleaning.drop_missing)
        with sole_preparer(folder, wait=True):
            if not folder.is_dir():  # Another process may have prepared it meanwhile.
                prepare_held(files, folder, settings, form, budget)
    return PreparedLog.of(folder)


def _remove_old(logs: Path) -> None:
    """Remove what nobody opened for long: a log that another process has open stays readable there."""
    for one in logs.iterdir() if logs.is_dir() else ():
        with suppress(OSError):
            if time.time() - one.stat().st_mtime > _KEPT_DAYS * 86_400:
                shutil.rmtree(one)
