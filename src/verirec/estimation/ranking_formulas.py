r"""Metrics of a ranking as functions of the log's rows.

DCG and its relatives are linear in the labels: with :math:`l(f, 1)` the discount of a pair's place and
:math:`l(f, 0) = 0`, DCG is a mean loss like any other, and the doubly robust estimator serves it as it is. AUC is a
ratio of two sums over pairs of pairs, each linear in either label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.parts import filled, totals
from verirec.estimation.expansion import Effects, InfluenceExpansion
from verirec.estimation.formulas import dr
from verirec.estimation.places import Places, items_of_users
from verirec.estimation.rows import LabelledErrors, LoggedPairs, RowPart, Rows
from verirec.estimation.score_classes import ScoreClasses
from verirec.estimation.unobserved import Unobserved
from verirec.exceptions import LabelError
from verirec.losses import NoiseRates
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


class _Gains(NamedTuple):
    """What liked items gain: of each row, and of each user's other items, shapes (n,) and (n_users,).

    Both times the mean number of items: a mean over cells is then one over users.
    """

    difference: Array
    elsewhere: Array

    @classmethod
    def of(cls, pairs: LoggedPairs, difference: Array, of_user: float | npt.NDArray[Any]) -> _Gains:
        """Take what the rows gain off what all of a user's items together gain, `of_user`."""
        log = pairs.log
        elsewhere = of_user * mean_items(pairs) - totals(log.users, difference, log.n_users)
        return cls(difference, np.asarray(elsewhere))


def mean_items(pairs: LoggedPairs) -> float:
    """Return the number of items of a user that are spoken of, on average."""
    return pairs.n_cells / pairs.log.n_users


def at_depth(depth: int, found: Places, pairs: LoggedPairs) -> dict[str, Metric]:
    """Return the metrics at a depth as functions of rows of these pairs; what no label changes is worked out once."""
    log, count = pairs.log, min(depth, pairs.log.n_items)

    @cache
    def gains_of(metric: str) -> _Gains:
        by_place = np.ones(count) if metric == "hits" else place_gains(depth, count)[metric]
        scale = found.scale * mean_items(pairs)
        gains = filled(lambda at: scale * shared_gains(by_place, found.above[at], found.tied[at]), len(log))
        return _Gains.of(pairs, gains, found.gained(by_place))

    @cache
    def of_all() -> _Gains:
        return _Gains.of(pairs, np.broadcast_to(mean_items(pairs), len(log)), items_of_users(log, pairs.left_out))

    def of_metric(metric: str) -> Metric:
        return lambda rows: _doubly_robust(rows, gains_of(metric))

    def recall(rows: Rows) -> InfluenceExpansion:
        return _ratio(_doubly_robust(rows, gains_of("hits")), _doubly_robust(rows, of_all()))

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


def _doubly_robust(rows: Rows, gains: _Gains) -> InfluenceExpansion:
    """Estimate the mean over users of what their liked items gain."""
    log = rows.log
    unobserved = Unobserved(np.zeros(log.n_users), gains.elsewhere, np.zeros(log.n_items), np.zeros_like)
    labels = impute_constant(rows.labels.values, log, rows.weights)
    return dr(replace(rows, difference=gains.difference), LabelledErrors(labels, unobserved))


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


def auc(rows: Rows, classes: ScoreClasses) -> InfluenceExpansion:
    r"""Weigh liked against disliked pairs.

    :math:`\sum_{k \ne l} w_k w_l\, \tilde r_k (1 - \tilde r_l)\, [s_k > s_l] \,/ \sum_{k \ne l} w_k w_l\,
    \tilde r_k (1 - \tilde r_l)`, ties half. A pair with itself is left out: its corrected label times the opposite is
    not zero on average.
    """

    def weighed(part: RowPart) -> tuple[Array, Array]:
        return part.weights * part.labels, part.weights * (1 - part.labels)

    of_liked, of_disliked = classes.totals(lambda at: weighed(rows.part(at)))
    below, above = _up_to(of_disliked), float(of_liked.sum()) - _up_to(of_liked)
    all_liked, all_disliked = float(of_liked.sum()), float(of_disliked.sum())

    def places(part: RowPart) -> tuple[Array, Array, Array, Array]:
        """Return the weights of some rows, and what scores below each and above it, itself left out."""
        (liked, disliked), own = weighed(part), classes.number[part.at]
        return liked, disliked, below[own] - disliked / 2, above[own] - liked / 2

    def sums(part: RowPart) -> tuple[float, float]:
        liked, disliked, lower, _ = places(part)
        return float(liked @ disliked), float(liked @ lower)

    itself, ahead = rows.sums(sums)
    comparisons = all_liked * all_disliked - itself
    if comparisons == 0:
        raise LabelError("auc needs pairs that are liked and others that are not; after correction there are none")
    value = ahead / comparisons

    def effects(part: RowPart) -> Effects:
        liked, disliked, lower, higher = places(part)
        if_liked, if_not = lower - value * (all_disliked - disliked), higher - value * (all_liked - liked)
        influence = (liked * if_liked + disliked * if_not) / comparisons
        return Effects(influence, part.weights * (if_liked - if_not) / comparisons)

    return InfluenceExpansion(value, rows, effects, lambda part: effects(part).influence)


def auc_by_rates(rows: Rows, classes: ScoreClasses) -> Callable[[NoiseRates], float]:
    r"""Return the AUC as a function of the noise rates, from labels as they are; NaN where the rates do not fit.

    Corrected labels are :math:`(r - \rho_{10}) / \kappa`, so that all of its sums follow from those of w and w r by
    class, and of their squares.
    """

    def of_both(at: slice) -> tuple[Array, Array]:
        part = rows.part(at)
        return part.weights, part.weights * part.labels

    of_all, of_positive = classes.totals(of_both)
    all_squares, squares = rows.sums(
        lambda part: (float(part.weights @ part.weights), float(part.weights**2 @ part.labels))
    )

    def at(rates: NoiseRates) -> float:
        rho01, rho10, kappa = rates.rho01, rates.rho10, rates.kappa
        liked, disliked = (of_positive - rho10 * of_all) / kappa, ((1 - rho01) * of_all - of_positive) / kappa
        itself = (squares * (rho10 - rho01) - all_squares * rho10 * (1 - rho01)) / kappa**2
        comparisons = float(liked.sum() * disliked.sum()) - itself
        if not (0 < float(liked.sum()) < float(of_all.sum())) or comparisons == 0:
            return np.nan
        return (float(liked @ _up_to(disliked)) - itself / 2) / comparisons

    return at


def _up_to(of_class: Array) -> Array:
    """Add up what scores below each class, and half of what is in it."""
    return np.asarray(np.cumsum(of_class) - of_class / 2)
