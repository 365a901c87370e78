"""Parameters of methods: stored as they are given, looked at when training starts, kept in files."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import Any, Final

import numpy as np
import torch

from verirec.checks import real_number, truth_value, whole_number
from verirec.formatting import short
from verirec.losses import NoiseRates

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


def plain_parameters(method: Any) -> dict[str, Any]:
    """Return the parameters as JSON can hold them; arrays and modules by their checksums."""
    return {name: _plain(value) for name, value in parameters_of(method).items()}


def savable_parameters(method: Any) -> dict[str, Any]:
    """Return the parameters that a file can hold; objects, such as modules of one's own, are left out."""
    unpacked = {
        name: value.item() if isinstance(value, np.generic) else value for name, value in parameters_of(method).items()
    }
    return {name: value for name, value in unpacked.items() if isinstance(value, _PLAIN)}


def shown(method: Any) -> str:
    """Return a method as Python would make it, with the parameters that are not the default."""
    defaults = {one.name: one.default for one in fields(method)}
    changed = [
        f"{name}={short(value)}"
        for name, value in parameters_of(method).items()
        if not (isinstance(value, _PLAIN) and value == defaults[name])
    ]
    return f"{type(method).__name__}({', '.join(changed)})"


def _plain(value: Any) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, NoiseRates):
        return repr(value)
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, np.ndarray):
        return f"{name} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, torch.nn.Module):
        parts = [one.detach().cpu().numpy().tobytes() for one in value.state_dict().values()]
        return f"{name} {hashlib.sha256(b''.join(parts)).hexdigest()}"
    return name
