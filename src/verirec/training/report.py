"""How a recommender was trained, as it is told and kept in files."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

import numpy as np

from verirec.formatting import short


@dataclass(frozen=True)
class TrainingReport:
    """How a recommender was trained.

    Parameters
    ----------
    method, parameters
        Name of the method, and those of its parameters that a file can hold, as they were then.
    solver
        "sweep" or "gradient".
    history
        One entry an epoch: losses, learnt noise rates, and the validation error where it was estimated.
    stopped_because
        Why training stopped.
    best_epoch
        The epoch whose state was kept.
    validation_error, validation_estimator
        Of that state, NaN without held-out rows, and the estimator that says it. It is of few rows, too rough to choose
        methods by: `verirec.estimate` on a held-out log has an interval.
    penalty_bound
        The factor penalty from which on the loss surely has a minimum.
    penalty_factors
        The factor penalty that was trained with: as given, or as found.
    start_size
        Of factors alone: what part of the size that fits the rows best they started at; `None` of all others.
    search
        What a search tried and chose, where the parameters were searched for: see `verirec.methods.Auto`.
    """

    method: str
    parameters: dict[str, Any]
    solver: str
    history: list[dict[str, Any]] = field(repr=False)
    stopped_because: str
    best_epoch: int
    validation_error: float
    validation_estimator: str | None
    penalty_bound: float
    penalty_factors: float
    start_size: float | None
    search: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def trained_with(self) -> dict[str, Any]:
        """Parameters of the method that trained the model: those that a search chose, where there was one."""
        found: dict[str, Any] = self.parameters if self.search is None else self.search["parameters"]
        return found

    @classmethod
    def read(cls, held: dict[str, Any]) -> Self:
        """Read back what a file holds of it; what is of another kind is a `TypeError`."""
        found = {one.name: held[one.name] for one in fields(cls)}
        if found["validation_error"] is None:
            found["validation_error"] = np.nan
        for name, value in found.items():
            if not isinstance(value, _KINDS[name]):
                raise TypeError(f"{name} is {short(value)}")
        report = cls(**found)
        if not isinstance(report.trained_with["correction"], str):
            raise TypeError("the parameters name no correction")
        return report


_NUMBER: Final = (int, float)
_MAYBE_NUMBER: Final = (int, float, type(None))
_KINDS: Final[dict[str, Any]] = {
    "method": str,
    "parameters": dict,
    "solver": str,
    "history": list,
    "stopped_because": str,
    "best_epoch": int,
    "validation_error": _NUMBER,
    "validation_estimator": (str, type(None)),
    "penalty_bound": _NUMBER,
    "penalty_factors": _NUMBER,
    "start_size": _MAYBE_NUMBER,
    "search": (dict, type(None)),
}
"""What the report's fields are in a file."""
