"""Where each user's rows are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.data.pair_keys import row_starts

Whole = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class SortedRows:
    """A log's rows, which are in the order of users, and where those of each user are.

    Parameters
    ----------
    starts
        Where the rows of each user begin, and the last end, shape (n_users + 1,).
    items
        Of each row, shape (rows,): the log's own.
    shape
        The grid's size.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([1, 0, 1], [0, 1, 1], [1, 0, 1], n_users=2, n_items=2)
    >>> rows = SortedRows.of(log)
    >>> rows.items.tolist(), rows.starts.tolist()
    ([1, 0, 1], [0, 1, 3])
    """

    starts: Whole
    items: Whole
    shape: tuple[int, int]

    @classmethod
    def of(cls, log: FeedbackLog) -> SortedRows:
        """Find where each user's rows begin."""
        return cls(row_starts(log.users, log.n_users), log.items, log.shape)

    def __len__(self) -> int:
        return len(self.items)

    def parts(self, count: int) -> list[slice]:
        """Return users in so many parts of about as many rows, or fewer."""
        shares = np.linspace(0, len(self), count + 1)[1:-1]
        ends = np.unique([0, *np.searchsorted(self.starts, shares), self.shape[0]])
        return [slice(begin, end) for begin, end in pairwise(ends.tolist())]
