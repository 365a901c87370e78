"""What a shell, a service or a container may set, a line each."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Setting:
    """An environment.

    Parameters
    ----------
    name
        What it is called.
    variables
        Set; `None` takes one away. HERE stands for the folder that the command runs in.
    umask
        Of the process; -1 for the usual.
    streams
        Which of stdin, stdout and stderr are closed, or "reader" for one that goes away after a byte of stdout.
    before
        Run in the process before the command.
    """

    name: str
    variables: dict[str, str | None] = field(default_factory=dict)
    umask: int = -1
    streams: tuple[str, ...] = ()
    before: Callable[[], Any] | None = None


def _limited(kind: int, most: int) -> Callable[[], Any]:
    return lambda: resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def _in_a_folder_that_is_gone() -> None:
    os.mkdir("gone")  # noqa: PTH102
    os.chdir("gone")
    os.rmdir("../gone")  # noqa: PTH106


def _one(name: str, *values: str | None) -> list[Setting]:
    return [Setting(f"{name}={value}" if value is not None else f"no {name}", {name: value}) for value in values]


SETTINGS = (
    *_one("LC_ALL", "C", "POSIX", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8", "no_such"),
    *_one("PYTHONIOENCODING", "ascii", "latin-1:strict", "utf-16"),
    *_one("PYTHONUTF8", "0", "1"),
    *_one("PYTHONCOERCECLOCALE", "0"),
    *_one("PYTHONOPTIMIZE", "1", "2"),
    *_one("PYTHONWARNINGS", "error", "always"),
    *_one("PYTHONDEVMODE", "1"),
    *_one("TERM", "dumb", "", "no-such-terminal", None),
    *_one("COLUMNS", "0", "1", "-5", "a", "100000"),
    *_one("NO_COLOR", "1"),
    *_one("FORCE_COLOR", "1"),
    *_one("HOME", None, "", "/no/such/folder", "/dev/null", "HERE/log.csv"),
    *_one("XDG_CACHE_HOME", "/no/such/folder", "relative", "/dev/null"),
    *_one("VERIREC_CACHE", "HERE/log.csv", "/dev/null", ""),
    *_one("MPLCONFIGDIR", "/dev/null"),
    *_one("TMPDIR", "/no/such/folder"),
    *_one("TZ", "Asia/Kathmandu", "no/such"),
    *(Setting(f"umask {mask:03o}", umask=mask) for mask in (0o000, 0o022, 0o027, 0o077)),
    *(Setting(f"{name} closed", streams=(name,)) for name in ("stdin", "stdout", "stderr")),
    Setting("all streams closed", streams=("stdin", "stdout", "stderr")),
    Setting("a reader that goes away", streams=("reader",)),
    Setting("the current folder is gone", before=_in_a_folder_that_is_gone),
    Setting("64 open files", before=_limited(resource.RLIMIT_NOFILE, 64)),
    Setting("files of at most 100 bytes", before=_limited(resource.RLIMIT_FSIZE, 100)),
    Setting("no core dumps", before=_limited(resource.RLIMIT_CORE, 0)),
)
