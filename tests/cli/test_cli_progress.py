"""What is said of long work: what is done now, each epoch, and a line a minute even where the work itself is silent."""

from __future__ import annotations

import math
import time
from contextlib import suppress

import pytest

from verirec.cli import speech
from verirec.cli.progress import Rounds, Told
from verirec.progress import doing, shown_to, working


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def told():
    return Told("Training mf", lambda words: None, math.inf)


def test_the_innermost_work_of_some_length_is_told_as_long_as_it_lasts(clock, told):
    with shown_to(told):
        assert told.words == "Training mf"
        with working("Judging", 4, "pairs") as task:
            clock[0] = 10.0
            task.advance(1)
            with doing("Finding where factors start"):
                assert told.words == "Training mf: Judging: 25%, 0 pairs/s, 30 s left"
                clock[0] = 22.0
                assert told.words == "Training mf: Finding where factors start, 12 s"
            task.advance(1)
            assert told.words == "Training mf: Judging: 50%, 0 pairs/s, 22 s left"
        assert told.words == "Training mf"


def test_work_that_failed_is_not_told_of_for_ever(clock, told):
    with shown_to(told), suppress(ZeroDivisionError), doing("Dividing"):
        clock[0] = 1.0
        assert told.words == "Training mf: Dividing, 1 s"
        raise ZeroDivisionError
    clock[0] = 2.0
    assert told.words == "Training mf"


def test_a_step_that_begins_forgets_how_far_the_one_before_had_come(told):
    told.note("epoch 3 of at most 60")
    assert told.words == "Training mf: epoch 3 of at most 60"
    told.begin("Writing")
    assert told.words == "Writing"


def test_epochs_are_told_with_the_last_error_and_the_time_of_one(clock):
    said = []
    rounds = Rounds(said.append)
    for done, seconds, value in ((4, 50, math.nan), (5, 50.6, 0.65438), (6, 51.2, math.nan), (7, 110, 0.6)):
        clock[0] = seconds
        rounds(done, 60, value)
    assert said == [
        "epoch 4 of at most 60",
        "epoch 5 of at most 60, validation error 0.6544, 0.6 s each",
        "epoch 6 of at most 60, validation error 0.6544, 0.6 s each",
        "epoch 7 of at most 60, validation error 0.6000, 20 s each",
    ]


def test_epochs_that_are_counted_anew_are_those_on_all_rows(clock):
    said = []
    rounds = Rounds(said.append)
    for done, most, value in ((1, 60, 0.7), (2, 60, 0.6), (1, 2, math.nan), (2, 2, math.nan)):
        clock[0] += 2
        rounds(done, most, value)
    assert said[2:] == [
        "once more, on all rows, epoch 1 of at most 2",
        "once more, on all rows, epoch 2 of at most 2, 2.0 s each",
    ]


def test_a_line_is_said_in_time_where_the_work_is_silent(capsys, monkeypatch):
    monkeypatch.setattr(speech, "MINUTE", 0.02)
    said = ""
    with speech.working("Training mf"), doing("Starting workers"):
        until = time.monotonic() + 60
        while "Starting workers" not in said and time.monotonic() < until:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert said.startswith("verirec: Training mf\n")
    assert "verirec: Training mf: Starting workers, 1 s\n" in said


def test_a_terminal_has_what_is_done_now(on_terminal):
    shown = on_terminal(
        """
import time
from verirec.cli import speech
from verirec.progress import doing
with speech.working("Training mf") as steps:
    with doing("Finding where factors start"):
        time.sleep(1)
    steps.note("epoch 3 of at most 60")
    time.sleep(0.5)
"""
    )
    assert "Training mf: Finding where factors start, 1 s" in shown
    assert "Training mf: epoch 3 of at most 60" in shown


def test_a_long_step_tells_how_long_it_takes_already(clock, told):
    clock[0] = 20.0
    assert told.words == "Training mf"
    clock[0] = 600.0
    assert told.words == "Training mf (10 min so far)"
    told.begin("Writing")
    assert told.words == "Writing"
