"""Which of two recommenders is better, and whether that is established."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike
from verirec.estimators.catalogue import Estimator, chosen
from verirec.estimators.estimate import at_rates_or_region, make_study
from verirec.estimators.formulas import Linearised
from verirec.estimators.inputs import Rates, checked_rates, judgeable
from verirec.estimators.intervals import Estimate, checked_confidence, normal_estimate
from verirec.estimators.results import Estimates
from verirec.estimators.study import Study
from verirec.losses import LossLike, NoiseRegion
from verirec.nuisances.propensities import as_propensities
from verirec.randomness import RandomState, same_state


def compare(
    first: PredictionsLike,
    second: PredictionsLike,
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: Rates | NoiseRegion | None = None,
    estimators: str | Sequence[str] | None = None,
    loss: LossLike = "log",
    imputation: Any = "constant",
    confidence: float = 0.95,
    clip: float | None = None,
    sample: int | None = None,
    random_state: RandomState = 0,
) -> Estimates:
    """Estimate how much larger the first recommender's true inaccuracy is than the second's, pair by pair.

    Both are judged on the same rows, so that much of their errors cancels: the interval of the difference is narrower
    than the two intervals apart suggest. Below 0, the first is better.

    Parameters
    ----------
    first, second
        Predictions.
    log, propensities, noise_rates, estimators, loss, imputation, confidence, clip, sample, random_state
        As in `estimate`; both have the same sample and folds.

    Examples
    --------
    >>> from verirec import NoiseRates, simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> sharp, blunt = 0.2 + 0.6 * world.preferences, 0.4 + 0.2 * world.preferences
    >>> p, rates = world.propensity_values, NoiseRates(0.2, 0.1)
    >>> low, high = compare(sharp, blunt, world.log, propensities=p, noise_rates=rates)["ome-dr"].interval
    >>> high < 0
    True
    """
    level = checked_confidence(confidence)
    selected = chosen(estimators, with_rates=noise_rates is not None)
    fitted = as_propensities(propensities, judgeable(log))
    # Both draw the same sample and the same folds.
    seed = same_state(random_state)
    studies = [
        make_study(
            predictions,
            log,
            selected,
            propensities=fitted,
            loss=loss,
            imputation=imputation,
            clip=clip,
            sample=sample,
            random_state=seed,
        )
        for predictions in (first, second)
    ]
    rates = None if isinstance(noise_rates, NoiseRegion) else checked_rates(noise_rates, log)

    def at(estimator: Estimator, rates: Rates | None) -> Estimate:
        return _difference(studies, estimator, rates, level)

    results = at_rates_or_region(at, selected, rates, noise_rates)
    for study in studies:
        study.let_go_of_rows()
    return Estimates(results, f"the difference in {studies[0].losses.loss.name} loss, first minus second")


def _difference(studies: list[Study], estimator: Estimator, rates: Rates | None, level: float) -> Estimate:
    one, _, one_gradient = studies[0].linearised(estimator, rates)
    one = replace(one, terms=_not_asked_for, imputed=None)
    two, rows, two_gradient = studies[1].linearised(estimator, rates)
    gradient = None if one_gradient is None or two_gradient is None else one_gradient - two_gradient
    return normal_estimate(_minus(one, two), rows, gradient, level, studies[0].facts)


def _not_asked_for() -> NoReturn:
    """Stand in for terms, which a bootstrap alone would need and which hold on to many arrays."""
    raise NotImplementedError("differences have no bootstrap")


def _minus(one: Linearised, two: Linearised) -> Linearised:
    return replace(
        one,
        value=one.value - two.value,
        influence=one.influence - two.influence,
        label_slopes=one.label_slopes - two.label_slopes,
        p_slopes=one.p_slopes - two.p_slopes,
        terms=_not_asked_for,
        # The same cells were sampled for both; as if they were not, to be on the safe side.
        sample_variance=one.sample_variance + two.sample_variance,
        imputed=None,
        facts={},
    )
