r"""Levels without bias from noise: what stands for :math:`1[r^* \ge c]` of each row, by its logged level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.losses.transitions import TransitionMatrix
from verirec.scratch import each

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CorrectedLevels:
    r"""K - 1 labels a row, :math:`\tilde y_c` with :math:`E[\tilde y_c \mid r^*] = 1[r^* \ge c]`.

    They depend on the row's logged level alone, so a table has them all.

    Parameters
    ----------
    places
        The table's row of each row, shape (n,).
    table
        The labels, shape (entries, K - 1).
    by_entry
        The table's derivative by each entry of the transition matrix, shape (rates, entries, K - 1); empty if it is
        known.
    covariance
        Of these entries, as it adds to that of noise; `None` if they are known.
    """

    places: npt.NDArray[Any]
    table: Array
    by_entry: Array
    covariance: Array | None = None

    @classmethod
    def of(
        cls, places: npt.NDArray[Any], n_levels: int, noise: TransitionMatrix | None, log: int | None = None
    ) -> CorrectedLevels:
        """Correct levels, given by their places from 0; without a matrix they stay as they are.

        Examples
        --------
        >>> noise = TransitionMatrix.band(3, 0.2)
        >>> CorrectedLevels.of(np.array([0, 2]), 3, noise).values.round(3).tolist()
        [[-0.127, 0.984], [0.016, 1.127]]
        """
        nothing = np.empty((0, n_levels, n_levels - 1))
        if noise is None:
            return cls(places, np.tri(n_levels, n_levels - 1, -1), nothing)
        covariance = noise.covariance_beside_noise(log)
        return cls(places, noise.steps, nothing if covariance is None else noise.step_slopes, covariance)

    @cached_property
    def values(self) -> Array:
        """The labels, shape (K - 1, n)."""
        return each(lambda places: self.table[places], self.places, columns=self.table.shape[1:]).T

    @property
    def slopes(self) -> Array:
        """What is uncertain of the table: empty if nothing is."""
        return self.by_entry

    def extended(self, true_places: npt.NDArray[Any]) -> CorrectedLevels:
        """Return these labels with true ones after them, which no noise changes."""
        size = self.table.shape[1] + 1
        more = np.zeros((len(self.by_entry), size, size - 1))
        return CorrectedLevels(
            np.concatenate([self.places, true_places.astype(np.int64) + len(self.table)]),
            np.concatenate([self.table, np.tri(size, size - 1, -1)]),
            np.concatenate([self.by_entry, more], axis=1),
            self.covariance,
        )

    def select(self, rows: npt.NDArray[Any]) -> CorrectedLevels:
        """Return some of the labels, given by a mask or by numbers."""
        return replace(self, places=self.places[rows])

    def noise_variance(self, at: slice, slopes: Array) -> Array:
        r"""Return an unbiased estimate of what noise adds to the variance of :math:`\sum_c b_c \tilde y_c`, shape (m,).

        With :math:`B_j = \sum_{c \le j} b_c` it is the square less what stands for :math:`B_{r^*}^2`; single ones may
        be negative.

        Parameters
        ----------
        at
            Which rows.
        slopes
            b, shape (K - 1, m).
        """
        values, reached = self.values[:, at], np.cumsum(slopes, axis=0)
        squares = np.diff(reached**2, axis=0, prepend=0.0)
        return np.asarray((slopes * values).sum(axis=0) ** 2 - (squares * values).sum(axis=0))

    def rate_gradient(self, at: slice, slopes: Array) -> Array:
        """Return the derivative by each entry of some rows' labels times their slopes (K - 1, m), added up."""
        places = self.places[at]
        sums = np.array([np.bincount(places, weights=column, minlength=len(self.table)) for column in slopes])
        return np.asarray(np.einsum("ekc,ck->e", self.by_entry, sums))

    def moved(self, step: float) -> Iterator[CorrectedLevels]:
        """Return, for each uncertain entry, the labels of one larger by a step."""
        for slopes in self.by_entry:
            yield replace(self, table=self.table + step * slopes)
