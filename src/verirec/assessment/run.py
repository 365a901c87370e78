"""An assessment, step by step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from verirec.assessment.recommenders import Settings, judge_all
from verirec.assessment.result import Assessment
from verirec.checks import real_number
from verirec.data.feedback_log import FeedbackLog
from verirec.estimation import estimate
from verirec.estimation.inputs import Rates, checked_clip, checked_rates, checked_sample, judgeable
from verirec.estimation.intervals import checked_confidence
from verirec.estimation.planning import LabelPlan, plan_labels
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import AuditError, ParameterError, VerirecWarning
from verirec.losses import LossLike, NoiseRegion, get_loss
from verirec.nuisance.noise_rates import AuditSample, identified_region, rates_from_audit
from verirec.nuisance.propensities import Propensities, as_propensities
from verirec.nuisance.suspects import find_suspect_labels
from verirec.randomness import RandomState, same_state

if TYPE_CHECKING:
    from verirec.data.predictions import PredictionsLike

Array = npt.NDArray[np.float64]

HALF_WIDTH: Final = 0.03
"""Of the rates, in the plan that an assessment without true labels proposes."""
_GRID_SAMPLE: Final = 100_000


def assess(
    log: FeedbackLog,
    predictions: Mapping[str, PredictionsLike] | None = None,
    *,
    audit: AuditSample | None = None,
    noise_rates: Rates | None = None,
    propensities: Any = None,
    loss: LossLike = "log",
    confidence: float = 0.95,
    clip: float | None = None,
    sample: int | None = None,
    truth: Mapping[str, float] | None = None,
    progress: Callable[[str], None] = lambda step: None,
    random_state: RandomState = 0,
) -> Assessment:
    """Assess a log and the recommenders that are judged on it; see `verirec assess`.

    Parameters
    ----------
    log
        With rows of both classes.
    predictions
        Recommenders by name, in any form of predictions.
    audit, noise_rates
        True labels of some logged pairs, or the rates themselves; without either, the assessment works with the region
        that the log allows, and plans an audit.
    propensities, loss, confidence, clip, sample, random_state
        As in `estimate`.
    truth
        True inaccuracies by recommender, where a simulated world knows them.
    progress
        Told in words what comes next.

    Examples
    --------
    >>> from verirec import NoiseRates, simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> found = assess(world.log, {"mine": 0.2 + 0.6 * world.preferences}, noise_rates=NoiseRates(0.2, 0.1))
    >>> sorted(found.recommenders["mine"].estimates)
    ['dr', 'naive', 'ome', 'ome-dr', 'ome-snips', 'snips']
    """
    if audit is not None and noise_rates is not None:
        raise ParameterError("give an audit or noise_rates: one of the two")
    given, known = _named("predictions", predictions), _named("truth", truth)
    known = {name: real_number(f"truth of {name}", value) for name, value in known.items()}
    # One number for all parts: a generator would be drawn from anew by each.
    seed, level = same_state(random_state), checked_confidence(confidence)
    judged_by = get_loss(loss)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        progress("Learning how likely pairs are to be logged")
        pairs = LoggedPairs(judgeable(log), as_propensities(propensities, log))
        progress("Finding out how noisy the labels are")
        noise, source = _noise(pairs, audit, noise_rates, level, seed)
        settings = Settings(noise, loss, level, checked_clip(clip), checked_sample(sample), seed)
        judged = judge_all(given, pairs, settings, progress)
        liked = _liked(pairs, settings)
        progress("Looking for wrong labels")
        suspects = None if isinstance(noise, NoiseRegion) else find_suspect_labels(log, noise, random_state=seed)
        plan = _plan(log, level, seed) if isinstance(noise, NoiseRegion) else None
    return Assessment(
        log=log,
        loss=judged_by.name,
        confidence=level,
        propensities=pairs.propensities,
        propensity_diagnostics=pairs.propensities.diagnostics(log),
        grid_propensities=_grid_propensities(pairs.propensities, log),
        noise=noise,
        noise_source=source,
        recommenders=judged.recommenders,
        comparisons=judged.comparisons,
        incomparable=judged.incomparable,
        sensitivity=judged.sensitivity,
        suspects=suspects,
        plan=plan,
        liked_as_logged=float(log.labels.mean()),
        liked_corrected=liked,
        warnings=_told(caught),
        truth=known,
    )


def _named(argument: str, given: Any) -> dict[str, Any]:
    """Accept a mapping of recommenders' names, which are text that can be written down."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ParameterError(f"{argument} must be a mapping of recommenders' names; got {type(given).__name__}")
    for name in given:
        if not isinstance(name, str) or not name.isprintable() or not name.strip():
            raise ParameterError(f"{argument} must name recommenders by printable text; got {name!r}")
    return dict(given)


def _plan(log: FeedbackLog, confidence: float, seed: Any) -> LabelPlan | None:
    """Plan an audit, if the log has rows enough for one."""
    try:
        return plan_labels(log, half_width=HALF_WIDTH, confidence=confidence, random_state=seed)
    except AuditError:
        return None


def _liked(pairs: LoggedPairs, settings: Settings) -> Any:
    """Estimate the share of liked pairs: the mean of a "loss" that counts a liked pair as 1."""

    def half(users: npt.NDArray[Any], items: npt.NDArray[Any]) -> Array:
        return np.full(len(users), 0.5)

    def is_liked(predictions: Array, labels: Array) -> Array:
        return labels

    return estimate(
        half,
        pairs.log,
        estimators="ome-snips",
        loss=is_liked,
        propensities=pairs.propensities,
        noise_rates=settings.noise,
        confidence=settings.confidence,
    )["ome-snips"]


def _told(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return our own warnings, each once; others go on to the caller."""
    for warning in caught:
        if not issubclass(warning.category, VerirecWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    own = [str(warning.message) for warning in caught if issubclass(warning.category, VerirecWarning)]
    return tuple(dict.fromkeys(own))


def _noise(
    pairs: LoggedPairs, audit: AuditSample | None, rates: Rates | None, confidence: float, seed: Any
) -> tuple[Rates | NoiseRegion, str]:
    if rates is not None:
        checked_rates(rates, pairs.log)
        return rates, "given"
    if audit is not None:
        return rates_from_audit(pairs.log, audit, pairs.propensities)
    return identified_region(pairs.log, confidence=confidence, random_state=seed), "all that the log allows"


def _grid_propensities(propensities: Propensities, log: FeedbackLog) -> Array:
    if not propensities.known_everywhere:
        return np.empty(0)
    cells = np.random.default_rng(0).integers(log.n_cells, size=min(_GRID_SAMPLE, 4 * log.n_cells))
    return np.asarray(propensities.at(*np.divmod(cells, log.n_items)), dtype=np.float64)
