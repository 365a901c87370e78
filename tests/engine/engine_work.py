"""Work that the tests send to engines."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np

from verirec.exceptions import DataError, OverlapWarning, warn_caller


def squares(part):
    return np.arange(part) ** 2.0


def refuse_five(part):
    if part == 5:
        raise DataError("five is not to be had")
    return part


def end_once(mark, part):
    """End the worker that has part 4, the first time that one has."""
    if part == 4 and not Path(mark).exists():
        Path(mark).touch()
        os._exit(9)
    return part * 2


def end_always(part):
    os._exit(9)


def warn_of_two(part):
    if part == 2:
        warn_caller("two is few", OverlapWarning)
    return part


def threads(part):
    from verirec.engine.worker import usable_cores

    return usable_cores(), os.environ["OMP_NUM_THREADS"]


def memory(part_or_state):
    from verirec.scratch import memory_limit

    return memory_limit()


def remember(state, name, value):
    state[name] = value
    return len(state)


def recall(state, name):
    return state[name]


def end_host(state):
    os._exit(9)


def quiet(function, *given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*given)
