"""From per-pair contributions to a value, a standard error and an interval: one place for all estimators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from verirec.checks import real_number
from verirec.exceptions import DataError

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """An estimate of the true prediction inaccuracy, with what is known of its error.

    Parameters
    ----------
    value, standard_error
        The point and its standard error.
    interval
        (low, high), at the level `confidence`.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    confidence: float = 0.95


def estimate_from_terms(numerators: Array, denominators: Array, *, confidence: float = 0.95) -> Estimate:
    r"""Give the ratio of two sums over pairs with its interval.

    :math:`v = \sum a / \sum b`, standard error :math:`\sqrt{\sum (a - v b)^2} / \sum b` (the delta method).

    Parameters
    ----------
    numerators, denominators
        Each pair's a and b, shape (n,).
    confidence
        Level of the interval, normal.

    Examples
    --------
    >>> estimate = estimate_from_terms(np.array([0.2, 0.4]), np.ones(2))
    >>> round(estimate.value, 3), round(estimate.standard_error, 4)
    (0.3, 0.0707)
    """
    level = real_number("confidence", confidence, above=0, below=1)
    for name, terms in (("numerators", numerators), ("denominators", denominators)):
        if terms.ndim != 1 or terms.shape != numerators.shape:
            raise DataError(f"{name} must be flat and as long as the other terms; got shape {terms.shape}")
        if not np.isfinite(terms).all():
            raise DataError(f"{name} must be finite; {int((~np.isfinite(terms)).sum()):,} of {terms.size:,} are not")
    if numerators.size < 2:
        raise DataError(f"a standard error needs the terms of at least 2 pairs; got {numerators.size}")
    total = float(denominators.sum())
    if total <= 0:
        raise DataError("the estimate's denominators add up to 0: no pair counts")
    value = float(numerators.sum()) / total
    error = float(np.sqrt(((numerators - value * denominators) ** 2).sum())) / total
    half_width = float(ndtri((1 + level) / 2)) * error
    return Estimate(value, error, (value - half_width, value + half_width), level)
