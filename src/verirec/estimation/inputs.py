"""What every estimate asks of its log and its noise rates."""

from __future__ import annotations

from typing import Any, Final

from verirec.checks import real_number, whole_number
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.exceptions import EmptyLogError, LabelError, NoiseRateWarning, ParameterError, warn_caller
from verirec.losses import GroupedNoiseRates, NoiseRates, NoiseRegion
from verirec.nuisance.propensities import Propensities

Rates = NoiseRates | GroupedNoiseRates
Noise = Rates | NoiseRegion | None

FEW: Final = 30
"""Rows below which a normal interval means little."""


def judgeable(log: FeedbackLog) -> FeedbackLog:
    """Accept a log with rows of both classes."""
    if len(checked_log(log)) < 2:
        raise EmptyLogError(f"an estimate needs at least 2 rows; the log has {len(log)}")
    positives = int(log.labels.sum())
    if positives in (0, len(log)):
        raise LabelError(
            f"an estimate needs rows of both classes; all {len(log):,} are {'positive' if positives else 'negative'}"
        )
    return log


def checked_rates(rates: Any, log: FeedbackLog) -> Rates | None:
    """Accept noise rates for a log's grid, or none."""
    if rates is not None and not isinstance(rates, NoiseRates | GroupedNoiseRates):
        raise ParameterError(
            f"noise_rates must be such as NoiseRates(rho01=.2, rho10=.1), GroupedNoiseRates or a NoiseRegion; got "
            f"{type(rates).__name__}"
        )
    if isinstance(rates, GroupedNoiseRates):
        rates.check_grid(log.n_users, log.n_items)
    return rates


def checked_noise(noise: Any, log: FeedbackLog) -> Noise:
    """Accept noise rates, a region of them, or none."""
    return noise if isinstance(noise, NoiseRegion) else checked_rates(noise, log)


def checked_clip(clip: object) -> float | None:
    """Accept a distance from 0 and 1, or none."""
    return None if clip is None else real_number("clip", clip, above=0, below=0.5)


def checked_sample(sample: object) -> int | None:
    """Accept a number of unobserved pairs to visit, or none for all."""
    return None if sample is None else whole_number("sample", sample, min=2, max=1_000_000_000)


def refuse_weights(log: FeedbackLog, helpless: list[str]) -> None:
    """Raise `ParameterError` if a log has row weights and there is an estimate that cannot use them."""
    if log.weights is not None and helpless:
        raise ParameterError(
            f"the log has row weights, which {', '.join(helpless)} cannot use: the unobserved pairs have none"
        )


def warn_of_unweighted_audit(propensities: Propensities, rates: Rates | None) -> None:
    """Say so where labels decide what is logged, and an audit of logged pairs was taken as it was."""
    if rates is None or not propensities.depends_on_label:
        return
    for one in [rates] if isinstance(rates, NoiseRates) else rates.rates:
        if one.audit is not None and not one.diagnostics.get("weighted", False):
            warn_caller(
                "these propensities depend on the label, and the audit behind the noise rates was not weighted by "
                "them: fit it with propensities=...",
                NoiseRateWarning,
            )
            return
