"""Ways to part a log in two. Every row goes to exactly one side, and both sides keep the whole grid."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.checks import one_of, real_number
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.parts import counts
from verirec.exceptions import DataError, ParameterError
from verirec.formatting import short
from verirec.randomness import RandomState, as_generator
from verirec.scratch import each, long_array

_EARLIEST: Final = 1e8
"""Smaller numbers are no times since 1970, whatever their unit."""
_UNITS: Final = {"s": 1e11, "ms": 1e14, "us": 1e17, "ns": 9.2e18}
"""Units of times since 1970, and what numbers of each stay below."""
_ZONED: Final = re.compile(r"\d{2}:\d{2}.*(Z|[-+]\d{2}:?\d{2})$")

_AT_ONCE: Final = 1 << 20
"""Rows that are sorted together, unless a single user has more."""

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
    log: FeedbackLog,
    held_out: float | None = None,
    *,
    by: SplitBy = "random",
    before: Any = None,
    random_state: RandomState = None,
) -> Split:
    """Hold a part of a log out.

    Parameters
    ----------
    held_out
        Share of the rows (of the users, with `by="user"`) to hold out, strictly between 0 and 1; by default .2. At
        least one row (user) goes to either side.
    by
        "random": rows at random. "user": whole users at random, with all their rows. "within-user": that share of
        each user's rows at random, rounded down. "time": the last rows by timestamp; rows with one timestamp stay
        together, on the held-out side.
    before
        With `by="time"`, in place of a share: rows before this time are trained on, all others held out. A date, or
        ISO text such as "1998-03-01" or "1998-03-01T12:30". Where timestamps are numbers: a number, or a date
        if they are seconds (milli-, micro-, nanoseconds) since 1970.
    random_state
        Seed or generator; not used by "time".

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 1], n_users=2, n_items=2)
    >>> train, held_out = split(log, 0.5, by="user", random_state=0)
    >>> len(train), len(held_out), len(set(train.users) & set(held_out.users))
    (2, 2, 0)
    """
    checked_log(log, levels=True)
    one_of("by", by, tuple(_CHOOSERS))
    if before is not None:
        return _split_at(log, before, by, held_out)
    share = real_number("held_out", 0.2 if held_out is None else held_out, above=0, below=1)
    chosen = _CHOOSERS[by](log, share, as_generator(random_state))
    return Split(log.select(each(np.logical_not, chosen, dtype=bool)), log.select(chosen))


def _split_at(log: FeedbackLog, before: Any, by: str, held_out: float | None) -> Split:
    """Part a log at a moment."""
    if by != "time":
        raise ParameterError(f'before=... is for by="time"; got by={by!r}')
    if held_out is not None:
        raise ParameterError("give held_out or before=...: one of the two")
    times = _timestamps(log)
    later = np.asarray(times >= _moment(before, times))
    if later.all() or not later.any():
        raise DataError(
            f"before={str(before)!r} leaves no row {'before it' if later.all() else 'to hold out'}: timestamps go from "
            f"{times.min()} to {times.max()}"
        )
    return Split(log.select(~later), log.select(later))


def _moment(before: Any, times: npt.NDArray[Any]) -> Any:
    """Bring a moment to the kind of the timestamps."""
    is_number = isinstance(before, int | float | np.number) and not isinstance(before, bool)
    if times.dtype.kind == "M":
        return _date(before)
    if is_number:
        return real_number("before", before)
    moment, unit = _date(before), unit_of(times)
    if unit is None:
        raise ParameterError(
            f"before must be a number, as the timestamps are, which go from {times.min()} to {times.max()}; got "
            f"{before!r}"
        )
    return int(moment.astype(f"datetime64[{unit}]").astype(np.int64))


def unit_of(times: npt.NDArray[Any]) -> str | None:
    """Return the unit of numbers that are times since 1970, by how large they are; `None` if they are no such times.

    Examples
    --------
    >>> unit_of(np.array([8.8e8])), unit_of(np.array([8.8e11])), unit_of(np.array([1, 2]))
    ('s', 'ms', None)
    """
    largest = float(np.abs(times).max())
    return None if largest < _EARLIEST else next((unit for unit, most in _UNITS.items() if largest < most), None)


def _date(before: Any) -> np.datetime64:
    """Read a date or a moment; one with a zone is brought to UTC, as timestamps are."""
    try:
        if isinstance(before, str) and _ZONED.search(before):
            before = datetime.fromisoformat(before.replace("Z", "+00:00"))
        if isinstance(before, datetime) and before.tzinfo is not None:
            before = before.astimezone(UTC).replace(tzinfo=None)
        if isinstance(before, str | date | np.datetime64):
            moment = np.datetime64(before)
            if not np.isnat(moment):
                return moment
    except ValueError:
        pass
    raise ParameterError(f'before must be a date or ISO text such as "1998-03-01"; got {short(before)}')


def _timestamps(log: FeedbackLog) -> npt.NDArray[Any]:
    if log.timestamps is None:
        raise DataError("a split by time needs timestamps; name their column: timestamp=...")
    return log.timestamps


def split_unbiased(log: FeedbackLog) -> UnbiasedSplit:
    """Leave the unbiased slice apart: the rows that the log marks as shown at random.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 0], [1, 0], n_users=2, n_items=1, unbiased=[True, False])
    >>> [len(part) for part in split_unbiased(log)]
    [1, 1]
    """
    checked_log(log, levels=True)
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
    present = np.flatnonzero(counts(log.users, log.n_users))
    held_out = np.zeros(log.n_users, bool)
    held_out[random.choice(present, _count(share, len(present), "users"), replace=False)] = True
    return each(held_out.__getitem__, log.users, dtype=bool)


def _within_users(log: FeedbackLog, share: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    rows_of_user = counts(log.users, log.n_users)
    # The tolerance keeps .29 of 100 rows at 29: in floating point it is a hair less.
    wanted = np.floor(share * rows_of_user + 1e-9)
    starts = np.append(0, np.cumsum(rows_of_user))
    chosen = long_array(len(log), bool)
    first = 0
    while first < log.n_users:  # Some users at a time: rows are in their order.
        last = max(int(np.searchsorted(starts, starts[first] + _AT_ONCE, side="right")) - 1, first + 1)
        rows = slice(starts[first], starts[last])
        users = log.users[rows]
        order = np.lexsort((random.random(len(users)), users))
        place = np.arange(rows.start, rows.stop) - starts[users[order]]
        chosen[rows][order] = place < wanted[users[order]]
        first = last
    if not chosen.any():
        raise DataError(
            f"held_out={share:g} of each user's rows, rounded down, is none: the longest-rated user has "
            f"{rows_of_user.max():,} rows"
        )
    return chosen


def _last_rows(log: FeedbackLog, share: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    times = np.sort(_timestamps(log))
    border = times[len(times) - _count(share, len(times), "rows")]
    if border == times[0]:
        later = times[times > border]
        if later.size == 0:
            raise DataError(
                f"a split by time needs at least 2 distinct timestamps; all {len(log):,} rows have {border}"
            )
        border = later[0]
    return np.asarray(_timestamps(log) >= border)


_CHOOSERS: Final = {"random": _random_rows, "user": _whole_users, "within-user": _within_users, "time": _last_rows}
