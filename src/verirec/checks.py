"""Checks of single arguments: each returns the value in the type the caller works with, or raises `ParameterError`."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from verirec.exceptions import ParameterError


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
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        number = float(value)
        inside = above <= number <= below if closed else above < number < below
        if math.isfinite(number) and inside:
            return number
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
