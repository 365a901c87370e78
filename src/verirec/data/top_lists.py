"""Top-k lists: what each user is shown, in order, and nothing of all other items."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.checks import number_array
from verirec.data.cells import CellValues, Positions, cell_keys, pair_positions
from verirec.exceptions import PredictionError

Array = npt.NDArray[np.float64]


class TopLists(CellValues):
    """Ranked lists of users, as a recommender shows them: they tell a ranking, and no probabilities.

    As values of cells they are higher the earlier an item stands; items that are not listed have 0, and no place.

    Parameters
    ----------
    users, items
        Positions of the listed pairs, each once, shape (n,).
    ranks
        Numbers that are lower the earlier an item stands in its user's list, shape (n,); they need not start anywhere,
        and what they leave out moves no item.
    shape
        The grid's, (n_users, n_items).

    Examples
    --------
    >>> lists = TopLists([0, 0, 1], [2, 1, 0], [1, 2, 1], (2, 3))
    >>> lists, lists.block([0, 1], [0, 1, 2]).tolist()
    (TopLists(2 of 2 users, up to 2 of 3 items each), [[0.0, 2.0, 3.0], [3.0, 0.0, 0.0]])
    """

    ranks_only = True
    unranked = 0.0

    def __init__(
        self, users: npt.ArrayLike, items: npt.ArrayLike, ranks: npt.ArrayLike, shape: tuple[int, int]
    ) -> None:
        who, what = pair_positions(users, items, shape)
        order_by = number_array("ranks", ranks, ndim=1, error=PredictionError)
        if order_by.shape != who.shape or not np.isfinite(order_by).all():
            raise PredictionError(f"ranks must be a finite number a listed pair, shape ({len(who)},)")
        self.shape = shape
        order = np.lexsort((order_by, who))
        who, what, order_by = who[order], what[order], order_by[order]
        same = np.flatnonzero((who[1:] == who[:-1]) & (order_by[1:] == order_by[:-1]))
        if same.size:
            raise PredictionError(
                f"a list has one item at each rank; {same.size:,} ranks occur again for the same user (first: rank "
                f"{order_by[same[0]]:g} of user {who[same[0]]})"
            )
        self.lengths: npt.NDArray[np.int64] = np.bincount(who, minlength=shape[0])
        places = np.arange(len(who)) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        keys = cell_keys(who, what, shape[1])
        by_key = np.argsort(keys)
        self._keys, self._places = keys[by_key], places[by_key]
        if (self._keys[1:] == self._keys[:-1]).any():
            raise PredictionError("a list has an item once; some occur again for the same user")

    @property
    def depth(self) -> int:
        """Length of the longest list."""
        return int(self.lengths.max(initial=0))

    def places(self, users: Positions, items: Positions) -> Array:
        """Return how many items stand before each in its user's list, infinite for those that are not listed."""
        wanted = cell_keys(users, items, self.shape[1])
        if not len(self._keys):
            return np.full(wanted.shape, np.inf)
        found = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[found] == wanted, self._places[found], np.inf)

    def without(self, left_out: npt.NDArray[np.int64]) -> TopLists:
        """Return the lists without some pairs, by `cell_keys`: what stands behind one moves up."""
        kept = ~np.isin(self._keys, left_out)
        if kept.all():
            return self
        return TopLists(*np.divmod(self._keys[kept], self.shape[1]), self._places[kept], self.shape)

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return one more than how many places there are from the item's to the last; 0 for what is not listed."""
        places = self.places(users, items)
        return np.where(np.isfinite(places), 1.0 + self.depth - places, self.unranked)

    def __repr__(self) -> str:
        listed, (n_users, n_items) = int((self.lengths > 0).sum()), self.shape
        return f"TopLists({listed:,} of {n_users:,} users, up to {self.depth:,} of {n_items:,} items each)"
