"""Where the logged pairs stand in their users' rankings by score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues, Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import MAX_CELLS, Block, Grid
from verirec.data.pair_keys import NO_PAIRS, pairs_of
from verirec.data.parts import counts
from verirec.data.top_lists import TopLists
from verirec.estimation.unobserved import BLOCK_CELLS
from verirec.exceptions import PredictionError
from verirec.scratch import long_array

Array = npt.NDArray[np.float64]

_STRETCH: Final = 64
_SPARE: Final = 4
"""There are at least so many times more stretches than places that are asked for."""


class Places(NamedTuple):
    """Where the rows of a log stand in their users' rankings.

    Parameters
    ----------
    above, tied
        How many of the user's items score higher, infinite for rows that are not among the user's best or whose user
        was not ranked; and how many the same, itself included. Shape (n,).
    scale
        How many users with rows each ranked one stands for: 1 where all of them are ranked.
    lengths
        How many of each user's items have a place, shape (n_users,), where that may be fewer than are asked for.
    """

    above: Array
    tied: Array
    scale: float
    lengths: npt.NDArray[np.int64] | None = None

    def gained(self, by_place: Array) -> float | Array:
        """Return what all items of a user gain together: of each user, shape (n_users,), where some have few places."""
        if self.lengths is None:
            return float(by_place.sum())
        so_far = np.append(0.0, np.cumsum(by_place))
        return np.asarray(so_far[np.minimum(self.lengths, len(by_place))])


def judged_users(rankings: Sequence[CellValues], users: Positions) -> int:
    """Count those of some users who have a list, by any of some rankings; of scores all have, and of none all count.

    Nobody's list tells nothing of a recommender: what has a depth is a mean over users who have one.
    """
    listed = np.zeros(len(users), bool)
    for values in rankings:
        listed |= values.lengths[users] > 0 if isinstance(values, TopLists) else True
    return int(listed.sum()) or len(users)


def places(
    values: CellValues,
    log: FeedbackLog,
    depth: int,
    left_out: npt.NDArray[np.int64] = NO_PAIRS,
    *,
    max_cells: int | None = None,
) -> Places:
    """Find the places of the rows that are among their users' `depth` best.

    Pairs that are left out, by `cell_keys` in ascending order and none of them a row's, have no place. Only users with
    rows are ranked, as the others' places are not asked for; and a fixed random sample of these, where all of their
    items are more than `max_cells` scores, 4 billion by default and at most. Of lists no walk is needed.
    """
    if isinstance(values, TopLists):
        lists = values.without(left_out)
        return Places(lists.places(log.users, log.items), np.ones(len(log)), 1.0, lists.lengths)
    n_items, most = values.shape[1], MAX_CELLS
    if max_cells is not None:
        most = min(max_cells, most)
    above, tied = long_array(len(log), np.float32), long_array(len(log), np.float32)
    above.fill(np.inf)
    tied.fill(1)
    ranked, scale = _some(np.flatnonzero(counts(log.users, log.n_users)), max(most // n_items, 1))
    # By positions of the log's own kind: others would have all of its users copied to theirs.
    wanted = ranked.astype(log.users.dtype)
    starts, stops = (np.searchsorted(log.users, wanted, side=side) for side in ("left", "right"))

    def visit(block: Block) -> tuple[Positions, Array, Array]:
        part = block[0]
        whole = values.block(ranked[part], np.arange(n_items))
        if not np.isfinite(whole.sum()):
            raise PredictionError(f"scores must be finite; {int((~np.isfinite(whole)).sum()):,} of a block are not")
        whole = without_left_out(whole, ranked[part], left_out)
        least = _least_of_best(whole, depth)
        lengths = stops[part] - starts[part]
        line = np.repeat(np.arange(len(part)), lengths)
        rows = np.arange(len(line)) + np.repeat(starts[part] - np.cumsum(lengths) + lengths, lengths)
        # From the same product as the others: the score of a pair by itself may be rounded otherwise.
        own = whole[line, log.items[rows]]
        perhaps = own >= least[line]
        rows, line, own = rows[perhaps], line[perhaps], own[perhaps]
        higher, same = np.empty(len(rows)), np.empty(len(rows))
        for place, score in enumerate(own):
            scores = whole[line[place]]
            higher[place], same[place] = np.count_nonzero(scores > score), np.count_nonzero(scores == score)
        among_best = higher < depth
        return rows[among_best], higher[among_best], same[among_best]

    # Blocks of whole users: a place is one among all of a user's items.
    grid = Grid((len(ranked), n_items), max(BLOCK_CELLS, n_items), max(most, n_items))
    for _, (rows, higher, same) in grid.map_blocks(visit, parallel=values.parallel):
        above[rows], tied[rows] = higher, same
    return Places(above, tied, scale, items_of_users(log, left_out) if len(left_out) else None)


def items_of_users(log: FeedbackLog, left_out: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Count the items that each user has, without the pairs that are left out; shape (n_users,)."""
    return np.asarray(log.n_items - counts(pairs_of(left_out, log.n_items)[0], log.n_users))


def without_left_out(scores: npt.NDArray[Any], users: Positions, left_out: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return the scores of whole users, in ascending order, with -inf for the pairs that are left out.

    Examples
    --------
    >>> without_left_out(np.array([[0.1, 0.9], [0.5, 0.5]]), np.array([1, 3]), np.array([0, 3, 6])).tolist()
    [[0.1, -inf], [-inf, 0.5]]
    """
    n_items = scores.shape[1]
    # What is left out of a block lies between its ends.
    ends = np.searchsorted(left_out, [int(users[0]) * n_items, (int(users[-1]) + 1) * n_items])
    who, what = np.divmod(left_out[slice(*ends)], n_items)
    line = np.minimum(np.searchsorted(users, who), len(users) - 1)
    inside = users[line] == who
    if not inside.any():
        return scores
    kept = np.array(scores, dtype=np.result_type(scores, np.float32))
    kept[line[inside], what[inside]] = -np.inf
    return kept


def _least_of_best(scores: npt.NDArray[Any], depth: int) -> npt.NDArray[Any]:
    """Return, for each line, a score that the `depth` best are not below: of stretches, the `depth`-th best maximum.

    To find it takes a tenth of the time of finding the `depth`-th best of all.
    """
    n_items = scores.shape[1]
    starts = np.arange(0, n_items, max(min(_STRETCH, n_items // (_SPARE * depth)), 1))
    best = np.maximum.reduceat(scores, starts, axis=1)
    last = max(len(starts) - depth, 0)
    return np.asarray(np.partition(best, last, axis=1)[:, last])


def _some(users: Positions, most: int) -> tuple[Positions, float]:
    """Return all of these users, or `most` of them at random; and how many each stands for."""
    if len(users) <= most:
        return users, 1.0
    return np.sort(np.random.default_rng(0).choice(users, most, replace=False)), len(users) / most
