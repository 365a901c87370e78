"""How well a recommender ranks, by a log: corrected for selection and noise as far as these are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from verirec.data.cells import CellValues
from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.bounded import within_range
from verirec.estimation.formulas import InfluenceExpansion
from verirec.estimation.inputs import FEW, Noise, Rates, refuse_weights, warn_of_unweighted_audit
from verirec.estimation.intervals import Estimate, EstimateRange, normal_estimate
from verirec.estimation.places import places
from verirec.estimation.problem import rate_gradient
from verirec.estimation.ranking_formulas import at_depth, auc, largest
from verirec.estimation.rows import LoggedPairs, Rows
from verirec.exceptions import MisfitWarning, NoiseRateError, OverlapWarning, warn_caller
from verirec.losses import NoiseRegion
from verirec.nuisance.propensities import as_propensities


def ranking_by_log(
    values: CellValues,
    log: FeedbackLog,
    propensities: Any,
    noise: Noise,
    depths: list[int],
    level: float,
    only: list[str] | None = None,
) -> dict[str, Any]:
    """Go by the log, and by what is known of its selection and noise; all metrics, or some."""
    refuse_weights(log, ["ranking estimates"])
    fitted = as_propensities(propensities, log)
    pairs, nothing = LoggedPairs(log, fitted), np.zeros(len(log))
    formulas = _formulas(values, log, depths)
    facts = {"rows": len(log), "cells": log.n_cells, "floored": fitted.count_floored(log), "source": "log"}

    def at(rates: Rates | None) -> dict[str, Estimate]:
        rows = Rows(pairs, nothing, nothing, pairs.labels(rates))
        _refuse_one_class(rows)
        results = {}
        for name, formula in formulas.items():
            if only is None or name in only:
                linearised = formula(rows)
                gradient = rate_gradient(formula, rows, linearised)
                results[name] = normal_estimate(linearised, rows, gradient, level, facts)
        return results

    if isinstance(noise, NoiseRegion):
        return dict(_over_region(lambda rates: _bounded(at(rates), log), noise))
    found = at(noise)
    warn_of_unweighted_audit(fitted, noise)
    _warn_if_impossible(found)
    return dict(_bounded(found, log))


def _formulas(
    values: CellValues, log: FeedbackLog, depths: list[int]
) -> dict[str, Callable[[Rows], InfluenceExpansion]]:
    """Return the metrics as functions of the rows."""
    own = values.at(log.users, log.items)
    standing = places(values, log, max(depths))
    in_top = int(np.isfinite(standing.above).sum())
    if in_top < FEW:
        warn_caller(
            f"only {in_top} logged pairs are among their users' {max(depths)} best: what is said of these places rests "
            "on them, and its intervals are not to be trusted",
            OverlapWarning,
        )
    found: dict[str, Callable[[Rows], InfluenceExpansion]] = {"auc": lambda rows: auc(rows, own)}
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
