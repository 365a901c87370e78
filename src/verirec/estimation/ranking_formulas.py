r"""Metrics of a ranking as functions of the log's rows.

DCG and its relatives are linear in the labels: with :math:`l(f, 1)` the discount of a pair's place and
:math:`l(f, 0) = 0`, DCG is a mean loss like any other, and the doubly robust estimator serves it as it is. AUC is a
ratio of two sums over pairs of pairs, each linear in either label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from verirec.data.parts import totals
from verirec.estimation.expansion import Effects, InfluenceExpansion
from verirec.estimation.formulas import dr
from verirec.estimation.places import Places
from verirec.estimation.rows import LabelledErrors, RowPart, Rows
from verirec.estimation.unobserved import Unobserved
from verirec.exceptions import LabelError
from verirec.nuisance.imputation import impute_constant

Array = npt.NDArray[np.float64]
Metric = Callable[[Rows], InfluenceExpansion]

METRICS: Final = ("dcg", "ndcg", "precision", "recall")
"""Those that have a depth, in the order in which they are told."""


def place_gains(depth: int, count: int) -> dict[str, Array]:
    """Return what a liked item adds at each of the first `count` places, by metric.

    Examples
    --------
    >>> {name: gains.round(2).tolist() for name, gains in place_gains(2, 2).items()}
    {'dcg': [1.0, 0.63], 'ndcg': [0.61, 0.39], 'precision': [0.5, 0.5]}
    """
    discounts = _discounts(count)
    return {"dcg": discounts, "ndcg": discounts / discounts.sum(), "precision": np.ones(count) / depth}


def shared_gains(by_place: Array, above: Array, tied: Array) -> Array:
    """Share the gains of a tie's places among its items.

    Parameters
    ----------
    by_place
        Gains of the first places; further ones gain nothing.
    above, tied
        How many items score higher, or infinite, and how many the same, shape (n,).

    Examples
    --------
    >>> shared_gains(np.array([1.0, 0.5]), np.array([0, 1, 1, np.inf]), np.array([1, 2, 2, 1])).tolist()
    [1.0, 0.25, 0.25, 0.0]
    """
    so_far = np.append(0.0, np.cumsum(by_place))
    first = np.minimum(above, len(by_place)).astype(np.int64)
    after = np.minimum(above + tied, len(by_place)).astype(np.int64)
    return np.asarray((so_far[after] - so_far[first]) / tied)


def at_depth(depth: int, found: Places) -> dict[str, Metric]:
    """Return the metrics at a depth as functions of the rows."""

    def mean_gain(by_place: Array, rows: Rows) -> InfluenceExpansion:
        gains = found.scale * shared_gains(by_place, found.above, found.tied)
        return _doubly_robust(rows, gains, found.gained(by_place))

    def of_metric(metric: str) -> Metric:
        return lambda rows: mean_gain(place_gains(depth, min(depth, rows.log.n_items))[metric], rows)

    def recall(rows: Rows) -> InfluenceExpansion:
        hits = mean_gain(np.ones(min(depth, rows.log.n_items)), rows)
        return _ratio(hits, _doubly_robust(rows, np.ones(len(rows.log)), float(rows.log.n_items)))

    return {f"{metric}@{depth}": of_metric(metric) for metric in place_gains(depth, 1)} | {f"recall@{depth}": recall}


def largest(name: str, n_items: int) -> float:
    """Return the largest value that a metric can have.

    Examples
    --------
    >>> largest("dcg@1", 10), largest("auc", 10)
    (1.0, 1.0)
    """
    metric, _, depth = name.partition("@")
    return float(_discounts(min(int(depth), n_items)).sum()) if metric == "dcg" else 1.0


def _discounts(count: int) -> Array:
    return np.asarray(1 / np.log2(np.arange(2, count + 2)))


def _doubly_robust(rows: Rows, gains: Array, of_user: float | Array) -> InfluenceExpansion:
    """Estimate the mean over users of what their liked items gain; all of a user's items together gain `of_user`."""
    log = rows.log
    # A mean over cells times the number of items is a mean over users.
    rows = replace(rows, difference=gains * log.n_items)
    by_user = (of_user - totals(log.users, gains, log.n_users)) * log.n_items
    unobserved = Unobserved(np.zeros(log.n_users), by_user, np.zeros(log.n_items), np.zeros_like)
    labels = impute_constant(rows.labels.values, log, rows.weights)
    return dr(rows, LabelledErrors(labels, unobserved))


def _ratio(top: InfluenceExpansion, bottom: InfluenceExpansion) -> InfluenceExpansion:
    """Divide two estimates."""
    if bottom.value == 0:
        raise LabelError("no pair is liked by the labels as they are corrected: recall is not defined")
    value = top.value / bottom.value

    def effects(part: RowPart) -> Effects:
        over, under = top.at(part.at), bottom.at(part.at)
        influence, slopes = ((a - value * b) / bottom.value for a, b in zip(over[:2], under[:2], strict=True))
        return Effects(influence, slopes)

    return InfluenceExpansion(value, top.rows, effects, lambda part: effects(part).influence, facts=top.facts)


def auc(rows: Rows, scores: Array) -> InfluenceExpansion:
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
    if comparisons == 0:
        raise LabelError("auc needs pairs that are liked and others that are not; after correction there are none")
    value = float(liked @ below) / comparisons
    of_liked, of_disliked = below - value * (all_disliked - disliked), above - value * (all_liked - liked)
    influence = (liked * of_liked + disliked * of_disliked) / comparisons
    slopes = rows.weights * (of_liked - of_disliked) / comparisons

    def effects(part: RowPart) -> Effects:
        return Effects(influence[part.at], slopes[part.at])

    return InfluenceExpansion(value, rows, effects, lambda part: influence[part.at])
