"""What became of a call: a result, a named error, or a defect."""

from __future__ import annotations

import dataclasses
import json
import signal
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import verirec as vr
from torture.fuzz.calls import Call
from torture.fuzz.material import NAMES
from verirec.exceptions import VerirecError, VerirecWarning

SOURCE = str(Path(vr.__file__).parent)
LONGEST = 20.0
"""Seconds a call may take."""
PATIENCE = 8
"""How many times as long it may wait for a processor."""
LONGEST_LINE = 1_000
GATE = frozenset(
    [
        "checks.py",
        "randomness.py",
        "gate.py",
        "tables.py",
        "roles.py",
        "arrays.py",
        "frames.py",
        "ids.py",
        "cells.py",
        "pairs.py",
        "feedback_log.py",
        "files.py",
        "id_files.py",
        "predictions.py",
        "parameters.py",
        "inputs.py",
        "options.py",
        "groups.py",
    ]
)
"""Where arguments and rows are checked before anything is made of them."""
ENTRANCE = 2
"""Frames of ours, counted from the call, that only look at arguments."""


@dataclass(frozen=True)
class Outcome:
    """What became of a call: `kind` is result, refused, defect, or void where it could not even be made."""

    kind: str
    detail: str = ""
    past_gate: bool = False


class TooLong(BaseException):
    """A call takes longer than it may."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TooLong` after so many seconds."""

    started, used = time.monotonic(), time.process_time()

    def ring(*_: Any) -> None:
        # On a busy machine a call may wait far longer than it works.
        if time.process_time() - used > 0.9 * seconds or time.monotonic() - started > PATIENCE * seconds:
            raise TooLong
        signal.setitimer(signal.ITIMER_REAL, seconds)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def judged(call: Call, seconds: float = LONGEST) -> Outcome:
    """Run a call and say what became of it."""
    started = time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            with limited(seconds):
                outcome = _outcome(call, said)
        except TooLong:
            return Outcome("defect", "TooLong: no result", past_gate=True)
    if outcome.kind != "void" and time.process_time() - started > seconds:
        return Outcome("defect", "TooLong: not even a signal ends it", past_gate=True)
    return outcome


def _outcome(call: Call, said: list[warnings.WarningMessage]) -> Outcome:
    try:
        function, given = call.made(NAMES)
    except VerirecError:
        return Outcome("void")
    except Exception as error:
        return Outcome("void") if _ours(error) == [] else _of_error(error)
    except BaseException as error:
        # Libraries in Rust panic past Exception; time that is over is not theirs.
        if isinstance(error, TooLong) or not type(error).__module__.startswith("pyo3"):
            raise
        return Outcome("void")
    said.clear()
    try:
        result = function(**given)
        # Parameters are given back as they were given.
        wrong = _wrong_with(result, quiet=not said and "get_params" not in call.function)
    except Exception as error:
        return _of_error(error)
    foreign = [one for one in said if not issubclass(one.category, VerirecWarning)]
    if foreign:
        place = Path(foreign[0].filename).name
        return Outcome("defect", f"{foreign[0].category.__name__}: {foreign[0].message} ({place})", past_gate=True)
    return Outcome("defect" if wrong else "result", wrong, past_gate=True)


def _ours(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of an error's traceback that are in the package."""
    return [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(SOURCE)]


def _of_error(error: Exception) -> Outcome:
    frames, text = _ours(error), str(error)
    past = len(frames) > ENTRANCE and Path(frames[-1].filename).name not in GATE
    if not isinstance(error, VerirecError):
        if frames and Path(traceback.extract_tb(error.__traceback__)[-1].filename).is_relative_to(
            Path(__file__).parent
        ):
            return Outcome("void")  # A function that was given raised it, and its caller wants to see that.
        where = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else "no frame of ours"
        if not frames and isinstance(error, TypeError) and "argument" in text:
            return Outcome("void")  # An argument left out, or one that is not there.
        return Outcome("defect", f"{type(error).__name__}: {text[:300]} ({where})", past_gate=past)
    if "\n" in text or not text or len(text) > LONGEST_LINE:
        return Outcome("defect", f"{type(error).__name__}, not one line: {text[:200]!r}", past_gate=past)
    return Outcome("refused", type(error).__name__, past_gate=past)


def _wrong_with(result: Any, *, quiet: bool) -> str:
    """Look at a result as users do: its repr, its dictionary as JSON, and its numbers, which are none without a word."""
    repr(result)
    if hasattr(result, "_repr_html_"):
        result._repr_html_()
    if hasattr(result, "to_dict") and type(result).__module__.startswith("verirec"):
        json.dumps(result.to_dict(), allow_nan=False)
    if quiet and (name := next(_nans(result, "result", 4), "")):
        return f"NaN without a word: {name}"
    return ""


_MAY_BE_NAN = frozenset(["diagnostics", "report", "values", "contributions", "ratings"])
"""Names of what documents NaN: surfaces beyond the rates, what was not validated."""


def _nans(value: Any, name: str, depth: int) -> Iterator[str]:
    """Yield the names of numbers that are NaN."""
    if depth == 0 or name.rsplit(".", 1)[-1] in _MAY_BE_NAN:
        return
    if isinstance(value, float | np.floating | np.ndarray):
        if np.asarray(value).dtype.kind == "f" and np.isnan(value).any():
            yield name
        return
    parts: dict[str, Any] = {}
    if isinstance(value, Mapping):
        parts = {f"[{key!r}]": value[key] for key in list(value)[:50]}
    elif isinstance(value, list | tuple):
        parts = {f"[{place}]": one for place, one in enumerate(value[:50])}
    elif dataclasses.is_dataclass(value):
        parts = {f".{field.name}": getattr(value, field.name, None) for field in dataclasses.fields(value)}
    for part, one in parts.items():
        yield from _nans(one, name + part, depth - 1)
