"""From problems to estimates and their differences, with what there is to warn of."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NoReturn

import numpy as np

from verirec.data.predictions import LinkedFactors
from verirec.data.threads import one_product_thread
from verirec.estimation.audited import with_labels_put_right, with_true_labels
from verirec.estimation.catalogue import Estimator
from verirec.estimation.cell_losses import worse_than_a_coin
from verirec.estimation.expansion import Effects, InfluenceExpansion
from verirec.estimation.inputs import FEW, Noise, Rates, warn_of_unweighted_audit
from verirec.estimation.intervals import Estimate, EstimateRange, bootstrapped, normal_estimate
from verirec.estimation.overlap import warn_of_reach
from verirec.estimation.problem import EstimationProblem, rate_gradient
from verirec.estimation.results import Estimates
from verirec.estimation.rows import RowPart, Rows
from verirec.exceptions import MisfitWarning, OverlapWarning, ScoreWarning, warn_caller
from verirec.losses import NoiseRegion

_MASS_OFF: Final = 0.1
_BEYOND_CHANCE: Final = 4.0
"""How far the weights may be from adding up to all pairs: a tenth, or so many standard errors."""
_MUCH: Final = 0.5
_MUCH_CLIPPED: Final = 0.1


def judge(
    problem: EstimationProblem,
    estimators: list[Estimator],
    noise: Noise,
    confidence: float,
    *,
    draws: int | None = None,
    contributions: bool = False,
) -> Estimates:
    """Apply estimators to a problem.

    Parameters
    ----------
    problem, estimators, confidence
        Checked, and fit for each other.
    noise
        Rates, or a region: then noise-corrected estimates are ranges.
    draws
        Of a bootstrap over users; `None` for normal intervals.
    contributions
        Whether to keep what each row contributes.
    """

    def at(estimator: Estimator, rates: Rates | None) -> Estimate:
        linearised, rows, gradient = problem.linearised(estimator, rates)
        if estimator.audited:
            linearised, gradient = with_true_labels(linearised, rows), None
        found = normal_estimate(linearised, rows, gradient, confidence, problem.facts)
        if draws is not None:
            # A stream of its own, whatever other estimators were asked for, and the same for its noise-corrected form.
            random = np.random.default_rng([problem.seed, 2, zlib.crc32(estimator.plain_name.encode())])
            found = bootstrapped(found, linearised, rows, draws, random)
        return replace(found, contributions=linearised.influence) if contributions else found

    with one_product_thread():
        results = _at_rates_or_region(at, estimators, noise, problem.losses.loss.least)
        _warn_of_weights(estimators, problem, noise)
    _warn_of_clipping(problem)
    _warn_of_scores(problem)
    _warn_of_extrapolation(results)
    _warn_of_audit(problem, noise)
    problem.let_go_of_rows()
    return Estimates(results, f"the {problem.losses.loss.name} loss")


def judge_difference(
    first: EstimationProblem, second: EstimationProblem, estimators: list[Estimator], noise: Noise, confidence: float
) -> Estimates:
    """Apply estimators to two problems of the same pairs, and estimate the difference, first minus second."""

    def at(estimator: Estimator, rates: Rates | None) -> Estimate:
        one, _, one_gradient = first.linearised(estimator, rates)
        two, rows, two_gradient = second.linearised(estimator, rates)
        difference = _minus(one, two)
        gradient = None if one_gradient is None or two_gradient is None else one_gradient - two_gradient
        if estimator.audited:
            difference, gradient = with_true_labels(difference, rows), None
        return normal_estimate(difference, rows, gradient, confidence, first.facts)

    with one_product_thread():
        results = _at_rates_or_region(at, estimators, noise)
        _warn_of_weights(estimators, first, noise)
    _warn_of_audit(first, noise)
    for problem in (first, second):
        _warn_of_clipping(problem)
        _warn_of_scores(problem)
        problem.let_go_of_rows()
    return Estimates(results, f"the difference in {first.losses.loss.name} loss, first minus second")


def judge_metric(
    formula: Callable[[Rows], InfluenceExpansion], rows: Rows, confidence: float, facts: dict[str, Any]
) -> Estimate:
    """Apply the formula of a metric to rows; where these were audited, with the true labels in it.

    A metric need not be linear in the labels: its value and slopes are those at labels put right.
    """
    found = formula(rows)
    if rows.pairs.audited is None:
        return normal_estimate(found, rows, rate_gradient(formula, rows, found), confidence, facts)
    right = formula(with_labels_put_right(rows))
    put_right = right.label_slopes

    def effects(part: RowPart) -> Effects:
        return found.effects(part)._replace(label_slopes=put_right[part.at])

    corrected = with_true_labels(replace(found, effects=effects), rows)
    return normal_estimate(replace(corrected, value=right.value), rows, None, confidence, facts)


def _minus(one: InfluenceExpansion, two: InfluenceExpansion) -> InfluenceExpansion:
    """Subtract two estimates of the same pairs; the same unobserved ones were sampled for both."""

    def effects(part: RowPart) -> Effects:
        ours, theirs = one.at(part.at), two.at(part.at)
        # Either none of both is minus the influence, or both are.
        slopes = None if ours.p_slopes is None or theirs.p_slopes is None else ours.p_slopes - theirs.p_slopes
        return Effects(ours.influence - theirs.influence, ours.label_slopes - theirs.label_slopes, slopes)

    sampled = None if one.sampled is None or two.sampled is None else one.sampled - two.sampled
    difference = replace(one, value=one.value - two.value, effects=effects, terms=_no_terms, sampled=sampled, facts={})
    return replace(difference, imputed=None, shares=None)


def _no_terms(part: RowPart) -> NoReturn:
    """Stand in for terms, which a bootstrap alone would need."""
    raise NotImplementedError("differences have no bootstrap")


def _at_rates_or_region(
    at: Callable[[Estimator, Rates | None], Estimate], estimators: list[Estimator], noise: Noise, least: float = -np.inf
) -> dict[str, Estimate | EstimateRange]:
    """Return each estimator's estimate at the rates, or its range over a region."""
    if not isinstance(noise, NoiseRegion):
        return {one.name: at(one, noise) for one in estimators}
    # An audit's labels put any rates right: with these estimators none are needed.
    bounded = [one for one in estimators if one.noise_corrected and not one.audited]
    found: dict[str, Estimate | EstimateRange] = {one.name: at(one, None) for one in estimators if one not in bounded}
    for linear, points in ((True, noise.corners), (False, noise.lattice)):
        those = [one for one in bounded if one.linear == linear]
        # Point by point: what is made of the rows at one of them then serves all estimators.
        at_points = [[at(one, point) for one in those] for point in points] if those else []
        for one, estimates in zip(those, zip(*at_points, strict=True), strict=True):
            found[one.name] = EstimateRange.over(list(estimates), least=least)
    return {one.name: found[one.name] for one in estimators}


def _warn_of_audit(problem: EstimationProblem, noise: Noise) -> None:
    if not isinstance(noise, NoiseRegion):
        warn_of_unweighted_audit(problem.propensities, noise)


def _warn_of_clipping(problem: EstimationProblem) -> None:
    """Say so where the clip makes other predictions of many."""
    clipped = problem.facts.get("clipped", 0)
    if clipped > _MUCH_CLIPPED * len(problem.log):
        warn_caller(
            f"clip={problem.losses.clip:g} changed the predictions of {clipped:,} of {len(problem.log):,} logged "
            "pairs: what is judged are the changed ones",
            ScoreWarning,
        )


def _warn_of_scores(problem: EstimationProblem) -> None:
    """Say so where factors, which are taken for logits, do worse on the logged pairs than a coin."""
    given = problem.losses.predictions
    if not isinstance(given, LinkedFactors) or given.link != "logistic":
        return
    rows, loss = problem.rows(None), problem.losses.loss
    coins = loss.of(np.full(len(rows.log), 0.5), rows.log.labels)
    if worse_than_a_coin(rows.errors, coins):
        warn_caller(
            f"the {loss.name} loss of these factors is {rows.errors.mean():.3g} on the logged pairs, above a coin's "
            f"{coins.mean():.3g}: are they scores that are no logits? calibrate makes probabilities of them",
            ScoreWarning,
        )


def _warn_of_extrapolation(results: Mapping[str, Estimate | EstimateRange]) -> None:
    """Say so where a targeted estimate is mostly made of pairs that are hardly ever logged."""
    for name, one in results.items():
        if isinstance(one, Estimate) and abs(one.diagnostics.get("extrapolated", 0.0)) > _MUCH * abs(one.value):
            warn_caller(
                f"{name} is {one.value:.3g}, of which {one.diagnostics['extrapolated']:.3g} is extrapolated by 1/p to "
                "pairs that are hardly ever logged; its interval may not hold",
                OverlapWarning,
            )


def _warn_of_weights(estimators: list[Estimator], problem: EstimationProblem, noise: Noise) -> None:
    """Say so where a few rows carry the weighted estimates, or where the weights do not stand for the grid."""
    effective, mass = problem.facts["effective_sample_size"], problem.facts["mass"]
    if not any(estimator.uses_propensities for estimator in estimators):
        return
    if effective < FEW:
        warn_caller(
            f"the weighted rows are worth {effective:.0f} equally weighted ones: intervals are not to be trusted",
            OverlapWarning,
        )
    else:
        warn_of_reach(problem.pairs, noise if any(estimator.noise_corrected for estimator in estimators) else None)
    pairs = problem.pairs
    chance = float(np.sqrt((1 - pairs.p) @ pairs.weights**2)) / pairs.n_cells
    if abs(mass - 1) > max(_MASS_OFF, _BEYOND_CHANCE * chance):
        warn_caller(
            f"the rows' weights add up to {mass:.2f} of all pairs where 1 is right: the propensities do not fit this "
            "log, or some users and items are never logged; ips is biased by that factor",
            MisfitWarning,
        )
