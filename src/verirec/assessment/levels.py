"""An assessment of a log that keeps its levels: predicted stars, or distributions over levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from verirec.assessment.evidence import ESTIMATE_OF_BASIS, grid_propensities
from verirec.assessment.findings import Asking, AssessedRecommender, Comparison, Stars
from verirec.assessment.level_evidence import LevelEvidence, Told, prepare_levels
from verirec.assessment.planning import closest, telling_width
from verirec.assessment.preparation import Labels, Predictions, Wishes, not_spoken_of
from verirec.assessment.result import Assessment
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.estimation import Estimate, EstimateRange, Estimates, compare, estimate
from verirec.estimation.coverage import covered_rows
from verirec.exceptions import PredictionError, naming
from verirec.losses import TransitionMatrix, get_level_loss
from verirec.resuming import kept, within

if TYPE_CHECKING:
    from verirec.data.predictions import PredictionsLike

Array = npt.NDArray[np.float64]


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
    ready = prepare_levels(log, predictions, labels, propensities, wishes, progress, settings)
    evidence = ready.evidence
    recommenders, comparisons = _judged(ready.predictions, evidence, progress)
    logged, (lowest, *_, highest) = evidence.log.label_values, evidence.log.levels or (0.0, 1.0)
    shares = np.bincount(evidence.log.labels, minlength=len(evidence.log.levels or ())) / len(logged)
    main = Assessment(
        log=evidence.log,
        loss=_loss_name(settings["loss"], evidence.log),
        confidence=settings["confidence"],
        propensities=evidence.propensities,
        propensity_diagnostics=kept("propensities", partial(evidence.propensities.diagnostics, evidence.log)),
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
        not_spoken_of=not_spoken_of(evidence.labels.survey, evidence.log, evidence.exclude),
        trained=ready.trained,
        searches=ready.searches,
        errors=evidence.labels.errors,
        stars=Stars(tuple(float(one) for one in shares)),
    )
    early(main)
    progress("Working out what to ask")
    return _completed(main, evidence)


def _judged(
    predictions: Mapping[str, PredictionsLike], evidence: LevelEvidence, progress: Told
) -> tuple[dict[str, AssessedRecommender], list[Comparison]]:
    recommenders = {}
    for name, given in predictions.items():
        progress(f"Judging {name}")
        with naming(name), within(f"judging {name}"):
            recommenders[name] = _assessed(name, given, evidence)
    comparisons = []
    for first, second in combinations(predictions, 2):
        progress(f"Comparing {first} with {second}")
        with within(f"comparing {(first, second)}"):
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
        liked = kept("liked", lambda: _mean_of(lambda values: values, evidence))
        shared = [kept(f"share of {level!r}", partial(_mean_of, _is(level), evidence)) for level in levels]
        stars = replace(stars, corrected=tuple(shared))
    return replace(main, stars=stars, liked_corrected=liked)


def _asking(main: Assessment, evidence: LevelEvidence) -> Asking | None:
    """Say how many random pairs to ask about, where that would settle what is open."""
    contest = closest(main.comparisons)
    if not main.recommenders or (contest is None and evidence.basis != "range"):
        return None
    levels = evidence.log.levels or (0.0, 1.0)
    width = telling_width(contest, levels[-1] - levels[0] if evidence.in_levels else 1.0)
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


def _loss_name(loss: Any, log: FeedbackLog) -> str:
    return loss if isinstance(loss, str) else get_level_loss(loss, log.levels or ()).name
