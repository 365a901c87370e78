"""What is said while a verb works: by default to a person who watches, and nothing to a file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import typer
from rich.console import Console
from rich.text import Text

from verirec.cli.progress import BLINK, MINUTE, Told
from verirec.progress import shown_to

if TYPE_CHECKING:
    from rich.status import Status


GOES_ON: Final = "stopped; the same command goes on from what is finished"
"""What is said of a stop where finished parts are kept."""


@dataclass
class Speech:
    """How much is said, set by the options before the verb; and what is said of a stop, by whoever knows more of it."""

    level: Literal["quiet", "usual", "verbose"] = "usual"
    stopped: str = "stopped"


speech = Speech()


class Steps(Protocol):
    """What the next steps are told to."""

    def update(self, status: str | Text) -> None:
        """Say what comes next."""


@dataclass
class _Lines:
    """Each step on a line of its own, with the seconds since the first."""

    began: float = field(default_factory=time.monotonic)

    def update(self, status: str | Text) -> None:
        typer.echo(f"[{time.monotonic() - self.began:7.1f} s] {status}", err=True)


@contextmanager
def working(step: str | Text) -> Iterator[Steps]:
    """Say what is being done, and how far long work has come, for as long as it is.

    A line that changes where a person watches, a line a minute of long work elsewhere, and all steps where these are
    wanted.
    """
    console = talking_console()
    if speech.level == "verbose":
        lines = _Lines()
        lines.update(step)
        with shown_to(Told("", lines.update, MINUTE)):
            yield lines
        lines.update("done")
    elif console.is_terminal:
        with console.status(step) as status:
            watched = _Watched(status, step)
            with shown_to(watched.told):
                yield watched
    else:
        line = partial(console.print, markup=False, highlight=False, soft_wrap=True)
        quietly = Told(str(step), lambda words: line(f"verirec: {words}"), MINUTE)
        with shown_to(quietly):
            yield _Remembered(quietly)


class _Watched:
    """A line on a terminal: the step and, of long work, how far it has come."""

    def __init__(self, status: Status, step: str | Text) -> None:
        self._status = status
        self.told = Told(str(step), lambda words: status.update(Text(words)), BLINK)

    def update(self, status: str | Text) -> None:
        self.told.step = str(status)
        self._status.update(status)


@dataclass
class _Remembered:
    """Nothing is said of a step but in lines about long work."""

    told: Told

    def update(self, status: str | Text) -> None:
        self.told.step = str(status)


@contextmanager
def going_on(folder: Path | None, job: str, given: Mapping[str, Any]) -> Iterator[None]:
    """Keep finished parts of a verb's work in a folder, if there is one, and say of a stop that they are there.

    Parameters
    ----------
    folder
        Removed at the end.
    job, given
        As `Checkpoint` has them.
    """
    if folder is None:
        yield
        return
    from verirec.resuming import Checkpoint  # Help waits for nothing of the library.

    with Checkpoint(folder, job, given) as checkpoint:
        try:
            yield
        except KeyboardInterrupt:
            if checkpoint.has_pieces:
                speech.stopped = GOES_ON
            raise


def talking_console() -> Console:
    """Return the console for whoever watches, silent if nothing is to be said."""
    return Console(stderr=True, quiet=speech.level == "quiet")
