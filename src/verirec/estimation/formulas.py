r"""The estimators' formulas, one short function each.

Each takes the observed rows and the imputed errors, and gives the estimate with what every row contributes to it. The
same functions serve the noise-corrected estimators: there e is the surrogate error :math:`\tilde e`, and the imputed
errors are fitted to it.

First sums over the rows, which are the estimate; then, where it is asked for, what each row does to it. Both part by
part: rows are many, and what is worked out on the way never takes the room of all of them.

N is the number of all pairs, w = 1/p, and sums without a range are over the observed pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.estimation.expansion import Effects, InfluenceExpansion, Values
from verirec.estimation.level_selection import row_weights, snips_by_level, weighted_errors, weighted_slopes
from verirec.estimation.rows import Imputed, RowPart, Rows
from verirec.exceptions import PredictionError
from verirec.scratch import each

Array = npt.NDArray[np.float64]

_STEEPEST: Final = 50.0
"""Largest shift of a log-odds by the stable estimator's tilt, at the imputed error furthest from their mean."""
_MOST_STEPS: Final = 200


def naive(rows: Rows, _: Imputed) -> InfluenceExpansion:
    r""":math:`\sum e / n`: the log taken for the world (paper, Section 2.1). With corrected labels: OME."""
    found = _self_normalised(rows, lambda part: np.ones_like(part.errors))

    def effects(part: RowPart) -> Effects:
        return found.effects(part)._replace(p_slopes=np.zeros_like(part.errors))

    return replace(found, effects=effects, as_sample=True)


def eib(rows: Rows, imputed: Imputed) -> InfluenceExpansion:
    r""":math:`[\sum e + \sum_{D \setminus O} \hat e] / N`: errors where known, imputed elsewhere (paper, Section 2.2).

    Steck (2010), "Training and testing of recommender systems on data missing not at random". The imputed errors are
    most of it, so what each row does to them is in the interval; that they may all be wrong is not.
    """
    through = imputed.influence(rows, lambda part: np.zeros_like(part.difference))
    (total,) = rows.sums(lambda part: (part.errors.sum(),))

    def effects(part: RowPart) -> Effects:
        through_imputed, slopes = through(part)
        return Effects(
            (part.errors - imputed.of(part) + through_imputed) / rows.n_cells,
            (part.difference + slopes) / rows.n_cells,
            imputed.weight_slopes(part) * through_imputed / rows.n_cells,
        )

    return InfluenceExpansion(
        (total + imputed.elsewhere) / rows.n_cells,
        rows,
        effects,
        lambda part: (part.errors + through(part)[0]) / rows.n_cells,
        imputed=imputed,
        sampled=None if imputed.sampled is None else each(np.divide, imputed.sampled, rows.n_cells),
        label_slopes_exact=imputed.label_slopes_exact,
        facts=imputed.facts(),
    )


def ips(rows: Rows, _: Imputed) -> InfluenceExpansion:
    r""":math:`\sum w e / N`. Schnabel et al. (2016), "Recommendations as treatments"."""
    (total,) = rows.sums(lambda part: (weighted_errors(part).sum(),))

    def terms(part: RowPart) -> Array:
        return weighted_errors(part) / rows.n_cells

    def effects(part: RowPart) -> Effects:
        return Effects(terms(part), weighted_slopes(part) / rows.n_cells)

    return InfluenceExpansion(total / rows.n_cells, rows, effects, terms, label_slopes_exact=True)


def snips(rows: Rows, _: Imputed) -> InfluenceExpansion:
    r""":math:`\sum w e / \sum w`. Swaminathan and Joachims (2015), "The self-normalized estimator"."""
    if rows.pairs.by_level is not None:
        return snips_by_level(rows)
    return _self_normalised(rows, lambda part: part.weights)


def dr(rows: Rows, imputed: Imputed) -> InfluenceExpansion:
    r""":math:`[\sum_D \hat e + \sum w (e - \hat e)] / N`. Wang et al. (2019), "Doubly robust joint learning".

    Right if either the propensities or the imputed errors are (paper, Corollary 3.2). MRDR is the same with imputed
    errors fitted for the smallest variance: see `verirec.estimation.catalogue`.
    """
    return _doubly_robust(rows, imputed, imputed.of, imputed.elsewhere, imputed.facts())


def tdr(rows: Rows, imputed: Imputed) -> InfluenceExpansion:
    r"""DR with targeted errors :math:`\hat e + \epsilon (w - 1)`. Li et al. (2023), "TDR-CL", Section 3.

    :math:`\epsilon = \sum (w - 1)(e - \hat e) / \sum (w - 1)^2` makes the correction vanish up to its unweighted part.
    """

    def levers(part: RowPart) -> tuple[Any, ...]:
        lever = part.weights - 1
        return lever @ (part.errors - imputed.of(part)), lever @ lever, lever.sum()

    off, squares, of_rows = rows.sums(levers)
    epsilon = off / squares if squares > 0 else 0.0
    elsewhere = rows.pairs.inverse_total - rows.n_cells - of_rows
    facts = imputed.facts() | {"epsilon": epsilon, "extrapolated": epsilon * elsewhere / rows.n_cells}

    def targeted(part: RowPart) -> Array:
        return imputed.of(part) + epsilon * (part.weights - 1)

    found = _doubly_robust(rows, imputed, targeted, imputed.elsewhere + epsilon * elsewhere, facts)
    return replace(found, label_slopes_exact=False)


def sdr(rows: Rows, imputed: Imputed) -> InfluenceExpansion:
    r"""SNIPS with propensities held to a balance. Li et al. (2023), "StableDR", Section 4.

    The propensities' log-odds are tilted by :math:`\lambda (\hat e - \bar e)` so that
    :math:`\sum_D (1 - o w)(\hat e - \bar e) = 0`, :math:`\bar e` being the mean imputed error over all pairs: the
    weighted rows then have the mean that all pairs have. What is left of the sum is reported.
    """
    (of_rows,) = rows.sums(lambda part: (imputed.of(part).sum(),))
    mean = (of_rows + imputed.elsewhere) / rows.n_cells

    def centred(part: RowPart) -> Array:
        return imputed.of(part) - mean

    tilt, residual = _balance(rows, centred, mean)

    def weights(part: RowPart) -> Array:
        return 1 + (part.weights - 1) * np.exp(-tilt * centred(part))

    def sums(part: RowPart) -> tuple[Any, ...]:
        weighted, own = weights(part), centred(part)
        lever = (weighted - 1) * own
        return weighted.sum(), weighted @ part.errors, lever @ part.errors, lever.sum(), lever @ own

    mass, total, with_errors, alone, squares = rows.sums(sums)
    value = total / mass
    slope = (with_errors - value * alone) / squares if tilt != 0 and squares > 0 else 0.0

    def effects(part: RowPart) -> Effects:
        shares = weights(part) / mass
        return Effects(shares * (part.errors - value - slope * centred(part)), shares * part.difference)

    return InfluenceExpansion(
        value,
        rows,
        effects,
        lambda part: effects(part).influence + value * weights(part) / mass,
        lambda part: weights(part) / mass,
        sampled=None if imputed.sampled is None else each(lambda one: slope * one / rows.n_cells, imputed.sampled),
        facts=imputed.facts() | {"tilt": tilt, "balance_residual": residual},
    )


def _self_normalised(rows: Rows, weights: Values) -> InfluenceExpansion:
    def own(part: RowPart) -> Array:
        return weights(part) if part.importance is None else weights(part) * part.importance

    def sums(part: RowPart) -> tuple[Any, ...]:
        weighted = own(part)
        return weighted.sum(), weighted @ part.errors

    mass, total = rows.sums(sums)
    value = total / mass

    def effects(part: RowPart) -> Effects:
        shares = own(part) / mass
        return Effects(shares * (part.errors - value), shares * part.difference)

    return InfluenceExpansion(
        value,
        rows,
        effects,
        lambda part: own(part) / mass * part.errors,
        lambda part: own(part) / mass,
        label_slopes_exact=True,
    )


def _doubly_robust(
    rows: Rows, imputed: Imputed, imputed_of: Values, elsewhere: float, facts: dict[str, Any]
) -> InfluenceExpansion:
    def correction(part: RowPart) -> Array:
        return weighted_errors(part, imputed_of(part)) / rows.n_cells

    corrected, of_rows = rows.sums(lambda part: (correction(part).sum(), imputed_of(part).sum()))
    # Where the weights add up to the grid this nearly cancels; where they do not, the imputed errors are the estimate.
    through = imputed.influence(rows, lambda part: (1 - row_weights(part)) * part.difference)

    def effects(part: RowPart) -> Effects:
        through_imputed, slopes = through(part)
        through_imputed = through_imputed / rows.n_cells
        own, by_weight = correction(part), imputed.weight_slopes(part)
        return Effects(
            own + through_imputed,
            (weighted_slopes(part, imputed_of(part)) + slopes) / rows.n_cells,
            None if isinstance(by_weight, float) and by_weight == -1 else by_weight * through_imputed - own,
        )

    return InfluenceExpansion(
        (of_rows + elsewhere) / rows.n_cells + corrected,
        rows,
        effects,
        lambda part: effects(part).influence + imputed_of(part) / rows.n_cells,
        imputed=imputed,
        sampled=None if imputed.sampled is None else each(np.divide, imputed.sampled, rows.n_cells),
        label_slopes_exact=imputed.label_slopes_exact,
        facts=facts,
    )


def _balance(rows: Rows, centred: Values, mean: float) -> tuple[float, float]:
    r"""Find the tilt at which the weighted rows are centred, and what is left where there is none.

    What is left, :math:`\sum c\,(1 + (w - 1) e^{-\lambda c})`, falls with the tilt :math:`\lambda`: Newton's steps
    within the bracket that the signs give, and its middle where a step would leave it. Imputed errors that are all the
    same, but for rounding at their scale, need none.
    """

    def extent(part: RowPart) -> tuple[Any, ...]:
        own = centred(part)
        return np.abs(own).max(), np.abs(own + mean).max(), np.abs(own) @ part.weights

    found = np.array(rows.over_parts(extent))
    spread, scale = found[:, 0].max(), found[:, 1].max()
    if not np.isfinite(spread) or not np.isfinite(found[:, 2].sum()):
        raise PredictionError("imputed errors must be finite, and so must their weighted sum, for sdr")
    if spread <= 1e-9 * scale:
        return 0.0, 0.0

    def left(tilt: float) -> tuple[float, float]:
        """Return what is left, and minus its derivative."""

        def of(part: RowPart) -> tuple[Any, ...]:
            own = centred(part)
            lever = (part.weights - 1) * np.exp(-tilt * own)
            lever *= own
            return own.sum() + lever.sum(), lever @ own

        total, slope = rows.sums(of)
        return total, slope

    return _falling_root(left, float(_STEEPEST / spread), tolerance=1e-12 / float(spread))


def _falling_root(
    function: Callable[[float], tuple[float, float]], most: float, tolerance: float
) -> tuple[float, float]:
    """Find where a falling function is 0 between -most and most, from 0 on; where it is nowhere, the end nearest to it.

    Parameters
    ----------
    function
        Gives its value and minus its derivative.
    most, tolerance
        Where to look, and how exactly.

    Returns
    -------
    The point, and the value there.
    """
    low, high, at = -most, most, 0.0
    value, slope = function(at)
    for _ in range(_MOST_STEPS):
        low, high = (at, high) if value > 0 else (low, at)
        step = at + value / slope if slope > 0 else (most if value > 0 else -most)
        step = min(max(step, -most), most)
        if value == 0 or abs(step - at) <= tolerance + 1e-14 * abs(at):
            break
        # The ends themselves have not been looked at yet.
        inside = low < step < high or step == -most == low or step == most == high
        at = step if inside else (low + high) / 2
        value, slope = function(at)
    return at, value
