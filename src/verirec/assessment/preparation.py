"""From what a user gives to the evidence that an assessment goes by: rows held out, noise and propensities known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from verirec.assessment.evidence import Evidence
from verirec.assessment.noise import curve_of, noise_of
from verirec.assessment.training import checked_methods, hold_out_rows, refuse_taken, train_all
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.predictions import PredictionsLike
from verirec.estimation.adapting import adapt_all
from verirec.estimation.gathering import audit_within, check_errors, spoken_of
from verirec.estimation.inputs import AnyNoise, has_clicks_alone, judgeable
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.score_calibration import calibrated, checked_calibration, spoken_for
from verirec.estimation.survey.draws import check_survey, self_selected, target_of
from verirec.exceptions import (
    AuditError,
    EmptyLogError,
    LabelError,
    OverlapWarning,
    ParameterError,
    warn_caller,
)
from verirec.nuisance.noise_rates import (
    AuditSample,
    WhoErrs,
)
from verirec.nuisance.propensities import as_propensities
from verirec.nuisance.surveys import SurveySample

Predictions = dict[str, PredictionsLike]


class Labels(NamedTuple):
    """Labels in hand, as a user gave them."""

    audit: AuditSample | None
    survey: SurveySample | None
    rates: AnyNoise
    errors: WhoErrs | None = None


class Prepared(NamedTuple):
    """What an assessment goes by, and the recommenders that it judges."""

    evidence: Evidence
    noise_source: str
    predictions: Predictions
    trained: tuple[str, ...]
    calibrated: dict[str, int]
    calibrated_by_survey: dict[str, int]
    searches: dict[str, dict[str, Any]]
    errors: WhoErrs | None = None


class Wishes(NamedTuple):
    """What a user wants to be done with a log, as in `assess`; and whether a curve of errors is to be shown."""

    hold_out: float | None
    train: str | Sequence[str]
    exclude: Any
    calibrate: str | None
    curve: bool = True


def prepare(
    log: FeedbackLog,
    predictions: Predictions,
    labels: Labels,
    propensities: Any,
    wishes: Wishes,
    progress: Callable[[str], None],
    **settings: Any,
) -> Prepared:
    """Hold rows out, find out noise and propensities, train what is to be trained; `settings` are those of `Evidence`.

    Noise rates and propensities are those of the whole log; the rows that judge are a random part of it, whose
    propensities are thinned accordingly.
    """
    checked_log(log)
    predictions = adapt_all(predictions, log)
    check_labels(labels, log)
    methods, seed = checked_methods(wishes.train), settings["seed"]
    method = checked_calibration(wishes.calibrate)
    refuse_taken(methods, predictions)
    whole = self_selected(log)
    best, labels = rankings_only(labels)
    surveyed = labels.survey is not None or len(whole) < len(log)
    clicks = has_clicks_alone(whole if surveyed else judgeable(whole))
    progress("Learning how likely pairs are to be logged")
    likely = as_propensities(propensities, whole)
    progress("Finding out how noisy the labels are")
    noise, source = noise_of(whole, labels.rates, labels.audit, likely, settings["confidence"], seed, clicks=clicks)
    held = hold_out_rows(whole, wishes.hold_out, methods, seed)
    trained = train_all(methods, held, likely, noise, seed, progress)
    judging = held.judging if clicks else judgeable(held.judging)
    pairs = LoggedPairs(judging, likely if held.training is None else likely.thinned(held.share))
    survey, exclude = survey_of(labels.survey, log), excluded(wishes.exclude, held.training)
    asked = spoken_for(survey, log, exclude)
    made = calibrated(predictions, pairs, method, seed, asked, compared_with=trained.predictions)
    pairs = made.pairs
    audit = labels.audit if pairs.log is whole else audit_within(labels.audit, pairs.log)
    pairs = replace(pairs, audited=None if audit is None else audit.rows_in(pairs.log), errors=labels.errors)
    evidence = Evidence(
        pairs=pairs,
        judging=pairs if clicks else _judging(pairs, exclude, with_survey=survey is not None),
        audit=audit,
        noise=noise,
        survey=survey,
        best=best,
        exclude=exclude,
        lacking="" if survey is None else lacking_of(survey, pairs.log, exclude),
        clicks=clicks,
        **settings,
    )
    named = tuple(trained.predictions)
    errors = curve_of(whole, labels.audit) if labels.errors is None and wishes.curve else labels.errors
    return Prepared(evidence, source, made.predictions, named, made.by_log, made.by_survey, trained.searches, errors)


def check_labels(labels: Labels, log: FeedbackLog) -> None:
    """Refuse labels that are not of a log, or that say the same thing twice."""
    if labels.survey is not None:
        check_survey(labels.survey, log)
    if labels.audit is not None and labels.rates is not None:
        raise ParameterError("give an audit or noise_rates: one of the two")
    check_errors(labels.errors, log, labels.audit)


def rankings_only(labels: Labels) -> tuple[SurveySample | None, Labels]:
    """Return a survey of pairs among their users' best, which tells rankings and no losses, and the labels without."""
    if labels.survey is None or not labels.survey.best:
        return None, labels
    return labels.survey, labels._replace(survey=None)


def survey_of(survey: SurveySample | None, log: FeedbackLog) -> SurveySample | None:
    """Return the survey given, or else the rows that the log marks as shown at random."""
    if survey is None and log.unbiased is not None and log.unbiased.any():
        return SurveySample.from_unbiased(log)
    return survey


def _judging(pairs: LoggedPairs, exclude: Any, *, with_survey: bool) -> LoggedPairs:
    """Return the logged pairs that judge.

    Where none is left, survey and range still speak of those that nobody logged; what the log says is then of all.
    """
    try:
        with suppress(AuditError):
            return spoken_of(pairs, exclude)
        # The audit has told the noise rates, and no more: all of its pairs are left out.
        return spoken_of(replace(pairs, audited=None), exclude)
    except (EmptyLogError, LabelError):
        if pairs.propensities.known and not with_survey:
            raise
        warn_caller(
            "exclude leaves too few rows of the log to judge by: figures as logged and corrected are of all pairs, "
            "and show a recommender that was trained on these rows better than it is",
            OverlapWarning,
        )
        return replace(pairs, audited=None)


def not_spoken_of(survey: SurveySample | None, log: FeedbackLog, exclude: Any) -> int:
    """Return how many of a survey's pairs are excluded from what is spoken of."""
    if survey is None or exclude is None:
        return 0
    return int((~target_of(survey, log, exclude).holds(survey.users, survey.items)).sum())


def lacking_of(survey: SurveySample, log: FeedbackLog, exclude: Any) -> str:
    """Say why a survey establishes nothing, if it does not: by those of its pairs that are spoken of."""
    inside = target_of(survey, log, exclude).holds(survey.users, survey.items)
    # Where none is, no estimate can be made of it, which says so.
    return survey.select(inside).lacking if inside.any() else ""


def excluded(exclude: Any, training: FeedbackLog | None) -> Any:
    """Return the pairs that are not spoken of: those that a user names, and those that were trained on."""
    if exclude is None or training is None:
        return training if exclude is None else exclude
    return [exclude, training]
