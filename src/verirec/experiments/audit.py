"""The audit: what a log can tell of how selective and noisy it is, and of how good recommenders really are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import cell_keys
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimators import Estimate, EstimateRange, Estimates, compare, estimate, sensitivity
from verirec.estimators.catalogue import chosen
from verirec.estimators.estimate import make_study
from verirec.estimators.inputs import checked_clip, checked_sample, judgeable
from verirec.estimators.sensitivity import Sensitivity
from verirec.estimators.study import Study
from verirec.exceptions import AuditError, ParameterError, PredictionError, VerirecWarning
from verirec.losses import GroupedNoiseRates, LossLike, NoiseRates, NoiseRegion, get_loss
from verirec.nuisances.noise_rates import AuditPlan, AuditSample, identified_region, plan_audit, rates_from_audit
from verirec.nuisances.propensities import Propensities, PropensityDiagnostics, as_propensities
from verirec.nuisances.suspects import SuspectLabels, find_suspect_labels
from verirec.randomness import RandomState, same_state

Array = npt.NDArray[np.float64]
Rates = NoiseRates | GroupedNoiseRates

ON_LOGGED: Final = ("naive", "snips", "ome", "ome-snips")
"""Estimators for predictions of the logged pairs only."""
ON_ALL: Final = ("naive", "snips", "dr", "ome", "ome-snips", "ome-dr")
HALF_WIDTH: Final = 0.03
"""Of the rates, in the plan that an audit without true labels proposes."""
_GRID_SAMPLE: Final = 100_000


@dataclass(frozen=True, eq=False)
class Recommender:
    """What an audit found of one recommender.

    Parameters
    ----------
    estimates
        By estimator.
    main, selection_only
        Names of the estimate to go by, and of the one corrected for selection only.
    coverage
        In words, what part of the pairs its predictions cover, if not all.
    """

    estimates: Estimates
    main: str
    selection_only: str
    coverage: str = ""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two recommenders, and the difference of their inaccuracies, first minus second."""

    first: str
    second: str
    naive: Estimate
    corrected: Estimate | EstimateRange

    @property
    def established(self) -> str | None:
        """The better one, if the corrected interval leaves no doubt."""
        low, high = self.corrected.interval
        return self.first if high < 0 else self.second if low > 0 else None

    @property
    def naive_choice(self) -> str:
        """The one that looks better in the log as it stands."""
        return self.first if self.naive.value < 0 else self.second


@dataclass(frozen=True, eq=False)
class LogAudit:
    """A finished audit.

    Parameters
    ----------
    log
        The log.
    propensities, propensity_diagnostics
        How likely pairs are to be logged, and how far that can be trusted.
    grid_propensities
        Of a random sample of all pairs, for a picture.
    noise, noise_source
        Rates or a region, and where they come from.
    recommenders, comparisons
        By name; every two of them.
    sensitivity
        Surfaces over the noise rates, and ranges under wrong propensities; `None` without recommenders for all pairs.
    suspects
        Rows by the probability that their label is wrong; `None` where only a region is known.
    plan
        Which pairs to ask about, where no true label is known.
    liked_as_logged, liked_corrected
        Share of positive labels in the log, and of liked pairs among all, with its interval.
    warnings
        What the parts of the audit warned of.
    """

    log: FeedbackLog
    loss: str
    confidence: float
    propensities: Propensities
    propensity_diagnostics: PropensityDiagnostics
    grid_propensities: Array
    noise: Rates | NoiseRegion
    noise_source: str
    recommenders: dict[str, Recommender]
    comparisons: list[Comparison]
    sensitivity: Sensitivity | None
    suspects: SuspectLabels | None
    plan: AuditPlan | None
    liked_as_logged: float
    liked_corrected: Estimate | EstimateRange
    warnings: tuple[str, ...] = ()
    truth: Mapping[str, float] = field(default_factory=dict)

    @property
    def conclusions(self) -> list[str]:
        """What can be concluded, in sentences."""
        return [*self._about_noise(), *self._about_recommenders(), *self._about_selection()]

    def _about_noise(self) -> list[str]:
        if not isinstance(self.noise, NoiseRegion):
            return []
        asked = "" if self.plan is None else f": ask about {len(self.plan):,} of the logged pairs"
        return [
            "How noisy the labels are cannot be told from this log alone, so the corrected figures are ranges. "
            f"An audit would tell{asked} (verirec plan-audit writes the list)."
        ]

    def _about_recommenders(self) -> list[str]:
        said = []
        for one in self.comparisons:
            better = one.established
            if better is None:
                said.append(f"Whether {one.first} or {one.second} is better is not established.")
            elif better == one.naive_choice:
                said.append(
                    f"{better} is better than {_other(one, better)}: established, and the log as it stands agrees."
                )
            else:
                said.append(
                    f"{better} is better than {_other(one, better)}: established, although the log as it stands "
                    f"prefers {one.naive_choice}."
                )
        return said

    def _about_selection(self) -> list[str]:
        return [f"Propensities: {warning}." for warning in self.propensity_diagnostics.warnings]


def _other(comparison: Comparison, name: str) -> str:
    return comparison.second if name == comparison.first else comparison.first


def run_audit(
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
) -> LogAudit:
    """Audit a log and judge recommenders on it; see `verirec audit`.

    Parameters
    ----------
    log
        With rows of both classes.
    predictions
        Recommenders by name, in any form of predictions.
    audit, noise_rates
        True labels of some logged pairs, or the rates themselves; without either, the audit works with the region that
        the log allows, and plans an audit.
    propensities, loss, confidence, clip, sample, random_state
        As in `estimate`.
    truth
        True inaccuracies by recommender, where a simulated world knows them.
    progress
        Told in words what comes next.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> found = run_audit(world.log, {"mine": 0.2 + 0.6 * world.preferences}, noise_rates=NoiseRates(0.2, 0.1))
    >>> sorted(found.recommenders["mine"].estimates)
    ['dr', 'naive', 'ome', 'ome-dr', 'ome-snips', 'snips']
    """
    if audit is not None and noise_rates is not None:
        raise ParameterError("give an audit or noise_rates: one of the two")
    get_loss(loss), checked_clip(clip), checked_sample(sample)
    # One number for all parts: a generator would be drawn from anew by each.
    random_state = same_state(random_state)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        progress("Learning how likely pairs are to be logged")
        fitted = as_propensities(propensities, judgeable(log))
        progress("Finding out how noisy the labels are")
        noise, source = _noise(log, audit, noise_rates, fitted, random_state)
        options = {
            "propensities": fitted,
            "noise_rates": noise,
            "confidence": confidence,
            "random_state": random_state,
        }
        judged = options | {"loss": loss, "clip": clip, "sample": sample}
        studies = _studies(log, predictions or {}, judged)
        recommenders, comparisons = _judge(log, studies, judged, progress)
        progress("Trying other noise rates and propensities")
        surfaces = _surfaces(log, studies, recommenders, fitted, noise)
        liked = estimate(_half, log, estimators="ome-snips", loss=_liked, **options)["ome-snips"]  # type: ignore[arg-type]
        progress("Looking for wrong labels")
        suspects = None if isinstance(noise, NoiseRegion) else find_suspect_labels(log, noise)
        plan = _plan(log, random_state) if isinstance(noise, NoiseRegion) else None
    return LogAudit(
        log=log,
        loss=loss if isinstance(loss, str) else getattr(loss, "__name__", "custom"),
        confidence=confidence,
        propensities=fitted,
        propensity_diagnostics=fitted.diagnostics(log),
        grid_propensities=_grid_propensities(fitted, log),
        noise=noise,
        noise_source=source,
        recommenders=recommenders,
        comparisons=comparisons,
        sensitivity=surfaces,
        suspects=suspects,
        plan=plan,
        liked_as_logged=float(log.labels.mean()),
        liked_corrected=liked,
        warnings=_told(caught),
        truth=dict(truth or {}),
    )


def _plan(log: FeedbackLog, random_state: RandomState) -> AuditPlan | None:
    """Plan an audit, if the log has rows enough for one."""
    try:
        return plan_audit(log, half_width=HALF_WIDTH, random_state=random_state)
    except AuditError:
        return None


def _half(users: npt.NDArray[Any], items: npt.NDArray[Any]) -> Array:
    return np.full(len(users), 0.5)


def _liked(predictions: Array, labels: Array) -> Array:
    """Count a liked pair as 1: the mean "loss" is then the share of liked pairs."""
    return labels


def _told(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    for warning in caught:
        if not issubclass(warning.category, VerirecWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    own = [str(warning.message) for warning in caught if issubclass(warning.category, VerirecWarning)]
    return tuple(dict.fromkeys(own))


def _noise(
    log: FeedbackLog,
    audit: AuditSample | None,
    rates: Rates | None,
    propensities: Propensities,
    random_state: RandomState,
) -> tuple[Rates | NoiseRegion, str]:
    if rates is not None:
        return rates, "given"
    if audit is not None:
        return rates_from_audit(log, audit, propensities, random_state)
    return identified_region(log, random_state=random_state), "all that the log allows"


def _studies(log: FeedbackLog, predictions: Mapping[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Put each recommender of all pairs together once: the grid is then walked once for all that is asked of it."""
    given = {name: option for name, option in options.items() if name not in ("noise_rates", "confidence")}
    wanted = chosen(ON_ALL, with_rates=True)
    return {
        name: make_study(one, log, wanted, imputation="constant", **given) if covered_rows(one, log) is None else one
        for name, one in predictions.items()
    }


def _judge(
    log: FeedbackLog, predictions: dict[str, Any], options: dict[str, Any], progress: Callable[[str], None]
) -> tuple[dict[str, Recommender], list[Comparison]]:
    recommenders: dict[str, Recommender] = {}
    for name, given in predictions.items():
        progress(f"Judging {name}")
        covered = covered_rows(given, log)
        if covered is None:
            estimates = estimate(given, log, estimators=ON_ALL, **options)
            recommenders[name] = Recommender(estimates, "ome-dr", "dr")
        else:
            part, its = log, options
            if not covered.all():
                part = log.select(np.flatnonzero(covered))
                its = options | {"propensities": options["propensities"].thinned(float(covered.mean()))}
            estimates = estimate(given, part, estimators=ON_LOGGED, **its)
            recommenders[name] = Recommender(estimates, "ome-snips", "snips", _in_words(covered))
    comparisons = []
    for first, second in combinations(predictions, 2):
        main = {recommenders[name].main for name in (first, second)}
        if any(recommenders[name].coverage.startswith("some") for name in (first, second)):
            continue
        name = "ome-dr" if main == {"ome-dr"} else "ome-snips"
        progress(f"Comparing {first} with {second}")
        found = compare(predictions[first], predictions[second], log, estimators=("naive", name), **options)
        comparisons.append(Comparison(first, second, found["naive"], found[name]))
    return recommenders, comparisons


def covered_rows(given: Any, log: FeedbackLog) -> npt.NDArray[np.bool_] | None:
    """Tell which rows of a log predictions in triples cover; `None` for predictions of all pairs."""
    if isinstance(given, Study):
        return None
    cells = as_predictions(given, log.n_users, log.n_items)
    keys = getattr(cells, "keys", None)
    if keys is None or len(keys) == log.n_cells:
        return None
    covered = np.isin(cell_keys(log.users, log.items, log.n_items), keys)
    if covered.sum() < 2:
        raise PredictionError(
            f"predictions cover {int(covered.sum())} of the {len(log):,} logged pairs; at least 2 are needed"
        )
    return covered


def _in_words(covered: npt.NDArray[np.bool_]) -> str:
    if covered.all():
        return "all logged pairs but not all others: judged by the estimators that need no more"
    return (
        f"some of the logged pairs, {int(covered.sum()):,} of {len(covered):,}: judged on these, as if they were a "
        "fair part of the log"
    )


def _surfaces(
    log: FeedbackLog,
    predictions: dict[str, Any],
    recommenders: dict[str, Recommender],
    propensities: Propensities,
    noise: Rates | NoiseRegion,
) -> Sensitivity | None:
    whole = {name: predictions[name] for name, one in recommenders.items() if one.main == "ome-dr"}
    if not whole:
        return None
    rates = None if isinstance(noise, NoiseRegion) else noise
    return sensitivity(whole, log, propensities=propensities, noise_rates=rates)


def _grid_propensities(propensities: Propensities, log: FeedbackLog) -> Array:
    if not propensities.known_everywhere:
        return np.empty(0)
    cells = np.random.default_rng(0).integers(log.n_cells, size=min(_GRID_SAMPLE, 4 * log.n_cells))
    return np.asarray(propensities.at(*np.divmod(cells, log.n_items)), dtype=np.float64)
