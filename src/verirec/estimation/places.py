"""Where the logged pairs stand in their users' rankings by score."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.checks import whole_number
from verirec.data.cells import CellValues, Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import MAX_CELLS, Block, Grid
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
    lists
        The users' lists, where these are all that is known of their rankings: they may be short.
    """

    above: Array
    tied: Array
    scale: float
    lists: TopLists | None = None

    def gained(self, by_place: Array) -> float | Array:
        """Return what all items of a user gain together: of each user, shape (n_users,), where lists may be short."""
        return float(by_place.sum()) if self.lists is None else self.lists.gained(by_place)


def places(values: CellValues, log: FeedbackLog, depth: int, *, max_cells: int | None = None) -> Places:
    """Find the places of the rows that are among their users' `depth` best.

    Only users with rows are ranked, as the others' places are not asked for; and a fixed random sample of these, where
    all of their items are more than `max_cells` scores, 4 billion by default and at most. Of lists no walk is needed.
    """
    if isinstance(values, TopLists):
        return Places(values.places(log.users, log.items), np.ones(len(log)), 1.0, values)
    n_items, most = values.shape[1], MAX_CELLS
    if max_cells is not None:
        most = min(whole_number("max_scores", max_cells), most)
    above, tied = long_array(len(log), np.float32), long_array(len(log), np.float32)
    above.fill(np.inf)
    tied.fill(1)
    ranked, scale = _some(np.flatnonzero(counts(log.users, log.n_users)), max(most // n_items, 1))
    starts, stops = (np.searchsorted(log.users, ranked, side=side) for side in ("left", "right"))

    def visit(block: Block) -> tuple[Positions, Array, Array]:
        part = block[0]
        whole = values.block(ranked[part], np.arange(n_items))
        if not np.isfinite(whole.sum()):
            raise PredictionError(f"scores must be finite; {int((~np.isfinite(whole)).sum()):,} of a block are not")
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
    return Places(above, tied, scale)


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
