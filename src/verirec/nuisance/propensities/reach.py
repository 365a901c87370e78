r"""How far a log reaches: whether pairs that are hardly ever logged leave intervals their coverage.

The rows that a log happens to have cannot tell: where the dangerous ones were not drawn, the others look fine. The
propensities of all pairs can, before any label is seen. An estimate varies by :math:`\sum (o - p)\,g / p`, with g the
residuals. Take the k pairs with the smallest p as never logged, and the others as well represented. If the residuals
of the k differ from the others' by one standard deviation, which is about as much as labels allow, the estimate is off
by :math:`\delta_k` standard errors, and the skewness of what is left is :math:`\gamma_k`:

.. math:: \delta_k = k / \sqrt{V_k}, \quad V_k = \sum_{rest} (1 - p)/p, \quad
          \gamma_k = \sum_{rest} (1 - p)(1 - 2p)/p^2 / V_k^{3/2}

A 95% interval then holds the truth in about :math:`\Phi(z - \delta_k) - \Phi(-z - \delta_k) - .25\,\gamma_k^2`, whose
last term is that of the Edgeworth expansion of a studentised sum (Hall 1992, "The bootstrap and Edgeworth expansion",
Section 2.6). Any k will do, so the best counts: pairs without rows do no harm if they are few, rare ones none if enough
of them are logged.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

Array = npt.NDArray[np.float64]

_Z: Final = float(ndtri(0.975))
_BY_SKEWNESS: Final = float(2 * _Z * np.exp(-(_Z**2) / 2) / np.sqrt(2 * np.pi) * (_Z**4 + 2 * _Z**2 - 3) / 18)
"""What a squared skewness takes from the coverage of a 95% interval."""
_LEAST: Final = 1e-60
"""Of propensities and variances: their cubes are still numbers."""


class Reach(NamedTuple):
    """What propensities promise of intervals.

    Parameters
    ----------
    coverage
        How often a 95% interval holds the truth, if pairs that are hardly ever logged differ from the others.
    share, rows
        The rarest pairs that make up half of the variance: their share of all, and how many rows they have on average.
    """

    coverage: float
    share: float
    rows: float


def reach(propensities: Array, used: Array, counts: Array, *, unlike: float = 1.0) -> Reach:
    """Work out how far propensities reach.

    Parameters
    ----------
    propensities, used
        Of pairs that stand for all: before and after a floor, shape (n,) each. A floor leaves floored pairs with too
        little weight, which counts as so much of them never being logged.
    counts
        How many pairs each stands for, shape (n,).
    unlike
        By how many standard deviations of residuals rarely logged pairs may differ.

    Examples
    --------
    >>> common = np.full(10_000, 0.1)
    >>> round(reach(common, common, np.ones(10_000)).coverage, 3)
    0.95
    >>> p = np.append(common, np.full(1_000, 1e-5))
    >>> found = reach(p, p, np.ones(11_000))
    >>> round(found.coverage, 2), round(found.share, 2), round(found.rows, 2)
    (0.08, 0.05, 0.01)
    """
    order = np.argsort(used, kind="stable")
    p, raised, counts = propensities[order], np.maximum(used[order], _LEAST), counts[order]
    kept = p / raised
    variance = _from_here_on(counts * kept * (1 - p) / raised)
    third = _from_here_on(counts * kept * (1 - p) * (1 - 2 * p) / raised**2)
    lost = np.append(0.0, np.cumsum(counts))[:-1] + _from_here_on(counts * (1 - kept))
    spread = np.sqrt(np.maximum(variance, _LEAST))
    off = unlike * lost / spread
    coverage = ndtr(_Z - off) - ndtr(-_Z - off) - _BY_SKEWNESS * (third / spread**3) ** 2
    return Reach(float(max(coverage.max(), 0.0)), *_rarest(p, counts))


def _from_here_on(values: Array) -> Array:
    """Add up each value and those after it."""
    return np.asarray(np.cumsum(values[::-1])[::-1])


def _rarest(p: Array, counts: Array) -> tuple[float, float]:
    """Return share and expected rows of the rarest pairs that make up half of the variance without a floor."""
    order = np.argsort(p, kind="stable")
    p, counts = p[order], counts[order]
    variance = np.cumsum(counts * (1 - p) / np.maximum(p, _LEAST))
    half = int(np.searchsorted(variance, variance[-1] / 2)) + 1
    return float(counts[:half].sum() / counts.sum()), float(counts[:half] @ p[:half])
