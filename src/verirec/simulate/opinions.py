"""What people truly prefer, and what they say of it: the same whenever they are asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues, Positions, cell_keys
from verirec.losses import NoiseRates
from verirec.randomness import cell_uniforms

Labels = npt.NDArray[np.int8]

ORDINARY: Final = 0
CARELESS: Final = 1
BOT: Final = 2
_COINS: Final = 0.5
"""Share of a careless user's answers that are a coin's."""
_LIKED_BY_BOTS: Final = 0.9
"""How often a bot says that it likes something, whatever it is."""


@dataclass(frozen=True, eq=False)
class Opinions:
    r"""True labels :math:`r^* \sim Bern(\gamma)` and noisy ones, drawn cell by cell and never stored.

    Each cell has two uniform numbers of its own, one under each key: the true label is 1 where the first is below
    gamma, and the noisy one is its opposite where the second is below the noise rate of its class.

    Parameters
    ----------
    preferences
        gamma.
    noise_rates
        How often a true label is told as its opposite.
    label_key, noise_key
        Keys of the two streams.
    near_threshold
        Whether people err where they are undecided: a pair's rates are then :math:`4 \gamma (1 - \gamma)` of these.
    habits
        How each user answers, if not all do alike: `ORDINARY`, `CARELESS` or `BOT`, shape (n_users,).
    """

    preferences: CellValues
    noise_rates: NoiseRates
    label_key: np.uint64
    noise_key: np.uint64
    near_threshold: bool = False
    habits: Labels | None = None

    @classmethod
    def drawn(
        cls,
        preferences: CellValues,
        noise_rates: NoiseRates,
        random: np.random.Generator,
        *,
        near_threshold: bool = False,
        careless: float = 0.0,
        bots: float = 0.0,
    ) -> Opinions:
        """Draw the keys and, where some users answer otherwise than others, who they are."""
        keys = random.integers(np.iinfo(np.uint64).max, size=2, dtype=np.uint64)
        habits = None
        if careless or bots:
            ordinary = max(1 - careless - bots, 0.0)
            habits = random.choice(3, preferences.shape[0], p=[ordinary, careless, bots]).astype(np.int8)
        return cls(preferences, noise_rates, keys[0], keys[1], near_threshold, habits)

    def true_labels(self, users: Positions, items: Positions) -> Labels:
        """Return r* at positions that broadcast together."""
        return self._true_labels(self._keys(users, items), self.preferences.cells(users, items))

    def all(self, users: Positions, items: Positions) -> tuple[npt.NDArray[Any], Labels, Labels]:
        """Return gamma, r* and r at positions that broadcast together."""
        keys = self._keys(users, items)
        gamma = self.preferences.cells(users, items)
        true_labels = self._true_labels(keys, gamma)
        wrong = cell_uniforms(self.noise_key, keys) < self._wrong_chances(users, gamma, true_labels)
        return gamma, true_labels, np.asarray((true_labels == 1) ^ wrong, dtype=np.int8)

    def wrong_chances(self, users: Positions, items: Positions) -> npt.NDArray[np.float64]:
        """Return how likely what is said is to be wrong, given what is true, at positions that broadcast together."""
        gamma = self.preferences.cells(users, items)
        return self._wrong_chances(users, gamma, self._true_labels(self._keys(users, items), gamma))

    def _wrong_chances(self, users: Positions, gamma: npt.NDArray[Any], truth: Labels) -> npt.NDArray[np.float64]:
        rates = np.where(truth == 1, self.noise_rates.rho01, self.noise_rates.rho10)
        if self.near_threshold:
            rates = rates * (4 * gamma * (1 - gamma))
        if self.habits is None:
            return np.asarray(rates, np.float64)
        habit = self.habits[users]
        rates = np.where(habit == CARELESS, (1 - _COINS) * rates + _COINS / 2, rates)
        return np.asarray(np.where(habit == BOT, np.where(truth == 1, 1 - _LIKED_BY_BOTS, _LIKED_BY_BOTS), rates))

    def _keys(self, users: Positions, items: Positions) -> npt.NDArray[np.uint64]:
        return cell_keys(users, items, self.preferences.shape[1]).view(np.uint64)

    def _true_labels(self, keys: npt.NDArray[np.uint64], gamma: npt.NDArray[Any]) -> Labels:
        return (cell_uniforms(self.label_key, keys) < gamma).astype(np.int8)
