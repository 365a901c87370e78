"""How far long work has come, for whoever waits: a bar on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from verirec.cli.speech import talking_console
from verirec.progress import Task, shown_to

_MINUTE: Final = 60.0
_BRIEF: Final = 90.0
"""Seconds that are said in seconds."""


@contextmanager
def shown_progress() -> Iterator[None]:
    """Show how far work has come until the end of the block, on the standard error."""
    console = talking_console()
    if not console.is_terminal:
        with shown_to(_Lines()):
            yield
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[said]}"))
    with Progress(*columns, console=console, refresh_per_second=4, transient=True) as bars, shown_to(_Bars(bars)):
        yield


class _Bars:
    """Shows each task as a bar, with what is said of it beside."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._known: dict[int, tuple[Task, TaskID]] = {}

    def __call__(self, task: Task) -> None:
        known = self._known.get(id(task))
        if known is None:
            for _, shown in self._known.values():
                self._bars.remove_task(shown)
            known = task, self._bars.add_task(task.what, total=max(task.total, 1), said="")
            self._known = {id(task): known}
        self._bars.update(known[1], completed=task.done, said=in_words(task))


class _Lines:
    """Says a line a minute, the first after one."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, task: Task) -> None:
        now = time.monotonic()
        if now - self._last >= _MINUTE:
            self._last = now
            typer.echo(f"verirec: {task.what}: {in_words(task)}", err=True)


def in_words(task: Task) -> str:
    """Say how much is done, how fast, and how long the rest takes.

    Examples
    --------
    >>> import time
    >>> in_words(Task("Sorting", 1_000_000, done=430_000, began=time.monotonic() - 200))  # doctest: +ELLIPSIS
    '43%, 2,1... rows/s, 4 min left'
    """
    left = task.seconds_left
    if left is None:
        return f"{task.share:.0%}"
    return f"{task.share:.0%}, {task.pace:,.0f} {task.unit}/s, {time_in_words(left)} left"


def time_in_words(seconds: float) -> str:
    """Say how long something takes.

    Examples
    --------
    >>> time_in_words(12.2), time_in_words(100), time_in_words(8_000)
    ('12 s', '2 min', '2 h 13 min')
    """
    if seconds < _BRIEF:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < _BRIEF else f"{minutes // 60} h {minutes % 60} min"
