"""What estimates of any kind start from: the logged pairs, what is known of their noise, and the estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.catalogue import Estimator, chosen
from verirec.estimation.inputs import Noise, checked_noise, judgeable
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import AuditError, NoiseRateError, ParameterError
from verirec.losses import NoiseRates
from verirec.nuisance.noise_rates import AuditedRows, AuditSample, rates_from_audit
from verirec.nuisance.propensities import as_propensities


class Gathered(NamedTuple):
    """What an estimate starts from, checked."""

    pairs: LoggedPairs
    noise: Noise
    estimators: list[Estimator]


def gather(
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: Noise = None,
    audit: AuditSample | None = None,
    estimators: str | Sequence[str] | None = None,
) -> Gathered:
    """Check what an estimate is given (see `estimate`); where there are no noise rates, an audit gives them.

    An audit that cannot tell them, of one true class say, still serves the estimators that its labels are in.
    """
    with_audit = audit is not None
    selected = chosen(estimators, with_rates=noise_rates is not None or with_audit, with_audit=with_audit)
    noise = checked_noise(noise_rates, judgeable(log))
    audited = audited_rows(audit, log)
    pairs = LoggedPairs(log, as_propensities(propensities, log), audited)
    if audit is not None and noise is None:
        try:
            noise = own_rates(audit, pairs)
        except (AuditError, NoiseRateError):
            if estimators not in (None, "all") and any(one.source == "log" and one.noise_corrected for one in selected):
                raise
            selected = chosen(estimators, with_rates=False, with_audit=True)
    return Gathered(pairs, noise, selected)


def audited_rows(audit: object, log: FeedbackLog) -> AuditedRows | None:
    """Look an audit's pairs up in the log, if there is one."""
    if audit is None:
        return None
    if not isinstance(audit, AuditSample):
        raise ParameterError(f"audit must be an AuditSample; got {type(audit).__name__}")
    return audit.rows_in(log)


def own_rates(audit: AuditSample, pairs: LoggedPairs) -> NoiseRates:
    """Estimate noise rates from the audit itself."""
    return rates_from_audit(pairs.log, audit, pairs.propensities)[0]
