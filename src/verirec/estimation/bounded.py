"""Estimates of what has a range, such as a share: values and intervals that stay inside of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from scipy.special import ndtri

from verirec.estimation.intervals import Estimate, normal_interval

_TINY: Final = 1e-12


def within_range(estimate: Estimate, most: float = 1.0) -> Estimate:
    r"""Bring an estimate of something between 0 and `most` into its range, with an interval that is never empty.

    Weighted and noise-corrected means can come out above 1 or below 0. The value moves to the nearest end: no truth
    inside of the range gets farther from it, so that value -+ z standard errors, cut to the range, covers it at
    least as often as before.

    Below the middle the error of a weighted mean of rare likes grows with the mean, and a symmetric interval lies too
    low. There the variance is taken as :math:`s^2 \theta (1 - \theta) / a (1 - a)`, a the larger of value and
    standard error s, and the interval is Wilson's: all :math:`\theta` that are within z of their own standard errors.
    Above it, noise and weights leave an error that does not vanish at the end, and the symmetric form holds.

    Examples
    --------
    >>> over = within_range(Estimate(1.045, 0.05, (0.947, 1.143)))
    >>> over.value, [round(end, 3) for end in over.interval], over.diagnostics
    (1.0, [0.902, 1.0], {'outside': 1.045})
    >>> [round(end, 3) for end in within_range(Estimate(0.02, 0.015, (-0.009, 0.049))).interval]
    [0.005, 0.075]
    """
    value = min(max(estimate.value, 0.0), most)
    share, error = value / most, estimate.standard_error / most
    low, high = normal_interval(share, error, estimate.confidence)
    if share < 0.5:
        low, high = _wilson(share, error, estimate.confidence)
    ends = max(low, 0.0) * most, min(high, 1.0) * most
    outside = {} if value == estimate.value else {"outside": estimate.value}
    return replace(estimate, value=value, interval=ends, diagnostics=estimate.diagnostics | outside)


def difference_within(estimate: Estimate, most: float = 1.0, *, normal: bool = False) -> Estimate:
    """Bring the difference of two numbers between 0 and `most` into its range, with its interval.

    With `normal` the interval is value -+ z standard errors, whatever it was.

    Examples
    --------
    >>> difference_within(Estimate(-0.8, 0.2, (-1.2, -0.4))).interval
    (-1.0, -0.4)
    """
    interval = normal_interval(estimate.value, estimate.standard_error, estimate.confidence)
    value, low, high = (
        min(max(part, -most), most) for part in (estimate.value, *(interval if normal else estimate.interval))
    )
    outside = {} if value == estimate.value else {"outside": estimate.value}
    return replace(estimate, value=value, interval=(low, high), diagnostics=estimate.diagnostics | outside)


def _wilson(share: float, error: float, confidence: float) -> tuple[float, float]:
    anchor = float(np.clip(max(share, error), _TINY, 0.5))
    width = float(ndtri((1 + confidence) / 2)) ** 2 * error**2 / (anchor * (1 - anchor))
    middle = (share + width / 2) / (1 + width)
    reach = float(np.sqrt(width * share * (1 - share) + width**2 / 4)) / (1 + width)
    return middle - reach, middle + reach
