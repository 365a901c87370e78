"""How good a recommender really is: every estimator, on one log, at once."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np

from verirec.checks import one_of, whole_number
from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimators.catalogue import Estimator, chosen
from verirec.estimators.cell_losses import CellLosses
from verirec.estimators.inputs import (
    FEW,
    Rates,
    checked_clip,
    checked_rates,
    checked_sample,
    judgeable,
    refuse_weights,
    warn_of_unweighted_audit,
)
from verirec.estimators.intervals import Estimate, EstimateRange, bootstrapped, checked_confidence, normal_estimate
from verirec.estimators.results import Estimates
from verirec.estimators.study import Study
from verirec.exceptions import MisfitWarning, OverlapWarning, PredictionError, warn_caller
from verirec.losses import LossLike, NoiseRegion, get_loss
from verirec.nuisances.propensities import as_propensities
from verirec.randomness import RandomState, as_generator

_MASS_OFF: Final = 0.1
_MUCH: Final = 0.5
_BEYOND_CHANCE: Final = 4.0
"""How far the weights may be from adding up to all pairs: a tenth, or so many standard errors."""


def estimate(
    predictions: PredictionsLike,
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: Rates | NoiseRegion | None = None,
    estimators: str | Sequence[str] | None = None,
    loss: LossLike = "log",
    imputation: Any = "constant",
    interval: Literal["delta", "bootstrap"] = "delta",
    confidence: float = 0.95,
    clip: float | None = None,
    sample: int | None = None,
    draws: int = 1_000,
    contributions: bool = False,
    random_state: RandomState = 0,
) -> Estimates:
    r"""Estimate the true prediction inaccuracy of a recommender, :math:`P^* = |D|^{-1} \sum_D l(f, r^*)`.

    A log shows o (which pairs) and r (what was said of them), neither at random nor always right. Each estimator
    corrects for none, one or both; `verirec.estimators.formulas` has their formulas.

    Parameters
    ----------
    predictions
        A dense array (n_users, n_items), (users, items, scores) by position, a function of (users, items), `Factors`
        or (U, V[, b_u, b_i]). Estimators without an imputed part (naive, ome, ips, snips and their OME forms) ask for
        the logged pairs only.
    log
        n rows, of both classes.
    propensities
        Fitted ones, a model, a matrix or a function; by default the log's own column, or else a logistic model.
    noise_rates
        Known or estimated rates, one for all or by group; or a `NoiseRegion`: then each OME estimate is an
        `EstimateRange`.
    estimators
        Names, or "all"; by default naive, ips, dr and, with noise rates, ome-ips, ome-dr.
    loss
        "log", "squared", "absolute", or a function of (f, y).
    imputation
        "constant": one label for all pairs, the inverse-propensity mean of the corrected labels. "model": user and
        item constants fitted to the corrected labels, cross-fitted. Or imputed errors, dense or as a function.
    interval
        "delta": from each pair's contribution; it carries the uncertainty of learnt propensities and noise rates.
        "bootstrap": whole users are drawn again, `draws` times, which allows for users who rate alike.
    confidence
        Of the intervals.
    clip
        Keep predictions this far from 0 and 1. Without it, the log loss refuses predictions of 0 and 1.
    sample
        Visit this many random unobserved pairs in place of all. By default all of them, up to 4 billion; the
        sample's own error is in the interval.
    contributions
        True keeps what each row contributes on the results.
    random_state
        Of the sample, the folds and the bootstrap.

    Examples
    --------
    >>> import numpy as np
    >>> from verirec import NoiseRates, simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> shares = np.full((200, 300), 0.4)
    >>> result = estimate(shares, world.log, propensities=world.propensity_values, noise_rates=NoiseRates(0.2, 0.1))
    >>> round(result["naive"].value, 2), round(result["ome-dr"].value, 2), round(world.true_inaccuracy(shares), 2)
    (0.71, 0.67, 0.68)
    """
    selected = chosen(estimators, with_rates=noise_rates is not None)
    one_of("interval", interval, ("delta", "bootstrap"))
    level, draws = checked_confidence(confidence), whole_number("draws", draws, least=20, most=1_000_000)
    rates = None if isinstance(noise_rates, NoiseRegion) else checked_rates(noise_rates, judgeable(log))
    study = make_study(
        predictions,
        log,
        selected,
        propensities=propensities,
        loss=loss,
        imputation=imputation,
        clip=clip,
        sample=sample,
        random_state=random_state,
    )

    def at(estimator: Estimator, rates: Rates | None) -> Estimate:
        linearised, rows, gradient = study.linearised(estimator, rates)
        one = normal_estimate(linearised, rows, gradient, level, study.facts)
        if interval == "bootstrap":
            # A stream of its own, whatever other estimators were asked for, and the same for its noise-corrected form.
            random = np.random.default_rng([study.seed, 2, zlib.crc32(estimator.plain_name.encode())])
            one = bootstrapped(one, linearised, rows, draws, random)
        return replace(one, contributions=linearised.influence) if contributions else one

    least = study.losses.loss.least
    results = at_rates_or_region(at, selected, rates, noise_rates, least)
    _warn_of_weights(selected, study)
    _warn_of_extrapolation(results)
    warn_of_unweighted_audit(study.propensities, rates)
    study.let_go_of_rows()
    return Estimates(results, f"the {study.losses.loss.name} loss")


def make_study(
    predictions: PredictionsLike,
    log: FeedbackLog,
    estimators: list[Estimator],
    *,
    propensities: Any,
    loss: LossLike,
    imputation: Any,
    clip: float | None,
    sample: int | None,
    random_state: RandomState,
) -> Study:
    """Check what an estimate is given, and put it together (see `estimate`); a study made before is taken as it is."""
    if isinstance(predictions, Study):
        return predictions
    study = Study(
        judgeable(log),
        CellLosses(
            as_predictions(predictions, log.n_users, log.n_items),
            get_loss(loss),
            checked_clip(clip),
            counts_grid=any(estimator.over_grid for estimator in estimators),
        ),
        as_propensities(propensities, log),
        imputation,
        checked_sample(sample),
        int(as_generator(random_state).integers(2**32)),
    )
    _refuse_impossible(estimators, study)
    return study


def at_rates_or_region(
    at: Callable[[Estimator, Rates | None], Estimate],
    estimators: list[Estimator],
    rates: Rates | None,
    region: Any,
    least: float = -np.inf,
) -> dict[str, Estimate | EstimateRange]:
    """Give each estimator's estimate at the rates, or its range if there is a region in their place."""
    if not isinstance(region, NoiseRegion):
        return {one.name: at(one, rates) for one in estimators}
    found: dict[str, Estimate | EstimateRange] = {one.name: at(one, None) for one in estimators if not one.denoised}
    for linear, points in ((True, region.corners), (False, region.lattice)):
        those = [one for one in estimators if one.denoised and one.linear == linear]
        # Point by point: what is made of the rows at one of them then serves all estimators.
        at_points = [[at(one, point) for one in those] for point in points] if those else []
        for one, estimates in zip(those, zip(*at_points, strict=True), strict=True):
            found[one.name] = EstimateRange.over(list(estimates), least=least)
    return {one.name: found[one.name] for one in estimators}


def _refuse_impossible(estimators: list[Estimator], study: Study) -> None:
    """Raise where an estimator cannot work with what it was given, before anything is computed."""
    given = not isinstance(study.imputation, str)
    if not given:
        one_of("imputation", study.imputation, ("constant", "model"))
    for estimator in estimators:
        if estimator.everywhere:
            study.propensities.require_everywhere(f"the {estimator.name} estimator")
    refuse_weights(study.log, [estimator.name for estimator in estimators if not estimator.weighs_rows])
    over = [estimator.name for estimator in estimators if estimator.over_grid]
    covered = study.losses.predictions.covered
    if over and not given and study.sample is None and covered is not None:
        raise PredictionError(
            f"{', '.join(over)} need predictions for all {study.log.n_cells:,} pairs; got {len(covered):,}. Those that "
            "need the logged pairs only: naive, ips, snips, ome, ome-ips, ome-snips"
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


def _warn_of_weights(estimators: list[Estimator], study: Study) -> None:
    """Say so where a few rows carry the weighted estimates, or where the weights do not stand for the grid."""
    effective, mass = study.facts["effective_sample_size"], study.facts["mass"]
    if not any(estimator.weighted for estimator in estimators):
        return
    if effective < FEW:
        warn_caller(
            f"the weighted rows are worth {effective:.0f} equally weighted ones: intervals are not to be trusted",
            OverlapWarning,
        )
    rows = study.rows(None)
    chance = float(np.sqrt((1 - rows.p) @ rows.weights**2)) / study.log.n_cells
    if abs(mass - 1) > max(_MASS_OFF, _BEYOND_CHANCE * chance):
        warn_caller(
            f"the rows' weights add up to {mass:.2f} of all pairs where 1 is right: the propensities do not fit this "
            "log, or some users and items are never logged; ips is off by that much, and the others rest on the rest",
            MisfitWarning,
        )
