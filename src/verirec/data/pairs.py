"""The order of a log's user-item pairs, and the policies for pairs that occur more than once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.checks import one_of
from verirec.data.cells import cell_keys
from verirec.data.parts import SHORT, parts_of
from verirec.exceptions import DuplicatePairError, ParameterError, RepeatedPairWarning, warn_caller
from verirec.formatting import rows_in_words

DuplicatePolicy = Literal["error", "first", "last", "latest", "highest"]

_KEY_BITS: Final = 64
"""Of a number that a pair and its row are sorted by."""

Rows = npt.NDArray[np.int64]
Column = npt.NDArray[Any]


def pair_order(users: Column, items: Column, n_users: int, n_items: int) -> Rows | None:
    """Return the row numbers that sort pairs by user and item, repeats as they come; `None` if the rows are sorted.

    A row's number is sorted with its pair, in one 64-bit number: many times faster than an indirect sort. Where the two
    need more bits, rows are sorted by item and then by user.

    Parameters
    ----------
    users, items
        int32 positions, shape (n,).

    Returns
    -------
    Shape (n,); `None` only if no pair is repeated either.

    Examples
    --------
    >>> pair_order(np.array([1, 0, 1], np.int32), np.array([5, 5, 2], np.int32), 2, 6).tolist()
    [1, 2, 0]
    """
    if _in_order(users, items):
        return None
    if _bits(n_users * n_items) + _bits(len(users)) <= _KEY_BITS:
        return stable_order(cell_keys(users, items, n_items))
    by_item = stable_order(items.astype(np.int64))
    return np.asarray(by_item[stable_order(users[by_item].astype(np.int64))])


def _in_order(users: Column, items: Column) -> bool:
    """Tell whether each pair comes after the one before; where not, mostly the first part shows it."""
    for part in parts_of(len(users) - 1, size=SHORT):
        after = slice(part.start + 1, part.stop + 1)
        same_user = users[after] == users[part]
        if not ((users[after] > users[part]) | (same_user & (items[after] > items[part]))).all():
            return False
    return True


def _bits(count: int) -> int:
    """Return how many bits tell so many things apart."""
    return (count - 1).bit_length()


def stable_order(keys: Rows) -> Rows:
    """Return the row numbers that sort keys, equal ones as they come; the keys are overwritten."""
    numbered, room = keys.view(np.uint64), np.uint64(_bits(len(keys)))
    numbered <<= room
    numbered |= np.arange(len(keys), dtype=np.uint64)
    numbered.sort()
    numbered &= (np.uint64(1) << room) - np.uint64(1)
    return keys


def repeated_rows(order: Rows, users: Column, items: Column) -> Rows:
    """Find the rows whose pair occurs more than once, in ascending order.

    Parameters
    ----------
    order
        From `pair_order`.
    users, items
        As there.

    Examples
    --------
    >>> users, items = np.array([0, 1, 0, 2], np.int32), np.array([5, 5, 5, 5], np.int32)
    >>> repeated_rows(pair_order(users, items, 3, 6), users, items).tolist()
    [0, 2]
    """
    sorted_users, sorted_items = users[order], items[order]
    same = (sorted_users[1:] == sorted_users[:-1]) & (sorted_items[1:] == sorted_items[:-1])
    if not same.any():
        return np.empty(0, np.int64)
    return np.sort(order[np.append(same, False) | np.append(False, same)])


class Agreement(NamedTuple):
    """How far the rows of pairs that occur more than once agree in their labels.

    Parameters
    ----------
    pairs, rows
        How many such pairs there are, and how many rows they have.
    split
        How many pairs occur with different labels.
    wrong
        The rows of these, in ascending order.
    kinds
        "both" labels, or "different" ones where there are more than two.
    total
        How many rows were looked at.
    """

    pairs: int
    rows: int
    split: int
    wrong: Rows
    kinds: str
    total: int

    def settle(self) -> None:
        """Refuse pairs whose rows have different labels; warn that the others are merged."""
        if self.split:
            raise self.conflict(rows_in_words(self.wrong, self.total))
        warn_caller(
            f"{self.pairs:,} user-item pairs occur more than once with the same label; the first row of each is kept "
            f"({self.rows - self.pairs:,} of {self.total:,} rows dropped)",
            RepeatedPairWarning,
        )

    def conflict(self, where: str) -> DuplicatePairError:
        """Return the error that says where pairs occur with different labels."""
        return DuplicatePairError(
            f"{self.split:,} user-item pairs occur with {self.kinds} labels, in {where}; "
            "choose which row counts, first, last, highest or (by timestamp) latest: duplicates='first'"
        )


def rows_to_keep(
    policy: str,
    rows: Rows,
    pairs: Column,
    labels: Column,
    values: Column,
    times: Any,
    agreement: Callable[[Agreement], None] | None = None,
) -> npt.NDArray[np.bool_] | None:
    """Apply a policy for repeated pairs: flag the rows that stay; `None` means that all do.

    Parameters
    ----------
    policy
        "error": repeats that disagree in their label are refused, and repeats that agree are merged into their first
        row, with a warning. "first" and "last": by row. "latest": by timestamp. "highest": by rating (or label).
        Ties go to the later row.
    rows, pairs
        The rows whose pair occurs more than once, and a number for each one's pair.
    labels
        Of all rows, shape (n,).
    values
        What "highest" compares, shape (n,).
    times
        Timestamps, or `None`.
    agreement
        With the policy "error", takes what was found: where rows come part by part, all parts are judged together.
    """
    checked_policy(policy, with_times=times is not None)
    if rows.size == 0:
        return None
    if policy == "error":
        (agreement or Agreement.settle)(_agreement(rows, pairs, labels))
        policy = "first"
    preference = _ORDERINGS[policy](rows, values, times)
    order = np.lexsort((preference, pairs)) if preference is not None else np.argsort(pairs, kind="stable")
    is_best = np.append(pairs[order][1:] != pairs[order][:-1], True)
    keep = np.ones(len(labels), bool)
    keep[rows[order[~is_best]]] = False
    return keep


def checked_policy(policy: object, *, with_times: bool) -> None:
    """Refuse a policy for repeated pairs that there is none of, or that needs times."""
    one_of("duplicates", policy, ("error", *_ORDERINGS))
    if policy == "latest" and not with_times:
        raise ParameterError("duplicates='latest' needs timestamps; name their column: timestamp=...")


def _agreement(rows: Rows, pairs: Column, labels: Column) -> Agreement:
    """Find the pairs whose rows have different labels."""
    of_pair = labels[rows]
    _, which, count = np.unique(pairs, return_inverse=True, return_counts=True)
    total_of_pair = np.bincount(which, weights=of_pair)
    # The sum of squares of labels that are all the same is as small as it can be.
    split = np.bincount(which, weights=of_pair.astype(np.float64) ** 2) * count > total_of_pair**2
    kinds = "both" if of_pair.max() <= 1 else "different"
    return Agreement(len(count), len(rows), int(split.sum()), rows[split[which]], kinds, len(labels))


# What to sort a pair's rows by, the winner last; `None` means by row number.
_ORDERINGS: Final[dict[str, Callable[[Rows, Column, Any], Column | None]]] = {
    "first": lambda rows, values, times: -rows,
    "last": lambda rows, values, times: None,
    "latest": lambda rows, values, times: times[rows],
    "highest": lambda rows, values, times: values[rows],
}
