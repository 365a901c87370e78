"""How far long work has come, in words for whoever waits: beside the step on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from verirec.progress import Task, time_in_words

MINUTE: Final = 60.0
BLINK: Final = 0.1


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
        self.step, self._say, self._every = step, say, every
        self._last = time.monotonic()

    def __call__(self, task: Task) -> None:
        """Hear of a task: rows and pairs of the step itself, or one with a name of its own."""
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            # Of passes a step may have many: how long one takes says nothing of the others.
            named = f"pass over {task.total:,} {task.unit}: " if task.what == task.unit else f"{task.what}: "
            self._say(f"{self.step}: {named}{in_words(task)}" if self.step else f"{named}{in_words(task)}")


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
