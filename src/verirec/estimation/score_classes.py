"""Scores of a log's rows in the order of their size: what an AUC needs to know of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.parts import parts_of
from verirec.scratch import each

Array = npt.NDArray[np.float64]

EXACT_ROWS: Final = 2_000_000
"""Longer logs have their scores sorted into `_CLASSES` in place of one after the other."""
_CLASSES: Final = 1 << 16
_AT_A_TIME: Final = 1 << 18


class ScoreClasses(NamedTuple):
    """Rows sorted into classes by their score, in ascending order.

    Parameters
    ----------
    number
        The class of each row, shape (n,).
    size
        How many classes there are.
    """

    number: npt.NDArray[np.integer[Any]]
    size: int

    @classmethod
    def of(cls, scores: Array) -> ScoreClasses:
        """Put scores that are the same into one class; of a long log, those next to each other too.

        There the classes have about as many rows each, a 65,536th of all: to count a comparison inside of one as a tie
        changes an AUC by less than a hundred-thousandth.

        Examples
        --------
        >>> ScoreClasses.of(np.array([0.3, 0.1, 0.3])).number.tolist()
        [1, 0, 1]
        """
        if len(scores) <= EXACT_ROWS:
            different, number = np.unique(scores, return_inverse=True)
            return cls(number, len(different))
        # Row numbers at even distances: nothing is drawn, and the rows' own order is by user.
        some = np.sort(scores[:: len(scores) // EXACT_ROWS])
        edges = np.unique(some[:: max(len(some) // _CLASSES, 1)])
        number = each(lambda part: np.searchsorted(edges, part, side="right"), scores, dtype=np.int32)
        return cls(number, len(edges) + 1)

    def totals(self, values: Callable[[slice], tuple[Array, Array]]) -> Array:
        """Add two numbers of each row up by class, shape (2, size)."""
        found = np.zeros((2, self.size))
        for part in parts_of(len(self.number), size=max(_AT_A_TIME, 4 * self.size)):
            for sums, own in zip(found, values(part), strict=True):
                sums += np.bincount(self.number[part], weights=own, minlength=self.size)
        return found
