"""What people truly prefer, and what they say of it: the same whenever they are asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues, Positions, cell_keys
from verirec.losses import NoiseRates
from verirec.randomness import cell_uniforms

Labels = npt.NDArray[np.int8]


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
    """

    preferences: CellValues
    noise_rates: NoiseRates
    label_key: np.uint64
    noise_key: np.uint64
    near_threshold: bool = False

    @classmethod
    def drawn(
        cls,
        preferences: CellValues,
        noise_rates: NoiseRates,
        random: np.random.Generator,
        *,
        near_threshold: bool = False,
    ) -> Opinions:
        """Draw the keys."""
        keys = random.integers(np.iinfo(np.uint64).max, size=2, dtype=np.uint64)
        return cls(preferences, noise_rates, keys[0], keys[1], near_threshold)

    def true_labels(self, users: Positions, items: Positions) -> Labels:
        """Return r* at positions that broadcast together."""
        return self._true_labels(self._keys(users, items), self.preferences.cells(users, items))

    def all(self, users: Positions, items: Positions) -> tuple[npt.NDArray[Any], Labels, Labels]:
        """Return gamma, r* and r at positions that broadcast together."""
        keys = self._keys(users, items)
        gamma = self.preferences.cells(users, items)
        true_labels = self._true_labels(keys, gamma)
        uniforms = cell_uniforms(self.noise_key, keys)
        if self.near_threshold:
            # A number below c times the rate is one that, divided by c, is below the rate.
            uniforms = uniforms / np.maximum(4 * gamma * (1 - gamma), 1e-12)
        return gamma, true_labels, self.noise_rates.observe(true_labels, uniforms)

    def _keys(self, users: Positions, items: Positions) -> npt.NDArray[np.uint64]:
        return cell_keys(users, items, self.preferences.shape[1]).view(np.uint64)

    def _true_labels(self, keys: npt.NDArray[np.uint64], gamma: npt.NDArray[Any]) -> Labels:
        return (cell_uniforms(self.label_key, keys) < gamma).astype(np.int8)
