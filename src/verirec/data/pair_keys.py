"""Sets of pairs by their keys, as many as a log has: part by part, and on disk where memory is limited."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.data.cells import Positions, cell_keys
from verirec.scratch import each, joined, long_array, those

Keys = npt.NDArray[np.int64]
NO_PAIRS: Keys = np.empty(0, np.int64)
NO_PAIRS.flags.writeable = False


def keys_of(users: Positions, items: Positions, n_items: int) -> Keys:
    """Number pairs as `cell_keys` does; shape (n,).

    Examples
    --------
    >>> keys_of(np.array([0, 2]), np.array([5, 1]), 10).tolist()
    [5, 21]
    """
    return each(lambda who, what: cell_keys(who, what, n_items), users, items, dtype=np.int64)


def union(*parts: Keys) -> Keys:
    """Put keys together, each once and in ascending order.

    Examples
    --------
    >>> union(np.array([3, 1, 3]), np.array([2])).tolist()
    [1, 2, 3]
    """
    if len(parts) == 1 and _new(parts[0]).all():
        return parts[0]
    whole = joined(NO_PAIRS, *parts)
    # In place: another array of their length would be in memory.
    whole.sort()
    new = _new(whole)
    return whole if new.all() else those(whole, new)


def _new(keys: Keys) -> npt.NDArray[np.bool_]:
    """Tell which keys are larger than the one before."""
    new = long_array(len(keys), bool)
    new[:1] = True
    new[1:] = each(np.less, keys[:-1], keys[1:], dtype=bool)
    return new


def among(keys: Keys, of: Keys) -> npt.NDArray[np.bool_]:
    """Tell which keys, few enough for memory, are among others, many, which are in ascending order.

    Examples
    --------
    >>> among(np.array([7, 1]), np.array([1, 3])).tolist()
    [False, True]
    """
    if len(of) == 0:
        return np.zeros(keys.shape, bool)
    # In order, so that neighbours are looked up one after the other: the others may be a long file.
    order = np.argsort(keys)
    wanted = keys[order]
    found = np.minimum(np.searchsorted(of, wanted), len(of) - 1)
    inside = np.empty(keys.shape, bool)
    inside[order] = of[found] == wanted
    return inside


def pairs_of(keys: Keys, n_items: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the users and items that keys are of; shapes (n,).

    Examples
    --------
    >>> [side.tolist() for side in pairs_of(np.array([5, 21]), 10)]
    [[0, 2], [5, 1]]
    """
    sides = (np.floor_divide, np.remainder)
    users, items = (each(side, keys, n_items, dtype=np.int32) for side in sides)
    return users, items


def row_starts(users: Positions, n_users: int) -> npt.NDArray[np.int64]:
    """Return where the rows of each user begin, and the last end, of rows in the order of users; shape (n_users + 1,).

    Examples
    --------
    >>> row_starts(np.array([0, 0, 2]), 4).tolist()
    [0, 2, 2, 3, 3]
    """
    # By positions of the log's own kind, as in `places_in`.
    return np.searchsorted(users, np.arange(n_users + 1, dtype=users.dtype))


def places_in(
    users: Positions, items: Positions, log_users: npt.NDArray[Any], log_items: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Find the rows of pairs, and which of them have one, by bisection: nothing of the log's length is made.

    Parameters
    ----------
    users, items
        Positions of the pairs, shape (m,).
    log_users, log_items
        A log's, by user and item; shape (n,).

    Returns
    -------
    Row numbers, of no meaning where there is no row; and where there is one. Shape (m,) each.

    Examples
    --------
    >>> rows, there = places_in(np.array([1, 0]), np.array([3, 2]), np.array([0, 1]), np.array([1, 3]))
    >>> rows[there].tolist(), there.tolist()
    ([1], [True, False])
    """
    # By positions of the log's own kind: others would have all of its users copied to theirs.
    wanted = users.astype(log_users.dtype, copy=False)
    low, high = (np.searchsorted(log_users, wanted, side=side) for side in ("left", "right"))
    ends = high
    while (low < high).any():
        middle = (low + high) // 2
        before = (low < high) & (log_items[np.minimum(middle, len(log_items) - 1)] < items)
        low, high = np.where(before, middle + 1, low), np.where(before, high, np.minimum(middle, high))
    found = np.minimum(low, max(len(log_items) - 1, 0))
    there = low < ends
    there[there] = log_items[found[there]] == items[there]
    return found, there
