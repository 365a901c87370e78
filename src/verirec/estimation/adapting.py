"""Models of other libraries, given as they are: adapted and, where they give scores, calibrated by rows set apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from verirec.adapters.adapt import adapted
from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike
from verirec.estimation.gathering import audit_within, logged_pairs, noise_in_hand
from verirec.estimation.inputs import AnyNoise, checked_noise, judgeable
from verirec.estimation.score_calibration import calibrated, gives_scores, spoken_for
from verirec.estimation.setup import drawn_seed
from verirec.exceptions import ScoreWarning, naming, warn_caller
from verirec.nuisance.noise_rates import AuditSample
from verirec.nuisance.surveys import SurveySample
from verirec.randomness import RandomState, same_state


class Entered(NamedTuple):
    """Predictions, and what they are judged by: as they were given, or the rows that calibration left."""

    predictions: list[PredictionsLike]
    log: FeedbackLog
    propensities: Any
    noise_rates: AnyNoise
    audit: AuditSample | None


def enter(
    given: Sequence[PredictionsLike],
    log: FeedbackLog,
    propensities: Any,
    noise_rates: AnyNoise,
    audit: AuditSample | None,
    random_state: RandomState,
    survey: SurveySample | None = None,
    exclude: Any = None,
) -> Entered:
    """Adapt what other libraries made; where that gives scores, calibrate them, and say so: see `calibrated`.

    Propensities and noise rates are those of the whole log, the former thinned for the rows that are left to judge by.
    """
    found = {place: adapted(one, log) for place, one in enumerate(given)}
    if not any(gives_scores(one, log) for one in found.values()):
        return Entered(list(found.values()), log, propensities, noise_rates, audit)
    pairs = logged_pairs(judgeable(log), propensities, audit)
    noise = noise_in_hand(checked_noise(noise_rates, log), pairs, audit)
    asked = spoken_for(survey, log, exclude)
    made, rest, rows, asked_of = calibrated(found, pairs, None, drawn_seed(same_state(random_state)), asked)
    for place, count in rows.items():
        warn_caller(
            f"{found[place].source} gives scores: they were made probabilities by {count:,} of the log's {len(log):,} "
            "rows, set apart at random, and are judged by the others",
            ScoreWarning,
        )
    for place in asked_of:
        source = getattr(found[place], "source", "the other recommender")
        warn_caller(
            f"{source} was calibrated by the survey's {asked_of[place]:,} pairs, each of which is judged by a curve of "
            "the others: scores were made probabilities, and what they are compared with was treated alike",
            ScoreWarning,
        )
    return Entered(list(made.values()), rest.log, rest.propensities, noise, audit_within(audit, rest.log))


def adapt_all(predictions: Mapping[str, PredictionsLike], log: FeedbackLog) -> dict[str, PredictionsLike]:
    """Adapt those that other libraries made; an error says which."""
    found = {}
    for name, given in predictions.items():
        with naming(name):
            found[name] = adapted(given, log)
    return found
