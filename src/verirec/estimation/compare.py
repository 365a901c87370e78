"""Which of two recommenders is better, and whether that is established."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verirec.estimation.adapting import enter
from verirec.estimation.gathering import gather
from verirec.estimation.inference import judge_difference
from verirec.estimation.inputs import AnyNoise, checked_sample
from verirec.estimation.intervals import checked_confidence
from verirec.estimation.range_ends import judge_by_range
from verirec.estimation.results import Estimates
from verirec.estimation.roots import pointwise, refuse_ranges, root_difference, slope_at
from verirec.estimation.selection_range import RangeProblem, SelectionRange
from verirec.estimation.setup import cell_losses, drawn_seed, make_problem
from verirec.estimation.survey.problem import LossDifference, ScaledDifference, survey_results
from verirec.losses import LossLike
from verirec.nuisance.noise_rates import AuditSample, WhoErrs
from verirec.randomness import RandomState, same_state
from verirec.resuming import kept, long_job

if TYPE_CHECKING:
    from verirec.data.feedback_log import FeedbackLog
    from verirec.data.predictions import PredictionsLike
    from verirec.engine.choice import EngineLike
    from verirec.nuisance.surveys import SurveySample


@long_job
def compare(
    first: PredictionsLike,
    second: PredictionsLike,
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: AnyNoise = None,
    audit: AuditSample | None = None,
    survey: SurveySample | None = None,
    errors: WhoErrs | None = None,
    exclude: Any = None,
    selection: SelectionRange | None = None,
    estimators: str | Sequence[str] | None = None,
    loss: LossLike = "log",
    imputation: Any = "constant",
    confidence: float = 0.95,
    clip: float | None = None,
    sample: int | None = None,
    random_state: RandomState = 0,
    engine: EngineLike = None,
    checkpoint: str | Path | None = None,
) -> Estimates:
    """Estimate how much larger the first recommender's true inaccuracy is than the second's, pair by pair.

    Both are judged on the same rows, so that much of their errors cancels: the interval of the difference is narrower
    than the two intervals apart suggest. Below 0, the first is better.

    Parameters
    ----------
    first, second
        Predictions.
    log, propensities, noise_rates, audit, survey, errors, exclude, selection, estimators
        As in `estimate`.
    loss, imputation, confidence, clip, sample
        As in `estimate`.
    random_state
        As in `estimate`; both have the same sample and folds.
    engine, checkpoint
        As in `estimate`.

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
    level, (averaged, roots) = checked_confidence(confidence), pointwise(loss)
    if roots:
        refuse_ranges(selection, noise_rates)
    (first, second), log, propensities, noise_rates, audit = enter(
        [first, second], log, propensities, noise_rates, audit, random_state, survey, exclude
    )
    given: dict[str, Any] = {"propensities": propensities, "noise_rates": noise_rates, "audit": audit, "survey": survey}
    given["errors"] = errors
    pairs, noise, selected, judged = gather(log, exclude=exclude, selection=selection, estimators=estimators, **given)
    # Both draw the same sample and the same folds.
    seed = drawn_seed(same_state(random_state))
    losses = LossDifference(*(cell_losses(each, log, averaged, clip, counts_grid=True) for each in (first, second)))
    options: dict[str, Any] = {"exclude": exclude, "sample": checked_sample(sample), "seed": seed}
    found: dict[str, Any] = {}
    if judged is not None:
        how = {"loss": averaged, "imputation": imputation, "clip": clip, "sample": sample, "seed": seed}
        one, two = (make_problem(each, judged, selected.log, **how) for each in (first, second))
        found |= judge_difference(one, two, selected.log, noise, level, roots=roots)
    if pairs is not None and selected.ranged:
        found[selected.ranged] = judge_by_range(RangeProblem.of(pairs, selection, noise, **options), [losses], level)[0]
    if survey is not None:
        audited = None if pairs is None else pairs.audited
        options |= {"confidence": level, "audited": audited}
        by_survey = _root_differences if roots else _differences
        found |= kept("survey", lambda: by_survey(losses, selected.survey, survey, log, noise, **options))
    what = "root mean squared error" if roots else f"{losses.first.loss.name} loss"
    return Estimates(found, f"the difference in {what}, first minus second")


def _differences(losses: LossDifference, names: list[str], *given: Any, **options: Any) -> dict[str, Any]:
    """Apply survey estimators to a difference."""
    return survey_results([losses], names, *given, **options)[0]


def _root_differences(losses: LossDifference, names: list[str], *given: Any, **options: Any) -> dict[str, Any]:
    """Apply survey estimators to the difference of the roots of two means of squares, by the delta method."""
    both: Any = survey_results([losses.first, losses.second], names, *given, **options)
    found = {}
    for name in names:
        one, two = (each[name] for each in both)
        scaled = ScaledDifference(losses.first, losses.second, (slope_at(one), slope_at(two)))
        found[name] = root_difference(_differences(scaled, [name], *given, **options)[name], one.value, two.value)
    return found
