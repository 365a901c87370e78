"""Checks of single arguments: each returns the value in the type the caller works with, or raises `ParameterError`."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.exceptions import ParameterError, VerirecError
from verirec.formatting import short

_UNITS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_LEAST_MEMORY: Final = 64 * 10**6
_LONGEST_NAME: Final = 255


def whole_number(name: str, value: object, *, min: int = 1, max: int | None = None) -> int:
    """Accept an integer of at least `min` (and at most `max`).

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
        if number >= min and (max is None or number <= max):
            return number
    wanted = f"of at least {min}" if max is None else f"from {min} to {max:,}"
    raise ParameterError(f"{name} must be a whole number {wanted}; got {short(value)}")


def real_number(
    name: str, value: object, *, above: float = -math.inf, below: float = math.inf, closed: bool = False
) -> float:
    """Accept a finite number strictly between `above` and `below` (`closed=True`: the ends included).

    Examples
    --------
    >>> real_number("observed", 0.08, above=0, below=1)
    0.08
    """
    if (
        isinstance(value, int | float | np.number)
        and not isinstance(value, np.complexfloating)
        and not isinstance(value, bool)
    ):
        try:
            number = float(value)
        except OverflowError:  # an int beyond the largest float
            number = math.inf
        inside = above <= number <= below if closed else above < number < below
        if math.isfinite(number) and inside:
            return number
    bounds = []
    if above > -math.inf:
        bounds.append(f"{'at least' if closed else 'above'} {above:g}")
    if below < math.inf:
        bounds.append(f"{'at most' if closed else 'below'} {below:g}")
    wanted = " ".join(["a finite number", " and ".join(bounds)]).strip()
    raise ParameterError(f"{name} must be {wanted}; got {short(value)}")


def byte_count(name: str, value: object) -> int:
    """Accept an amount of memory, at least 64 MB: a number of bytes, or text such as "2GB" or "500 MB".

    Examples
    --------
    >>> byte_count("memory", "1.5GB"), byte_count("memory", 100_000_000)
    (1500000000, 100000000)
    >>> byte_count("memory", "2 cups")
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: memory must be such as 2GB or 500MB, at least 64MB; got '2 cups'
    """
    found = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]+)?)\s*([kmgt]?)b?\s*", str(value), re.IGNORECASE)
    known = isinstance(value, str | int | np.integer) and not isinstance(value, bool)
    size = int(float(found[1]) * _UNITS[found[2].lower()]) if found and known else 0
    if size < _LEAST_MEMORY:
        raise ParameterError(f"{name} must be such as 2GB or 500MB, at least 64MB; got {short(value)}")
    return size


def path_of(name: str, value: object) -> Path:
    """Accept a path, as text or as a `Path`.

    Examples
    --------
    >>> path_of("out", 3)
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: out must be a string or a Path; got 3
    """
    if not isinstance(value, str | Path):
        raise ParameterError(f"{name} must be a string or a Path; got {short(value)}")
    if not can_be_encoded(str(value)) or any(len(os.fsencode(part)) > _LONGEST_NAME for part in Path(value).parts):
        raise ParameterError(f"{name} must be a name that a file can have; got {short(value)}")
    return Path(value)


def can_be_encoded(text: str) -> bool:
    """Whether text can name a file as far as its characters go."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def truth_value(name: str, value: object) -> bool:
    """Accept True or False, and nothing that only counts as one of them.

    Examples
    --------
    >>> truth_value("resume", True)
    True
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ParameterError(f"{name} must be True or False; got {short(value)}")


def listener(name: str, value: Any, of: str = "a line of text") -> Any:
    """Accept a function that is told how far things are.

    Examples
    --------
    >>> listener("progress", 3)
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: progress must be a function of a line of text; got 3
    """
    if callable(value):
        return value
    raise ParameterError(f"{name} must be a function of {of}; got {short(value)}")


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """Accept one of the named choices.

    Examples
    --------
    >>> one_of("by", "time", ("random", "time"))
    'time'
    """
    if isinstance(value, str) and value in choices:
        return value
    raise ParameterError(f"{name} must be one of {', '.join(sorted(choices))}; got {short(value)}")


def as_array(name: str, values: Any, *, error: type[VerirecError] = ParameterError) -> npt.NDArray[Any]:
    """Accept whatever NumPy makes an array of, which a ragged list is not.

    Examples
    --------
    >>> as_array("scores", [[0.1], [0.2, 0.3]])
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: scores must be an array; got a list of uneven or unreadable parts
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise error(
            f"{name} must not be masked; {int(np.ma.getmaskarray(values).sum()):,} of {values.size:,} values are"
        )
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        kind = type(values).__name__
        raise error(f"{name} must be an array; got a {kind} of uneven or unreadable parts") from None


def number_array(
    name: str, values: Any, *, ndim: int, error: type[VerirecError] = ParameterError, kinds: str = "fiub"
) -> npt.NDArray[Any]:
    """Accept numbers in an array of so many dimensions, of one of these NumPy kinds; nothing is said of their values.

    Examples
    --------
    >>> number_array("scores", [0.1, 0.2], ndim=1).shape
    (2,)
    >>> number_array("scores", ["a"], ndim=1)
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: scores must be numbers; got <U1
    """
    array = as_array(name, values, error=error)
    if array.dtype.kind not in kinds and (array.size or array.dtype.kind == "O"):
        raise error(f"{name} must be {'integers' if kinds == 'iu' else 'numbers'}; got {array.dtype}")
    if array.ndim != ndim:
        raise error(f"{name} must be {'a flat array' if ndim == 1 else 'a matrix'}; got shape {array.shape}")
    return array


def named_entries(argument: str, given: Any, of: str = "recommenders") -> dict[str, Any]:
    """Accept a mapping of recommenders' names, or of others, which are text that can be written down.

    Examples
    --------
    >>> named_entries("predictions", {0: [[0.5]]})
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: predictions must name recommenders by printable text; got 0
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ParameterError(f"{argument} must be a mapping of {of}' names; got {type(given).__name__}")
    for name in given:
        if not isinstance(name, str) or not name.isprintable() or not name.strip():
            raise ParameterError(f"{argument} must name {of} by printable text; got {short(name)}")
    return dict(given)
