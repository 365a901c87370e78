r"""Users who rated nearly the same items: merged, copied and automatic accounts.

Whatever takes users for independent counts such users several times. Two sets A and B have the same smallest item in a
random order with probability :math:`J = |A \cap B| / |A \cup B|` (Broder 1997, "On the resemblance and containment of
documents"): users who agree in three such smallest items at once are looked at, and taken for alike where they share
far more than two users of their activity share by the items' popularity.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr

from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import SHORT, counts, parts_of, totals_of
from verirec.scratch import each, rows_where

Array = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]

FEWEST_ROWS: Final = 3
"""Of a user who can be like another: smaller sets are the same by chance."""
ENOUGH: Final = 0.5
"""How much of what chance leaves two sets must share: J, from what it is by chance (0) to 1."""
_IN_A_BAND, _BANDS = 3, 10
"""Smallest items that must agree at once, and how often this is tried: of J = .7, 98% are found."""
_BY_CHANCE: Final = 0.05
"""How many users each may be taken for alike with by chance, on average, by Chernoff's bound."""
_MIXED: Final = np.uint64(0x9E3779B97F4A7C15)


class Alike(NamedTuple):
    """Users in groups of those who rated nearly the same items.

    Parameters
    ----------
    group
        Of each user, shape (n_users,): numbers from 0; users who are like nobody are groups of their own.
    rows
        Of each user.
    """

    group: Positions
    rows: Positions

    def copies(self, share: float = 1.0) -> float:
        """Return how often a row is there, its own and those of its user's likes, where a share of users was looked at.

        Examples
        --------
        >>> Alike(np.array([0, 0, 1]), np.array([4, 4, 8])).copies()
        1.5
        """
        others = np.bincount(self.group)[self.group] - 1
        return 1 + float(self.rows @ others) / share / max(float(self.rows.sum()), 1.0)


def alike_users(log: FeedbackLog) -> Alike:
    """Sort all users of a log into groups of those who rated nearly the same items; labels may differ.

    Where everybody rated the same items, as in a survey of all users, nobody is alike: that is the items' popularity.

    Examples
    --------
    >>> users, items = np.repeat(np.arange(20), 5), np.random.default_rng(0).permutation(100)
    >>> items[5:10] = items[:5]
    >>> log = FeedbackLog.from_arrays(users, items, np.arange(100) % 2, n_users=20, n_items=100)
    >>> alike_users(log).group[:4].tolist()
    [0, 0, 1, 2]
    """
    return _grouped(log.users, log.items, log.n_users)


def copies_of_rows(log: FeedbackLog, most_rows: int = 50_000) -> float:
    """Return how often each row is there on average, under the names of users who are nearly the same: 1 if once.

    Intervals that take users for independent are too short by about its square root. Of a long log a fixed random part
    of the users is looked at.

    Parameters
    ----------
    log
        Any.
    most_rows
        About how many of its rows to look at.
    """
    share = min(1.0, most_rows / max(len(log), 1))
    if share == 1:
        return alike_users(log).copies()
    taken = np.random.default_rng(0).random(log.n_users) < share
    number = np.cumsum(taken) - 1
    rows = rows_where(each(taken.__getitem__, log.users, dtype=bool))
    return _grouped(number[log.users[rows]], log.items[rows], int(taken.sum())).copies(share)


def _grouped(users: npt.NDArray[np.integer], items: npt.NDArray[np.integer], n_users: int) -> Alike:
    """Group the users of rows, which are in the order of these; part by part, as rows may be many."""
    rows = counts(users, n_users)
    group = np.arange(n_users)
    if (rows >= FEWEST_ROWS).sum() < 2:
        return Alike(group, rows)
    active = np.flatnonzero(rows)
    starts = np.cumsum(rows[active]) - rows[active]
    smallest = _smallest_items(items, starts)
    popularity = counts(items, int(items.max()) + 1)
    around = totals_of(users, lambda at: popularity[items[at]], n_users)[active]
    first, own, (one, two) = np.arange(len(active)), rows[active].astype(np.float64), _candidates(smallest)
    for at in parts_of(len(one), size=SHORT):  # There may be several for each user.
        kept = _verified((one[at], two[at]), smallest, own, around)
        np.minimum.at(first, kept[1], kept[0])
    # Twice, and no further: users who are each like the next need not be like the last.
    group[active] = active[first[first]]
    return Alike(np.unique(group, return_inverse=True)[1], rows)


def _smallest_items(items: npt.NDArray[np.integer], starts: Positions) -> npt.NDArray[np.uint64]:
    """Return the smallest item of each user in so many random orders, shape (orders, users); rows are by user."""
    factors = np.random.default_rng(1).integers(2**62, 2**63, (_BANDS * _IN_A_BAND, 2), dtype=np.uint64) | np.uint64(1)
    found = np.full((len(factors), len(starts)), np.iinfo(np.uint64).max, np.uint64)
    for at in parts_of(len(items), size=SHORT):
        # The first of a part's users may have begun before it, and the last end after it.
        whose = slice(np.searchsorted(starts, at.start, side="right") - 1, np.searchsorted(starts, at.stop))
        own, begin = items[at].astype(np.uint64), np.maximum(starts[whose] - at.start, 0)
        for one, (factor, shift) in zip(found[:, whose], factors, strict=True):
            mixed = (own + shift) * _MIXED
            mixed ^= mixed >> np.uint64(29)
            mixed *= factor
            mixed >>= np.uint64(20)
            np.minimum(one, np.minimum.reduceat(mixed, begin), out=one)
    return found


def _candidates(smallest: npt.NDArray[np.uint64]) -> tuple[Positions, Positions]:
    """Return pairs of users who agree in all orders of a band: each with the first who does."""
    found = []
    for band in smallest.reshape(_BANDS, _IN_A_BAND, -1):
        key = (band[0] * _MIXED ^ band[1]) * _MIXED ^ band[2]
        _, first, same = np.unique(key, return_index=True, return_inverse=True)
        others = np.flatnonzero(first[same] != np.arange(len(key)))
        found.append(first[same[others]] * len(key) + others)
    pairs = np.divmod(np.unique(np.concatenate(found)), smallest.shape[1])
    return pairs[0], pairs[1]


def _verified(
    pairs: tuple[Positions, Positions], smallest: npt.NDArray[np.uint64], counts: Array, around: Array
) -> tuple[Positions, Positions]:
    """Keep the pairs that share far more than their activity and their items' popularity explain.

    Parameters
    ----------
    pairs, smallest
        Of users, and the smallest items of each.
    counts, around
        Rows of each user, and of all users on that user's items.
    """
    one, two = pairs
    resemblance = (smallest[:, one] == smallest[:, two]).mean(axis=0)
    least, most = np.minimum(counts[one], counts[two]), np.maximum(counts[one], counts[two])
    # Of the smaller set, this share is to be expected in the other, and this one is there.
    chance = np.minimum(np.minimum(counts[one] * around[two], counts[two] * around[one]) / counts.sum() / least, 1.0)
    shared = np.minimum(resemblance * (least + most) / (1 + resemblance) / least, 1.0)
    by_chance = chance * least / (least + most - chance * least)
    enough = (shared > chance) & (resemblance - by_chance >= ENOUGH * (1 - by_chance))
    surprise = least * (rel_entr(shared, chance) + rel_entr(1 - shared, 1 - chance))
    kept = enough & (least >= FEWEST_ROWS) & (surprise >= np.log(len(counts) / _BY_CHANCE))
    return one[kept], two[kept]
