"""An assessment, step by step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from verirec.assessment.levels import assess_levels
from verirec.assessment.planning import propose
from verirec.assessment.preparation import Labels, Prepared, Wishes, not_spoken_of, prepare
from verirec.assessment.recommenders import Judged, judge_all
from verirec.assessment.result import Assessment
from verirec.assessment.settings import checked_settings, listener, named_entries, named_numbers
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.predictions import PredictionsLike
from verirec.estimation.selection_range import SelectionRange
from verirec.exceptions import VerirecWarning
from verirec.losses import (
    GroupedNoiseRates,
    LossLike,
    NoiseRates,
    NoiseRegion,
    TransitionMatrix,
    TransitionRegion,
    get_loss,
)
from verirec.nuisance.noise_rates import AuditSample, WhoErrs
from verirec.nuisance.surveys import SurveySample
from verirec.nuisance.suspects import find_suspect_labels
from verirec.resuming import kept, long_job, within

if TYPE_CHECKING:
    from verirec.engine.choice import EngineLike
    from verirec.randomness import RandomState

_UNFINISHED: Final = (
    "This page is not finished: what the results are sensitive to, wrong labels and what to ask are still worked out."
)


@long_job
def assess(  # noqa: PLR0913 -- what an assessment may rest on, each by its name
    log: FeedbackLog,
    predictions: Mapping[str, PredictionsLike] | None = None,
    *,
    audit: AuditSample | None = None,
    survey: SurveySample | None = None,
    noise_rates: NoiseRates | GroupedNoiseRates | TransitionMatrix | TransitionRegion | None = None,
    errors: WhoErrs | None = None,
    propensities: Any = None,
    selection: SelectionRange | None = None,
    hold_out: float | None = None,
    train: str | Sequence[str] = (),
    exclude: Any = None,
    calibrate: str | None = None,
    loss: LossLike | None = None,
    k: int = 5,
    confidence: float = 0.95,
    clip: float | None = None,
    sample: int | None = None,
    truth: Mapping[str, float] | None = None,
    progress: Callable[[str], None] = lambda step: None,
    ready: Callable[[Assessment], object] | None = None,
    random_state: RandomState = 0,
    engine: EngineLike = None,
    checkpoint: str | Path | None = None,
) -> Assessment:
    """Assess a log and the recommenders that are judged on it; see `verirec assess`.

    What decides is the firmest of what there is: a survey of random pairs; or propensities that you vouch for
    (`GivenPropensity`, or the log's own), with an audit or without; or else the range of all that taste may have made
    of the log, which seldom settles which recommender is better and says how many pairs to ask about.

    Parameters
    ----------
    log
        With rows of both classes, or of clicks alone if there is a survey. One that keeps its levels has predicted
        stars judged, and what is for likes only (rankings, taste, suspects) left out. Rows that it marks as unbiased
        are a survey, if no other is given.
    predictions
        Recommenders by name, in any form of predictions. Scores that are not probabilities are judged by their ranking
        alone, unless `calibrate` is given.
    audit, noise_rates
        True labels of some logged pairs, or the rates themselves; without either, the assessment works with the region
        of rates that the log allows.
    errors
        Who errs, as in `estimate`, from the audit. Without it an audit of 50 pairs of each class shows how often labels
        are wrong along a score.
    survey
        True labels of random pairs; or of pairs among their users' best, as a plan for NDCG chooses them (`best=True`),
        which tell rankings, and leave all else as it is without a survey.
    selection
        How strongly taste may decide what is logged, where nothing else decides; by default `SelectionRange(0, 3)`.
    hold_out, train
        Share of the rows to judge by, and names of methods to train on the others; with methods, a fifth by default.
        Noise rates and propensities come from all rows. Predictions of your own should not have seen the rows that
        judge: train them on your own part, and give the other as `log`.
    exclude
        Pairs that are not spoken of, such as those that your recommenders were trained on; as in `estimate`.
    calibrate
        "platt" or "isotonic": make probabilities of those of your scores that are none. With a survey of 200 pairs or
        more its labels do so, each pair being judged by a curve of the others, and then all recommenders of all pairs
        are calibrated, so that they are compared alike. Without one it is a fifth of the rows, and the others judge;
        scores from 0 to 1 then stay as they are, and so do logistic factors unless they do worse on the logged labels
        than a coin.
    k
        Depth of the ranking metrics.
    loss
        As in `estimate`; by default "log" or, of levels, "rmse".
    propensities, confidence, clip, random_state, engine, checkpoint
        As in `estimate`.
    sample
        As in `estimate`; where users with rows have more than 400 times as many scores, a random part of these users
        is ranked.
    truth
        True inaccuracies by recommender, where a simulated world knows them.
    progress
        Told in words what comes next.
    ready
        Given the assessment as soon as all verdicts are in it, and before what takes most of the time: what they are
        sensitive to, wrong labels, and what to ask.

    Examples
    --------
    >>> import numpy as np
    >>> from verirec import SurveySample, simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> users, items = np.random.default_rng(0).integers([[200], [300]], size=(2, 400))
    >>> survey = SurveySample(users, items, world.at(users, items).true_labels)
    >>> given = {"sharp": 0.1 + 0.8 * world.preferences, "blunt": 0.4 + 0.2 * world.preferences}
    >>> assess(world.log, given, survey=survey).verdicts
    [{'first': 'sharp', 'second': 'blunt', 'better': 'sharp', 'established': True, 'basis': 'survey'}]
    """
    levels = checked_log(log, levels=True).levels
    known, tell = named_numbers("truth", truth), listener("progress", progress)
    if ready is not None:
        listener("ready", ready, of="an Assessment")
    settings = checked_settings(
        selection=selection,
        loss=loss,
        confidence=confidence,
        clip=clip,
        sample=sample,
        random_state=random_state,
        k=k,
        levels=levels,
    )
    labels, wishes = Labels(audit, survey, noise_rates, errors), Wishes(hold_out, train, exclude, calibrate)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        def early(main: Assessment) -> None:
            if ready is not None:
                ready(replace(main, warnings=(_UNFINISHED, *_own(caught))))

        given = log, named_entries("predictions", predictions), labels, propensities, wishes, tell
        if levels is not None:
            whole = assess_levels(*given, truth=known, early=early, **settings)
        else:
            found = prepare(*given, **settings)
            judged = judge_all(found.predictions, found.evidence, tell)
            main = main_part(found, judged, get_loss(settings["loss"]).name, known)
            early(main)
            whole = _completed(main, found, judged, tell)
    return replace(whole, warnings=told(caught))


def main_part(found: Prepared, judged: Judged, loss: str, truth: Mapping[str, float]) -> Assessment:
    """Put together what decides: all but what the results are sensitive to, wrong labels and what to ask."""
    evidence = found.evidence
    pairs, judging = evidence.pairs, evidence.judging.log
    return Assessment(
        log=judging,
        loss=loss,
        confidence=evidence.confidence,
        propensities=pairs.propensities,
        propensity_diagnostics=kept("propensities", partial(pairs.propensities.diagnostics, pairs.log)),
        grid_propensities=evidence.grid_propensities,
        noise=evidence.noise,
        noise_source=found.noise_source,
        selection=evidence.selection,
        survey=evidence.survey,
        strength=kept("strength of selection", evidence.strength),
        basis=evidence.basis,
        recommenders=judged.recommenders,
        comparisons=judged.comparisons,
        incomparable=judged.incomparable,
        sensitivity=None,
        suspects=None,
        plan=None,
        liked_as_logged=float(judging.labels.mean()),
        liked_corrected=kept("liked", evidence.liked),
        warnings=(),
        truth=truth,
        excludes=evidence.exclude is not None,
        not_spoken_of=not_spoken_of(evidence.survey, evidence.pairs.log, evidence.exclude),
        trained=found.trained,
        clicks=evidence.clicks,
        calibrated=found.calibrated,
        calibrated_by_survey=found.calibrated_by_survey,
        searches=found.searches,
        errors=found.errors,
        best=evidence.best,
        ranking_comparisons=judged.ranking_comparisons,
        depth=evidence.depth,
    )


def _completed(main: Assessment, found: Prepared, judged: Judged, progress: Callable[[str], None]) -> Assessment:
    """Add the rest, which takes most of the time and changes no verdict."""
    evidence = found.evidence
    varied = judged.sensitivity(evidence, progress)
    progress("Looking for wrong labels")
    noise = evidence.noise
    rates = None if isinstance(noise, NoiseRegion) else noise
    with within("wrong labels"):
        suspects = (
            None
            if rates is None or evidence.clicks
            else find_suspect_labels(evidence.pairs.log, rates, random_state=evidence.seed)
        )
    progress("Working out what to ask")
    with within("what to ask"):
        return replace(main, sensitivity=varied, suspects=suspects, plan=propose(found.predictions, judged, evidence))


def told(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return our own warnings, each once; others go on to the caller."""
    for warning in caught:
        if not issubclass(warning.category, VerirecWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return _own(caught)


def _own(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    own = [str(warning.message) for warning in caught if issubclass(warning.category, VerirecWarning)]
    return tuple(dict.fromkeys(own))
