r"""Forms that noise between levels may have, fitted by maximum likelihood to who said what of which true level.

With :math:`n_{jk}` rows of true level j that were logged at k the log-likelihood is :math:`\sum n_{jk} \log T_{jk}`.
Every form gives its matrix, the covariance of all entries, and how many numbers it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_HALF: Final = 0.5
"""Rows that are added to each possible cell for variances: none among few does not make a chance of 0 sure."""
MOST_LEVELS: Final = 20
"""Levels whose noise is estimated; a covariance of the entries has the fourth power of them."""
_STEP: Final = 1e-5
_ROUNDS: Final = 500


class FittedForm(NamedTuple):
    """A form of noise at its most likely.

    Parameters
    ----------
    matrix
        T, shape (K, K).
    covariance
        Of its entries, row by row, shape (K * K, K * K).
    numbers
        How many were fitted.
    """

    matrix: Array
    covariance: Array
    numbers: int

    def aic(self, counts: Array) -> float:
        """Return what the counts cost by this form (Akaike 1974); infinite if it says that they cannot be.

        Not BIC: with a few hundred rows it takes a form of one number for noise that has eight, which is biased.
        """
        likely = np.where(counts > 0, self.matrix, 1.0)
        if (likely <= 0).any():
            return float("inf")
        return float(2 * self.numbers - 2 * (counts * np.log(likely)).sum())


def free(counts: Array) -> FittedForm:
    """Take the shares of each true level as they are: K (K - 1) numbers."""
    return _by_rows(counts, np.ones(counts.shape, bool))


def band(counts: Array) -> FittedForm:
    """Take the shares of each true level among itself and its neighbours: 2 (K - 1) numbers."""
    return _by_rows(counts, _distances(len(counts)) <= 1)


def symmetric(counts: Array) -> FittedForm:
    r"""Let two levels be taken for each other as often, :math:`T_{jk} = T_{kj}`: K (K - 1)/2 numbers.

    At the maximum :math:`(n_{jk} + n_{kj})/T_{jk} = n_{jj}/T_{jj} + n_{kk}/T_{kk}`, which is solved by iteration.
    """
    size, between, kept = len(counts), counts + counts.T, np.diag(counts)
    matrix = between / np.maximum(np.add.outer(counts.sum(axis=1), counts.sum(axis=1)), 1e-12)
    for _ in range(_ROUNDS):
        np.fill_diagonal(matrix, 0.0)
        stays = np.maximum(1 - matrix.sum(axis=1), 1e-9)
        pull = kept / stays
        # Halfway in logs, which keeps the steps from overshooting.
        wanted = between / np.maximum(np.add.outer(pull, pull), 1e-12)
        matrix = np.sqrt(matrix * wanted)
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, 1 - matrix.sum(axis=1))
    rows, columns = np.triu_indices(size, 1)
    by_entry = np.zeros((len(rows), size, size))
    for number, (j, k) in enumerate(zip(rows, columns, strict=True)):
        by_entry[number, [j, k], [k, j]] = 1.0
        by_entry[number, [j, k], [j, k]] = -1.0
    return FittedForm(matrix, _covariance(by_entry.reshape(len(rows), -1), counts, matrix), len(rows))


def ordinal(counts: Array) -> FittedForm:
    r"""Let chances fall with the distance, :math:`T_{jk} \propto \phi^{|j - k|}`: one number for all levels."""
    away = _distances(len(counts)).astype(float)

    def at(phi: float) -> Array:
        return ordinal_matrix(len(counts), phi)

    low, high = 1e-9, 1 - 1e-9
    for _ in range(60):  # The mean distance rises with phi: halving finds the one that is there.
        middle = (low + high) / 2
        expected = counts.sum(axis=1) @ (at(middle) * away).sum(axis=1)
        low, high = (middle, high) if expected < (counts * away).sum() else (low, middle)
    step = min(_STEP, low / 2)
    slope = (at(low + step) - at(low - step)) / (2 * step)
    return FittedForm(at(low), _covariance(slope.reshape(1, -1), counts, at(low)), 1)


def ordinal_matrix(n_levels: int, phi: float) -> Array:
    r"""Return the matrix of chances that fall with the distance, :math:`T_{jk} \propto \phi^{|j - k|}`.

    Examples
    --------
    >>> ordinal_matrix(3, 0.5).round(3).tolist()
    [[0.571, 0.286, 0.143], [0.25, 0.5, 0.25], [0.143, 0.286, 0.571]]
    """
    odds = phi ** _distances(n_levels).astype(float)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def band_matrix(n_levels: int, rate: float) -> Array:
    """Return the matrix of `TransitionMatrix.band`, which may have no inverse."""
    beside = rate / 2 * (_distances(n_levels) == 1)
    return np.asarray(beside + np.diag(1 - beside.sum(axis=1)))


def _distances(n_levels: int) -> npt.NDArray[np.int64]:
    """Return how many levels apart each is from each."""
    return np.abs(np.subtract.outer(np.arange(n_levels), np.arange(n_levels)))


def _by_rows(counts: Array, possible: npt.NDArray[np.bool_]) -> FittedForm:
    size = len(counts)
    inside = np.where(possible, counts, 0.0)
    matrix = inside / np.maximum(inside.sum(axis=1, keepdims=True), 1e-12)
    covariance = np.zeros((size * size, size * size))
    for level in range(size):
        more = inside[level] + _HALF * possible[level]
        share = more / more.sum()
        at = slice(level * size, (level + 1) * size)
        covariance[at, at] = (np.diag(share) - np.outer(share, share)) / max(float(counts[level].sum()), 1.0)
    return FittedForm(matrix, covariance, int(possible.sum()) - size)


def _covariance(slopes: Array, counts: Array, matrix: Array) -> Array:
    """Return that of all entries, from their slopes by the form's numbers and the information that counts have."""
    more = (counts + _HALF).ravel()
    chances = (
        (counts.sum(axis=1, keepdims=True) * matrix + _HALF) / (counts.sum(axis=1, keepdims=True) + _HALF * len(counts))
    ).ravel()
    information = (slopes * (more / chances**2)) @ slopes.T
    return np.asarray(slopes.T @ np.linalg.pinv(information) @ slopes)


FORMS: Final[dict[str, Callable[[Array], FittedForm]]] = {
    "ordinal": ordinal,
    "band": band,
    "symmetric": symmetric,
    "free": free,
}
POOLED: Final = "ordinal"
"""The form whose number all levels share, so that a level without rows has its chances too."""
