"""How well a recommender ranks, corrected for selection and noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimation.bounded import within_range
from verirec.estimation.gathering import logged_pairs, noise_in_hand
from verirec.estimation.inference import judge_metric
from verirec.estimation.inputs import (
    FEW,
    Noise,
    Rates,
    checked_noise,
    judgeable,
    refuse_weights,
    warn_of_unweighted_audit,
)
from verirec.estimation.intervals import Estimate, EstimateRange, checked_confidence
from verirec.estimation.places import places
from verirec.estimation.ranking_formulas import Metric, at_depth, auc, largest
from verirec.estimation.results import Estimates
from verirec.estimation.rows import Rows
from verirec.exceptions import MisfitWarning, NoiseRateError, OverlapWarning, warn_caller
from verirec.losses import NoiseRegion
from verirec.metrics.ranking import checked_depths
from verirec.nuisance.noise_rates import AuditSample

Array = npt.NDArray[np.float64]


def estimate_ranking(
    scores: PredictionsLike,
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: Noise = None,
    audit: AuditSample | None = None,
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

    All but AUC are doubly robust with one imputed label for all pairs. Values and intervals stay within their range: 0
    and 1, and for ``dcg@k`` the largest that it can be; a value that was outside is in the diagnostics. Where users
    with rows have more than 4 billion scores, a random sample of these users is ranked, and the intervals are the wider
    for it.

    Parameters
    ----------
    scores
        As `estimate`'s predictions, for all pairs; only their order counts.
    log, propensities, noise_rates, audit, confidence
        As in `estimate`. Without noise rates and audit nothing is corrected for noise; with an audit its true labels
        are in all metrics, which are then right whatever the noise is, if the propensities are.
    k
        Depth, or several.

    Examples
    --------
    >>> from verirec import NoiseRates, simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> p = world.propensity_values
    >>> result = estimate_ranking(world.preferences, world.log, propensities=p, noise_rates=NoiseRates(0.2, 0.1))
    >>> from verirec import metrics
    >>> truth = metrics.auc(world.true_labels.ravel(), world.preferences.ravel())
    >>> bool(result["auc"].interval[0] < truth < result["auc"].interval[1])
    True
    """
    level, depths = checked_confidence(confidence), checked_depths(k)
    values = as_predictions(scores, judgeable(log).n_users, log.n_items)
    refuse_weights(log, ["ranking estimates"])
    pairs = logged_pairs(log, propensities, audit)
    noise = noise_in_hand(checked_noise(noise_rates, log), pairs, audit)
    fitted, nothing = pairs.propensities, np.zeros(len(log))
    own = values.at(log.users, log.items)
    standing = places(values, log, max(depths))
    formulas: dict[str, Metric] = {"auc": lambda given: auc(given, own)}
    for depth in depths:
        formulas |= at_depth(depth, standing)
    facts = {"rows": len(log), "cells": log.n_cells, "floored": fitted.count_floored(log)}

    def at(rates: Rates | None) -> dict[str, Estimate]:
        rows = Rows(pairs, nothing, nothing, pairs.labels(rates))
        _refuse_one_class(rows)
        return {name: judge_metric(formula, rows, level, facts) for name, formula in formulas.items()}

    in_top = int(np.isfinite(standing.above).sum())
    if in_top < FEW:
        warn_caller(
            f"only {in_top} logged pairs are among their users' {max(depths)} best: what is said of these places rests "
            "on them, and its intervals are not to be trusted",
            OverlapWarning,
        )
    what = "how well all items are ranked"
    if isinstance(noise, NoiseRegion) and audit is None:
        return Estimates(_over_region(lambda rates: _bounded(at(rates), log), noise), what)
    # An audit's labels put any rates right: of a region none are needed.
    rates = None if isinstance(noise, NoiseRegion) else noise
    found = at(rates)
    warn_of_unweighted_audit(fitted, rates)
    _warn_if_impossible(found)
    return Estimates(_bounded(found, log), what)


def _bounded(found: dict[str, Estimate], log: FeedbackLog) -> dict[str, Estimate]:
    return {name: within_range(one, largest(name, log.n_items)) for name, one in found.items()}


def _over_region(at: Callable[[Rates], dict[str, Estimate]], region: NoiseRegion) -> dict[str, EstimateRange]:
    """Look all over the region: ratios may peak inside."""
    points = []
    for rates in region.lattice:
        try:
            points.append(at(rates))
        except NoiseRateError:
            # Rates under which nobody, or everybody, would like everything are not those of this log.
            continue
    if not points:
        raise NoiseRateError("no noise rates of this region fit the log: nobody, or everybody, would like everything")
    return {name: EstimateRange.over([point[name] for point in points]) for name in points[0]}


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
