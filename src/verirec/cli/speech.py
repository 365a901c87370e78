"""What is said while a verb works: by default to a person who watches, and nothing to a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol

import typer
from rich.console import Console
from rich.text import Text


@dataclass
class Speech:
    """How much is said: set by the options before the verb."""

    level: Literal["quiet", "usual", "verbose"] = "usual"


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
    """Say what is being done for as long as it is: a spinner where a person watches, lines where all is wanted."""
    if speech.level == "verbose":
        lines = _Lines()
        lines.update(step)
        yield lines
        lines.update("done")
    else:
        with talking_console().status(step) as status:
            yield status


def talking_console() -> Console:
    """Return the console for whoever watches, silent if nothing is to be said."""
    return Console(stderr=True, quiet=speech.level == "quiet")
