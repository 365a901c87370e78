"""Parameters of methods: stored as they are given, looked at when training starts, kept in files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Self

import numpy as np
import torch

from verirec.checks import real_number, whole_number
from verirec.exceptions import ParameterError
from verirec.formatting import short
from verirec.losses import NoiseRates

Limits = dict[str, tuple[float, float]]

_PLAIN: Final = (bool, int, float, str, type(None))
"""What JSON holds as it is."""


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """A dataclass's fields as scikit-learn wants parameters."""

    limits: ClassVar[Limits] = {}
    """Of number parameters, both ends allowed; a class's own come on top of those it inherits."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn's `clone` wants them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}")
            setattr(self, name, value)
        return self

    def check_numbers(self) -> None:
        """Raise `ParameterError` for a number outside of its limits, and for what is neither True nor False."""
        for one in fields(self):
            self._check(one.name, getattr(self, one.name), one.default)

    def _check(self, name: str, value: Any, default: Any) -> None:
        limits = [vars(kind)["limits"][name] for kind in type(self).__mro__ if name in vars(kind).get("limits", {})]
        if isinstance(default, bool):
            if not isinstance(value, bool | np.bool_):
                raise ParameterError(f"{name} must be True or False; got {short(value)}")
        elif limits and not (value is None and name in self.may_be_none):
            least, most = limits[0]
            if isinstance(default, int):
                whole_number(name, value, min=int(least), max=int(most))
            else:
                real_number(name, value, above=least, below=most, closed=True)

    may_be_none: ClassVar[tuple[str, ...]] = ("patience", "propensity_floor")
    """Numbers in whose place `None` means something."""

    def plain_parameters(self) -> dict[str, Any]:
        """Return the parameters as JSON can hold them; arrays and modules by their checksums."""
        return {name: _plain(value) for name, value in self.get_params().items()}

    def savable_parameters(self) -> dict[str, Any]:
        """Return the parameters that a file can hold; objects, such as modules of one's own, are left out."""
        unpacked = {
            name: value.item() if isinstance(value, np.generic) else value for name, value in self.get_params().items()
        }
        return {name: value for name, value in unpacked.items() if isinstance(value, _PLAIN)}

    def __repr__(self) -> str:
        defaults = {one.name: one.default for one in fields(self)}
        changed = [
            f"{name}={short(value)}"
            for name, value in self.get_params().items()
            if not (isinstance(value, _PLAIN) and value == defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


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
