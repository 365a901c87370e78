"""Root mean squared errors: what is estimated is the mean of squares, and the delta method takes its root."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from verirec.estimation.expansion import Effects, InfluenceExpansion
from verirec.estimation.intervals import Estimate, EstimateRange
from verirec.estimation.rows import RowPart
from verirec.exceptions import MisfitWarning, ParameterError, warn_caller
from verirec.losses import AnyRegion, LossLike

_TINY: Final = 1e-12
RMSE: Final = "rmse"
_LOSSES: Final[dict[str, LossLike]] = {RMSE: "squared", "mae": "absolute"}


def pointwise(loss: Any) -> tuple[LossLike, bool]:
    """Return the loss to average, and whether to take the root of its mean.

    Examples
    --------
    >>> pointwise("rmse"), pointwise("mae"), pointwise("log")
    (('squared', True), ('absolute', False), ('log', False))
    """
    named = isinstance(loss, str) and loss in _LOSSES
    return (_LOSSES[loss] if named else loss), named and loss == RMSE


def refuse_ranges(selection: Any, noise: Any) -> None:
    """Raise where a difference of roots would be a range."""
    if selection is not None or isinstance(noise, AnyRegion):
        raise ParameterError("a difference of rmse has no range over selection or noise rates: take loss='squared'")


def root_of(value: float) -> float:
    """Return the root of an estimated mean of squares; one below 0, which noise correction can give, counts as 0."""
    return float(np.sqrt(max(value, 0.0)))


def rooted(estimate: Estimate | EstimateRange) -> Estimate | EstimateRange:
    r"""Turn an estimate of a mean of squares m into one of its root, with standard error :math:`s / (2 \sqrt m)`.

    The interval has the roots of the ends, so that it holds the truth as often as that of m does. See `slope_at` for m
    near 0.

    Examples
    --------
    >>> found = rooted(Estimate(4.0, 0.2, (3.61, 4.41)))
    >>> found.value, found.standard_error, [round(end, 3) for end in found.interval]
    (2.0, 0.05, [1.9, 2.1])
    """
    low, high = estimate.interval
    ends = root_of(low), root_of(high)
    if isinstance(estimate, EstimateRange):
        inside = root_of(estimate.range[0]), root_of(estimate.range[1])
        return replace(estimate, range=inside, interval=ends)
    slope = slope_at(estimate)
    facts = estimate.diagnostics | {"mean_of_squares": estimate.value}
    return replace(
        estimate,
        value=root_of(estimate.value),
        standard_error=slope * estimate.standard_error,
        interval=ends,
        diagnostics=facts,
        contributions=None if estimate.contributions is None else slope * estimate.contributions,
    )


def slope_at(mean: Estimate) -> float:
    r"""Return the derivative of the root of a mean of squares m, :math:`1 / (2 \sqrt m)`.

    Within a standard error s of 0, or below, that is no guide to the root s further on, and may be as large as one
    likes. The slope from m, or 0, to there takes its place, and a `MisfitWarning` says so.

    Examples
    --------
    >>> slope_at(Estimate(4.0, 0.2, (3.61, 4.41)))
    0.25
    """
    root, error = root_of(mean.value), mean.standard_error
    if mean.value > error or error == 0:
        return 1 / (2 * max(root, _TINY))
    warn_caller(
        f"a mean of squared errors is {mean.value:.3g}, with a standard error of {error:.3g}: so near to 0 the "
        "standard error of its root is rough, as is the interval of a difference of roots; take loss='squared'",
        MisfitWarning,
    )
    return 1 / (root + root_of(max(mean.value, 0.0) + error))


def scaled(found: InfluenceExpansion, factor: float) -> InfluenceExpansion:
    """Multiply an estimate, and all that rows do to it."""

    def effects(part: RowPart) -> Effects:
        own = found.effects(part)
        by_p = None if own.p_slopes is None else factor * own.p_slopes
        return Effects(factor * own.influence, factor * own.label_slopes, by_p)

    sampled = None if found.sampled is None else factor * found.sampled
    return replace(found, value=factor * found.value, effects=effects, sampled=sampled)


def root_difference(linear: Estimate, first: float, second: float) -> Estimate:
    """Put the difference of the roots of two means of squares in the place of what is linear in these.

    Parameters
    ----------
    linear
        Of the difference of both, each times its `slope_at`.
    first, second
        The means of squares.
    """
    value = root_of(first) - root_of(second)
    low, high = linear.interval
    by = value - linear.value
    return replace(linear, value=value, interval=(low + by, high + by))
