"""Logistic models of a few coefficients, of weighted rows whose labels may be corrected ones, outside of 0 and 1."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

Array = npt.NDArray[np.float64]

_STEPS: Final = 50
_TOLERANCE: Final = 1e-9
_SIZES: Final = tuple(0.5**halvings for halvings in range(40))


class SmallFit(NamedTuple):
    """Coefficients, shape (k,); the inverse of the penalised information, (k, k); and each row's probability, (n,)."""

    coefficients: Array
    inverse: Array
    liked: Array


def fit_small(
    features: Array,
    labels: Array,
    weights: Array,
    prior: Array,
    *,
    offset: Array | float = 0.0,
    penalty: Array | float = 1.0,
) -> SmallFit:
    r"""Solve :math:`\sum w\,\phi\,(y - \sigma(o + \phi^\top c)) = \lambda (c - c_0)` by Newton's method.

    Parameters
    ----------
    features, labels, weights
        Shapes (n, k), (n,) and (n,).
    prior
        :math:`c_0`, shape (k,): what coefficients are drawn to, so that they are finite.
    offset
        Logits to start from, shape (n,).
    penalty
        :math:`\lambda`, in rows; one for all, or one a coefficient, shape (k,).

    Examples
    --------
    >>> found = fit_small(np.ones((4, 1)), np.array([1.0, 1, 1, 0]), np.ones(4), np.zeros(1), penalty=1e-9)
    >>> found.coefficients.round(3).tolist(), float(found.liked[0].round(3))
    ([1.099], 0.75)
    """
    found, offset = prior.astype(np.float64), np.broadcast_to(offset, len(labels))

    def loss(coefficients: Array) -> float:
        logits, apart = offset + features @ coefficients, coefficients - prior
        return float(weights @ (np.logaddexp(0, logits) - labels * logits) + (penalty * apart) @ apart / 2)

    reached = loss(found)
    for _ in range(_STEPS):
        liked = expit(offset + features @ found)
        slope = features.T @ (weights * (labels - liked)) - penalty * (found - prior)
        bend = (features * (weights * liked * (1 - liked))[:, None]).T @ features + penalty * np.eye(len(prior))
        step = np.linalg.solve(bend, slope)
        if np.abs(step).max() < _TOLERANCE:
            break
        # Far from the optimum a whole step can lead away from it: half of it, and so on, until the loss falls.
        size = next((size for size in _SIZES if loss(found + size * step) < reached), 0.0)
        found = found + size * step
        reached = loss(found)
        if size == 0:
            break
    return SmallFit(found, np.linalg.inv(bend), liked)
