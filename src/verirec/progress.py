"""How far long work has come: the work tells, and whoever shows it to people listens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

_BRIEF: Final = 90.0
"""Seconds, and minutes, that are said as such."""


@dataclass
class Task:
    """A piece of work whose size is known.

    Parameters
    ----------
    what
        What is being done, such as "Sorting by user".
    total
        How much there is to do.
    unit
        What is counted: "rows", "pairs".
    done, skipped
        How much is done, and how much of that an earlier run did.
    began
        When, by `time.monotonic`.
    ended
        Whether it is over, by whatever end.
    """

    what: str
    total: int
    unit: str = "rows"
    done: int = 0
    skipped: int = 0
    began: float = field(default_factory=lambda: time.monotonic())
    ended: bool = False

    def advance(self, count: int) -> None:
        """Say that so much more is done; from any thread."""
        self._come(count)

    def skip(self, count: int) -> None:
        """Say that so much more was done before: it says nothing of how fast the rest goes."""
        self._come(count, skipped=count)

    def correct(self, done: int, total: int) -> None:
        """Say how much is done, and how much there is to do, where that was guessed when the work began."""
        with _LOCK:
            self.done, self.total = done, total

    def _come(self, count: int, *, skipped: int = 0) -> None:
        unwanted: threading.Event | None = getattr(_thread, "unwanted", None)
        if unwanted is not None and unwanted.is_set():
            raise UnwantedError
        with _LOCK:
            self.done = min(self.done + count, self.total)
            self.skipped = min(self.skipped + skipped, self.total)
        if _listeners:
            _listeners[-1](self)

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
        return self.done / self.total if self.total else 1.0

    @property
    def pace(self) -> float:
        """How much is done in a second."""
        return (self.done - self.skipped) / max(time.monotonic() - self.began, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at this pace; `None` before anything is done now."""
        return (self.total - self.done) / self.pace if self.done > self.skipped else None


class UnwantedError(Exception):
    """Nobody waits for this work any more: it ends where it would tell how far it has come."""


def end_work_once(unwanted: threading.Event) -> None:
    """Have the tasks of this thread end, by an `UnwantedError`, once an event says that nobody waits for them.

    Examples
    --------
    >>> unwanted = threading.Event()
    >>> def count():
    ...     end_work_once(unwanted)
    ...     with working("Counting", 4) as task:
    ...         unwanted.set()
    ...         task.advance(1)
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor() as workers:
    ...     type(workers.submit(count).exception()).__name__
    'UnwantedError'
    """
    _thread.unwanted = unwanted


_thread = threading.local()
Listener = Callable[[Task], None]

_LOCK = threading.Lock()
_listeners: list[Listener] = []


@contextmanager
def working(what: str, total: int, unit: str = "rows") -> Iterator[Task]:
    """Do some work that tells how far it has come: its listener hears of it when it begins, goes on and ends.

    Examples
    --------
    >>> heard = []
    >>> with shown_to(lambda task: heard.append(f"{task.what}: {task.share:.0%}")), working("Counting", 4) as task:
    ...     task.advance(3)
    >>> heard
    ['Counting: 0%', 'Counting: 75%', 'Counting: 100%']
    """
    task = Task(what, total, unit)
    task.advance(0)
    try:
        yield task
        task.advance(total - task.done)
    finally:
        task.ended = True


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Do some work of which nobody can say how much there is: its listener hears that it began, and that it ended.

    Examples
    --------
    >>> heard = []
    >>> with shown_to(lambda task: heard.append((task.what, task.done))), doing("Starting workers"):
    ...     pass
    >>> heard
    [('Starting workers', 0), ('Starting workers', 1)]
    """
    with working(what, 1, ""):
        yield


@contextmanager
def shown_to(listener: Listener) -> Iterator[None]:
    """Have a listener hear of all work until the end of the block, in place of any other."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


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
