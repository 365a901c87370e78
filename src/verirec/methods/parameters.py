"""Parameters of methods: stored as they are given, looked at when training starts, kept in files."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import numpy as np
import torch

from verirec.checks import real_number, truth_value, whole_number
from verirec.formatting import short
from verirec.resuming import told_by

Limits = dict[str, tuple[float, float]]
"""Of number parameters, both ends allowed."""

_PLAIN: Final = (bool, int, float, str, type(None))
"""What JSON holds as it is."""
_MAY_BE_NONE: Final = (
    "patience",
    "propensity_floor",
    "penalty_factors",
    "penalty_users",
    "penalty_items",
    "seconds",
)
"""Numbers in whose place `None` means something."""


def parameters_of(method: Any) -> dict[str, Any]:
    """Return a dataclass's fields by name."""
    return {one.name: getattr(method, one.name) for one in fields(method)}


def check_numbers(method: Any) -> None:
    """Raise `ParameterError` for a number outside of its limits, and for what is neither True nor False."""
    for one in fields(method):
        _check(type(method), one.name, getattr(method, one.name), one.default)


def _check(kind: type, name: str, value: Any, default: Any) -> None:
    # A class's own limits come on top of those it inherits.
    limits = [vars(one)["limits"][name] for one in kind.__mro__ if name in vars(one).get("limits", {})]
    if isinstance(default, bool):
        truth_value(name, value)
    elif limits and not (value is None and name in _MAY_BE_NONE):
        least, most = limits[0]
        if isinstance(default, int):
            whole_number(name, value, min=int(least), max=int(most))
        else:
            real_number(name, value, above=least, below=most, closed=True)


def told_parameters(method: Any) -> dict[str, str]:
    """Return checksums of the parameters; of functions and other objects of one's own only their classes count."""
    return {name: told_by(_recognisable(value)) for name, value in _unpacked(method).items()}


def savable_parameters(method: Any) -> dict[str, Any]:
    """Return the parameters that a file can hold; objects, such as modules of one's own, are left out."""
    return {name: value for name, value in _unpacked(method).items() if isinstance(value, _PLAIN)}


def shown(method: Any) -> str:
    """Return a method as Python would make it, with the parameters that are not the default."""
    defaults = {one.name: one.default for one in fields(method)}
    changed = [
        f"{name}={short(value)}"
        for name, value in parameters_of(method).items()
        if not (isinstance(value, _PLAIN) and value == defaults[name])
    ]
    return f"{type(method).__name__}({', '.join(changed)})"


def _unpacked(method: Any) -> dict[str, Any]:
    """Return the parameters, numbers of NumPy as those of Python."""
    return {
        name: value.item() if isinstance(value, np.generic) else value for name, value in parameters_of(method).items()
    }


def _recognisable(value: Any) -> Any:
    """Return a module of one's own as its class and what it has learnt, anything else as it is."""
    if isinstance(value, torch.nn.Module):
        return [f"{type(value).__module__}.{type(value).__qualname__}", value.state_dict()]
    return value
