"""What is said while a verb works: by default to a person who watches, and nothing to a file."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import typer
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from verirec.cli.progress import Told, looking
from verirec.progress import shown_to

MINUTE: Final = 60.0
"""Between two lines about long work."""
_A_SECOND: Final = 12.5
"""Times that a line on a terminal changes."""
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

    def note(self, words: str) -> None:
        """Say how far that has come."""


@dataclass
class _Lines:
    """Each step on a line of its own, with the seconds since the first; how far long work has come, a line a minute."""

    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.told = Told("", self._line, MINUTE)

    def update(self, status: str | Text) -> None:
        self.told.begin("")
        self._line(str(status))

    def note(self, words: str) -> None:
        self.told.note(words)

    def _line(self, words: str) -> None:
        typer.echo(f"[{time.monotonic() - self.began:7.1f} s] {words}", err=True)


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
        with shown_to(lines.told):
            yield lines
        lines.update("done")
    elif console.is_terminal:
        watched = _Watched(str(step))
        with Live(watched, console=console, transient=True, refresh_per_second=_A_SECOND), shown_to(watched.told):
            yield watched
    else:
        line = partial(console.print, markup=False, highlight=False, soft_wrap=True)
        told = Told(str(step), lambda words: line(f"verirec: {words}"), MINUTE)
        with looking(told, MINUTE), shown_to(told):
            yield _Remembered(told)


class _Remembered:
    """Nothing is said of a step but in lines about long work."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def update(self, status: str | Text) -> None:
        self.told.begin(str(status))

    def note(self, words: str) -> None:
        self.told.note(words)


class _Watched(_Remembered):
    """A line on a terminal that says, each time that it is shown, what is done then and how far it has come."""

    def __init__(self, step: str) -> None:
        super().__init__(Told(step, lambda words: None, math.inf))
        self._spinner = Spinner("dots", style="status.spinner")

    def __rich__(self) -> Spinner:
        self._spinner.update(text=Text(self.told.words))
        return self._spinner


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
