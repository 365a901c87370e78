"""What an assessment takes for the noise of a log's labels."""

from __future__ import annotations

from functools import partial
from typing import Final

from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.inputs import AnyNoise, Rates, checked_rates
from verirec.losses import NoiseRates, NoiseRegion
from verirec.nuisance.noise_rates import AuditErrorCurve, AuditSample, ErrorCurve, identified_region, rates_from_audit
from verirec.nuisance.propensities import Propensities
from verirec.resuming import kept, within

_ENOUGH: Final = 50
"""Audited pairs of each class that tell a curve of errors well enough to be shown."""


def noise_of(
    log: FeedbackLog,
    given: AnyNoise,
    audit: AuditSample | None,
    propensities: Propensities,
    confidence: float,
    seed: int,
    *,
    clicks: bool,
) -> tuple[Rates | NoiseRegion, str]:
    """Return rates, or a region of them, and where they come from: given, by the audit, or all that the log allows."""
    rates = checked_rates(given, log)
    if rates is not None:
        return rates, rates.source if isinstance(rates, NoiseRates) else "given"
    if clicks:
        return NoiseRates(0.0, 0.0), "clicks alone, which have no labels that could be wrong"
    if audit is not None:
        audited = kept("noise", partial(rates_from_audit, log, audit, propensities))
        return audited, audited.source
    region = partial(identified_region, log, confidence=confidence, random_state=seed)
    return kept("noise", region), "all that the log allows"


def curve_of(log: FeedbackLog, audit: AuditSample | None) -> ErrorCurve | None:
    """Return how often labels are wrong along a score, where an audit is large enough to tell."""
    if audit is None:
        return None
    rows, truths, _ = audit.rows_in(log)
    enough = min(int((truths == label).sum()) for label in (0, 1)) >= _ENOUGH
    with within("who errs"):
        return AuditErrorCurve().fit(log, audit=audit) if enough and 0 < log.labels[rows].mean() < 1 else None
