"""Periods of a log with timestamps: days, weeks, months or years, one after the other, those without rows too."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.checks import one_of
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.splits import unit_of
from verirec.exceptions import DataError

Every = Literal["day", "week", "month", "year"]

MOST_PERIODS: Final = 1_000
"""More are a mistake: of the unit of the timestamps, or of what was asked for."""
_UNITS: Final = {"day": "D", "week": "D", "month": "M", "year": "Y"}
_MONDAY: Final = 3
"""Days from the Monday before 1970, which began on a Thursday."""


class Periods(NamedTuple):
    """Which period each row of a log is in.

    Parameters
    ----------
    names
        Of all periods from the first to the last, such as "2024-01"; of weeks, the date of their Monday.
    of_rows
        The number of each row's period, from 0, shape (n,).
    """

    names: list[str]
    of_rows: npt.NDArray[np.int64]


def periods_of(log: FeedbackLog, every: Every) -> Periods:
    """Part the rows of a log by their timestamps; times are UTC, as the log has them.

    Parameters
    ----------
    log
        With timestamps: dates, or numbers of seconds (milli-, micro-, nanoseconds) since 1970.
    every
        "day", "week", from Monday, "month" or "year".

    Examples
    --------
    >>> times = np.array(["2024-01-30", "2024-03-01", "2024-01-02"], "datetime64[D]")
    >>> log = FeedbackLog.from_arrays([0, 1, 2], [0, 0, 0], [1, 0, 1], n_users=3, n_items=1, timestamps=times)
    >>> found = periods_of(log, "month")
    >>> found.names, found.of_rows.tolist()
    (['2024-01', '2024-02', '2024-03'], [0, 2, 0])
    """
    one_of("every", every, tuple(_UNITS))
    days = _moments(checked_log(log, levels=True)).astype(f"datetime64[{_UNITS[every]}]").astype(np.int64)
    numbers = (days + _MONDAY) // 7 if every == "week" else days
    first, last = int(numbers.min()), int(numbers.max())
    if last - first >= MOST_PERIODS:
        raise DataError(
            f"timestamps go over {last - first + 1:,} {every}s, more than {MOST_PERIODS:,}: are they of the unit that "
            "they seem to be? Or take longer periods: every=..."
        )
    starts = np.arange(first, last + 1)
    dates = starts * 7 - _MONDAY if every == "week" else starts
    names = np.datetime_as_string(dates.astype(f"datetime64[{_UNITS[every]}]"))
    return Periods(names.tolist(), numbers - first)


def _moments(log: FeedbackLog) -> npt.NDArray[Any]:
    times = log.timestamps
    if times is None:
        raise DataError("periods need timestamps; name their column: timestamp=...")
    if len(times) == 0:
        raise DataError("periods need rows; the log has none")
    if times.dtype.kind == "M":
        return times
    unit = unit_of(times)
    if unit is None:
        raise DataError(
            f"timestamps must be dates, or seconds or smaller units since 1970; they go from {times.min():g} to "
            f"{times.max():g}"
        )
    return np.asarray(np.floor(times).astype(np.int64).astype(f"datetime64[{unit}]"))
