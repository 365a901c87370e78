r"""How well a recommender ranks, by clicks alone, if popularity says how likely a liked item is to be clicked.

A log of clicks has no dislikes, and popular items are shown, and so clicked, more often. Yang et al. (2018), "Unbiased
offline recommender evaluation for missing-not-at-random implicit feedback", weigh each click by one over

.. math:: p_i \propto n_i^{(\gamma + 1) / 2},

n being the item's clicks: what :math:`P(\text{shown}) \propto n^\gamma`, and clicks of what is shown in proportion to
how many people like it, come to. With :math:`\gamma = -1` all clicks count the same; :math:`\gamma = 0`, the root of
popularity, is what Saito et al. (2020) train by.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt

from verirec.adapters.adapt import adapted
from verirec.checks import one_of, real_number
from verirec.data.feedback_log import checked_log
from verirec.data.parts import counts, parts_of, totals, totals_of
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimation.bounded import within_range
from verirec.estimation.intervals import Estimate, checked_confidence
from verirec.estimation.ranking_formulas import place_gains, shared_gains
from verirec.estimation.results import Estimates
from verirec.estimation.survey.target import Target
from verirec.estimation.survey.tops import RankedTarget
from verirec.exceptions import EmptyLogError, LabelError, OverlapWarning, warn_caller
from verirec.metrics.ranking import checked_depths
from verirec.nuisance.click_model import clicks_only
from verirec.scratch import each, joined, those

if TYPE_CHECKING:
    from verirec.data.feedback_log import FeedbackLog

Array = npt.NDArray[np.float64]

_FEW: Final = 5
"""Clicks of an item below which its popularity is hardly known."""
_THIN: Final = 0.1
"""Share of the weight on such items from which on intervals are too narrow: one over a power is not linear in counts,
and liked items without a click drop out. Of 200 logs each, 95% intervals held .915 at a share of .06, .855 at .14."""
_DOUBT: Final = 2.0
"""Clicks that gain all, and as many that gain nothing, which are added before an error is taken to be next to none."""

ASSUMES: Final = (
    "a liked item is clicked with a chance in proportion to the power {power:g} of its clicks, whoever the user is, "
    "and nothing is clicked that is not liked; no log of clicks can tell whether that is so"
)


def estimate_click_ranking(
    scores: PredictionsLike,
    log: FeedbackLog,
    *,
    gamma: float = 0.0,
    exclude: Any = None,
    k: int | Iterable[int] = 5,
    persistence: float = 0.8,
    average: Literal["pairs", "users"] = "pairs",
    confidence: float = 0.95,
) -> Estimates:
    r"""Estimate how well scores rank what people like, by clicks alone, weighted by one over a power of popularity.

    With c what a pair's place in its user's ranking gains and :math:`w = 1/p_i`, the mean gain of all liked pairs is
    estimated by :math:`\hat R = \sum w c / \sum w` over the clicks. It is self-normalised, as p is known up to a factor
    only.

    - ``recall@k``: c is 1 for the k best, the share of all liked pairs that are among their user's k best.
    - ``dcg@k``: :math:`c = 1 / \log_2(1 + j)` at place j of the k best.
    - ``rbp@k``: rank-biased precision, :math:`c = (1 - b) b^{j-1}` at place j of the k best, b the persistence.

    Each comes with ``naive-...``, the same of the clicks as they are. Intervals are those of sums over users, and have
    in them that popularity is counted from the same clicks: a click of item i adds
    :math:`w (c - \hat R) - \eta\, w h_i (\bar c_i - \hat R) / n_i`, :math:`\eta = (\gamma + 1)/2`, h the item's clicks
    that judge and n all of them. They do not have in them that the assumption may be wrong: look at several gamma.

    Parameters
    ----------
    scores
        As in `verirec.estimate_ranking`.
    log
        Of clicks alone, the rows that judge.
    gamma
        How much more often popular items are shown, at least -1.
    exclude
        Clicks that the recommender was trained on, as a log or as (users, items): they are not ranked, and count as
        popularity.
    k
        Depth, or several.
    persistence
        b, strictly between 0 and 1: how likely somebody is to look at the next place.
    average
        "pairs": over all liked pairs, as above. "users": the mean of the same ratio of each user, as Yang et al. print
        it; of users with one click it corrects nothing, as weights of one row cancel.
    confidence
        Of the intervals.

    Examples
    --------
    >>> from verirec import FeedbackLog
    >>> users, items = [*range(15), *range(5)], [0] * 15 + [1] * 5
    >>> clicks = FeedbackLog.from_arrays(users, items, [1] * 20, n_users=15, n_items=3)
    >>> found = estimate_click_ranking(np.tile([3, 2, 1], (15, 1)), clicks, gamma=1, k=1)
    >>> [round(found[name].value, 3) for name in ("naive-recall@1", "recall@1")]  # 15 clicks of item 0 count as 5
    [0.75, 0.5]
    """
    level, depths = checked_confidence(confidence), checked_depths(k)
    power = (real_number("gamma", gamma, above=-1, below=19, closed=True) + 1) / 2
    one_of("average", average, ("pairs", "users"))
    patience = real_number("persistence", persistence, above=0, below=1)
    _refuse_others(log)
    values = as_predictions(adapted(scores, log), log.n_users, log.n_items)
    target = Target.of(log.shape, None, exclude)
    judges = target.holds(log.users, log.items)
    if int(judges.sum()) < 2:
        raise EmptyLogError(f"an estimate needs at least 2 clicks that exclude leaves; it leaves {int(judges.sum())}")
    clicks = _Clicks.of(those(log.users, judges), those(log.items, judges), target)
    clicks.refuse_one_user()
    clicks.warn_of_rare_items(power)
    places = RankedTarget(values, target, max(depths)).places(clicks.users, clicks.items)
    found: dict[str, Estimate] = {}
    for depth in depths:
        for metric, by_place in _gains(depth, patience, log.n_items).items():
            gains = each(partial(shared_gains, by_place), *places)
            for name, eta in ((metric, power), (f"naive-{metric}", 0.0)):
                one = clicks.mean(gains, eta, level, by_user=average == "users", most=float(by_place.max()))
                found[f"{name}@{depth}"] = within_range(one, float(by_place.max()))
    return Estimates(found, "how well what people like is ranked, by clicks")


def _refuse_others(log: object) -> None:
    known = checked_log(log)
    if len(known) < 2:
        raise EmptyLogError(f"an estimate needs at least 2 clicks; the log has {len(known)} rows")
    if not clicks_only(known):
        raise LabelError(
            f"a log of clicks alone is needed; {int((known.labels == 0).sum()):,} of {len(known):,} rows are negative, "
            "which estimate_ranking uses too"
        )


def _gains(depth: int, persistence: float, n_items: int) -> dict[str, Array]:
    """Return what a liked item gains at each of the first places, by metric."""
    count = min(depth, n_items)
    return {
        "recall": np.ones(count),
        "dcg": place_gains(depth, count)["dcg"],
        "rbp": (1 - persistence) * persistence ** np.arange(count, dtype=np.float64),
    }


@dataclass(frozen=True, eq=False)
class _Clicks:
    """Clicks that judge, and all others, whose popularity counts.

    Parameters
    ----------
    users, items
        Of those that judge.
    other_users, other_items
        Of those that were trained on.
    popularity
        Clicks of each item, shape (n_items,).
    n_users
        Of the grid.
    """

    users: npt.NDArray[Any]
    items: npt.NDArray[Any]
    other_users: npt.NDArray[Any]
    other_items: npt.NDArray[Any]
    popularity: Array
    n_users: int

    @classmethod
    def of(cls, users: npt.NDArray[Any], items: npt.NDArray[Any], target: Target) -> _Clicks:
        others, (n_users, n_items) = target.pairs_left_out, target.shape
        popularity = counts(items, n_items) + counts(others[1], n_items)
        return cls(users, items, *others, popularity.astype(np.float64), n_users)

    def refuse_one_user(self) -> None:
        """Refuse clicks of one person: how people differ cannot be told."""
        if self.users.min() == self.users.max():
            raise EmptyLogError("an estimate needs clicks of at least 2 users; all that judge are of one")

    def _weights(self, power: float) -> Array:
        return each(lambda item: self.popularity[item] ** -power, self.items)

    def warn_of_rare_items(self, power: float) -> None:
        """Warn where much of the weight is on items whose popularity is hardly known."""
        weights = self._weights(power)
        rare = each(lambda item: self.popularity[item] < _FEW, self.items, dtype=bool)
        share = float(those(weights, rare).sum() / weights.sum())
        if power > 0 and share > _THIN:
            warn_caller(
                f"{share:.0%} of the weight is on items with fewer than {_FEW} clicks, of hardly known popularity: the "
                "intervals are too narrow; a smaller gamma, or more clicks, would help",
                OverlapWarning,
            )

    def mean(self, gains: Array, power: float, confidence: float, *, by_user: bool, most: float) -> Estimate:
        """Weigh the gains by popularity to a power, and sum what each click does to the mean over users."""
        users, items, n_users = self.users, self.items, self.n_users
        of_user = counts(users, n_users)
        groups = int(np.count_nonzero(of_user))
        weights = self._weights(power)
        if by_user:
            whole = totals(users, weights, n_users)
            weights = each(lambda weight, who: weight / whole[who], weights, users)
        weights = each(np.divide, weights, float(weights.sum()))
        value = float(weights @ gains)
        centre = np.full(n_users, value)
        if by_user:
            centre = totals_of(users, lambda at: weights[at] * gains[at], n_users) * groups
        # One more click of an item takes from the weight of all of its clicks.
        taken = totals_of(items, lambda at: weights[at] * (gains[at] - centre[users[at]]), len(self.popularity))
        taken *= power / np.maximum(self.popularity, 1)
        influence = each(lambda weight, gain, item: weight * (gain - value) - taken[item], weights, gains, items)
        of_others = each(lambda item: -taken[item], self.other_items)
        whose = joined(users, self.other_users)
        sums = totals(whose, joined(influence, of_others), n_users)[counts(whose, n_users) > 0]
        size = 1 / float(weights @ weights)
        error = float(np.sqrt(sums @ sums * groups / (groups - 1)))
        some = sum(int(np.count_nonzero(gains[at])) for at in parts_of(len(gains)))
        less = sum(int(np.count_nonzero(gains[at] < most)) for at in parts_of(len(gains)))
        if min(some, less) < _FEW:
            error = max(error, _least_error(value, most, size))
        facts = {
            "clicks": len(self.users),
            "users": groups,
            "effective_sample_size": size,
            "power": power,
            "source": "clicks",
            "assumes": ASSUMES.format(power=power),
        }
        return Estimate(value, error, (value, value), confidence, facts)


def _least_error(value: float, most: float, size: float) -> float:
    """Return the error of a mean of so many clicks by chance alone, two more gaining all and two nothing.

    Where nearly all clicks gain the same, their own spread says that there is next to no error.

    Examples
    --------
    >>> round(_least_error(0.0, 1.0, 20), 3)
    0.056
    """
    share = (value / most * size + _DOUBT) / (size + 2 * _DOUBT)
    return most * float(np.sqrt(share * (1 - share) / (size + 2 * _DOUBT)))
