"""An audit's own shares of wrong labels, and whether a model of them agrees with the audit."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int8]

AT_LEAST: Final = 2.34
"""Wrong rows that a variance allows for: a 95% interval of none among n then reaches 3/n (the rule of three)."""


class DirectRates(NamedTuple):
    """(rho01, rho10), their variances, and how many audited rows of equal weight each rests on."""

    rates: tuple[float, float]
    variances: tuple[float, float]
    rows: tuple[float, float]


def direct_rates(labels: Labels, true_labels: Labels, weights: Array) -> DirectRates:
    r"""Take the weighted shares of wrong labels among true positives and among true negatives.

    A row moves the share of its class by :math:`u = w (e - \rho) / \sum w`, e = 1 if its label is wrong, and the
    variance is :math:`\sum u^2`.

    Examples
    --------
    >>> found = direct_rates(np.array([1, 1, 1, 0, 0]), np.array([1, 1, 0, 1, 0]), np.array([1.0, 1, 1, 2, 3]))
    >>> found.rates
    (0.5, 0.25)
    """
    found = [_share_of_wrong(labels[true_labels == truth] != truth, weights[true_labels == truth]) for truth in (1, 0)]
    rates, variances, rows = zip(*found, strict=True)
    return DirectRates(rates, variances, rows)


def _share_of_wrong(wrong: npt.NDArray[np.bool_], weights: Array) -> tuple[float, float, float]:
    """Return a rate, its variance, and the rows of equal weight that would have it."""
    shares = weights / weights.sum()
    rate = float(shares @ wrong)
    spread = float(((shares * (wrong - rate)) ** 2).sum())
    # Of one kind alone there is no spread: unequal weights are then worth fewer rows (Kish).
    rows = rate * (1 - rate) / spread if spread > 0 else 1 / float(shares @ shares)
    return rate, share_variance(rate * rows, rows), rows


def share_variance(wrong: float, total: float) -> float:
    """Return the variance of a share, with half a row more, and never so few that a share of 0 seems sure.

    Examples
    --------
    >>> round(1.96 * share_variance(0, 100) ** 0.5, 3)
    0.029
    """
    fewest = min(AT_LEAST, (total + 1) / 2)
    share = min(max(wrong + 0.5, fewest), total + 1 - fewest) / (total + 1)
    return share * (1 - share) / total


def weights_within(cells: npt.NDArray[np.int64], probabilities: Array) -> Array:
    """Return weights that undo an unequal choice within cells, each cell's adding up to what its rows are worth.

    Where pairs were chosen by their cell alone these are 1.

    Examples
    --------
    >>> weights_within(np.array([0, 0, 1]), np.array([0.5, 0.5, 0.1])).tolist()
    [1.0, 1.0, 1.0]
    >>> weights_within(np.array([0, 0, 0]), np.array([0.5, 0.5, 0.25])).round(3).tolist()
    [0.667, 0.667, 1.333]
    """
    weights = 1 / probabilities
    total, squares = np.bincount(cells, weights), np.bincount(cells, weights**2)
    return np.asarray(weights * (total / np.where(squares > 0, squares, 1.0))[cells])


def chance_of_audit(labels: Labels, true_labels: Labels, expected: Array, weights: Array) -> float:
    r"""Return how likely it is that an audit is so far from what a model of the noise expects of it.

    For each label, :math:`\sum w (r^* - q) / [\sum w^2 q (1 - q)]^{1/2}`, q the model's probability that a row with
    this label is truly positive; the larger of the two counts twice (Bonferroni). That the model was fitted to the same
    audit makes it the more careful.

    Parameters
    ----------
    labels, true_labels, expected, weights
        Of the audited rows; `expected` is q. Shape (m,).
    """
    most = 0.0
    for label in (0, 1):
        own = labels == label
        spread = float(weights[own] ** 2 @ (expected[own] * (1 - expected[own])))
        if spread > 0:
            most = max(most, abs(float(weights[own] @ (true_labels[own] - expected[own]))) / float(np.sqrt(spread)))
    return min(1.0, 4 * float(ndtr(-most)))
