"""How likely each user is to like each item: the truth of a simulated world."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from verirec.data.cells import CellValues, FactorCells, Positions

TASTE_SPREAD: Final = 1.2
USER_SPREAD: Final = 0.5
ITEM_SPREAD: Final = 0.8
LEVEL: Final = -0.5
"""Standard deviations of the three parts of a preference's logit, and its mean: about four in ten pairs are liked."""

SURE_BELOW: Final = 0.05
"""Under weak separability, probabilities this near to 0 or 1 become 0 or 1."""
NARROW: Final = (0.1, 0.9)
"""Without it they stay in this range, the paper's."""


class LowRankPreferences(CellValues):
    r"""Preference probabilities from a factor model.

    The logit is :math:`z = u \cdot v + c_u + d_i + m`. With weak separability (paper, Section 3.3),
    :math:`\gamma = (\sigma(z) - .05) / .9` cut to [0, 1], so that some pairs are surely liked and some surely not;
    without it :math:`\gamma = .1 + .8\,\sigma(z)`.
    """

    def __init__(
        self, n_users: int, n_items: int, rank: int, weak_separability: bool, random: np.random.Generator
    ) -> None:
        scale = (TASTE_SPREAD**2 / rank) ** 0.25
        self.logits = FactorCells(
            random.normal(0, scale, (n_users, rank)),
            random.normal(0, scale, (n_items, rank)),
            random.normal(0, USER_SPREAD, n_users),
            random.normal(0, ITEM_SPREAD, n_items),
            LEVEL,
        )
        self.shape = (n_users, n_items)
        self.weak_separability = weak_separability

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return gamma."""
        share = expit(self.logits.cells(users, items))
        if self.weak_separability:
            return np.asarray(np.clip((share - SURE_BELOW) / (1 - 2 * SURE_BELOW), 0, 1))
        low, high = NARROW
        return np.asarray(low + (high - low) * share)
