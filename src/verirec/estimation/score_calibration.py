"""Scores made probabilities, where some are none: by a survey, all or none, or by rows set apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from verirec.adapters.adapted import Adapted
from verirec.checks import one_of
from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimation.calibration import METHODS, apart_for_calibration, calibrate_by, need_calibration
from verirec.estimation.cross_calibration import CrossFittedScores, calibrate_by_survey, can_calibrate
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.survey.draws import target_of
from verirec.nuisance.surveys import SurveySample
from verirec.randomness import RandomState

Name = TypeVar("Name")


def checked_calibration(method: object) -> Any:
    """Accept a method of calibration, or none."""
    return None if method is None else one_of("calibrate", method, METHODS)


class Calibrated(NamedTuple):
    """Predictions, those that needed it made probabilities, and the pairs that are left to judge them.

    Parameters
    ----------
    predictions, pairs
        By name; and the logged pairs.
    by_log, by_survey
        By how many logged rows, which do not judge, and by how many surveyed pairs, each that was calibrated was.
    """

    predictions: dict[Any, PredictionsLike]
    pairs: LoggedPairs
    by_log: dict[Any, int]
    by_survey: dict[Any, int]


def calibrated(
    predictions: dict[Name, PredictionsLike],
    pairs: LoggedPairs,
    method: Any,
    seed: RandomState,
    survey: SurveySample | None = None,
    *,
    compared_with: Mapping[Name, PredictionsLike] | None = None,
) -> Calibrated:
    """Make probabilities of scores that are none: by a survey, if there is one that can, or by some of the rows.

    Parameters
    ----------
    predictions, pairs
        By name, adapted; and the logged pairs.
    method
        Of `calibrate`; `None` for those of other libraries' models alone, by "platt".
    seed
        Of which rows are set apart, and of the folds of a survey.
    survey
        Of pairs that are spoken of.
    compared_with
        Others, of probabilities.
    """
    every = predictions | dict(compared_with or {})
    needy = [
        name
        for name, one in predictions.items()
        if gives_scores(one, pairs.log) or (method is not None and need_calibration(one, pairs.log))
    ]
    if not needy:
        return Calibrated(every, pairs, {}, {})
    by_survey = calibrated_alike(every, needy, pairs.log, method or "platt", seed, survey)
    if survey is not None and by_survey:
        return Calibrated(every | by_survey, pairs, {}, dict.fromkeys(by_survey, len(survey)))
    apart, rest = apart_for_calibration(pairs, random_state=seed)
    fitted = {name: calibrate_by(apart, predictions[name], method or "platt") for name in needy}
    made = {name: one for name, (one, _) in fitted.items()}
    return Calibrated(every | made, rest, {name: rows for name, (_, rows) in fitted.items()}, {})


def calibrated_alike(
    predictions: Mapping[Name, PredictionsLike],
    needy: Sequence[Name],
    log: FeedbackLog,
    method: Any,
    seed: RandomState,
    survey: SurveySample | None,
) -> dict[Name, CrossFittedScores]:
    """Calibrate all that have predictions of all pairs by a survey; none where it cannot, or not those that need it.

    Not those alone: beside scores at their best, probabilities whose level a selective log has shifted would be put at
    a disadvantage.
    """
    whole = {name: one for name, one in predictions.items() if _is_whole(one, log)}
    if survey is None or not needy or not set(needy) <= set(whole) or not can_calibrate(survey, seed):
        return {}
    return calibrate_by_survey(whole, survey, log, method, seed)


def _is_whole(given: PredictionsLike, log: FeedbackLog) -> bool:
    """Tell whether predictions have a score of every pair."""
    values = as_predictions(given, log.n_users, log.n_items)
    return values.covered is None and not values.ranks_only


def spoken_for(survey: SurveySample | None, log: FeedbackLog, exclude: Any) -> SurveySample | None:
    """Return the survey of those of its pairs that are spoken of; `None` if none is."""
    if not isinstance(survey, SurveySample) or exclude is None:
        return survey
    inside = target_of(survey, log, exclude).holds(survey.users, survey.items)
    return survey.select(inside) if inside.any() else None


def gives_scores(given: PredictionsLike, log: FeedbackLog) -> bool:
    """Tell whether these are of another library's making, and no probabilities; levels are judged as they are."""
    if not isinstance(given, Adapted) or log.levels is not None:
        return False
    return need_calibration(given, log) if given.probabilities is None else not given.probabilities


def calibrated_where_needed(
    predictions: Mapping[Name, PredictionsLike],
    log: FeedbackLog,
    method: Any,
    seed: RandomState,
    survey: SurveySample | None,
    exclude: Any = None,
) -> dict[Name, CrossFittedScores]:
    """Calibrate all by a survey where one of them is no probabilities: see `calibrated_alike`."""
    if method is None or survey is None or log.levels is not None:
        return {}
    needy = [name for name, one in predictions.items() if need_calibration(one, log)]
    return calibrated_alike(predictions, needy, log, method, seed, spoken_for(survey, log, exclude))
