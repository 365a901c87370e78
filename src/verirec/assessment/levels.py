"""An assessment of a log that keeps its levels: predicted stars, or distributions over levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.assessment.evidence import ESTIMATE_OF_BASIS, grid_propensities
from verirec.assessment.findings import Asking, AssessedRecommender, Basis, Comparison, Stars
from verirec.assessment.level_bounds import LevelBounds
from verirec.assessment.planning import closest, telling_width
from verirec.assessment.preparation import Labels, Predictions, Wishes, excluded, lacking_of, survey_of
from verirec.assessment.result import Assessment
from verirec.assessment.training import checked_methods, hold_out_rows, refuse_taken, train_all
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike
from verirec.estimation import Estimate, EstimateRange, Estimates, compare, estimate
from verirec.estimation.adapting import adapt_all
from verirec.estimation.coverage import covered_rows
from verirec.estimation.gathering import audit_within, check_errors
from verirec.estimation.inputs import checked_transitions, judgeable
from verirec.estimation.roots import pointwise
from verirec.estimation.survey.draws import check_survey, self_selected
from verirec.exceptions import AuditError, NoiseRateError, ParameterError, PredictionError, naming
from verirec.losses import TransitionMatrix, TransitionRegion, get_level_loss
from verirec.nuisance.noise_rates import AuditSample, AuditTransitionMatrix
from verirec.nuisance.propensities import Propensities, as_propensities

Array = npt.NDArray[np.float64]
Told = Callable[[str], None]
Between = TransitionMatrix | TransitionRegion | None


@dataclass(frozen=True, eq=False)
class LevelEvidence:
    """What every recommender is judged by, of a log that keeps its levels; see `verirec.assessment.evidence`.

    Parameters
    ----------
    log, propensities
        The rows that judge, and how likely they were to be logged.
    noise, noise_source
        Between levels, where it is given or an audit tells; and from where.
    labels
        Audit (of these rows), survey and who errs.
    exclude, lacking
        As in `Evidence`.
    settings
        As `estimate` has them: loss, confidence, clip, sample, random_state.
    """

    log: FeedbackLog
    propensities: Propensities
    noise: Between
    noise_source: str
    labels: Labels
    exclude: Any
    lacking: str
    settings: dict[str, Any]

    @property
    def basis(self) -> Basis:
        """What answers rest on: propensities that are known decide only if noise is known or audited, too."""
        if self.labels.survey is not None:
            return "survey"
        if not self.propensities.known or (self.labels.audit is None and self.noise is None):
            return "range"
        return "known propensities" if self.labels.audit is None else "audit"

    @property
    def corrected(self) -> str:
        """Name of the log's own estimate, which is right if selection depends on user and item only."""
        if self.labels.audit is not None and self.basis != "audit":
            return "audited-dr"
        return "dr" if self.noise is None else "ome-dr"

    @property
    def check(self) -> str:
        """Name of the estimate that fails in other ways."""
        return "snips" if self.noise is None else "ome-snips"

    @property
    def options(self) -> dict[str, Any]:
        """What `estimate` and `compare` are given besides predictions and log."""
        labels = {"audit": self.labels.audit, "survey": self.labels.survey, "errors": self.labels.errors}
        given = {"propensities": self.propensities, "noise_rates": self.noise, "exclude": self.exclude}
        return labels | given | self.settings

    @property
    def estimators(self) -> tuple[str, ...]:
        """Names of what is estimated of each."""
        by_log = ("naive", "snips", "dr") + (() if self.noise is None else ("ome", "ome-snips", "ome-dr"))
        audited = () if self.labels.audit is None else ("audited-dr",)
        return by_log + audited + (() if self.labels.survey is None else ("survey", "survey-ppi"))

    @cached_property
    def bounds(self) -> LevelBounds:
        """What is possible whatever people truly think."""
        how = {name: self.settings[name] for name in ("loss", "clip", "confidence")}
        return LevelBounds(self.log, **how, exclude=self.exclude, seed=self.settings["random_state"])


class _Ready(NamedTuple):
    evidence: LevelEvidence
    predictions: Predictions
    trained: tuple[str, ...]
    searches: dict[str, dict[str, Any]]


def assess_levels(
    log: FeedbackLog,
    predictions: Predictions,
    labels: Labels,
    propensities: Any,
    wishes: Wishes,
    progress: Told,
    *,
    truth: Mapping[str, float],
    early: Callable[[Assessment], object],
    **settings: Any,
) -> Assessment:
    """Assess a log that keeps its levels, as `assess` does; `settings` are those of `Evidence`."""
    ready = _prepared(log, predictions, labels, propensities, wishes, progress, settings)
    evidence = ready.evidence
    recommenders, comparisons = _judged(ready.predictions, evidence, progress)
    logged, (lowest, *_, highest) = evidence.log.label_values, evidence.log.levels or (0.0, 1.0)
    shares = np.bincount(evidence.log.labels, minlength=len(evidence.log.levels or ())) / len(logged)
    main = Assessment(
        log=evidence.log,
        loss=_loss_name(settings["loss"], evidence.log),
        confidence=settings["confidence"],
        propensities=evidence.propensities,
        propensity_diagnostics=evidence.propensities.diagnostics(evidence.log),
        grid_propensities=grid_propensities(evidence.propensities, evidence.log),
        noise=evidence.noise,
        noise_source=evidence.noise_source,
        selection=settings["selection"],
        survey=evidence.labels.survey,
        strength=None,
        basis=evidence.basis,
        recommenders=recommenders,
        comparisons=comparisons,
        incomparable=[],
        sensitivity=None,
        suspects=None,
        plan=None,
        liked_as_logged=float(logged.mean()),
        liked_corrected=EstimateRange.over([_certain(lowest, settings), _certain(highest, settings)]),
        truth=truth,
        excludes=evidence.exclude is not None,
        trained=ready.trained,
        searches=ready.searches,
        errors=evidence.labels.errors,
        stars=Stars(tuple(float(one) for one in shares)),
    )
    early(main)
    progress("Working out what to ask")
    return _completed(main, evidence)


def _prepared(
    log: FeedbackLog,
    predictions: Predictions,
    labels: Labels,
    propensities: Any,
    wishes: Wishes,
    progress: Told,
    settings: dict[str, Any],
) -> _Ready:
    """Hold rows out, find out noise and propensities, and train what is to be trained."""
    if wishes.calibrate is not None:
        raise ParameterError("calibrate makes probabilities of a like: a log that keeps its levels has none")
    predictions = adapt_all(predictions, log)
    if labels.survey is not None:
        check_survey(labels.survey, log)
    if labels.audit is not None and labels.rates is not None:
        raise ParameterError("give an audit or noise_rates: one of the two")
    check_errors(labels.errors, log, labels.audit)
    methods, seed = checked_methods(wishes.train), settings["seed"]
    refuse_taken(methods, predictions)
    whole = judgeable(self_selected(log), levels=True)
    progress("Learning how likely pairs are to be logged")
    likely = as_propensities(propensities, whole)
    progress("Finding out how noisy the labels are")
    noise, source = _noise(whole, labels)
    held = hold_out_rows(whole, wishes.hold_out, methods, seed)
    head = "ordinal" if _of_distributions(settings["loss"], log) else None
    trained = train_all(methods, held, likely, noise, seed, progress, head=head)
    judging = judgeable(held.judging, levels=True)
    survey, exclude = survey_of(labels.survey, log), excluded(wishes.exclude, held.training)
    how = {name: settings[name] for name in ("loss", "confidence", "clip", "sample")} | {"random_state": seed}
    evidence = LevelEvidence(
        judging,
        likely if held.training is None else likely.thinned(held.share),
        noise,
        source,
        labels._replace(survey=survey, audit=audit_within(labels.audit, judging)),
        exclude,
        "" if survey is None else lacking_of(survey, judging, exclude),
        how,
    )
    return _Ready(evidence, predictions | trained.predictions, tuple(trained.predictions), trained.searches)


def _noise(log: FeedbackLog, labels: Labels) -> tuple[Between, str]:
    """Return noise between levels, where it is known; an audit that does not tell it still has true labels."""
    given = checked_transitions(labels.rates, log)
    if given is not None:
        return given, given.source if isinstance(given, TransitionMatrix) else "given"
    if labels.audit is None:
        return None, ""
    if not isinstance(labels.audit, AuditSample):
        raise ParameterError(f"audit must be an AuditSample; got {type(labels.audit).__name__}")
    with suppress(AuditError, NoiseRateError):
        found = AuditTransitionMatrix().fit(log, audit=labels.audit)
        return found, found.source
    labels.audit.rows_in(log)
    return None, f"an audit of {len(labels.audit):,} rows, too few to tell"


def _judged(
    predictions: Mapping[str, PredictionsLike], evidence: LevelEvidence, progress: Told
) -> tuple[dict[str, AssessedRecommender], list[Comparison]]:
    recommenders = {}
    for name, given in predictions.items():
        progress(f"Judging {name}")
        with naming(name):
            recommenders[name] = _assessed(name, given, evidence)
    comparisons = []
    for first, second in combinations(predictions, 2):
        progress(f"Comparing {first} with {second}")
        comparisons.append(_compared(first, second, predictions, evidence))
    return recommenders, comparisons


def _assessed(name: str, given: PredictionsLike, evidence: LevelEvidence) -> AssessedRecommender:
    if covered_rows(given, evidence.log) is not None:
        raise PredictionError("predictions of all pairs are needed to assess a log that keeps its levels")
    found = estimate(given, evidence.log, estimators=evidence.estimators, **evidence.options)
    evidence.bounds.add(name, given)
    estimates: dict[str, Any] = dict(found)
    if evidence.basis == "range":
        estimates["range"] = evidence.bounds.of(name)
    headline = ESTIMATE_OF_BASIS[evidence.basis]
    return AssessedRecommender(Estimates(estimates, found.of), headline, evidence.corrected, "dr")


def _compared(
    first: str, second: str, predictions: Mapping[str, PredictionsLike], evidence: LevelEvidence
) -> Comparison:
    headline, (one, two) = ESTIMATE_OF_BASIS[evidence.basis], (predictions[first], predictions[second])
    names = dict.fromkeys(("naive", evidence.check, evidence.corrected, headline))
    known = tuple(name for name in names if name != "range")
    found = compare(one, two, evidence.log, estimators=known, **evidence.options)
    deciding = found[headline] if headline in found else evidence.bounds.between(first, second)
    return Comparison(
        first,
        second,
        deciding,
        evidence.basis,
        found["naive"],
        found[evidence.corrected],
        found[evidence.check],
        lacking=evidence.lacking,
    )


def _completed(main: Assessment, evidence: LevelEvidence) -> Assessment:
    """Add how levels are shared out in truth, where something tells, and what to ask, where something is open."""
    shares = main.stars.logged if main.stars is not None else ()
    stars, liked = Stars(shares, asking=_asking(main, evidence)), main.liked_corrected
    if evidence.basis != "range":
        levels = evidence.log.levels or ()
        liked = _mean_of(lambda values: values, evidence)
        stars = replace(stars, corrected=tuple(_mean_of(_is(level), evidence) for level in levels))
    return replace(main, stars=stars, liked_corrected=liked)


def _asking(main: Assessment, evidence: LevelEvidence) -> Asking | None:
    """Say how many random pairs to ask about, where that would settle what is open."""
    contest = closest(main.comparisons)
    if not main.recommenders or (contest is None and evidence.basis != "range"):
        return None
    levels = evidence.log.levels or (0.0, 1.0)
    in_levels = not _of_distributions(evidence.settings["loss"], evidence.log)
    width = telling_width(contest, levels[-1] - levels[0] if in_levels else 1.0)
    names = list(main.recommenders) if contest is None else [contest.first, contest.second]
    noise = evidence.noise if isinstance(evidence.noise, TransitionMatrix) else None
    pairs = evidence.bounds.survey_size(names, width, noise)
    return None if pairs is None else Asking(pairs, width)


def _mean_of(of_level: Callable[[Array], Array], evidence: LevelEvidence) -> Estimate | EstimateRange:
    """Estimate the mean of a function of the true level over all pairs."""

    def anything(users: Positions, items: Positions) -> Array:
        return np.full(np.broadcast(users, items).shape, (evidence.log.levels or (0.0,))[0])

    def loss(predictions: Array, levels: Array) -> Array:
        return np.broadcast_to(of_level(np.asarray(levels, dtype=np.float64)), np.shape(predictions)).copy()

    name = "survey-ppi" if evidence.basis == "survey" else evidence.check
    if evidence.basis == "audit":
        name = "audited-dr"
    options = evidence.options | {"loss": loss, "clip": None}
    found: Estimate | EstimateRange = estimate(anything, evidence.log, estimators=name, **options)[name]
    return found


def _is(level: float) -> Callable[[Array], Array]:
    return lambda values: (values == level).astype(np.float64)


def _certain(value: float, settings: dict[str, Any]) -> Estimate:
    return Estimate(float(value), 0.0, (float(value), float(value)), settings["confidence"])


def _of_distributions(loss: Any, log: FeedbackLog) -> bool:
    return get_level_loss(pointwise(loss)[0], log.levels or ()).distributions


def _loss_name(loss: Any, log: FeedbackLog) -> str:
    return loss if isinstance(loss, str) else get_level_loss(loss, log.levels or ()).name
