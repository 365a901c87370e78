"""Checks of single arguments: each returns the value in the type the caller works with, or raises `ParameterError`."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.exceptions import ParameterError, VerirecError

_LARGEST: Final = sys.float_info.max


def whole_number(name: str, value: object, *, least: int = 1, most: int | None = None) -> int:
    """Accept an integer of at least `least` (and at most `most`).

    Examples
    --------
    >>> whole_number("k", 5)
    5
    >>> whole_number("k", 0)
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: k must be a whole number of at least 1; got 0
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        number = int(value)
        if number >= least and (most is None or number <= most):
            return number
    wanted = f"of at least {least}" if most is None else f"from {least} to {most:,}"
    raise ParameterError(f"{name} must be a whole number {wanted}; got {value!r}")


def real_number(
    name: str, value: object, *, above: float = -math.inf, below: float = math.inf, closed: bool = False
) -> float:
    """Accept a finite number strictly between `above` and `below` (`closed=True`: the ends included).

    Examples
    --------
    >>> real_number("observed", 0.08, above=0, below=1)
    0.08
    """
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        # An int may be too large for a float, but it compares with one.
        finite = -_LARGEST <= value <= _LARGEST
        inside = above <= value <= below if closed else above < value < below
        if finite and inside:
            return float(value)
    bounds = []
    if above > -math.inf:
        bounds.append(f"{'at least' if closed else 'above'} {above:g}")
    if below < math.inf:
        bounds.append(f"{'at most' if closed else 'below'} {below:g}")
    raise ParameterError(f"{name} must be a finite number{' ' if bounds else ''}{' and '.join(bounds)}; got {value!r}")


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """Accept one of the named choices.

    Examples
    --------
    >>> one_of("by", "time", ("random", "time"))
    'time'
    """
    if isinstance(value, str) and value in choices:
        return value
    raise ParameterError(f"{name} must be one of {', '.join(sorted(choices))}; got {value!r}")


def number_array(
    name: str, values: Any, *, ndim: int, error: type[VerirecError] = ParameterError, kinds: str = "fiub"
) -> npt.NDArray[Any]:
    """Accept numbers in an array of so many dimensions, of one of these NumPy kinds; nothing is said of their values.

    Examples
    --------
    >>> number_array("scores", [0.1, 0.2], ndim=1).shape
    (2,)
    >>> number_array("scores", [[0.1], [0.2, 0.3]], ndim=1)
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: scores must be a flat array of numbers; got list that is no array
    """
    wanted = {1: "a flat array of numbers", 2: "a matrix of numbers"}[ndim]
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        raise error(f"{name} must be {wanted}; got {type(values).__name__} that is no array") from None
    if array.ndim != ndim or (array.dtype.kind not in kinds and array.size):
        raise error(f"{name} must be {wanted}; got {array.dtype} of shape {array.shape}")
    return array


def bytes_in_words(count: float) -> str:
    """Say an amount of memory.

    Examples
    --------
    >>> bytes_in_words(38e9), bytes_in_words(4_560)
    ('38.0 GB', '4.6 kB')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:.0f} bytes"
