r"""Which pairs a log has, in a few kilobytes: the smallest hashes of all of them.

The k smallest of the hashes of a set's members are a random sample of it, and complete up to the largest of them: of
any other pair whose hash is not above that, they tell for certain whether it is in the set (but for a chance of
:math:`2^{-64}` each). Bar-Yossef et al. (2002, "Counting distinct elements in a data stream") count by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verirec.data.parts import parts_of
from verirec.exceptions import TrainedRowsWarning, warn_caller
from verirec.scratch import each, those

if TYPE_CHECKING:
    from verirec.data.cells import CellValues
    from verirec.data.feedback_log import FeedbackLog
    from verirec.data.ids import IdMap

Hashes = npt.NDArray[np.uint64]

KEPT: Final = 512
_LOOKED_AT: Final = 1_000_000
"""Rows of another log that are looked at, evenly spread, where it has more."""
_BASE, _FIRST, _SECOND = (np.uint64(one) for one in (0x100000001B3, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclass(frozen=True, eq=False)
class PairSketch:
    """The smallest hashes of a log's pairs, by the ids of users and items.

    Parameters
    ----------
    hashes
        In ascending order, at most `KEPT`.
    whole
        Whether these are of all pairs.

    Examples
    --------
    >>> from verirec import simulate, split
    >>> log = simulate.world(n_users=100, n_items=80, random_state=0).log
    >>> train, test = split(log, 0.2, random_state=0)
    >>> trained_on = PairSketch.of(train)
    >>> trained_on.share_of(train), trained_on.share_of(test), round(trained_on.share_of(log), 1)
    (1.0, 0.0, 0.8)
    """

    hashes: Hashes
    whole: bool

    @classmethod
    def of(cls, log: FeedbackLog) -> Self:
        """Keep the smallest hashes of a log's pairs."""
        found = np.empty(0, np.uint64)
        sides = hashed_ids(log.user_ids), hashed_ids(log.item_ids)
        for part in parts_of(len(log)):
            own = _pairs(sides[0][log.users[part]], sides[1][log.items[part]])
            if len(found) == KEPT:
                own = own[own < found[-1]]
            found = np.unique(np.concatenate([found, own]))[:KEPT]
        return cls(found, len(found) == len(log))

    def share_of(self, log: FeedbackLog) -> float:
        """Return the share of a log's pairs that are among these: by those pairs whose hashes tell; 0 if none does."""
        rows = slice(None, None, max(-(-len(log) // _LOOKED_AT), 1))
        own = _pairs(hashed_ids(log.user_ids)[log.users[rows]], hashed_ids(log.item_ids)[log.items[rows]])
        if not self.whole:
            own = own[own <= self.hashes[-1]]
        return float(np.isin(own, self.hashes).mean()) if len(own) else 0.0

    def plain(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {"hashes": [f"{one:016x}" for one in self.hashes.tolist()], "whole": self.whole}

    @classmethod
    def read(cls, held: dict[str, Any]) -> Self:
        """Read back what `plain` gave; what is no sketch is a `ValueError`."""
        hashes = np.array([int(one, 16) for one in held["hashes"]], np.uint64)
        in_order = bool((hashes[1:] > hashes[:-1]).all())
        if not isinstance(held["whole"], bool) or not 0 < len(hashes) <= KEPT or not in_order:
            raise ValueError("what it was trained on is no sketch of pairs")
        return cls(hashes, held["whole"])


def known_pairs(log: FeedbackLog, user_ids: IdMap, item_ids: IdMap) -> tuple[Any, Any]:
    """Return where a log's pairs are by other ids, without those of users or items that these do not have.

    Examples
    --------
    >>> from verirec import FeedbackLog, IdMap
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2, user_ids=["ann", "bob"])
    >>> [part.tolist() for part in known_pairs(log, IdMap.of(["bob", "cat"]), IdMap(2))]
    [[0], [1]]
    """
    users, items = log.users, log.items
    if log.user_ids != user_ids or log.item_ids != item_ids:
        own_users = user_ids.find(log.user_ids.arrow(), name="users")
        own_items = item_ids.find(log.item_ids.arrow(), name="items")
        known = each(lambda who, what: (own_users[who] >= 0) & (own_items[what] >= 0), users, items, dtype=bool)
        users = each(own_users.__getitem__, those(users, known), dtype=np.int32)
        items = each(own_items.__getitem__, those(items, known), dtype=np.int32)
    return users, items


def warn_of_trained_rows(values: CellValues, log: FeedbackLog) -> None:
    """Warn where rows that judge are known to be among those that predictions were trained on."""
    share = 0.0 if values.trained_on is None else values.trained_on.share_of(log)
    if share > 0:
        warn_caller(
            f"about {max(share, 0.01):.0%} of the {len(log):,} rows that judge this recommender are among those that "
            "it was trained on, where it looks better than it is: train on one part of a log and judge by the other "
            "(verirec split, vr.split)",
            TrainedRowsWarning,
        )


def hashed_ids(ids: IdMap) -> Hashes:
    """Hash ids by their text, so that 7 and "7" are alike, in any process: shape (n,)."""
    text = ids.arrow().cast(pa.large_string())
    offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + len(text) + 1]
    letters = np.frombuffer(text.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]].astype(np.uint64)
    starts = offsets[:-1] - offsets[0]
    place = np.arange(len(letters)) - np.repeat(starts, np.diff(offsets))
    powers = np.cumprod(np.full(int(place.max(initial=0)) + 1, _BASE))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum((letters + np.uint64(1)) * powers[place])])
    ends = offsets - offsets[0]
    return _mixed(sums[ends[1:]] - sums[ends[:-1]])


def _pairs(users: Hashes, items: Hashes) -> Hashes:
    """Hash pairs of hashes."""
    return _mixed(users * _BASE + items)


def _mixed(values: Hashes) -> Hashes:
    """Spread bits over all 64 (the last steps of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return np.asarray(values ^ (values >> np.uint64(31)))
