"""How far long work has come, in words for whoever waits: beside the step on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from verirec.progress import Task, time_in_words

_SOON: Final = 0.5
"""Seconds in which work that ends is not worth a word."""
_LONG: Final = 30.0
"""Seconds after which it is said how long a step takes already: it may do much one after the other."""
_LOOKS: Final = 4
"""Times in the seconds between two lines that it is looked whether one is due."""
_FEW: Final = 10.0
"""Seconds that are said with a tenth."""


class Told:
    """Says what is done and how far it has come, no more often than every so many seconds.

    Parameters
    ----------
    step
        What is done first.
    say
        Takes the words.
    every
        Seconds between two lines; the first is said after as many.
    """

    def __init__(self, step: str, say: Callable[[str], None], every: float) -> None:
        self._say, self._every, self._last = say, every, time.monotonic()
        self.begin(step)
        self._tasks: list[Task] = []
        self._lock = threading.Lock()

    def __call__(self, task: Task) -> None:
        """Hear of a task: rows and pairs of the step itself, or one with a name of its own."""
        with self._lock:
            known = [one for one in self._tasks if not one.ended and one is not task]
            self._tasks = [*known, task]
        self.say_if_due()

    def begin(self, step: str) -> None:
        """Hear of the next step."""
        self._step, self._come, self._began = step, "", time.monotonic()

    def note(self, come: str) -> None:
        """Hear how far the step has come."""
        self._come = come
        self.say_if_due()

    def say_if_due(self) -> None:
        """Say what is done now, if it is time to."""
        now = time.monotonic()
        with self._lock:
            due = now - self._last >= self._every
            self._last = now if due else self._last
        if due:
            self._say(self.words)

    @property
    def words(self) -> str:
        """The step, how far it has come, and the innermost work of some length."""
        now = time.monotonic()
        task = next((one for one in reversed(self._tasks) if not one.ended and one.began <= now - _SOON), None)
        so_far, step = now - self._began, self._step
        if step and so_far >= _LONG:
            step += f" ({time_in_words(so_far)} so far)"
        return ": ".join(filter(None, (step, self._come, "" if task is None else _told(task))))


def _told(task: Task) -> str:
    if not task.unit:
        return f"{task.what}, {time_in_words(time.monotonic() - task.began)}"
    # Of passes a step may have many: how long one takes says nothing of the others.
    named = f"pass over {task.total:,} {task.unit}" if task.what == task.unit else task.what
    return f"{named}: {in_words(task)}"


@contextmanager
def looking(told: Told, every: float) -> Iterator[None]:
    """Have something said in time where the work itself tells nothing for long."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(every / _LOOKS):
            told.say_if_due()

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    try:
        yield
    finally:
        over.set()
        looker.join()


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


class Rounds:
    """Says of each epoch, or trial, which it is, how good the model has become, and how long one takes.

    Parameters
    ----------
    note
        Takes the words.
    one, value
        What is counted, and what is told of it.

    Examples
    --------
    >>> told = Rounds(print)
    >>> told(1, 60, math.nan)
    epoch 1 of at most 60
    >>> told(2, 60, 0.65438)  # doctest: +ELLIPSIS
    epoch 2 of at most 60, validation error 0.6544, 0.0 s each
    """

    def __init__(self, note: Callable[[str], None], one: str = "epoch", value: str = "validation error") -> None:
        self._note, self._one, self._named = note, one, value
        self._again, self._value, self._done = "", math.nan, 0
        self._first = 0, 0.0

    def __call__(self, done: int, most: int, value: float) -> None:
        """Hear of one that is done."""
        now = time.monotonic()
        if done <= self._done:  # Only training once more, on all rows, counts anew.
            self._again, self._value = "once more, on all rows, ", math.nan
        if self._done == 0 or done <= self._done:
            self._first = done, now
        self._done, self._value = done, self._value if math.isnan(value) else value
        words = f"{self._again}{self._one} {done} of at most {most}"
        if not math.isnan(self._value):
            words += f", {self._named} {self._value:.4f}"
        first, began = self._first
        if done > first:
            each = (now - began) / (done - first)
            words += f", {f'{each:.1f} s' if each < _FEW else time_in_words(each)} each"
        self._note(words)
