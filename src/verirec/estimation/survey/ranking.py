"""How well a recommender ranks, by a survey: of all pairs for AUC and recall, of top pairs for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues
from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import totals
from verirec.estimation.bounded import within_range
from verirec.estimation.inputs import Rates
from verirec.estimation.intervals import Estimate
from verirec.estimation.places import judged_users
from verirec.estimation.ranking_formulas import place_gains, shared_gains
from verirec.estimation.survey.auc import auc_by_survey
from verirec.estimation.survey.draws import Draws, own_clusters, target_of
from verirec.estimation.survey.inference import Mean, inferred, power_of
from verirec.estimation.survey.problem import SurveyProblem
from verirec.estimation.survey.support import drawable_share
from verirec.estimation.survey.tops import RankedTarget, Walked, level_of
from verirec.nuisance.surveys import BEYOND_CHANCE, FEWEST, SurveySample

Array = npt.NDArray[np.float64]

HITS: Final = "hits"
"""What recall counts, as if it were a metric."""
_OF_CLASS: Final = 3
"""Surveyed likes, and dislikes, that AUC takes at the least."""


def ranking_by_survey(values: CellValues, survey: SurveySample, *given: Any, **options: Any) -> dict[str, Estimate]:
    r"""Estimate what a survey can tell of a ranking, by name; the rest is as in `ranked_by`.

    With g the gain of a pair's place and w the inverse of its probability to be drawn, DCG and its relatives are gains
    times a mean label, :math:`G\,[\lambda \bar q_g + \sum w g (y - \lambda q) / \sum w g]`: pairs that are not among
    their user's k best count for nothing, so that a survey of top pairs alone will do. AUC and recall speak of all
    pairs and need a survey of all. What fewer than 10 surveyed pairs would tell is left out, and so is what has a depth
    if not all of the best pairs could be drawn (`drawable_share`).
    """
    return ranked_by([values], survey, *given, **options)[0].estimates()


def ranked_by(
    rankings: Sequence[CellValues],
    survey: SurveySample,
    log: FeedbackLog,
    rates: Rates | None,
    depths: Sequence[int],
    *,
    exclude: Any = None,
    confidence: float = 0.95,
) -> list[SurveyedRanking]:
    """Put rankings together with one survey: it spans all pairs where it does so for each of them."""
    target = target_of(survey, log, exclude)
    every = [RankedTarget(values, target, max(depths)) for values in rankings]
    kept = survey.select(target.holds(survey.users, survey.items)) if len(target.left_out) else survey
    places = [ranked.places(kept.users, kept.items) for ranked in every]
    spans = not survey.best and drawable_share(kept, own_clusters(kept), len(target)) is None
    spans = spans and all(_spans(kept, at, max(depths), one) for one, at in zip(every, places, strict=True))
    problem = SurveyProblem.of(survey, log, rates, exclude=exclude, of_all=spans)
    judged = len(target.users) / judged_users(rankings, target.users)
    return [
        SurveyedRanking(ranked, kept, problem, at, tuple(depths), spans, confidence, judged)
        for ranked, at in zip(every, places, strict=True)
    ]


def _spans(survey: SurveySample, places: tuple[Array, Array], depth: int, ranked: RankedTarget) -> bool:
    """Tell whether as many of the surveyed pairs are among their user's best as of random pairs would be."""
    weights = (
        np.ones(len(survey)) if survey.probabilities is None else survey.probabilities.max() / survey.probabilities
    )
    shares = weights / weights.sum()
    among = float(shares @ shared_gains(np.ones(min(depth, ranked.target.shape[1])), *places))
    expected = ranked.share_of_best
    effective = 1 / float(shares @ shares)
    chance = np.sqrt(max(expected * (1 - expected), 0.0) / effective)
    return bool(abs(among - expected) <= BEYOND_CHANCE * chance + BEYOND_CHANCE / effective)


@dataclass(frozen=True, eq=False)
class SurveyedRanking:
    """A ranking and a survey, put together.

    Parameters
    ----------
    ranked, problem
        Of one target.
    survey
        Its draws that are of the target.
    places
        Where they stand: how many items of the user score higher, and how many the same; shape (n,) each.
    depths
        Of the metrics.
    spans
        Whether all pairs could be drawn.
    confidence
        Of the intervals.
    scale
        How many of the target's users there are for each one that is judged (`judged_users`).
    """

    ranked: RankedTarget
    survey: SurveySample
    problem: SurveyProblem
    places: tuple[Array, Array]
    depths: tuple[int, ...]
    spans: bool
    confidence: float
    scale: float = 1.0

    @property
    def draws(self) -> Draws:
        """The survey's pairs."""
        return self.problem.draws

    @cached_property
    def expected(self) -> Array:
        """q of the surveyed pairs."""
        return self.problem.expected_labels.cells(self.draws.users, self.draws.items)

    @cached_property
    def gains(self) -> dict[str, Array]:
        """By metric and depth, the gain of each place; hits are what recall counts."""
        found: dict[str, Array] = {}
        for depth in self.depths:
            count = min(depth, self.ranked.target.shape[1])
            found |= {f"{name}@{depth}": by_place for name, by_place in place_gains(depth, count).items()}
            found[f"{HITS}@{depth}"] = np.ones(count)
        return found

    @cached_property
    def own_scores(self) -> Array:
        """Scores of the surveyed pairs, shape (n,)."""
        return np.asarray(self.ranked.values.at(self.draws.users, self.draws.items), dtype=np.float64)

    @cached_property
    def levels(self) -> Array | None:
        """Scores to tell all others by; `None` unless the survey spans all pairs."""
        return self.ranked.levels(self.own_scores) if self.spans else None

    @cached_property
    def walked(self) -> Walked:
        """What the walk over the target's scores adds up."""
        return self.ranked.walk(self.problem.expected_labels, self.gains, self.levels)

    def estimates(self) -> dict[str, Estimate]:
        """Estimate all that the survey tells, by name."""
        found = {}
        if self.levels is not None and min(self.draws.facts["liked"], self.draws.facts["disliked"]) >= _OF_CLASS:
            levels = level_of(self.own_scores, self.levels)
            found["auc"] = auc_by_survey(levels, self.expected, self.walked, self.draws, self.confidence)
        for depth in self.depths:
            for metric in place_gains(depth, 1):
                name = f"{metric}@{depth}"
                if self._enough(name):
                    found[name] = self._gained(name)
            if self.spans and self._enough(f"{HITS}@{depth}"):
                found[f"recall@{depth}"] = self._recall(depth)
        return found

    def own_gains(self, name: str) -> Array:
        """Return what each draw gains if it is liked, shape (n,)."""
        return shared_gains(self.gains[name], *self.places)

    def _enough(self, name: str) -> bool:
        best = self.own_gains(name) > 0
        enough = int(best.sum()) >= FEWEST and len(np.unique(self.draws.clusters[best])) >= 3
        return enough and self._drawable(int(name.partition("@")[2]))

    def _drawable(self, depth: int) -> bool:
        """Tell whether all pairs at this depth could be drawn, as far as that can be known."""
        hits = f"{HITS}@{depth}"
        pairs = self.walked.gains(hits)[0] * len(self.ranked.target.users)
        return drawable_share(self.survey, self.draws.clusters, pairs, self.own_gains(hits)) is None

    def _mean_label(self, name: str) -> tuple[Mean, Draws, npt.NDArray[np.bool_], float]:
        """Return the mean label of the best pairs, weighted by gain; on which draws it rests; and all gains."""
        gains = self.own_gains(name)
        best = gains > 0
        shares = (self.draws.shares * gains)[best]
        draws, q = self.draws.select(best, shares / shares.sum()), self.expected[best]
        power = power_of(draws.labels.values, q, draws)
        all_of, expected, variance = self.walked.gains(name)
        base, added = power * expected / all_of, (power / all_of) ** 2 * variance
        mean = Mean(base, -power * q, np.ones(len(q)), q, added, int(power > 0), {"power": power})
        return mean, draws, best, all_of

    def _gained(self, name: str) -> Estimate:
        mean, draws, _, all_of = self._mean_label(name)
        all_of *= self.scale
        found = inferred(mean, draws, self.confidence, {"source": "survey"} | self.problem.facts())
        value, *ends = (min(max(part, 0.0), 1.0) * all_of for part in (found.value, *found.interval))
        outside = {} if 0 <= found.value <= 1 else {"outside": found.value * all_of}
        return replace(
            found,
            value=value,
            interval=(ends[0], ends[1]),
            standard_error=found.standard_error * all_of,
            diagnostics=found.diagnostics | outside,
        )

    def _recall(self, depth: int) -> Estimate:
        return within_range(self.over_likes(*self._mean_label(f"{HITS}@{depth}")))

    def over_likes(self, mean: Mean, among: Draws, some: npt.NDArray[np.bool_], times: float) -> Estimate:
        r"""Divide hits by likes, both by survey: the variance is that of :math:`(h - R\,b) / \bar b`.

        Parameters
        ----------
        mean, among, some, times
            Hits a user: `times` a mean over `some` of the draws, those `among`.
        """
        draws, labels = self.draws, self.draws.labels.values
        per_user = len(self.ranked.target) / len(self.ranked.target.users)
        hit_values = mean.constants + mean.slopes * among.labels.values
        hits = times * (mean.base + float(among.shares @ hit_values))
        power = power_of(labels, self.expected, draws)
        values = labels - power * self.expected
        liked = per_user * (power * float(self.walked.spread[0].sum()) + float(draws.shares @ values))
        # Corrected for noise, few likes can come out as none: half of one is what a survey cannot tell from it.
        liked = max(liked, per_user / (2 * len(draws)))
        recall = hits / liked
        of_hits, by_hit = np.zeros(len(draws)), np.zeros(len(draws))
        of_hits[some] = times * among.shares * (hit_values - float(among.shares @ hit_values))
        by_hit[some] = times * among.shares * mean.slopes
        of_liked = per_user * draws.shares * (values - float(draws.shares @ values))
        sums = totals(draws.clusters, (of_hits - recall * of_liked) / liked, draws.groups)
        slopes = (by_hit - recall * per_user * draws.shares) / liked
        parts = {
            "survey": draws.variance(sums, 2),
            "noise_rates": draws.rates_variance(slopes / draws.shares),
            "sample": mean.base_variance * (times / liked) ** 2,
        }
        error = float(np.sqrt(sum(parts.values())))
        facts = among.facts | {"source": "survey", "variance": parts} | self.problem.facts()
        return Estimate(recall, error, (recall, recall), self.confidence, facts)
