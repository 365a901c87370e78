"""Estimates by name, as people look at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from verirec.estimation.intervals import Estimate, EstimateRange
from verirec.exceptions import UnknownNameError

HEADLINES: Final = ("survey-ppi", "survey", "range", "audited-dr", "ome-dr", "dr")
"""Estimates to go by, where there are several: the first of them."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Estimates(Mapping[str, Estimate | EstimateRange]):
    """Estimates by the estimator's name.

    Parameters
    ----------
    values
        Name to estimate.
    of
        What they are estimates of, in words.
    """

    _values: dict[str, Any]
    of: str

    def __init__(self, values: dict[str, Any], of: str) -> None:
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "of", of)

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise UnknownNameError(f"no estimate {name!r}; there are: {', '.join(self._values)}")
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def headline(self) -> str:
        """The name of the estimate to go by: the one that rests most on labels and least on models.

        A range over what selection may be comes after a survey and before all that trusts propensities.
        """
        best = [name for name in HEADLINES if name in self._values]
        best.sort(key=lambda name: not (name.startswith("survey") or self._over_selection(name)))
        return best[0] if best else list(self._values)[-1]

    def _over_selection(self, name: str) -> bool:
        one = self._values[name]
        return isinstance(one, EstimateRange) and "selection" in one.diagnostics

    def __repr__(self) -> str:
        return f"Estimates of {self.of}\n{self.to_frame().to_string(index=False)}"

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False))

    def to_frame(self) -> Any:
        """Return one row an estimator, as a pandas frame; a range has its ends in place of a value."""
        import pandas as pd

        rows = []
        for name, one in self._values.items():
            of_range = isinstance(one, EstimateRange)
            rows.append(
                {
                    "estimator": name,
                    "value": np.nan if of_range else one.value,
                    "standard_error": np.nan if of_range else one.standard_error,
                    "low": one.interval[0],
                    "high": one.interval[1],
                    "range_low": one.range[0] if of_range else np.nan,
                    "range_high": one.range[1] if of_range else np.nan,
                }
            )
        frame = pd.DataFrame(rows)
        ranges = any(isinstance(one, EstimateRange) for one in self._values.values())
        return frame if ranges else frame.drop(columns=["range_low", "range_high"])
