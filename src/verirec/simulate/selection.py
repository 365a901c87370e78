"""Which pairs get into the log: propensities that depend on what people prefer, and draws from them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from verirec.checks import real_number
from verirec.data.cells import CellValues, Positions, cell_keys
from verirec.data.grid import BLOCK_CELLS, Grid
from verirec.exceptions import ParameterError

ACTIVITY_SPREAD: Final = 0.5
POPULARITY_SPREAD: Final = 0.8
"""Standard deviations of how much users rate and of how often items get rated, in logits."""

_SAMPLED_CELLS: Final = 1 << 18

Pairs = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]


class LogisticSelection(CellValues):
    r"""Propensities :math:`p = \sigma(b + a_u + c_i + s\,\gamma)`.

    :math:`s` (the selectivity) is by how much the log-odds of being rated differ between what a user surely likes and
    what they surely do not; at 0 the user and the item alone decide. :math:`b` is set so that the mean of p over the
    grid (over a sample of 262,144 cells, if it is larger) is `observed`.
    """

    def __init__(
        self,
        preferences: CellValues,
        shape: tuple[int, int],
        observed: float,
        selectivity: float,
        random: np.random.Generator,
    ) -> None:
        wanted = real_number("observed", observed, above=0, below=1)
        self.selectivity = real_number("selectivity", selectivity, above=-20, below=20, closed=True)
        self.preferences = preferences
        self.shape = shape
        self.n_users, self.n_items = shape
        self.user_constants = random.normal(0, ACTIVITY_SPREAD, self.n_users)
        self.item_constants = random.normal(0, POPULARITY_SPREAD, self.n_items)
        self.intercept = 0.0
        self.intercept = self._intercept_for(wanted, random)

    def logits(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the log-odds of being observed."""
        logits = self.selectivity * self.preferences.cells(users, items)
        logits += self.user_constants[users]
        logits += self.item_constants[items]
        return np.asarray(logits + self.intercept)

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return p."""
        return np.asarray(expit(self.logits(users, items)))

    def _intercept_for(self, observed: float, random: np.random.Generator) -> float:
        """Solve mean p = observed: over the whole grid if that is small, else over a sample of cells."""
        from scipy.optimize import brentq  # Takes long to import, and only worlds need it.

        if self.n_users * self.n_items <= _SAMPLED_CELLS:
            logits = self.logits(np.arange(self.n_users)[:, None], np.arange(self.n_items)[None, :])
        else:
            logits = self.logits(
                random.integers(self.n_users, size=_SAMPLED_CELLS), random.integers(self.n_items, size=_SAMPLED_CELLS)
            )
        # Between what would do if every logit were the largest, and if every logit were the smallest.
        centre = float(logit(observed))
        low, high = centre - float(logits.max()) - 1, centre - float(logits.min()) + 1
        try:
            return float(brentq(lambda intercept: expit(logits + intercept).mean() - observed, low, high, xtol=1e-10))
        except ValueError:  # too near to 0 or 1 for a difference to show in floats
            raise ParameterError(f"observed={observed:g} is too near to 0 or 1 to be drawn") from None

    def draw(self, random: np.random.Generator) -> Pairs:
        r"""Draw the observed pairs, each cell independently with its p, in time that grows with their number.

        A Poisson process with intensity :math:`\lambda` hits a cell with probability :math:`1 - e^{-\lambda}`, which
        is p for :math:`\lambda = \log(1 + e^x)`, x the logit. Since :math:`\lambda \le e^x \le e^{b + a_u + c_i +
        \max(s, 0)}`, hits are drawn at that product rate, user by user, and kept with the ratio of the two. Where
        that would be more work than visiting every cell, every cell is visited.
        """
        log_user_rates = self.intercept + max(self.selectivity, 0.0) + self.user_constants
        item_rates = np.exp(self.item_constants)
        cumulated = np.cumsum(item_rates)
        hits_of_user = np.exp(np.minimum(log_user_rates, 50)) * cumulated[-1]
        if hits_of_user.sum() > self.n_users * self.n_items:
            return draw_by_cell(self, self.n_users, self.n_items, random)
        drawn = []
        for users in _chunks_of(hits_of_user, BLOCK_CELLS):
            hit_users = np.repeat(users, random.poisson(hits_of_user[users]))
            hit_items = np.searchsorted(cumulated, random.random(len(hit_users)) * cumulated[-1], side="right")
            hit_items = np.minimum(hit_items, self.n_items - 1)
            log_bound = log_user_rates[hit_users] + self.item_constants[hit_items]
            intensity = np.logaddexp(0, self.logits(hit_users, hit_items))
            kept = random.random(len(hit_users)) * np.exp(log_bound) < intensity
            drawn.append(np.unique(cell_keys(hit_users[kept], hit_items[kept], self.n_items)))
        keys = np.concatenate(drawn)
        return (keys // self.n_items).astype(np.int32), (keys % self.n_items).astype(np.int32)


def draw_by_cell(propensities: CellValues, n_users: int, n_items: int, random: np.random.Generator) -> Pairs:
    """Draw the observed pairs by visiting every cell, block by block."""
    users_drawn, items_drawn = [], []
    for users, items in Grid((n_users, n_items)).blocks():
        rows, columns = np.nonzero(random.random((len(users), len(items))) < propensities.block(users, items))
        users_drawn.append(users[rows].astype(np.int32))
        items_drawn.append(items[columns].astype(np.int32))
    return np.concatenate(users_drawn), np.concatenate(items_drawn)


def _chunks_of(work: npt.NDArray[np.float64], most: int) -> list[npt.NDArray[np.int64]]:
    """Part the users into runs of about `most` units of work each."""
    total = np.cumsum(work)
    borders = np.searchsorted(total, np.arange(most, total[-1], most))
    return [run for run in np.split(np.arange(len(work)), borders) if len(run)]
