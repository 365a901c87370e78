"""By how much one recommender ranks better than another, by a survey: the same draws judge both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues
from verirec.data.parts import totals
from verirec.estimation.bounded import difference_within
from verirec.estimation.intervals import Estimate
from verirec.estimation.ranking_formulas import largest, place_gains, shared_gains
from verirec.estimation.survey.draws import Draws
from verirec.estimation.survey.inference import Mean, inferred, power_of
from verirec.estimation.survey.ranking import HITS, SurveyedRanking, ranked_by
from verirec.estimation.survey.support import drawable_share
from verirec.nuisance.surveys import FEWEST

Array = npt.NDArray[np.float64]


def ranking_difference_by_survey(rankings: Sequence[CellValues], *given: Any, **options: Any) -> dict[str, Estimate]:
    r"""Estimate by how much the first of two rankings is better, by name; the rest is as in `ranked_by`.

    With :math:`d = g_1 - g_2` the difference of the gains of a pair's two places, it is d times a label, added up over
    the pairs where d is not 0, of which there are M a user:
    :math:`M\,[\lambda \overline{d q} + \sum w d (y - \lambda q) / \sum w]`, over draws of such pairs. Pairs that stand
    at the same place in both rankings tell nothing, and what is common to both cancels. Recall divides by likes, and
    needs a survey of all pairs; AUC is not told. As of a single ranking, what fewer than 10 surveyed pairs would tell
    is left out, and so is what not all pairs that matter could be drawn for.
    """
    return _Difference(*ranked_by(rankings, *given, **options)).estimates()


class _Apart(NamedTuple):
    """Pairs that stand at different places in two rankings, as means over users.

    Parameters
    ----------
    pairs
        How many there are.
    expected, variance
        What their labels are expected to add to the difference, and its variance where users were sampled.
    """

    pairs: float
    expected: float
    variance: float


@dataclass(frozen=True, eq=False)
class _Difference:
    """Two rankings, and one survey of both."""

    first: SurveyedRanking
    second: SurveyedRanking

    @property
    def draws(self) -> Draws:
        return self.first.draws

    @cached_property
    def _best(self) -> tuple[npt.NDArray[np.int64], list[Any], Array, int, float]:
        """Pairs among the best by either: whose they are, their places by both, q, users, and the share not seen."""
        ranked = (self.first.ranked, self.second.ranked)
        users = ranked[0].some_users()
        found = []
        for one in ranked:
            parts = list(one.best_keys(users))
            found.append([np.concatenate([part[column] for part in parts]) for column in range(3)])
        keys = np.unique(np.concatenate([one[0] for one in found]))
        places = []
        for own, above, tied in found:
            at = np.searchsorted(keys, own)
            whole = np.full(len(keys), np.inf), np.ones(len(keys))
            whole[0][at], whole[1][at] = above, tied
            places.append(whole)
        who, items = np.divmod(keys, ranked[0].target.shape[1])
        unseen = 1 - len(users) / len(ranked[0].target.users)
        line = np.searchsorted(users, who)
        return line, places, self.first.problem.expected_labels.cells(who, items), len(users), unseen

    def _apart(self, by_place: Array) -> _Apart:
        line, places, q, users, unseen = self._best
        apart = np.subtract(*(shared_gains(by_place, *one) for one in places))
        expected = totals(line, apart * q, users)
        variance = unseen * float(expected.var(ddof=1)) / users if unseen else 0.0
        return _Apart(float((apart != 0).sum()) / users, float(expected.mean()), variance)

    def estimates(self) -> dict[str, Estimate]:
        found = {}
        for depth in self.first.depths:
            for metric in place_gains(depth, 1):
                name = f"{metric}@{depth}"
                found[name] = self._gained(name)
            if self.first.spans:
                found[f"recall@{depth}"] = self._recall(depth)
        return {name: one for name, one in found.items() if one is not None}

    def _gained(self, name: str) -> Estimate | None:
        means = self._mean(name)
        if means is None:
            return None
        mean, draws, _, times = means
        found = inferred(mean, draws, self.first.confidence, {"source": "survey"} | self.first.problem.facts())
        times *= self.first.scale
        value, low, high = (times * part for part in (found.value, *found.interval))
        found = replace(found, value=value, interval=(low, high), standard_error=times * found.standard_error)
        return difference_within(found, largest(name, self.first.ranked.target.shape[1]))

    def _recall(self, depth: int) -> Estimate | None:
        means = self._mean(f"{HITS}@{depth}")
        return None if means is None else difference_within(self.first.over_likes(*means), normal=True)

    def _mean(self, name: str) -> tuple[Mean, Draws, npt.NDArray[np.bool_], float] | None:
        """Return the mean of d times the label, on which draws it rests, and how many such pairs there are a user."""
        apart = self._apart(self.first.gains[name])
        slopes = self.first.own_gains(name) - self.second.own_gains(name)
        some = slopes != 0
        users = len(self.first.ranked.target.users)
        if int(some.sum()) < FEWEST or len(np.unique(self.draws.clusters[some])) < 3:
            return None
        if drawable_share(self.first.survey, self.draws.clusters, apart.pairs * users, some.astype(float)) is not None:
            return None
        shares = self.draws.shares[some]
        draws, q, slopes = self.draws.select(some, shares / shares.sum()), self.first.expected[some], slopes[some]
        power = power_of(slopes * draws.labels.values, slopes * q, draws)
        base, variance = power * apart.expected / apart.pairs, (power / apart.pairs) ** 2 * apart.variance
        mean = Mean(base, -power * slopes * q, slopes, q, variance, int(power > 0), {"power": power})
        return mean, draws, some, apart.pairs
