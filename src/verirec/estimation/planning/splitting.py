"""A budget of true labels split between logged and random pairs, by what they buy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.estimation.planning.logged_pairs import LoggedDesign

Array = npt.NDArray[np.float64]

_MOST: Final = 1e18
"""Pairs, whatever the width: more than any grid has."""
_PARTS: Final = 20
"""Splits that are tried: every twentieth."""


class Split(NamedTuple):
    """How many of each kind, and the variance of each number asked for."""

    logged: int
    random: int
    variances: Array


@dataclass(frozen=True, eq=False)
class Prices:
    """What labels of either kind buy.

    Parameters
    ----------
    random
        Variance of each number asked for, times the number of random pairs, shape (numbers,).
    logged
        What logged pairs tell; `None` where they settle nothing.
    rows
        How many logged pairs there are.
    """

    random: Array
    logged: LoggedDesign | None
    rows: int

    def split(self, budget: int) -> Split:
        """Split a budget so that the least known number is known best; both kinds' answers are weighed by precision."""
        counts = {0}
        if self.logged is not None:
            counts |= {min(budget * part // _PARTS, self.rows) for part in range(1, _PARTS + 1)}
        return min((self._at(count, budget - count) for count in sorted(counts)), key=lambda one: one.variances.max())

    def _at(self, logged: int, random: int) -> Split:
        variances = self.random / random if random else np.full(len(self.random), np.inf)
        if self.logged is not None and logged:
            variances = 1 / (1 / np.maximum(variances, 1e-300) + 1 / np.maximum(self.logged.variances(logged), 1e-300))
        return Split(logged, random, variances)

    def reach(self, wanted: float) -> Split:
        """Find the smallest budget at which no number's variance is above what is wanted."""
        low, high = 0, int(np.ceil(min(self.random.max() / max(wanted, 1e-300), _MOST)))
        if self.logged is None:
            return self.split(high)
        while high - low > max(high // 200, 1):
            middle = (low + high) // 2
            low, high = (low, middle) if self.split(middle).variances.max() <= wanted else (middle, high)
        return self.split(high)
