"""How well a recommender ranks, by a log: corrected for selection and noise as far as these are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from verirec.data.cells import CellValues
from verirec.data.feedback_log import FeedbackLog
from verirec.data.threads import one_product_thread
from verirec.estimation.bounded import within_range
from verirec.estimation.gathering import logged_pairs, noise_in_hand
from verirec.estimation.inference import judge_metric
from verirec.estimation.inputs import FEW, Noise, Rates, refuse_weights, warn_of_unweighted_audit
from verirec.estimation.intervals import Estimate, EstimateRange
from verirec.estimation.overlap import warn_of_reach
from verirec.estimation.places import places
from verirec.estimation.ranking_formulas import Metric, at_depth, auc, largest
from verirec.estimation.rows import Rows
from verirec.exceptions import MisfitWarning, NoiseRateError, OverlapWarning, warn_caller
from verirec.losses import NoiseRegion
from verirec.nuisance.noise_rates import AuditSample


def ranking_by_log(
    values: CellValues,
    log: FeedbackLog,
    propensities: Any,
    noise: Noise,
    depths: list[int],
    level: float,
    *,
    only: list[str] | None = None,
    audit: AuditSample | None = None,
) -> dict[str, Any]:
    """Go by the log, and by what is known of its selection and noise; all metrics, or some.

    With an audit its true labels are in them, and any noise rates will do: of a region none are needed.
    """
    refuse_weights(log, ["ranking estimates"])
    pairs, nothing = logged_pairs(log, propensities, audit), np.zeros(len(log))
    warn_of_reach(pairs, noise if audit is None else None)
    fitted, source = pairs.propensities, "log" if audit is None else "audit"
    noise = noise_in_hand(noise, pairs, audit)
    formulas = _formulas(values, log, depths)
    facts = {"rows": len(log), "cells": log.n_cells, "floored": fitted.count_floored(log), "source": source}

    def at(rates: Rates | None) -> dict[str, Estimate]:
        rows = Rows(pairs, nothing, nothing, pairs.labels(rates))
        _refuse_one_class(rows)
        names = formulas if only is None else only
        with one_product_thread():
            return {name: judge_metric(formulas[name], rows, level, facts) for name in names}

    if isinstance(noise, NoiseRegion) and audit is None:
        return dict(_over_region(lambda rates: _bounded(at(rates), log), noise))
    rates = None if isinstance(noise, NoiseRegion) else noise
    found = at(rates)
    warn_of_unweighted_audit(fitted, rates)
    _warn_if_impossible(found)
    return dict(_bounded(found, log))


def _formulas(values: CellValues, log: FeedbackLog, depths: list[int]) -> dict[str, Metric]:
    """Return the metrics as functions of the rows."""
    standing = places(values, log, max(depths))
    in_top = int(np.isfinite(standing.above).sum())
    if in_top < FEW:
        warn_caller(
            f"only {in_top} logged pairs are among their users' {max(depths)} best: what is said of these places rests "
            "on them, and its intervals are not to be trusted",
            OverlapWarning,
        )
    found: dict[str, Metric] = {}
    if not values.ranks_only:
        own = values.at(log.users, log.items)
        found["auc"] = lambda rows: auc(rows, own)
    for depth in depths:
        found |= at_depth(depth, standing)
    return found


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
