"""How well a recommender ranks, corrected for selection and noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from verirec.adapters.adapt import adapted
from verirec.checks import whole_number
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimation.inputs import Noise, check_lists, checked_noise, has_clicks_alone, judgeable
from verirec.estimation.intervals import EstimateRange, checked_confidence
from verirec.estimation.log_ranking import ranking_by_log
from verirec.estimation.ranking_formulas import METRICS
from verirec.estimation.results import Estimates
from verirec.estimation.survey.ranking import ranking_by_survey
from verirec.estimation.survey.ranking_difference import ranking_difference_by_survey
from verirec.exceptions import (
    AuditError,
    EmptyLogError,
    LabelError,
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
        rank: all but AUC can be told of these, as deep as they are. Users without a list are not judged, and places
        that a list leaves empty count as misses; recall is of all liked pairs, those of users without a list too.
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
    given = _Given(log, propensities, noise_rates, audit, survey, exclude, k, confidence, max_scores)
    return _ranked([scores], given, ranking_by_survey, "how well all items are ranked")


def compare_rankings(
    first: PredictionsLike,
    second: PredictionsLike,
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
    """Estimate by how much the first recommender ranks better than the second: above 0, the first is better.

    Both are judged by the same pairs, so that what is common to them cancels: the interval of the difference is
    narrower than the two intervals apart suggest. A survey's pairs that stand at the same place in both rankings count
    for nothing; `plan_labels` with both recommenders chooses such as do not. With a survey there is what the survey
    tells, and nothing else: DCG, NDCG and precision and, if it is one of all pairs, recall.

    Parameters
    ----------
    first, second
        As `estimate_ranking`'s scores: scores of all pairs, or top-k lists. Of lists, users who have one by either are
        judged.
    log, propensities, noise_rates, audit, survey, exclude, k, confidence, max_scores
        As in `estimate_ranking`.

    Examples
    --------
    >>> import numpy as np
    >>> from verirec import plan_labels, simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> noise = np.random.default_rng(0).normal(size=(2, 200, 300))
    >>> sharp, blunt = world.preferences + 0.1 * noise[0], world.preferences + 0.5 * noise[1]
    >>> plan = plan_labels(world.log, {"sharp": sharp, "blunt": blunt}, budget=300, purpose="ndcg@10")
    >>> survey = plan.survey(world.true_labels[plan.users, plan.items])
    >>> found = compare_rankings(sharp, blunt, world.log, survey=survey, k=10)
    >>> list(found), found["ndcg@10"].interval[0] > 0
    (['dcg@10', 'ndcg@10', 'precision@10'], True)
    """
    given = _Given(log, propensities, noise_rates, audit, survey, exclude, k, confidence, max_scores)
    what = "the difference in how well all items are ranked, first minus second"
    return _ranked([first, second], given, ranking_difference_by_survey, what)


class _Given(NamedTuple):
    """What a ranking is judged by, as a user gave it."""

    log: FeedbackLog
    propensities: Any
    noise_rates: Noise
    audit: AuditSample | None
    survey: SurveySample | None
    exclude: Any
    k: int | Iterable[int]
    confidence: float
    max_scores: int | None


def _ranked(scores: Sequence[PredictionsLike], given: _Given, by_survey: Callable[..., Any], what: str) -> Estimates:
    """Judge a ranking, or the difference of two, by the survey as far as it goes and by the log for the rest."""
    log, survey, exclude = given.log, given.survey, given.exclude
    level, depths = checked_confidence(given.confidence), checked_depths(given.k)
    most = None if given.max_scores is None else whole_number("max_scores", given.max_scores)
    clicks = has_clicks_alone(log if survey is not None else judgeable(log))
    rankings = [as_predictions(adapted(one, log), log.n_users, log.n_items) for one in scores]
    for values in rankings:
        check_lists(values, depths)
    noise = checked_noise(given.noise_rates, log)
    logged: dict[str, Any] = {"audit": given.audit, "exclude": exclude, "max_scores": most}
    by_log = partial(ranking_by_log, rankings, log, given.propensities, noise, depths, level, **logged)
    if survey is None:
        return Estimates(by_log(), what)
    told_by = rankings if len(rankings) > 1 else rankings[0]
    found = _by_survey(partial(by_survey, told_by), survey, log, noise, depths, exclude=exclude, confidence=level)
    names = [f"{metric}@{depth}" for depth in depths for metric in METRICS]
    if len(rankings) > 1:
        return _of_both(found, what, max(depths))
    names = names if rankings[0].ranks_only else ["auc", *names]
    lacking = [name for name in names if name not in found]
    if not lacking:
        return Estimates({name: found[name] for name in names}, what)
    told = f"the survey has too few pairs of the right kind for {', '.join(lacking)}"
    if clicks:
        return _by_survey_alone(found, f"{told}, which clicks alone cannot tell", what)
    try:
        found |= by_log(only=lacking)
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


def _of_both(found: dict[str, Any], what: str, depth: int) -> Estimates:
    """Return what a survey tells of a difference: beside it, what the log says of the rest would be believed."""
    if not found:
        raise SurveyError(
            "the survey has too few pairs that stand at different places in the two rankings: "
            f"plan_labels(purpose='ndcg@{depth}') with both recommenders chooses such pairs"
        )
    return Estimates(found, what)


def _by_survey_alone(found: dict[str, Any], told: str, what: str) -> Estimates:
    """Return what the survey tells, where nothing tells the rest."""
    if not found:
        raise SurveyError(f"{told}: estimate_click_ranking goes by the clicks, under an assumption of its own")
    warn_caller(told, SurveyWarning)
    return Estimates(found, what)


def _by_survey(
    judged: Callable[..., Any], survey: SurveySample, log: FeedbackLog, noise: Noise, depths: list[int], **options: Any
) -> dict[str, Any]:
    """Go by the survey; where its own answers are noisy and the rates are a region, look all over it: ratios peak."""
    if not isinstance(survey, SurveySample) or not isinstance(noise, NoiseRegion):
        return dict(judged(survey, log, noise, depths, **options))
    if not survey.noisy:
        return dict(judged(survey, log, None, depths, **options))
    points = [judged(survey, log, rates, depths, **options) for rates in noise.lattice]
    return {name: EstimateRange.over([point[name] for point in points]) for name in points[0]}
