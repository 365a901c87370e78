"""From what a user gives to the evidence that an assessment goes by: rows held out, noise and propensities known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from verirec.assessment.evidence import Evidence
from verirec.assessment.training import checked_methods, hold_out_rows, train_all
from verirec.checks import one_of
from verirec.data.cells import cell_keys
from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike
from verirec.estimation.calibration import METHODS, apart_for_calibration, calibrate_by, need_calibration
from verirec.estimation.inputs import Rates, checked_rates, judgeable
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.survey.draws import self_selected
from verirec.exceptions import ParameterError
from verirec.losses import NoiseRates, NoiseRegion
from verirec.nuisance.noise_rates import AuditSample, identified_region, rates_from_audit
from verirec.nuisance.propensities import Propensities, as_propensities
from verirec.nuisance.surveys import SurveySample

Predictions = dict[str, PredictionsLike]


class Labels(NamedTuple):
    """Labels in hand, as a user gave them."""

    audit: AuditSample | None
    survey: SurveySample | None
    rates: Rates | None


class Prepared(NamedTuple):
    """What an assessment goes by, and the recommenders that it judges."""

    evidence: Evidence
    noise_source: str
    predictions: Predictions
    trained: tuple[str, ...]
    calibrated: dict[str, int]


class Wishes(NamedTuple):
    """What a user wants to be done with a log, as in `assess`."""

    hold_out: float | None
    train: str | Sequence[str]
    exclude: Any
    calibrate: str | None


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
    if labels.audit is not None and labels.rates is not None:
        raise ParameterError("give an audit or noise_rates: one of the two")
    methods, seed = checked_methods(wishes.train), settings["seed"]
    if wishes.calibrate is not None:
        one_of("calibrate", wishes.calibrate, METHODS)
    taken = sorted(set(methods) & set(predictions))
    if taken:
        raise ParameterError(f"predictions and train both name {taken[0]!r}")
    whole = judgeable(self_selected(log))
    progress("Learning how likely pairs are to be logged")
    likely = as_propensities(propensities, whole)
    progress("Finding out how noisy the labels are")
    noise, source = _noise(whole, labels, likely, settings["confidence"], seed)
    held = hold_out_rows(whole, wishes.hold_out, methods, seed)
    trained = train_all(methods, held, likely, noise, seed, progress)
    pairs = LoggedPairs(judgeable(held.judging), likely if held.training is None else likely.thinned(held.share))
    calibrated: dict[str, int] = {}
    if wishes.calibrate is not None:
        predictions, pairs, calibrated = _calibrated(predictions, pairs, wishes.calibrate, seed)
    audit = labels.audit if pairs.log is whole else _audit_within(labels.audit, pairs.log)
    evidence = Evidence(
        pairs=replace(pairs, audited=None if audit is None else audit.rows_in(pairs.log)),
        audit=audit,
        noise=noise,
        survey=_survey(labels.survey, log),
        exclude=_left_out(wishes.exclude, held.training),
        **settings,
    )
    return Prepared(evidence, source, predictions | trained, tuple(trained), calibrated)


def _noise(
    log: FeedbackLog, labels: Labels, propensities: Propensities, confidence: float, seed: int
) -> tuple[Rates | NoiseRegion, str]:
    if labels.rates is not None:
        checked_rates(labels.rates, log)
        return labels.rates, labels.rates.source if isinstance(labels.rates, NoiseRates) else "given"
    if labels.audit is not None:
        return rates_from_audit(log, labels.audit, propensities)
    return identified_region(log, confidence=confidence, random_state=seed), "all that the log allows"


def _survey(survey: SurveySample | None, log: FeedbackLog) -> SurveySample | None:
    """Return the survey given, or else the rows that the log marks as shown at random."""
    if survey is None and log.unbiased is not None and log.unbiased.any():
        return SurveySample.from_unbiased(log)
    return survey


def _audit_within(audit: AuditSample | None, log: FeedbackLog) -> AuditSample | None:
    """Return the audited ones among the rows that judge; those of other parts have told the noise rates already."""
    if audit is None:
        return None
    keys = cell_keys(audit.users, audit.items, log.n_items)
    inside = np.isin(keys, cell_keys(log.users, log.items, log.n_items))
    return audit.select(inside) if inside.any() else None


def _calibrated(
    predictions: Predictions, pairs: LoggedPairs, method: str, seed: int
) -> tuple[Predictions, LoggedPairs, dict[str, int]]:
    """Make probabilities of scores that are none by some of the rows, and leave the others to judge all.

    The last of the three is by how many rows each of them was calibrated.
    """
    scores = {name: one for name, one in predictions.items() if need_calibration(one, pairs.log)}
    if not scores:
        return predictions, pairs, {}
    apart, rest = apart_for_calibration(pairs, random_state=seed)
    fitted = {name: calibrate_by(apart, one, method) for name, one in scores.items()}  # type: ignore[arg-type]
    made: Predictions = {name: one for name, (one, _) in fitted.items()}
    return predictions | made, rest, {name: rows for name, (_, rows) in fitted.items()}


def _left_out(exclude: Any, training: FeedbackLog | None) -> Any:
    if exclude is None or training is None:
        return training if exclude is None else exclude
    return [exclude, training]
