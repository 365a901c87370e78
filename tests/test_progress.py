"""How far work has come, and how long the rest takes."""

from __future__ import annotations

import pytest

from verirec import progress
from verirec.progress import Task, shown_to, working


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_what_an_earlier_run_did_says_nothing_of_the_pace(clock):
    task = Task("Sorting", 100_000_000)
    task.skip(90_000_000)
    assert (task.share, task.pace, task.seconds_left) == (0.9, 0, None)
    clock[0] = 1.0
    task.advance(1_000_000)
    assert (task.share, task.pace, task.seconds_left) == (0.91, 1_000_000, 9)


def test_what_is_skipped_is_heard_of_and_counts_up_to_the_whole():
    heard = []
    with shown_to(lambda task: heard.append((task.done, task.skipped))), working("Sorting", 5) as task:
        task.skip(3)
        task.skip(3)
    assert heard == [(0, 0), (3, 3), (5, 5), (5, 5)]
