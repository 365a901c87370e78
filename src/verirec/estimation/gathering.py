"""What estimates of any kind start from: the logged pairs, what is known of their noise, and the estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.catalogue import Chosen, chosen_by_source
from verirec.estimation.inputs import Noise, checked_noise, judgeable
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import AuditError, NoiseRateError, ParameterError
from verirec.nuisance.noise_rates import AuditSample, rates_from_audit
from verirec.nuisance.propensities import as_propensities
from verirec.nuisance.surveys import SurveySample


class Gathered(NamedTuple):
    """What an estimate starts from, checked; pairs only if some estimator needs them."""

    pairs: LoggedPairs | None
    noise: Noise
    estimators: Chosen


def gather(
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: Noise = None,
    audit: AuditSample | None = None,
    survey: SurveySample | None = None,
    exclude: Any = None,
    selection: Any = None,
    estimators: str | Sequence[str] | None = None,
) -> Gathered:
    """Check what an estimate is given (see `estimate`); where there are no noise rates, an audit gives them.

    An audit that cannot tell them, of one true class say, still serves the estimators that its labels are in.
    """
    there = {"with_audit": audit is not None, "with_survey": survey is not None}

    def selected_with(rates: object) -> Chosen:
        found = chosen_by_source(estimators, with_rates=rates is not None, **there)
        found = found if selection is None else found.with_range(with_rates=rates is not None)
        return found if exclude is None else _excluding(found, by_default=estimators is None)

    selected = selected_with(audit if noise_rates is None else noise_rates)
    noise = checked_noise(noise_rates, judgeable(log))
    if audit is None and not selected.log and not selected.ranged:
        return Gathered(None, noise, selected)
    pairs = logged_pairs(log, propensities, audit)
    named = estimators is not None and estimators != "all"
    needed = named and any(one.noise_corrected and not one.audited for one in selected.log)
    noise = noise_in_hand(noise, pairs, audit, needed=needed)
    if noise is None:
        selected = selected_with(None)
    return Gathered(pairs, noise, selected)


def _excluding(found: Chosen, *, by_default: bool) -> Chosen:
    """Keep a survey's estimators and a range where pairs are left out: a log's rows would stand for all pairs."""
    if not found.log:
        return found
    if by_default and (found.survey or found.ranged):
        return found._replace(log=[])
    raise ParameterError(
        f"exclude needs a survey, and estimators that rest on it alone: {', '.join(one.name for one in found.log)} "
        "would speak of all pairs"
    )


def logged_pairs(log: FeedbackLog, propensities: Any, audit: object) -> LoggedPairs:
    """Put a log, its propensities and an audit together, if there is one."""
    if audit is not None and not isinstance(audit, AuditSample):
        raise ParameterError(f"audit must be an AuditSample; got {type(audit).__name__}")
    audited = None if audit is None else audit.rows_in(log)
    return LoggedPairs(log, as_propensities(propensities, log), audited)


def noise_in_hand(noise: Noise, pairs: LoggedPairs, audit: AuditSample | None, *, needed: bool = False) -> Noise:
    """Return the noise rates given, or else those that the audit tells; `None` if it cannot and they are not needed."""
    if noise is not None or audit is None:
        return noise
    try:
        return rates_from_audit(pairs.log, audit, pairs.propensities)[0]
    except (AuditError, NoiseRateError):
        if needed:
            raise
        return None
