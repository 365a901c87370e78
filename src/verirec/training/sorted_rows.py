"""The log's rows twice: by user and by item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from verirec.data.feedback_log import FeedbackLog

Whole = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class RowsOf:
    """The rows of each user, or of each item.

    Parameters
    ----------
    starts
        Where the rows of each begin, and the last end, shape (n + 1,).
    others
        The item of each row, or the user, shape (rows,).
    places
        Which of the rows in the order of users each row is, shape (rows,); empty for the order of users itself.
    """

    starts: Whole
    others: Whole
    places: Whole

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, eq=False)
class SortedRows:
    """A log's rows in the order of users, with their numbers in the log, and how to walk them by item.

    Numbers are empty where the log is in that order already: its own arrays are then used as they are.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([1, 0, 1], [0, 1, 1], [1, 0, 1], n_users=2, n_items=2)
    >>> rows = SortedRows.of(log)
    >>> rows.numbers.tolist(), rows.by_user.others.tolist(), rows.by_user.starts.tolist()
    ([1, 0, 2], [1, 0, 1], [0, 1, 3])
    >>> rows.by_item.others.tolist(), rows.by_item.places.tolist()
    ([1, 0, 1], [1, 0, 2])
    """

    numbers: Whole
    by_user: RowsOf
    by_item: RowsOf

    @classmethod
    def of(cls, log: FeedbackLog) -> SortedRows:
        """Sort a log's rows."""
        nowhere = np.empty(0, np.int32)
        if bool((log.users[1:] >= log.users[:-1]).all()):
            starts = np.searchsorted(log.users, np.arange(log.n_users + 1))
            numbers, items = nowhere, log.items
        else:
            numbers, starts = _sorted(log.users, log.n_users)
            items = log.items[numbers]
        places, item_starts = _sorted(items, log.n_items)
        # The user of each row, in the order of items, without another array in the log's order.
        users = np.repeat(np.arange(log.n_users, dtype=np.int32), np.diff(starts))[places]
        return cls(numbers, RowsOf(starts, items, nowhere), RowsOf(item_starts, users, places))

    @property
    def sides(self) -> tuple[RowsOf, RowsOf]:
        """Rows by user and by item."""
        return self.by_user, self.by_item


def _sorted(keys: Whole, n: int) -> tuple[Whole, Whole]:
    """Return the order that sorts keys, equal ones as they come, and where each key's begin: by counting."""
    ones, each = np.ones(len(keys), np.int8), np.arange(len(keys) + 1, dtype=np.int32)
    turned = csr_array((ones, keys, each), shape=(len(keys), n)).tocsc()
    return turned.indices, turned.indptr.astype(np.int64)
