"""From problems to estimates and their differences."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from verirec.data.alike import alike_users
from verirec.data.parts import parts_of
from verirec.data.threads import one_product_thread
from verirec.estimation.audited import with_labels_put_right, with_true_labels
from verirec.estimation.catalogue import Estimator
from verirec.estimation.doubts import warn_of_log, warn_of_recommender, warn_of_results
from verirec.estimation.expansion import Effects, InfluenceExpansion
from verirec.estimation.inputs import AnyNoise, KnownNoise
from verirec.estimation.intervals import Estimate, EstimateRange, bootstrapped, normal_estimates
from verirec.estimation.problem import EstimationProblem, rate_gradient
from verirec.estimation.results import Estimates
from verirec.estimation.roots import root_difference, scaled, slope_at
from verirec.estimation.variance import TOGETHER, Expanded
from verirec.losses import AnyRegion
from verirec.resuming import kept

if TYPE_CHECKING:
    from verirec.estimation.rows import RowPart, Rows


def judge(
    problem: EstimationProblem,
    estimators: list[Estimator],
    noise: AnyNoise,
    confidence: float,
    *,
    draws: int | None = None,
    user_groups: npt.NDArray[np.int64] | None = None,
    contributions: bool = False,
) -> Estimates:
    """Apply estimators to a problem.

    Parameters
    ----------
    problem, estimators, confidence
        Checked, and fit for each other.
    noise
        KnownNoise, or a region: then noise-corrected estimates are ranges.
    draws
        Of a bootstrap over users; `None` for normal intervals.
    user_groups
        Groups of users that a bootstrap draws together; by default those who rated nearly the same items.
    contributions
        Whether to keep what each row contributes.
    """

    groups = alike_users(problem.log).group if draws is not None and user_groups is None else user_groups

    def expanded(estimator: Estimator, rates: KnownNoise | None) -> Expanded:
        linearised, rows, gradient = problem.linearised(estimator, rates)
        if estimator.audited:
            return Expanded(with_true_labels(linearised, rows), rows)
        return Expanded(linearised, rows, gradient)

    def at(asked: list[_Asked]) -> list[Estimate]:
        those = [expanded(*one) for one in asked]
        found = normal_estimates(those, confidence, problem.facts)
        return [finished(*one) for one in zip(range(len(asked)), asked, those, found, strict=True)]

    def finished(place: int, asked: _Asked, those: Expanded, found: Estimate) -> Estimate:
        if draws is not None and groups is not None:
            # A stream of its own, whatever other estimators were asked for, and the same for its noise-corrected form.
            random = np.random.default_rng([problem.seed, 2, zlib.crc32(asked[0].plain_name.encode())])
            drawn = partial(bootstrapped, found, those.expansion, those.rows, draws, random, groups)
            found = kept(f"bootstrap {place}", drawn)
        return replace(found, contributions=those.expansion.influence) if contributions else found

    with one_product_thread():
        results = _at_rates_or_region(at, estimators, noise, problem.losses.loss.least)
        warn_of_log(problem, estimators, noise, alike_together=draws is not None, groups_given=user_groups is not None)
    warn_of_recommender(problem)
    warn_of_results(results, problem.losses.loss.least)
    problem.let_go_of_rows()
    return Estimates(results, f"the {problem.losses.loss.name} loss")


def judge_difference(
    first: EstimationProblem,
    second: EstimationProblem,
    estimators: list[Estimator],
    noise: AnyNoise,
    confidence: float,
    *,
    roots: bool = False,
) -> Estimates:
    """Apply estimators to two problems of the same pairs, and estimate the difference, first minus second.

    With `roots` it is that of the roots of both, by the delta method.
    """

    def expanded(estimator: Estimator, rates: KnownNoise | None) -> tuple[Expanded, list[float]]:
        both = [problem.linearised(estimator, rates) for problem in (first, second)]
        means, slopes = [0.0, 0.0], [1.0, 1.0]
        if roots:
            apart = [_mean_of(estimator, *each, confidence) for each in both]
            means, slopes = [one.value for one in apart], [slope_at(one) for one in apart]
        (one, _, one_gradient), (two, rows, two_gradient) = both
        difference = minus(scaled(one, slopes[0]), scaled(two, slopes[1])) if roots else minus(one, two)
        gradient = None
        if one_gradient is not None and two_gradient is not None:
            gradient = slopes[0] * one_gradient - slopes[1] * two_gradient
        if estimator.audited:
            difference, gradient = with_true_labels(difference, rows), None
        return Expanded(difference, rows, gradient), means

    def at(asked: list[_Asked]) -> list[Estimate]:
        those = [expanded(*one) for one in asked]
        found = normal_estimates([one for one, _ in those], confidence, first.facts)
        return [root_difference(one, *means) for one, (_, means) in zip(found, those, strict=True)] if roots else found

    with one_product_thread():
        results = _at_rates_or_region(at, estimators, noise)
        warn_of_log(first, estimators, noise)
    for problem in (first, second):
        warn_of_recommender(problem)
        problem.let_go_of_rows()
    return Estimates(results, f"the difference in {first.losses.loss.name} loss, first minus second")


def _mean_of(estimator: Estimator, found: InfluenceExpansion, rows: Rows, gradient: Any, confidence: float) -> Estimate:
    """Return the estimate of one of two, with its own error."""
    if estimator.audited:
        found, gradient = with_true_labels(found, rows), None
    return normal_estimates([Expanded(found, rows, gradient)], confidence, {})[0]


def expand_metric(formula: Callable[[Rows], InfluenceExpansion], rows: Rows) -> Expanded:
    """Apply the formula of a metric to rows; where these were audited, with the true labels in it.

    A metric need not be linear in the labels: its value and slopes are those at labels put right.
    """
    found = formula(rows)
    if rows.pairs.audited is None:
        return Expanded(found, rows, rate_gradient(formula, rows, found))
    right = formula(with_labels_put_right(rows))
    put_right = right.label_slopes

    def effects(part: RowPart) -> Effects:
        return found.effects(part)._replace(label_slopes=put_right[part.at])

    corrected = with_true_labels(replace(found, effects=effects), rows)
    return Expanded(replace(corrected, value=right.value), rows)


def minus(one: InfluenceExpansion, two: InfluenceExpansion) -> InfluenceExpansion:
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


_Asked = tuple[Estimator, KnownNoise | None]
"""An estimator, and the noise that it is to correct for."""


def _at_rates_or_region(
    at: Callable[[list[_Asked]], list[Estimate]],
    estimators: list[Estimator],
    noise: AnyNoise,
    least: float = -np.inf,
) -> dict[str, Estimate | EstimateRange]:
    """Return each estimator's estimate at the rates, or its range over a region; `at` is asked for several at once."""

    def all_of(asked: list[_Asked]) -> list[Estimate]:
        parts = parts_of(len(asked), size=TOGETHER)
        return [one for some in parts for one in kept(f"estimates from {some.start}", partial(at, asked[some]))]

    if not isinstance(noise, AnyRegion):
        found = all_of([(one, noise) for one in estimators])
        return {one.name: estimate for one, estimate in zip(estimators, found, strict=True)}
    # An audit's labels put any rates right: with these estimators none are needed.
    bounded = [one for one in estimators if one.noise_corrected and not one.audited]
    asked: list[_Asked] = [(one, None) for one in estimators if one not in bounded]
    for linear, points in ((True, noise.corners), (False, noise.lattice)):
        # Point by point: what is made of the rows at one of them then serves all estimators.
        asked += [(one, point) for point in points for one in bounded if one.linear == linear]
    by_name: dict[str, list[Estimate]] = {one.name: [] for one in estimators}
    for (one, _), estimate in zip(asked, all_of(asked), strict=True):
        by_name[one.name].append(estimate)
    ranges = {one.name: EstimateRange.over(by_name[one.name], least=least) for one in bounded}
    return {name: ranges.get(name, found[0]) for name, found in by_name.items()}
