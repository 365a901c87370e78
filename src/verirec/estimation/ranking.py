"""How well a recommender ranks, corrected for selection and noise."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from verirec.adapters.adapt import adapted
from verirec.data.cells import CellValues
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.data.top_lists import TopLists
from verirec.estimation.inputs import Noise, checked_noise, has_clicks_alone, judgeable
from verirec.estimation.intervals import EstimateRange, checked_confidence
from verirec.estimation.log_ranking import ranking_by_log
from verirec.estimation.ranking_formulas import METRICS
from verirec.estimation.results import Estimates
from verirec.estimation.survey.ranking import ranking_by_survey
from verirec.exceptions import (
    AuditError,
    EmptyLogError,
    LabelError,
    ParameterError,
    ScoreWarning,
    SurveyError,
    SurveyWarning,
    warn_caller,
)
from verirec.losses import NoiseRegion
from verirec.metrics.ranking import checked_depths
from verirec.nuisance.noise_rates import AuditSample
from verirec.nuisance.surveys import SurveySample

if TYPE_CHECKING:
    from verirec.data.feedback_log import FeedbackLog


def estimate_ranking(
    scores: PredictionsLike,
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: Noise = None,
    audit: AuditSample | None = None,
    survey: SurveySample | None = None,
    exclude: Any = None,
    k: int | Iterable[int] = 5,
    confidence: float = 0.95,
    max_scores: int | None = None,
) -> Estimates:
    r"""Estimate how well scores rank all items for all users by what people truly prefer.

    Over the whole grid, rated or not, each user's items are ranked by score; where scores tie, a place is shared.

    - ``auc``: the chance that a liked pair scores above one that is not, over all pairs; self-normalised inverse
      propensities, a pair never compared with itself.
    - ``dcg@k``: mean over users of :math:`\sum_{j \le k} r^*_j / \log_2(1 + j)`; ``ndcg@k``: divided by its largest
      value, that of a user who likes k items or more; ``precision@k``: mean share of liked items among the k best.
    - ``recall@k``: share of all liked pairs that are among their user's k best. (A mean of users' own recalls would
      need each user's number of liked items, which no log tells.)

    All but AUC are doubly robust with one imputed label for all pairs. Values and intervals stay within their range: 0
    and 1, and for ``dcg@k`` the largest that it can be; a value that was outside is in the diagnostics. Where users
    with rows have more scores than `max_scores`, a random sample of these users is ranked, and the intervals are the
    wider for it.

    Parameters
    ----------
    scores
        As `estimate`'s predictions, for all pairs; only their order counts. Or top-k lists, a frame with user, item and
        rank: all but AUC can be told of these, as deep as they are. Places that a list leaves empty count as misses.
    log, propensities, noise_rates, audit, confidence
        As in `estimate`. Without noise rates and audit nothing is corrected for noise; with an audit its true labels
        are in all metrics of the log, which are then right whatever the noise is, if the propensities are.
    survey
        True labels of random pairs, which make an answer right whatever people log. One of all pairs tells AUC and
        recall; one of top pairs tells what has a depth. `diagnostics["source"]` is "survey" for these, and "log", or
        "audit", for what it has too few pairs for.
    exclude
        Pairs that are neither ranked nor counted, such as those that were trained on; as in `estimate`.
    k
        Depth, or several.
    max_scores
        Scores that are ranked at most, by the log: 4 billion, or fewer.

    Examples
    --------
    >>> from verirec import NoiseRates, simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> p = world.propensity_values
    >>> result = estimate_ranking(world.preferences, world.log, propensities=p, noise_rates=NoiseRates(0.2, 0.1))
    >>> from verirec import metrics
    >>> truth = metrics.auc(world.true_labels.ravel(), world.preferences.ravel())
    >>> bool(result["auc"].interval[0] < truth < result["auc"].interval[1])
    True
    """
    level, depths = checked_confidence(confidence), checked_depths(k)
    by_log = partial(ranking_by_log, audit=audit, exclude=exclude, max_scores=max_scores)
    clicks = has_clicks_alone(log if survey is not None else judgeable(log))
    values = as_predictions(adapted(scores, log), log.n_users, log.n_items)
    _check_lists(values, depths)
    noise = checked_noise(noise_rates, log)
    what = "how well all items are ranked"
    if survey is None:
        return Estimates(by_log(values, log, propensities, noise, depths, level), what)
    found = _by_survey(values, survey, log, noise, depths, exclude=exclude, confidence=level)
    names = [f"{metric}@{depth}" for depth in depths for metric in METRICS]
    names = names if values.ranks_only else ["auc", *names]
    lacking = [name for name in names if name not in found]
    if not lacking:
        return Estimates({name: found[name] for name in names}, what)
    told = f"the survey has too few pairs of the right kind for {', '.join(lacking)}"
    if clicks:
        return _by_survey_alone(found, f"{told}, which clicks alone cannot tell", what)
    try:
        found |= by_log(values, log, propensities, noise, depths, level, only=lacking)
    except (AuditError, EmptyLogError, LabelError) as error:
        if exclude is None or not found:
            raise
        return _by_survey_alone(found, f"{told}, and exclude leaves too few rows of the log: {error}", what)
    warn_caller(
        f"{told}: these rest on the log, its propensities and noise rates (a survey of top pairs tells what has a "
        "depth, one of all pairs auc)",
        SurveyWarning,
    )
    return Estimates({name: found[name] for name in names}, what)


def _by_survey_alone(found: dict[str, Any], told: str, what: str) -> Estimates:
    """Return what the survey tells, where nothing tells the rest."""
    if not found:
        raise SurveyError(f"{told}: estimate_click_ranking goes by the clicks, under an assumption of its own")
    warn_caller(told, SurveyWarning)
    return Estimates(found, what)


def _check_lists(values: CellValues, depths: list[int]) -> None:
    """Refuse depths that no top-k list reaches, and say of how many users they are shorter."""
    if not isinstance(values, TopLists):
        return
    if max(depths) > values.depth:
        raise ParameterError(f"k must be at most {values.depth}, the length of the longest list; got {max(depths)}")
    short = int((values.lengths < max(depths)).sum())
    if short:
        warn_caller(
            f"{short:,} of {len(values.lengths):,} users have lists of fewer than {max(depths)} items, or none: places "
            "that are not filled count as misses",
            ScoreWarning,
        )


def _by_survey(
    values: CellValues, survey: SurveySample, log: FeedbackLog, noise: Noise, depths: list[int], **options: Any
) -> dict[str, Any]:
    """Go by the survey; where its own answers are noisy and the rates are a region, look all over it: ratios peak."""
    if not isinstance(survey, SurveySample) or not isinstance(noise, NoiseRegion):
        return dict(ranking_by_survey(values, survey, log, noise, depths, **options))
    if not survey.noisy:
        return dict(ranking_by_survey(values, survey, log, None, depths, **options))
    points = [ranking_by_survey(values, survey, log, rates, depths, **options) for rates in noise.lattice]
    return {name: EstimateRange.over([point[name] for point in points]) for name in points[0]}
