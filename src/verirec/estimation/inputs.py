"""What every estimate asks of its log and its noise rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.adapters.adapt import adapted
from verirec.checks import real_number, whole_number
from verirec.data.cells import CellValues
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.data.top_lists import TopLists
from verirec.exceptions import (
    EmptyLogError,
    LabelError,
    NoiseRateWarning,
    ParameterError,
    ScoreWarning,
    warn_caller,
)
from verirec.losses import GroupedNoiseRates, NoiseRates, NoiseRegion, TransitionMatrix, TransitionRegion
from verirec.losses.noise_rates import WEAK_SIGNAL, checked_groups
from verirec.nuisance.click_model import clicks_only
from verirec.nuisance.propensities import Propensities

Rates = NoiseRates | GroupedNoiseRates
Noise = Rates | NoiseRegion | None
KnownNoise = Rates | TransitionMatrix
"""What corrects labels, binary or in levels."""
AnyNoise = Noise | TransitionMatrix | TransitionRegion

_FOR_LEVELS: Final = ", which is for a log that keeps its levels: read it with levels=[...]"
CLICKS_NEED: Final = (
    ": of clicks alone, a survey of random pairs will do (survey=...), or rows of 0 for what was shown and not clicked"
)
FEW: Final = 30
"""Rows below which a normal interval means little."""


def check_lists(values: CellValues, depths: Sequence[int]) -> None:
    """Refuse depths that no top-k list reaches, and say how many users have a shorter one, or none."""
    if not isinstance(values, TopLists):
        return
    if max(depths) > values.depth:
        raise ParameterError(f"k must be at most {values.depth}, the length of the longest list; got {max(depths)}")
    none = int((values.lengths == 0).sum())
    short = int((values.lengths < max(depths)).sum()) - none
    if none:
        warn_caller(
            f"{none:,} of {len(values.lengths):,} users have no list, and are not judged (but for recall, which is of "
            "all liked pairs)",
            ScoreWarning,
        )
    if short:
        warn_caller(
            f"{short:,} of {len(values.lengths):,} users have lists of fewer than {max(depths)} items: places that are "
            "not filled count as misses",
            ScoreWarning,
        )


def predictions_for(given: PredictionsLike, log: FeedbackLog) -> CellValues:
    """Bring predictions of any form to a log's grid: other libraries' models, and frames by their labels, too."""
    return as_predictions(adapted(given, log), log.n_users, log.n_items)


def judgeable(log: FeedbackLog, *, levels: bool = False) -> FeedbackLog:
    """Accept a log with rows of both classes; or, if `levels` may be kept, of more than one level."""
    if len(checked_log(log, levels=levels)) < 2:
        raise EmptyLogError(f"an estimate needs at least 2 rows; the log has {len(log)}")
    if log.levels is not None:
        if log.labels.min() == log.labels.max():
            value = log.levels[int(log.labels[0])]
            raise LabelError(f"an estimate needs rows of more than one level; all {len(log):,} are {value:g}")
        return log
    positives = int(log.labels.sum())
    if positives in (0, len(log)):
        raise LabelError(
            f"an estimate needs rows of both classes; all {len(log):,} are {'positive' if positives else 'negative'}"
            f"{CLICKS_NEED if positives else ''}"
        )
    return log


def has_clicks_alone(log: FeedbackLog) -> bool:
    """Tell whether a log is of clicks alone, whose labels a survey has; others must have rows of both classes."""
    if len(checked_log(log)) > 1 and clicks_only(log):
        return True
    judgeable(log)
    return False


def checked_rates(rates: Any, log: FeedbackLog) -> Rates | None:
    """Accept noise rates for a log's grid, or none."""
    if rates is not None and not isinstance(rates, NoiseRates | GroupedNoiseRates):
        raise ParameterError(
            f"noise_rates must be such as NoiseRates(rho01=.2, rho10=.1), GroupedNoiseRates or a NoiseRegion; got "
            f"{type(rates).__name__}{_FOR_LEVELS if isinstance(rates, TransitionMatrix) else ''}"
        )
    if isinstance(rates, GroupedNoiseRates):
        rates.check_grid(log.n_users, log.n_items)
    return rates


def checked_transitions(noise: Any, log: FeedbackLog) -> TransitionMatrix | TransitionRegion | None:
    """Accept a transition matrix for the levels that a log keeps, a region of them, or none."""
    assert log.levels is not None  # noqa: S101 -- binary logs have noise rates
    if noise is not None and not isinstance(noise, TransitionMatrix | TransitionRegion):
        raise ParameterError(
            f"noise_rates of a log of {len(log.levels)} levels must be a TransitionMatrix or a "
            f"TransitionRegion; got {type(noise).__name__}"
        )
    if noise is not None and noise.n_levels != len(log.levels):
        raise ParameterError(
            f"the transition matrix must have a row for each of the log's {len(log.levels)} levels; got "
            f"{noise.n_levels}"
        )
    return noise


def checked_noise(noise: Any, log: FeedbackLog) -> Noise:
    """Accept noise rates, a region of them, or none."""
    return noise if isinstance(noise, NoiseRegion) else checked_rates(noise, log)


def checked_clip(clip: object) -> float | None:
    """Accept a distance from 0 and 1, or none."""
    return None if clip is None else real_number("clip", clip, above=0, below=0.5)


def checked_sample(sample: object) -> int | None:
    """Accept a number of unobserved pairs to visit, or none for all: fewer than 10 do not tell how much they vary."""
    return None if sample is None else whole_number("sample", sample, min=10, max=1_000_000_000)


def checked_user_groups(groups: Any, log: FeedbackLog, interval: str) -> npt.NDArray[np.int64] | None:
    """Accept the group of each user, for a bootstrap, or none."""
    if groups is None:
        return None
    if interval != "bootstrap":
        raise ParameterError("user_groups are what a bootstrap draws: they need interval='bootstrap'")
    found = checked_groups("user_groups", groups, 2**31)
    if len(found) != checked_log(log, levels=True).n_users:
        raise ParameterError(f"user_groups must have {log.n_users:,} entries, one a user; got {len(found):,}")
    # Numbers that no user has would be drawn as empty groups.
    return np.unique(found, return_inverse=True)[1]


def refuse_weights(log: FeedbackLog, helpless: list[str]) -> None:
    """Raise `ParameterError` if a log has row weights and there is an estimate that cannot use them."""
    if log.weights is not None and helpless:
        raise ParameterError(
            f"the log has row weights, which {', '.join(helpless)} cannot use: the unobserved pairs have none"
        )


def warn_of_little_signal(rates: KnownNoise | None) -> None:
    """Say so where noise leaves so little of the signal, or may leave so little, that corrected estimates say nothing.

    A correction divides by kappa, which is taken for exact but for a first-order term: not so near to 0.
    """
    if isinstance(rates, TransitionMatrix):
        return  # It says so itself.
    each = () if rates is None else (rates,) if isinstance(rates, NoiseRates) else rates.rates
    least = min((one.least_kappa for one in each), default=1.0)
    if least < WEAK_SIGNAL:
        kappa = min(one.kappa for one in each)
        told = f"is {kappa:.3g}" if kappa < WEAK_SIGNAL else f"is {kappa:.3g}, and may be as small as {least:.3g}"
        warn_caller(
            f"kappa = 1 - rho01 - rho10 {told}: corrected estimates multiply the labels' noise by 1/kappa, and say "
            "next to nothing",
            NoiseRateWarning,
        )


def warn_of_unweighted_audit(propensities: Propensities, rates: KnownNoise | None) -> None:
    """Say so where labels decide what is logged, and an audit of logged pairs was taken as it was."""
    if rates is None or not propensities.depends_on_label:
        return
    for one in rates.rates if isinstance(rates, GroupedNoiseRates) else [rates]:
        if one.audit is not None and not one.diagnostics.get("weighted", False):
            warn_caller(
                "these propensities depend on the label, and the audit behind the noise rates was not weighted by "
                "them: fit it with propensities=...",
                NoiseRateWarning,
            )
            return
