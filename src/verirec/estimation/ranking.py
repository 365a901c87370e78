r"""How well a recommender ranks, corrected for selection and noise.

DCG and its relatives are linear in the labels: with :math:`l(f, 1)` the discount of a pair's place and
:math:`l(f, 0) = 0`, DCG is a mean loss like any other, and the doubly robust estimator serves it as it is. AUC is a
ratio of two sums over pairs of pairs, each linear in either label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues, Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import totals
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimation.formulas import InfluenceExpansion, dr
from verirec.estimation.inputs import FEW, Rates, checked_rates, judgeable, refuse_weights, warn_of_unweighted_audit
from verirec.estimation.intervals import Estimate, EstimateRange, checked_confidence, normal_estimate
from verirec.estimation.problem import rate_gradient
from verirec.estimation.results import Estimates
from verirec.estimation.rows import LabelledErrors, LoggedPairs, Rows
from verirec.estimation.unobserved import Block, Unobserved, over_grid
from verirec.exceptions import MisfitWarning, NoiseRateError, OverlapWarning, PredictionError, warn_caller
from verirec.losses import NoiseRegion
from verirec.metrics.ranking import checked_depths
from verirec.nuisance.imputation import impute_constant
from verirec.nuisance.propensities import as_propensities

Array = npt.NDArray[np.float64]


def estimate_ranking(
    scores: PredictionsLike,
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: Rates | NoiseRegion | None = None,
    k: int | Iterable[int] = 5,
    confidence: float = 0.95,
) -> Estimates:
    r"""Estimate how well scores rank all items for all users by what people truly prefer.

    Over the whole grid, rated or not, each user's items are ranked by score; where scores tie, a place is shared.

    - ``auc``: the chance that a liked pair scores above one that is not, over all pairs; self-normalised inverse
      propensities, a pair never compared with itself.
    - ``dcg@k``: mean over users of :math:`\sum_{j \le k} r^*_j / \log_2(1 + j)`; ``ndcg@k``: divided by its largest
      value, that of a user who likes k items or more; ``precision@k``: mean share of liked items among the k best.
    - ``recall@k``: share of all liked pairs that are among their user's k best. (A mean of users' own recalls would
      need each user's number of liked items, which no log tells.)

    All but AUC are doubly robust with one imputed label for all pairs.

    Parameters
    ----------
    scores
        As `estimate`'s predictions, for all pairs; only their order counts.
    log, propensities, noise_rates, confidence
        As in `estimate`. Without noise rates nothing is corrected for noise.
    k
        Depth, or several.

    Examples
    --------
    >>> from verirec import NoiseRates, simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> p = world.propensity_values
    >>> result = estimate_ranking(world.preferences, world.log, propensities=p, noise_rates=NoiseRates(0.2, 0.1))
    >>> from verirec.metrics import auc
    >>> truth = auc(world.true_labels.ravel(), world.preferences.ravel())
    >>> bool(result["auc"].interval[0] < truth < result["auc"].interval[1])
    True
    """
    level, depths = checked_confidence(confidence), checked_depths(k)
    values = as_predictions(scores, judgeable(log).n_users, log.n_items)
    refuse_weights(log, ["ranking estimates"])
    rates = None if isinstance(noise_rates, NoiseRegion) else checked_rates(noise_rates, log)
    fitted = as_propensities(propensities, log)
    pairs, nothing = LoggedPairs(log, fitted), np.zeros(len(log))
    own = values.at(log.users, log.items)
    above, tied = places(values, log, max(depths))
    formulas: dict[str, Callable[[Rows], InfluenceExpansion]] = {"auc": lambda given: _auc(given, own)}
    for depth in depths:
        formulas |= _at_depth(depth, above, tied)
    facts = {"rows": len(log), "cells": log.n_cells, "floored": fitted.count_floored(log)}

    def at(rates: Rates | None) -> dict[str, Estimate]:
        rows = Rows(pairs, nothing, nothing, pairs.labels(rates))
        _refuse_one_class(rows)
        results = {}
        for name, formula in formulas.items():
            linearised = formula(rows)
            gradient = rate_gradient(formula, rows, linearised)
            results[name] = normal_estimate(linearised, rows, gradient, level, facts)
        return results

    in_top = int(np.isfinite(above).sum())
    if in_top < FEW:
        warn_caller(
            f"only {in_top} logged pairs are among their users' {max(depths)} best: what is said of these places rests "
            "on them, and its intervals are not to be trusted",
            OverlapWarning,
        )
    what = "how well all items are ranked"
    if isinstance(noise_rates, NoiseRegion):
        return Estimates(_over_region(at, noise_rates), what)
    found = at(rates)
    warn_of_unweighted_audit(fitted, rates)
    _warn_if_impossible(found)
    return Estimates(found, what)


def _over_region(at: Callable[[Rates], dict[str, Estimate]], region: NoiseRegion) -> dict[str, EstimateRange]:
    """Look all over the region: ratios may peak inside. All but DCG are shares."""
    points = []
    for rates in region.lattice:
        try:
            points.append(at(rates))
        except NoiseRateError:
            # Rates under which nobody, or everybody, would like everything are not those of this log.
            continue
    if not points:
        raise NoiseRateError("no noise rates of this region fit the log: nobody, or everybody, would like everything")
    ranges = {}
    for name in points[0]:
        most = np.inf if name.startswith("dcg") else 1.0
        ranges[name] = EstimateRange.over([point[name] for point in points], least=0.0, most=most)
    return ranges


def _refuse_one_class(rows: Rows) -> None:
    share = float(rows.weights @ rows.labels.values) / float(rows.weights.sum())
    if not 1e-9 < share < 1 - 1e-9:
        raise NoiseRateError(
            f"with these noise rates a share of {share:.3g} of all pairs would be liked: they do not fit this log"
        )


def _warn_if_impossible(results: dict[str, Estimate]) -> None:
    for name, one in results.items():
        if not name.startswith("dcg") and (one.interval[0] > 1 or one.interval[1] < 0):
            warn_caller(
                f"{name} is estimated at {one.value:.3g}, outside of 0 and 1: the propensities, or the noise rates, do "
                "not fit this log (are pairs logged more often the more they are liked?)",
                MisfitWarning,
            )
            return


def places(values: CellValues, log: FeedbackLog, depth: int) -> tuple[Array, Array]:
    """Return for each row how many of the user's items score higher, and how many the same, itself included.

    Rows that are not among the user's `depth` best have an infinite number above them.
    """
    n_items = values.shape[1]
    above, tied = np.full(len(log), np.inf), np.ones(len(log))
    order = np.argsort(log.users, kind="stable")
    # Only users with rows are ranked: the others' places are not asked for.
    present, starts = np.unique(log.users[order], return_index=True)
    starts = np.append(starts, len(log))
    last = max(n_items - depth, 0)

    def visit(block: Block) -> tuple[Positions, Array, Array]:
        part = block[0]
        whole = values.block(present[part], np.arange(n_items))
        if not np.isfinite(whole.sum()):
            raise PredictionError(f"scores must be finite; {int((~np.isfinite(whole)).sum()):,} of a block are not")
        threshold = np.partition(whole, last, axis=1)[:, last]
        rows = order[starts[part[0]] : starts[part[-1] + 1]]
        line = np.searchsorted(present[part], log.users[rows])
        # From the same product as the others: the score of a pair by itself may be rounded otherwise.
        own = whole[line, log.items[rows]]
        among_best = own >= threshold[line]
        rows, line, own = rows[among_best], line[among_best], own[among_best]
        higher, same = np.empty(len(rows)), np.empty(len(rows))
        for place, score in enumerate(own):
            scores = whole[line[place]]
            higher[place], same[place] = np.count_nonzero(scores > score), np.count_nonzero(scores == score)
        return rows, higher, same

    # Blocks of whole users: a place is one among all of a user's items.
    for _, (rows, higher, same) in over_grid(
        visit, (len(present), 1), parallel=values.parallel, cells_of_a_row=n_items
    ):
        above[rows], tied[rows] = higher, same
    return above, tied


def _at_depth(depth: int, above: Array, tied: Array) -> dict[str, Callable[[Rows], InfluenceExpansion]]:
    """Return the metrics at a depth as functions of the rows."""

    def gained(by_place: Array) -> tuple[Array, float]:
        """Share the gains of a tie's places among its items; and give the sum of all places' gains."""
        so_far = np.append(0.0, np.cumsum(by_place))
        first = np.minimum(above, len(by_place)).astype(np.int64)
        after = np.minimum(above + tied, len(by_place)).astype(np.int64)
        return (so_far[after] - so_far[first]) / tied, float(so_far[-1])

    def mean_gain(by_place: Callable[[int], Array]) -> Callable[[Rows], InfluenceExpansion]:
        def formula(rows: Rows) -> InfluenceExpansion:
            gains, of_user = gained(by_place(min(depth, rows.log.n_items)))
            return _doubly_robust(rows, gains, of_user)

        return formula

    discounts = mean_gain(_discounts)
    return {
        f"dcg@{depth}": discounts,
        f"ndcg@{depth}": mean_gain(lambda count: _discounts(count) / _discounts(count).sum()),
        f"precision@{depth}": mean_gain(lambda count: np.ones(count) / depth),
        f"recall@{depth}": lambda rows: _ratio(
            mean_gain(np.ones)(rows), _doubly_robust(rows, np.ones(len(rows.log)), float(rows.log.n_items))
        ),
    }


def _discounts(count: int) -> Array:
    return np.asarray(1 / np.log2(np.arange(2, count + 2)))


def _doubly_robust(rows: Rows, gains: Array, of_user: float) -> InfluenceExpansion:
    """Estimate the mean over users of what their liked items gain; all of a user's items together gain `of_user`."""
    log = rows.log
    # A mean over cells times the number of items is a mean over users.
    rows = replace(rows, difference=gains * log.n_items)
    by_user = (of_user - totals(log.users, gains, log.n_users)) * log.n_items
    unobserved = Unobserved(np.zeros(log.n_users), by_user, np.zeros(log.n_items), np.zeros_like)
    labels = impute_constant(rows.labels.values, log, rows.weights)
    return dr(rows, LabelledErrors(labels, rows, unobserved))


def _ratio(top: InfluenceExpansion, bottom: InfluenceExpansion) -> InfluenceExpansion:
    """Divide two estimates."""
    value = top.value / bottom.value

    def divided(name: str) -> Array:
        return np.asarray((getattr(top, name) - value * getattr(bottom, name)) / bottom.value)

    return InfluenceExpansion(
        value,
        divided("influence"),
        divided("label_slopes"),
        divided("p_slopes"),
        lambda: divided("influence"),
        facts=top.facts,
    )


def _auc(rows: Rows, scores: Array) -> InfluenceExpansion:
    r"""Weigh liked against disliked pairs.

    :math:`\sum_{k \ne l} w_k w_l\, \tilde r_k (1 - \tilde r_l)\, [s_k > s_l] \,/ \sum_{k \ne l} w_k w_l\,
    \tilde r_k (1 - \tilde r_l)`, ties half. A pair with itself is left out: its corrected label times the opposite is
    not zero on average.
    """
    _, tie = np.unique(scores, return_inverse=True)
    liked, disliked = rows.weights * rows.labels.values, rows.weights * (1 - rows.labels.values)

    def up_to(values: Array) -> Array:
        """Add up what scores below each row, and half of what ties with it, itself left out."""
        of_tie = totals(tie, values, int(tie.max()) + 1)
        return np.asarray((np.cumsum(of_tie) - of_tie / 2)[tie] - values / 2)

    below = up_to(disliked)
    all_liked, all_disliked = float(liked.sum()), float(disliked.sum())
    above = all_liked - liked - up_to(liked)
    comparisons = all_liked * all_disliked - float(liked @ disliked)
    value = float(liked @ below) / comparisons
    of_liked, of_disliked = below - value * (all_disliked - disliked), above - value * (all_liked - liked)
    influence = (liked * of_liked + disliked * of_disliked) / comparisons
    return InfluenceExpansion(
        value,
        influence,
        rows.weights * (of_liked - of_disliked) / comparisons,
        -influence,
        lambda: influence,
    )
