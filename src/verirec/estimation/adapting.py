"""Models of other libraries, given as they are: adapted and, where they give scores, calibrated by rows set apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from verirec.adapters.adapt import adapted
from verirec.adapters.adapted import Adapted
from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike
from verirec.estimation.calibration import apart_for_calibration, calibrate_by, need_calibration
from verirec.estimation.gathering import audit_within, logged_pairs, noise_in_hand
from verirec.estimation.inputs import Noise, checked_noise, judgeable
from verirec.estimation.setup import drawn_seed
from verirec.exceptions import ScoreWarning, warn_caller
from verirec.nuisance.noise_rates import AuditSample
from verirec.randomness import RandomState, same_state


class Entered(NamedTuple):
    """Predictions, and what they are judged by: as they were given, or the rows that calibration left."""

    predictions: list[PredictionsLike]
    log: FeedbackLog
    propensities: Any
    noise_rates: Noise
    audit: AuditSample | None


def enter(
    given: Sequence[PredictionsLike],
    log: FeedbackLog,
    propensities: Any,
    noise_rates: Noise,
    audit: AuditSample | None,
    random_state: RandomState,
) -> Entered:
    """Adapt what other libraries made; where that gives scores, calibrate them by a fifth of the rows, and say so.

    Propensities and noise rates are those of the whole log, the former thinned for the rows that are left to judge by.
    """
    found = [adapted(one, log) for one in given]
    if not any(gives_scores(one, log) for one in found):
        return Entered(found, log, propensities, noise_rates, audit)
    pairs = logged_pairs(judgeable(log), propensities, audit)
    noise = noise_in_hand(checked_noise(noise_rates, log), pairs, audit)
    apart, rest = apart_for_calibration(pairs, random_state=drawn_seed(same_state(random_state)))
    for place, one in enumerate(found):
        if gives_scores(one, log):
            found[place], rows = calibrate_by(apart, one, "platt")
            warn_caller(
                f"{one.source} gives scores: they were made probabilities by {rows:,} of the log's {len(log):,} rows, "
                "set apart at random, and are judged by the others",
                ScoreWarning,
            )
    return Entered(found, rest.log, rest.propensities, noise, audit_within(audit, rest.log))


def gives_scores(given: PredictionsLike, log: FeedbackLog) -> bool:
    """Tell whether these are of another library's making, and no probabilities."""
    return isinstance(given, Adapted) and need_calibration(given, log)
