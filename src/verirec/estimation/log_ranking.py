"""How well a recommender ranks, by a log: corrected for selection and noise as far as these are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.pair_sketch import warn_of_trained_rows
from verirec.data.threads import one_product_thread
from verirec.estimation.bounded import difference_within, within_range
from verirec.estimation.gathering import logged_pairs, noise_in_hand, spoken_of
from verirec.estimation.inference import expand_metric, minus
from verirec.estimation.inputs import FEW, Noise, Rates, refuse_weights, warn_of_unweighted_audit
from verirec.estimation.intervals import Estimate, EstimateRange, normal_estimates
from verirec.estimation.overlap import warn_of_reach
from verirec.estimation.places import judged_users, places
from verirec.estimation.ranking_formulas import Metric, at_depth, auc, auc_by_rates, largest
from verirec.estimation.rows import LoggedPairs, Rows
from verirec.estimation.score_classes import ScoreClasses
from verirec.exceptions import MisfitWarning, NoiseRateError, OverlapWarning, warn_caller
from verirec.losses import NoiseRates, NoiseRegion

if TYPE_CHECKING:
    from verirec.data.cells import CellValues
    from verirec.data.feedback_log import FeedbackLog
    from verirec.nuisance.noise_rates import AuditSample

Array = npt.NDArray[np.float64]

_TINY: Final = 1e-12
_FEWEST: Final = 1e-9
"""Share of liked pairs, or of others, below which there are none."""


def ranking_by_log(
    rankings: Sequence[CellValues],
    log: FeedbackLog,
    propensities: Any,
    noise: Noise,
    depths: list[int],
    level: float,
    *,
    only: list[str] | None = None,
    audit: AuditSample | None = None,
    exclude: Any = None,
    max_scores: int | None = None,
) -> dict[str, Any]:
    """Go by the log, and by what is known of its selection and noise; all metrics, or some.

    Of two rankings it is the difference, first minus second: the same rows judge both.

    With an audit its true labels are in them, and any noise rates will do: of a region none are needed.
    """
    refuse_weights(log, ["ranking estimates"])
    pairs = logged_pairs(log, propensities, audit)
    noise = noise_in_hand(noise, pairs, audit)
    pairs = spoken_of(pairs, exclude)
    log, nothing = pairs.log, np.broadcast_to(0.0, len(pairs.log))
    for values in rankings:
        warn_of_trained_rows(values, log)
    warn_of_reach(pairs, noise if audit is None else None)
    fitted, source = pairs.propensities, "log" if audit is None else "audit"
    each = [_formulas(values, pairs, depths, max_scores) for values in rankings]
    formulas, auc_of = _of_one(*each[0]) if len(each) == 1 else _of_two(*each)
    scale = log.n_users / judged_users(rankings, np.arange(log.n_users))
    finished = partial(_finished, log=log, scale=scale, apart=len(each) > 1)
    facts = {"rows": len(log), "cells": pairs.n_cells, "floored": fitted.count_floored(log), "source": source}

    asked = list(formulas) if only is None else only

    plain = Rows(pairs, nothing, nothing, pairs.labels(None))

    def at(points: list[_Asked]) -> list[dict[str, Estimate]]:
        found = _estimated(points, formulas, plain, level, facts)
        return [_with_ndcg(own, names, log) for own, (_, names) in zip(found, points, strict=True)]

    if isinstance(noise, NoiseRegion) and audit is None:
        share = _share(plain)
        points = [rates for rates in noise.lattice if _fits(_corrected(share, rates))]
        auc_at = None if auc_of is None else auc_of(plain)
        return dict(_over_region(lambda those: [finished(one) for one in at(those)], points, asked, auc_at))
    rates = None if isinstance(noise, NoiseRegion) else noise
    (found,) = at([(rates, asked)])
    warn_of_unweighted_audit(fitted, rates)
    if len(each) == 1:
        _warn_if_impossible(found)
    return dict(finished(found))


_Asked = tuple[Rates | None, list[str]]
"""Noise rates, and the metrics that are asked for at these."""


def _estimated(
    points: Sequence[_Asked], formulas: dict[str, Metric], plain: Rows, level: float, facts: dict[str, Any]
) -> list[dict[str, Estimate]]:
    """Estimate metrics at each of some noise rates, all of them at once; NDCG is left out where DCG is asked for."""
    expanded = []
    with one_product_thread():
        for rates, names in points:
            rows = plain if rates is None else plain.with_labels(plain.pairs.labels(rates))
            _refuse_one_class(rows)
            expanded += [expand_metric(formulas[name], rows) for name in _apart_from_ndcg(names)]
        found = normal_estimates(expanded, level, facts)
    estimates = iter(found)
    return [{name: next(estimates) for name in _apart_from_ndcg(names)} for _, names in points]


def _apart_from_ndcg(names: list[str]) -> list[str]:
    """Leave NDCG out where DCG, of which it is a part, is there."""
    return [name for name in names if not (name.startswith("n") and name.removeprefix("n") in names)]


def _with_ndcg(found: dict[str, Estimate], names: list[str], log: FeedbackLog) -> dict[str, Estimate]:
    """Add NDCG: at one depth, a part of DCG."""
    return {name: found[name] if name in found else _times(found[name.removeprefix("n")], name, log) for name in names}


def _formulas(
    values: CellValues, pairs: LoggedPairs, depths: list[int], max_scores: int | None
) -> tuple[dict[str, Metric], ScoreClasses | None]:
    """Return the metrics as functions of the rows, and the rows in the order of their scores."""
    standing = places(values, pairs.log, max(depths), pairs.left_out, max_cells=max_scores)
    in_top = int(np.isfinite(standing.above).sum())
    if in_top < FEW:
        warn_caller(
            f"only {in_top} logged pairs are among their users' {max(depths)} best: what is said of these places rests "
            "on them, and its intervals are not to be trusted",
            OverlapWarning,
        )
    found: dict[str, Metric] = {}
    classes = None if values.ranks_only else ScoreClasses.of(values.at(pairs.log.users, pairs.log.items))
    if classes is not None:
        found["auc"] = partial(auc, classes=classes)
    for depth in depths:
        found |= at_depth(depth, standing, pairs)
    return found, classes


AUCs = Callable[[Rows], Callable[[NoiseRates], float]]
"""Of rows with labels as they are, the AUC as a function of the noise rates."""


def _of_one(formulas: dict[str, Metric], classes: ScoreClasses | None) -> tuple[dict[str, Metric], AUCs | None]:
    return formulas, None if classes is None else partial(auc_by_rates, classes=classes)


def _of_two(
    first: tuple[dict[str, Metric], ScoreClasses | None], second: tuple[dict[str, Metric], ScoreClasses | None]
) -> tuple[dict[str, Metric], AUCs | None]:
    """Subtract the metrics that both have."""

    def difference(name: str) -> Metric:
        return lambda rows: minus(first[0][name](rows), second[0][name](rows))

    (_, one), (_, two) = first, second
    auc_of: AUCs | None = None
    if one is not None and two is not None:

        def auc_of(rows: Rows) -> Callable[[NoiseRates], float]:
            at, beside = auc_by_rates(rows, one), auc_by_rates(rows, two)
            return lambda rates: at(rates) - beside(rates)

    return {name: difference(name) for name in first[0] if name in second[0]}, auc_of


def _times(dcg: Estimate, name: str, log: FeedbackLog) -> Estimate:
    """Return NDCG at the depth of a DCG."""
    return _scaled(dcg, 1 / largest(name.removeprefix("n"), log.n_items))


def _scaled(one: Estimate, factor: float) -> Estimate:
    if factor == 1:
        return one
    low, high = one.interval
    parts = {source: factor**2 * part for source, part in one.diagnostics["variance"].items()}
    return replace(
        one,
        value=factor * one.value,
        standard_error=factor * one.standard_error,
        interval=(factor * low, factor * high),
        diagnostics=one.diagnostics | {"variance": parts},
    )


def _finished(found: dict[str, Estimate], log: FeedbackLog, scale: float, *, apart: bool) -> dict[str, Estimate]:
    """Count what has a depth by judged user, and bring all into their range; differences have one to both sides."""
    bounded = difference_within if apart else within_range
    scaled = {name: one if name.startswith(("auc", "recall")) else _scaled(one, scale) for name, one in found.items()}
    return {name: bounded(one, largest(name, log.n_items)) for name, one in scaled.items()}


def _over_region(
    at: Callable[[list[_Asked]], list[dict[str, Estimate]]],
    points: Sequence[NoiseRates],
    names: list[str],
    auc_at: Callable[[NoiseRates], float] | None,
) -> dict[str, EstimateRange]:
    """Look at the outermost of some noise rates, those that fit the log.

    What has a depth is a ratio of two sums linear in the labels, and so largest and smallest there; the AUC is one of
    two sums over pairs of labels, and may peak inside: it is looked at where it does, too.
    """
    if not points:
        raise NoiseRateError("no noise rates of this region fit the log: nobody, or everybody, would like everything")
    asked: list[_Asked] = [(rates, names) for rates in outermost(points)]
    if auc_at is not None and "auc" in names:
        values = [*map(auc_at, points)]
        asked += [(points[int(best(values))], ["auc"]) for best in (np.nanargmin, np.nanargmax)]
    found = at(asked)
    return {name: EstimateRange.over([one[name] for one in found if name in one]) for name in names}


def outermost(points: Sequence[NoiseRates]) -> list[NoiseRates]:
    """Return the corners of the convex hull of noise rates.

    Examples
    --------
    >>> rates = [NoiseRates(a, b) for a in (0.0, 0.1, 0.2) for b in (0.0, 0.1, 0.2) if a + b < 0.35]
    >>> [(one.rho01, one.rho10) for one in outermost(rates)]
    [(0.0, 0.0), (0.0, 0.2), (0.1, 0.2), (0.2, 0.0), (0.2, 0.1)]
    """
    ordered = sorted(points, key=lambda one: (one.rho01, one.rho10))
    corners: set[NoiseRates] = set()
    for way in (ordered, ordered[::-1]):
        side: list[NoiseRates] = []
        for one in way:
            while len(side) > 1 and _turn(side[-2], side[-1], one) <= 0:
                side.pop()
            side.append(one)
        corners |= set(side)
    return [one for one in ordered if one in corners]


def _turn(first: NoiseRates, second: NoiseRates, third: NoiseRates) -> float:
    """Return twice the area of a triangle, positive where it turns left; of points on a line, 0."""
    one = second.rho01 - first.rho01, second.rho10 - first.rho10
    two = third.rho01 - first.rho01, third.rho10 - first.rho10
    area = one[0] * two[1] - one[1] * two[0]
    return 0.0 if abs(area) < _TINY else area


def _refuse_one_class(rows: Rows) -> None:
    share = _share(rows)
    if not _fits(share):
        raise NoiseRateError(
            f"with these noise rates a share of {share:.3g} of all pairs would be liked: they do not fit this log"
        )


def _share(rows: Rows) -> float:
    """Return the share of all pairs that are liked, by the rows' labels."""
    return float(rows.weights @ rows.labels.values) / float(rows.weights.sum())


def _corrected(share: float, rates: NoiseRates) -> float:
    """Return what a share by plain labels is at some noise rates."""
    return (share - rates.rho10) / rates.kappa


def _fits(share: float) -> bool:
    return _FEWEST < share < 1 - _FEWEST


def _warn_if_impossible(results: dict[str, Estimate]) -> None:
    for name, one in results.items():
        if not name.startswith("dcg") and (one.interval[0] > 1 or one.interval[1] < 0):
            warn_caller(
                f"{name} is estimated at {one.value:.3g}, outside of 0 and 1: the propensities, or the noise rates, do "
                "not fit this log (are pairs logged more often the more they are liked?)",
                MisfitWarning,
            )
            return
