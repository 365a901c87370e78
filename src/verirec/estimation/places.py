"""Where the logged pairs stand in their users' rankings by score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues, Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import MAX_CELLS, Block, Grid
from verirec.data.top_lists import TopLists
from verirec.estimation.unobserved import BLOCK_CELLS
from verirec.exceptions import PredictionError

Array = npt.NDArray[np.float64]


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


def places(values: CellValues, log: FeedbackLog, depth: int, *, max_cells: int = MAX_CELLS) -> Places:
    """Find the places of the rows that are among their users' `depth` best.

    Only users with rows are ranked, as the others' places are not asked for; and a fixed random sample of these, where
    all of their items are more than `max_cells` scores. Of lists no walk is needed.
    """
    if isinstance(values, TopLists):
        return Places(values.places(log.users, log.items), np.ones(len(log)), 1.0, values)
    n_items = values.shape[1]
    above, tied = np.full(len(log), np.inf), np.ones(len(log))
    ranked, scale = _some(np.unique(log.users), max(max_cells // n_items, 1))
    asked = np.arange(len(log)) if scale == 1 else np.flatnonzero(np.isin(log.users, ranked))
    starts = np.append(np.searchsorted(log.users[asked], ranked), len(asked))
    last = max(n_items - depth, 0)

    def visit(block: Block) -> tuple[Positions, Array, Array]:
        part = block[0]
        whole = values.block(ranked[part], np.arange(n_items))
        if not np.isfinite(whole.sum()):
            raise PredictionError(f"scores must be finite; {int((~np.isfinite(whole)).sum()):,} of a block are not")
        threshold = np.partition(whole, last, axis=1)[:, last]
        rows = asked[starts[part[0]] : starts[part[-1] + 1]]
        line = np.searchsorted(ranked[part], log.users[rows])
        # From the same product as the others: the score of a pair by itself may be rounded otherwise.
        own = whole[line, log.items[rows]]
        among_best = own >= threshold[line]
        rows, line, own = rows[among_best], line[among_best], own[among_best]
        higher, same = np.empty(len(rows)), np.empty(len(rows))
        for place, score in enumerate(own):
            scores = whole[line[place]]
            higher[place], same[place] = np.count_nonzero(scores > score), np.count_nonzero(scores == score)
        return rows, higher, same

    # Blocks of whole users: a place is one among all of a user's items.
    grid = Grid((len(ranked), n_items), max(BLOCK_CELLS, n_items), max(max_cells, n_items))
    for _, (rows, higher, same) in grid.map_blocks(visit, parallel=values.parallel):
        above[rows], tied[rows] = higher, same
    return Places(above, tied, scale)


def _some(users: Positions, most: int) -> tuple[Positions, float]:
    """Return all of these users, or `most` of them at random; and how many each stands for."""
    if len(users) <= most:
        return users, 1.0
    return np.sort(np.random.default_rng(0).choice(users, most, replace=False)), len(users) / most
