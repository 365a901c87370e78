"""One walk over a target's scores: who is among each user's best, and how scores spread over all pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues, Positions, cell_keys
from verirec.data.grid import Block, Grid
from verirec.data.parts import SHORT, counts, parts_of, totals
from verirec.data.top_lists import TopLists
from verirec.estimation.places import without_left_out
from verirec.estimation.ranking_formulas import shared_gains
from verirec.estimation.survey.target import Target
from verirec.estimation.unobserved import BLOCK_CELLS
from verirec.exceptions import PredictionError
from verirec.scratch import long_array

Array = npt.NDArray[np.float64]

MOST_CELLS: Final = 50_000_000
"""Scores that are looked at: of larger targets, those of a random sample of users."""
LEVELS: Final = 4_096
"""Of scores, between which pairs count as tied."""
_LOOKED_AT: Final = 100_000
_STRETCH: Final = 64
"""Items of which the best one is found first."""


class BestPairs(NamedTuple):
    """Pairs that are among their users' best: positions in a block of scores, and the places that they share."""

    line: npt.NDArray[np.int64]
    item: npt.NDArray[np.int64]
    above: Array
    tied: Array


def best_pairs(scores: Array, depth: int, unranked: float = -np.inf) -> BestPairs:
    """Find the `depth` best of each line, and all that tie with the last of them; scores up to `unranked` are none.

    Examples
    --------
    >>> best_pairs(np.array([[0.1, 0.9, 0.5, 0.5]]), 2).item.tolist()
    [1, 2, 3]
    """
    width = scores.shape[1]
    found = np.flatnonzero((scores >= _surely_below(scores, depth)[:, None]) & (scores > unranked))
    line, item = np.divmod(found, width)
    own = scores.ravel()[found]
    order = np.lexsort((-own, line))
    line, item, own = line[order], item[order], own[order]
    new_line = _starts(line)
    new_tie = new_line | _starts(own)
    starts = np.flatnonzero(new_tie)
    place = starts - np.flatnonzero(new_line)[np.cumsum(new_line) - 1][starts]
    tied = np.diff(starts, append=len(line))
    best = np.repeat(place < depth, tied)
    above, tied = (np.repeat(one, tied)[best].astype(float) for one in (place, tied))
    return BestPairs(line[best], item[best], above, tied)


def _surely_below(scores: Array, depth: int) -> Array:
    """Return a score of each line that its `depth` best reach: so many stretches have a best one that does."""
    stretches = scores.shape[1] // _STRETCH
    if stretches > depth:
        scores = scores[:, : stretches * _STRETCH].reshape(len(scores), _STRETCH, stretches).max(axis=1)
    last = max(scores.shape[1] - depth, 0)
    return np.asarray(np.partition(scores, last, axis=1)[:, last])


def _starts(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Flag where a run of equal values starts."""
    flags = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=flags[1:])
    return flags


@dataclass(frozen=True, eq=False)
class RankedTarget:
    """A recommender's scores on a target.

    Parameters
    ----------
    values, target
        Of one grid. Pairs that the target leaves out are not ranked.
    depth
        How many are best.
    """

    values: CellValues
    target: Target
    depth: int

    def scores(self, users: Positions) -> Array:
        """Return the scores of whole users, (a, n_items); -inf for pairs that are left out."""
        whole = np.asarray(self.values.block(users, np.arange(self.target.shape[1])), dtype=np.float64)
        if not np.isfinite(whole.sum()):
            raise PredictionError(f"scores must be finite; {int((~np.isfinite(whole)).sum()):,} of a block are not")
        return without_left_out(whole, users, self.target.left_out)

    def places(self, users: Positions, items: Positions) -> tuple[Array, Array]:
        """Return how many of the user's items score higher than each pair, and how many the same; above may be inf."""
        ranked = np.flatnonzero(counts(users, self.target.shape[0]))
        found = list(self.best_keys(ranked))
        keys, above, tied = (np.concatenate([part[column] for part in found]) for column in range(3))
        order = np.argsort(keys)
        of_above, of_tied = long_array(len(users)), long_array(len(users))
        for at in parts_of(len(users), size=SHORT):
            wanted = cell_keys(users[at], items[at], self.target.shape[1])
            place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
            among = keys[place] == wanted
            of_above[at], of_tied[at] = np.where(among, above[place], np.inf), np.where(among, tied[place], 1.0)
        return of_above, of_tied

    def best_keys(self, ranked: Positions) -> Iterator[tuple[Any, Array, Array]]:
        """Yield the best pairs of some users (in ascending order): `cell_keys`, and what `places` gives of them."""
        n_items = self.target.shape[1]

        def visit(block: Block) -> tuple[Any, Array, Array]:
            who = ranked[block[0]]
            best = best_pairs(self.scores(who), self.depth, self.values.unranked)
            return cell_keys(who[best.line], best.item, n_items), best.above, best.tied

        for _, part in _whole_users(len(ranked), n_items).map_blocks(visit, parallel=self.values.parallel):
            yield part

    @property
    def share_of_best(self) -> float:
        """Share of the target's pairs that are among their user's best."""
        depth, users = min(self.depth, self.target.shape[1]), self.target.users
        lists = self.values
        best = np.minimum(lists.lengths[users], depth).sum() if isinstance(lists, TopLists) else depth * len(users)
        return float(best) / len(self.target)

    def some_users(self) -> Positions:
        """Return the users that are looked at, in ascending order: all, or a fixed random sample of very many."""
        users, most = self.target.users, max(MOST_CELLS // self.target.shape[1], 2)
        if len(users) <= most:
            return users
        return np.sort(np.random.default_rng(0).choice(users, most, replace=False))

    def levels(self, own: Array) -> Array:
        """Return scores to tell all others by: those of the survey's own pairs, and evenly spread ones."""
        if len(self.target) <= _LOOKED_AT:
            whole = self.scores(self.target.users)
            looked_at = whole[whole > -np.inf]
        else:
            looked_at = self.values.cells(*self.target.sample(_LOOKED_AT, np.random.default_rng(0)))
        spread = np.quantile(looked_at, np.linspace(0, 1, LEVELS), method="nearest")
        return np.unique(np.concatenate([own, spread]))

    def walk(self, labels: CellValues, gains: Mapping[str, Array], levels: Array | None) -> Walked:
        """Add up, over all users or a random sample of them, what the best gain and how scores spread.

        Parameters
        ----------
        labels
            Expected ones, of the grid.
        gains
            By metric, what a liked item gains at each place.
        levels
            Scores between which pairs count as tied; `None` to leave the spread out.
        """
        n_items, users = self.target.shape[1], self.some_users()

        def visit(block: Block) -> tuple[Array, Array]:
            who = users[block[0]]
            scores = self.scores(who)
            return self._gained(scores, who, labels, gains), self._spread(scores, who, labels, levels)

        walked = [
            part for _, part in _whole_users(len(users), n_items).map_blocks(visit, parallel=self.values.parallel)
        ]
        by_user = np.concatenate([gained for gained, _ in walked], axis=2)
        unseen = 1 - len(users) / len(self.target.users)
        return Walked(list(gains), by_user, np.stack([spread for _, spread in walked]), unseen)

    def _gained(self, scores: Array, who: Positions, labels: CellValues, gains: Mapping[str, Array]) -> Array:
        """Return, by metric and user, the gains of the best pairs and those that are expected; (metrics, 2, users)."""
        best = best_pairs(scores, self.depth, self.values.unranked)
        expected = labels.cells(who[best.line], best.item)
        found = np.empty((len(gains), 2, len(who)))
        for row, by_place in enumerate(gains.values()):
            own = shared_gains(by_place, best.above, best.tied)
            found[row] = totals(best.line, own, len(who)), totals(best.line, own * expected, len(who))
        return found

    def _spread(self, scores: Array, who: Positions, labels: CellValues, levels: Array | None) -> Array:
        """Return how many liked and disliked pairs are expected at each level, and between them; (2, levels)."""
        if levels is None:
            return np.zeros((2, 0))
        counted = (scores > -np.inf).astype(np.float64).ravel()
        liked = labels.block(who, np.arange(scores.shape[1])).ravel() * counted
        bins = level_of(scores.ravel(), levels)
        all_of, of_liked = (totals(bins, weights, 2 * len(levels) + 1) for weights in (counted, liked))
        return np.stack([of_liked, all_of - of_liked])


class Walked(NamedTuple):
    """What was added up.

    Parameters
    ----------
    metrics
        Names.
    by_user
        Gains of the best pairs and expected gains, shape (metrics, 2, users).
    spreads
        Expected likes and dislikes at each level of scores, block by block, shape (blocks, 2, levels).
    unseen
        Share of the users that were not looked at.
    """

    metrics: list[str]
    by_user: Array
    spreads: Array
    unseen: float

    def gains(self, metric: str) -> tuple[float, float, float]:
        """Return the mean over users of the gains, of those that are expected, and the variance of the latter."""
        all_of, expected = self.by_user[self.metrics.index(metric)]
        return float(all_of.mean()), float(expected.mean()), self._variance(expected)

    @property
    def spread(self) -> tuple[Array, Array]:
        """Expected likes and dislikes at each level, as shares of all pairs."""
        liked, disliked = self.spreads.sum(axis=0)
        pairs = float(liked.sum() + disliked.sum())
        return liked / pairs, disliked / pairs

    def spread_variance(self, if_liked: Array, if_disliked: Array) -> float:
        """Return the variance of the mean over all pairs of a function of score and label, where users were sampled."""
        if self.unseen == 0 or len(self.spreads) < 2:
            return 0.0
        pairs = self.spreads.sum(axis=(1, 2))
        return self._variance((self.spreads[:, 0] @ if_liked + self.spreads[:, 1] @ if_disliked) / pairs)

    def _variance(self, values: Array) -> float:
        return self.unseen * float(values.var(ddof=1)) / len(values) if self.unseen else 0.0


def level_of(scores: Array, levels: Array) -> npt.NDArray[np.int64]:
    """Number the levels and what lies between them: 2j + 1 for the score of level j, even numbers beside it."""
    place = np.searchsorted(levels, scores)
    return np.asarray(2 * place + (levels[np.minimum(place, len(levels) - 1)] == scores))


def _whole_users(count: int, n_items: int) -> Grid:
    """A place is one among all of a user's items: blocks are of whole users."""
    return Grid((count, n_items), max(BLOCK_CELLS, n_items), max(MOST_CELLS, count * n_items))
