"""Models of other libraries, given as they are: adapted and, where they give scores, calibrated by rows set apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from verirec.adapters.adapt import adapted
from verirec.adapters.adapted import Adapted
from verirec.checks import one_of
from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike
from verirec.estimation.calibration import METHODS, apart_for_calibration, calibrate_by, need_calibration
from verirec.estimation.gathering import audit_within, logged_pairs, noise_in_hand
from verirec.estimation.inputs import AnyNoise, checked_noise, judgeable
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.setup import drawn_seed
from verirec.exceptions import ScoreWarning, naming, warn_caller
from verirec.nuisance.noise_rates import AuditSample
from verirec.randomness import RandomState, same_state

Name = TypeVar("Name")


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
) -> Entered:
    """Adapt what other libraries made; where that gives scores, calibrate them by a fifth of the rows, and say so.

    Propensities and noise rates are those of the whole log, the former thinned for the rows that are left to judge by.
    """
    found = {place: adapted(one, log) for place, one in enumerate(given)}
    if not any(gives_scores(one, log) for one in found.values()):
        return Entered(list(found.values()), log, propensities, noise_rates, audit)
    pairs = logged_pairs(judgeable(log), propensities, audit)
    noise = noise_in_hand(checked_noise(noise_rates, log), pairs, audit)
    made, rest, rows = calibrated_apart(found, pairs, None, drawn_seed(same_state(random_state)))
    for place, count in rows.items():
        warn_caller(
            f"{found[place].source} gives scores: they were made probabilities by {count:,} of the log's {len(log):,} "
            "rows, set apart at random, and are judged by the others",
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


def checked_calibration(method: object) -> Any:
    """Accept a method of calibration, or none."""
    return None if method is None else one_of("calibrate", method, METHODS)


def calibrated_apart(
    predictions: dict[Name, PredictionsLike], pairs: LoggedPairs, method: Any, seed: RandomState
) -> tuple[dict[Name, PredictionsLike], LoggedPairs, dict[Name, int]]:
    """Make probabilities of scores that are none by some of the rows, and leave the others to judge all.

    Parameters
    ----------
    predictions, pairs
        By name, adapted; and the logged pairs.
    method
        Of `calibrate`; `None` for those of other libraries' models alone, by "platt".
    seed
        Of which rows are set apart.

    Returns
    -------
    The predictions, the pairs that judge, and by how many rows each that was calibrated was.
    """
    scores = {
        name: one
        for name, one in predictions.items()
        if gives_scores(one, pairs.log) or (method is not None and need_calibration(one, pairs.log))
    }
    if not scores:
        return predictions, pairs, {}
    apart, rest = apart_for_calibration(pairs, random_state=seed)
    fitted = {name: calibrate_by(apart, one, method or "platt") for name, one in scores.items()}
    made = {name: one for name, (one, _) in fitted.items()}
    return predictions | made, rest, {name: rows for name, (_, rows) in fitted.items()}


def gives_scores(given: PredictionsLike, log: FeedbackLog) -> bool:
    """Tell whether these are of another library's making, and no probabilities; levels are judged as they are."""
    if not isinstance(given, Adapted) or log.levels is not None:
        return False
    return need_calibration(given, log) if given.probabilities is None else not given.probabilities
