"""The log's rows in the order of users."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from verirec.data.feedback_log import FeedbackLog

Whole = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class SortedRows:
    """A log's rows in the order of users, those of one user as they come.

    Parameters
    ----------
    numbers
        Of the rows in the log; empty where that is in this order already: its own arrays are then used as they are.
    starts
        Where the rows of each user begin, and the last end, shape (n_users + 1,).
    items
        Of each row, shape (rows,).
    shape
        The grid's size.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([1, 0, 1], [0, 1, 1], [1, 0, 1], n_users=2, n_items=2)
    >>> rows = SortedRows.of(log)
    >>> rows.numbers.tolist(), rows.items.tolist(), rows.starts.tolist()
    ([1, 0, 2], [1, 0, 1], [0, 1, 3])
    """

    numbers: Whole
    starts: Whole
    items: Whole
    shape: tuple[int, int]

    @classmethod
    def of(cls, log: FeedbackLog) -> SortedRows:
        """Sort a log's rows."""
        shape = log.n_users, log.n_items
        if bool((log.users[1:] >= log.users[:-1]).all()):
            starts = np.searchsorted(log.users, np.arange(log.n_users + 1))
            return cls(np.empty(0, np.int32), starts, log.items, shape)
        numbers, starts = _sorted(log.users, log.n_users)
        return cls(numbers, starts, log.items[numbers], shape)

    def __len__(self) -> int:
        return len(self.items)

    def parts(self, count: int) -> list[slice]:
        """Return users in so many parts of about as many rows, or fewer."""
        shares = np.linspace(0, len(self), count + 1)[1:-1]
        ends = np.unique([0, *np.searchsorted(self.starts, shares), self.shape[0]])
        return [slice(begin, end) for begin, end in pairwise(ends.tolist())]


def _sorted(keys: Whole, n: int) -> tuple[Whole, Whole]:
    """Return the order that sorts keys, equal ones as they come, and where each key's begin: by counting."""
    ones, each = np.ones(len(keys), np.int8), np.arange(len(keys) + 1, dtype=np.int32)
    turned = csr_array((ones, keys, each), shape=(len(keys), n)).tocsc()
    return turned.indices, turned.indptr.astype(np.int64)
