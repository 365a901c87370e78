"""Ways to part a log in two. Every row goes to exactly one side, and both sides keep the whole grid."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.checks import one_of, real_number
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.exceptions import DataError
from verirec.randomness import RandomState, as_generator

SplitBy = Literal["random", "user", "within-user", "time"]


class Split(NamedTuple):
    """A log in two parts."""

    train: FeedbackLog
    held_out: FeedbackLog


class UnbiasedSplit(NamedTuple):
    """What people chose to rate, and what they were asked about at random."""

    self_selected: FeedbackLog
    unbiased: FeedbackLog


def split(
    log: FeedbackLog, held_out: float = 0.2, *, by: SplitBy = "random", random_state: RandomState = None
) -> Split:
    """Hold a share of a log out.

    Parameters
    ----------
    held_out
        Share of the rows (of the users, with `by="user"`) to hold out, strictly between 0 and 1. At least one row
        (user) goes to either side.
    by
        "random": rows at random. "user": whole users at random, with all their rows. "within-user": that share of
        each user's rows at random, rounded down. "time": the last rows by timestamp; rows with one timestamp stay
        together, on the held-out side.
    random_state
        Seed or generator; not used by "time".

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 1], n_users=2, n_items=2)
    >>> train, held_out = split(log, 0.5, by="user", random_state=0)
    >>> len(train), len(held_out), len(set(train.users) & set(held_out.users))
    (2, 2, 0)
    """
    checked_log(log)
    share = real_number("held_out", held_out, above=0, below=1)
    one_of("by", by, tuple(_CHOOSERS))
    chosen = _CHOOSERS[by](log, share, as_generator(random_state))
    return Split(log.select(~chosen), log.select(chosen))


def split_unbiased(log: FeedbackLog) -> UnbiasedSplit:
    """Leave the unbiased slice apart: the rows that the log marks as shown at random.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 0], [1, 0], n_users=2, n_items=1, unbiased=[True, False])
    >>> [len(part) for part in split_unbiased(log)]
    [1, 1]
    """
    checked_log(log)
    if log.unbiased is None:
        raise DataError("the log does not say which rows are unbiased; name the column that does: unbiased=...")
    return UnbiasedSplit(log.select(~log.unbiased), log.select(log.unbiased))


def _count(share: float, total: int, what: str) -> int:
    if total < 2:
        raise DataError(f"a split needs at least 2 {what}; the log has {total}")
    return min(max(1, round(share * total)), total - 1)


def _random_rows(log: FeedbackLog, share: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    chosen = np.zeros(len(log), bool)
    chosen[random.choice(len(log), _count(share, len(log), "rows"), replace=False)] = True
    return chosen


def _whole_users(log: FeedbackLog, share: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    present = np.unique(log.users)
    users = random.choice(present, _count(share, len(present), "users"), replace=False)
    return np.asarray(np.isin(log.users, users))


def _within_users(log: FeedbackLog, share: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    users, rows_of_user = np.unique(log.users, return_inverse=True, return_counts=True)[1:]
    order = np.lexsort((random.random(len(log)), users))
    starts = np.cumsum(rows_of_user) - rows_of_user
    place = np.arange(len(log)) - starts[users[order]]
    chosen = np.zeros(len(log), bool)
    # The tolerance keeps .29 of 100 rows at 29: in floating point it is a hair less.
    chosen[order] = place < np.floor(share * rows_of_user + 1e-9)[users[order]]
    if not chosen.any():
        raise DataError(
            f"held_out={share:g} of each user's rows, rounded down, is none: the longest-rated user has "
            f"{rows_of_user.max():,} rows"
        )
    return chosen


def _last_rows(log: FeedbackLog, share: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    if log.timestamps is None:
        raise DataError("a split by time needs timestamps; name their column: timestamp=...")
    times = np.sort(log.timestamps)
    border = times[len(times) - _count(share, len(times), "rows")]
    if border == times[0]:
        later = times[times > border]
        if later.size == 0:
            raise DataError(
                f"a split by time needs at least 2 distinct timestamps; all {len(log):,} rows have {border}"
            )
        border = later[0]
    return np.asarray(log.timestamps >= border)


_CHOOSERS: Final = {"random": _random_rows, "user": _whole_users, "within-user": _within_users, "time": _last_rows}
