r"""The estimators' formulas, one short function each.

Each takes the observed rows and the imputed errors, and gives the estimate with what every row contributes to it. The
same functions serve the noise-corrected estimators: there e is the surrogate error :math:`\tilde e`, and the imputed
errors are fitted to it.

N is the number of all pairs, w = 1/p, and sums without a range are over the observed pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.estimation.rows import Imputed, Rows
from verirec.exceptions import PredictionError

Array = npt.NDArray[np.float64]

_STEEPEST: Final = 50.0
"""Largest shift of a log-odds by the stable estimator's tilt, at the imputed error furthest from their mean."""


class AuditVariance(NamedTuple):
    """Variances of an estimate that an audit's true labels are in: of who rates what, and of who was audited."""

    selection: float
    audit: float


@dataclass(frozen=True, eq=False)
class InfluenceExpansion:
    r"""An estimate, and its first-order dependence on each observed pair.

    Parameters
    ----------
    value
        The estimate.
    influence
        What each row changes by being observed, shape (n,): the estimate varies with
        :math:`\sum (o - p) \cdot` influence.
    label_slopes
        Derivative by each row's (corrected) label.
    p_slopes
        Derivative by the log of each row's propensity.
    terms
        Gives each row's part of the numerator, divided by the denominator: a bootstrap alone asks for it.
    shares
        Each row's part of the denominator, adding up to 1; `None` where the denominator is the number of cells.
    imputed
        The imputed errors whose sum over the other pairs is in the numerator, if any.
    sampled
        What each sampled unobserved pair adds to the estimate, if not all were visited.
    label_slopes_exact
        Whether `label_slopes` are all that the labels do; not so where a tilt or a targeted step depends on them too.
    as_sample
        True where the rows are taken for a simple random sample: the interval knows nothing of propensities.
    audit
        What an audit's true labels leave of the variance, where they are in the estimate.
    facts
        What to report besides.
    """

    value: float
    influence: Array
    label_slopes: Array
    p_slopes: Array
    terms: Callable[[], Array]
    shares: Array | None = None
    imputed: Imputed | None = None
    sampled: Array | None = None
    label_slopes_exact: bool = False
    as_sample: bool = False
    audit: AuditVariance | None = None
    facts: dict[str, float] = field(default_factory=dict)

    @property
    def sample_variance(self) -> float:
        """What having visited a sample of the unobserved pairs adds to the variance."""
        few = self.sampled is None or len(self.sampled) < 2
        return 0.0 if few or self.sampled is None else float(self.sampled.var(ddof=1)) * len(self.sampled)


def naive(rows: Rows, _: Imputed) -> InfluenceExpansion:
    r""":math:`\sum e / n`: the log taken for the world (paper, Section 2.1). With corrected labels: OME."""
    equal = np.ones(len(rows.log))
    return replace(_self_normalised(rows, equal), p_slopes=np.zeros_like(equal), as_sample=True)


def eib(rows: Rows, imputed: Imputed) -> InfluenceExpansion:
    r""":math:`[\sum e + \sum_{D \setminus O} \hat e] / N`: errors where known, imputed elsewhere (paper, Section 2.2).

    Steck (2010), "Training and testing of recommender systems on data missing not at random". The imputed errors are
    most of it, so what each row does to them is in the interval; that they may all be wrong is not.
    """
    through_imputed, slopes = imputed.influence(np.zeros_like(rows.errors))
    value = (float(rows.errors.sum()) + imputed.elsewhere) / rows.n_cells
    return InfluenceExpansion(
        value,
        (rows.errors - imputed.rows + through_imputed) / rows.n_cells,
        (rows.difference + slopes) / rows.n_cells,
        imputed.weight_slopes * through_imputed / rows.n_cells,
        lambda: (rows.errors + through_imputed) / rows.n_cells,
        imputed=imputed,
        sampled=None if imputed.sampled is None else imputed.sampled / rows.n_cells,
        label_slopes_exact=imputed.label_slopes_exact,
        facts=imputed.facts(),
    )


def ips(rows: Rows, _: Imputed) -> InfluenceExpansion:
    r""":math:`\sum w e / N`. Schnabel et al. (2016), "Recommendations as treatments"."""
    terms = rows.weights * rows.errors / rows.n_cells
    slopes = rows.weights * rows.difference / rows.n_cells
    return InfluenceExpansion(float(terms.sum()), terms, slopes, -terms, lambda: terms, label_slopes_exact=True)


def snips(rows: Rows, _: Imputed) -> InfluenceExpansion:
    r""":math:`\sum w e / \sum w`. Swaminathan and Joachims (2015), "The self-normalized estimator"."""
    return _self_normalised(rows, rows.weights)


def dr(rows: Rows, imputed: Imputed) -> InfluenceExpansion:
    r""":math:`[\sum_D \hat e + \sum w (e - \hat e)] / N`. Wang et al. (2019), "Doubly robust joint learning".

    Right if either the propensities or the imputed errors are (paper, Corollary 3.2). MRDR is the same with imputed
    errors fitted for the smallest variance: see `verirec.estimation.catalogue`.
    """
    return _doubly_robust(rows, imputed, imputed.rows, imputed.elsewhere, imputed.facts())


def tdr(rows: Rows, imputed: Imputed) -> InfluenceExpansion:
    r"""DR with targeted errors :math:`\hat e + \epsilon (w - 1)`. Li et al. (2023), "TDR-CL", Section 3.

    :math:`\epsilon = \sum (w - 1)(e - \hat e) / \sum (w - 1)^2` makes the correction vanish up to its unweighted part.
    """
    lever = rows.weights - 1
    squares = float(lever @ lever)
    epsilon = float(lever @ (rows.errors - imputed.rows)) / squares if squares > 0 else 0.0
    targeted = imputed.rows + epsilon * lever
    lever_elsewhere = rows.pairs.inverse_total - rows.n_cells - float(lever.sum())
    facts = imputed.facts() | {"epsilon": epsilon, "extrapolated": epsilon * lever_elsewhere / rows.n_cells}
    found = _doubly_robust(rows, imputed, targeted, imputed.elsewhere + epsilon * lever_elsewhere, facts)
    return replace(found, label_slopes_exact=False)


def sdr(rows: Rows, imputed: Imputed) -> InfluenceExpansion:
    r"""SNIPS with propensities held to a balance. Li et al. (2023), "StableDR", Section 4.

    The propensities' log-odds are tilted by :math:`\lambda (\hat e - \bar e)` so that
    :math:`\sum_D (1 - o w)(\hat e - \bar e) = 0`, :math:`\bar e` being the mean imputed error over all pairs: the
    weighted rows then have the mean that all pairs have. What is left of the sum is reported.
    """
    mean = (float(imputed.rows.sum()) + imputed.elsewhere) / rows.n_cells
    centred = imputed.rows - mean
    tilt, residual = _balance(rows.weights - 1, centred, float(np.abs(imputed.rows).max()))
    weights = 1 + (rows.weights - 1) * np.exp(-tilt * centred)
    plain = _self_normalised(rows, weights)
    lever = (weights - 1) * centred
    squares = float(lever @ centred)
    slope = float(lever @ (rows.errors - plain.value)) / squares if tilt != 0 and squares > 0 else 0.0
    shares = _shares(weights)
    influence = plain.influence - slope * centred * shares
    return InfluenceExpansion(
        plain.value,
        influence,
        plain.label_slopes,
        -influence,
        lambda: influence + plain.value * shares,
        shares,
        sampled=None if imputed.sampled is None else slope * imputed.sampled / rows.n_cells,
        facts=imputed.facts() | {"tilt": tilt, "balance_residual": residual},
    )


def _shares(weights: Array) -> Array:
    """Scale weights to add up to 1."""
    return np.asarray(weights / weights.sum())


def _self_normalised(rows: Rows, weights: Array) -> InfluenceExpansion:
    own = weights if rows.log.weights is None else weights * (rows.log.weights / rows.log.weights.max())
    shares = _shares(own)
    value = float(shares @ rows.errors)
    influence = shares * (rows.errors - value)
    slopes = shares * rows.difference
    return InfluenceExpansion(
        value, influence, slopes, -influence, lambda: shares * rows.errors, shares, label_slopes_exact=True
    )


def _doubly_robust(
    rows: Rows, imputed: Imputed, imputed_rows: Array, elsewhere: float, facts: dict[str, float]
) -> InfluenceExpansion:
    correction = rows.weights * (rows.errors - imputed_rows) / rows.n_cells
    # Where the weights add up to the grid this nearly cancels; where they do not, the imputed errors are the estimate.
    through_imputed, slopes = imputed.influence((1 - rows.weights) * rows.difference)
    through = through_imputed / rows.n_cells
    value = (float(imputed_rows.sum()) + elsewhere) / rows.n_cells + float(correction.sum())
    return InfluenceExpansion(
        value,
        correction + through,
        (rows.weights * rows.difference + slopes) / rows.n_cells,
        imputed.weight_slopes * through - correction,
        lambda: correction + through + imputed_rows / rows.n_cells,
        imputed=imputed,
        sampled=None if imputed.sampled is None else imputed.sampled / rows.n_cells,
        label_slopes_exact=imputed.label_slopes_exact,
        facts=facts,
    )


def _balance(lever: Array, centred: Array, scale: float) -> tuple[float, float]:
    """Find the tilt at which the weighted rows are centred, and what is left where there is none.

    Imputed errors that are all the same, but for rounding at their `scale`, need none.
    """
    spread = float(np.abs(centred).max())
    if not np.isfinite(spread) or not np.isfinite(float(np.abs(centred) @ (1 + lever))):
        raise PredictionError("imputed errors must be finite, and so must their weighted sum, for sdr")
    if spread <= 1e-9 * scale:
        return 0.0, 0.0

    def imbalance(tilt: float) -> float:
        return float(centred @ (1 + lever * np.exp(-tilt * centred)))

    most = _STEEPEST / spread
    low, high = imbalance(-most), imbalance(most)
    if low <= 0 or high >= 0:
        tilt = -most if abs(low) < abs(high) else most
        return (0.0, imbalance(0.0)) if abs(imbalance(0.0)) < abs(imbalance(tilt)) else (tilt, imbalance(tilt))
    from scipy.optimize import brentq  # Takes long to import, and only sdr needs it.

    tilt = float(brentq(imbalance, -most, most, xtol=1e-12 / spread, rtol=1e-14))
    return tilt, imbalance(tilt)
