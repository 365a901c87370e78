"""What a case is: who runs what on what, and what is asked of the first of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Measure = Literal["cpu", "wall", "extra_gb"]
"""CPU seconds with those of child processes, wall seconds, or memory beyond what was there when a round began."""


class Taken(NamedTuple):
    """Seconds that something took."""

    wall: float
    cpu: float


Run = Callable[[], Taken | object]
"""A round. What it returns is left alone, unless it timed a part of itself and returns `Taken`."""
Contender = Callable[[], Run]
"""Prepares all that a round needs, untimed. Whatever a case needs is imported here, not by its module."""


class LeftOut(Exception):
    """A contender cannot run here: its library or its data is not at hand."""


@dataclass(frozen=True)
class Target:
    """What the first contender should not exceed: a figure of its own, or its ratio to that of another."""

    at_most: float
    of: str | None = None
    measure: Measure = "cpu"


@dataclass(frozen=True)
class Case:
    """Contenders that do the same work; the first is judged, the others are what it is judged by.

    Parameters
    ----------
    name
        "group/what", in file names and on the command line.
    title
        What is done, in a few words; the page shows it.
    size
        What it is done on.
    contenders
        By name; the first is ours.
    targets
        What was asked for.
    threads
        How many each may use, as far as that is up to the environment; by default it is left as it is.
    rounds
        How often all of them are run, in turn.
    apart
        Whether each has a process of its own: for memory, and for libraries that would share their threads.
    large
        Whether it takes minutes, or gigabytes, and is run on demand only.
    units
        Rows, or pairs, that a figure of the page is divided by.
    """

    name: str
    title: str
    size: str
    contenders: Mapping[str, Contender]
    targets: tuple[Target, ...] = ()
    threads: int | None = None
    rounds: int = 3
    apart: bool = False
    large: bool = False
    units: float = float("nan")

    @property
    def group(self) -> str:
        """The part of the name before the slash."""
        return self.name.split("/")[0]
