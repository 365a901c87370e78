"""What a data set gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import FileFormatError, IncompleteDatasetWarning, warn_caller


class Published(NamedTuple):
    """A data set's size as its makers published it."""

    users: int
    items: int
    ratings: int


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set of the field, on one grid.

    Parameters
    ----------
    name
        As in `verirec datasets`.
    train
        What people chose to rate, or `None` if the makers publish no such part.
    test
        Clean ratings of pairs that people did not choose, or `None`.
    propensities
        P(o = 1) of every pair as the makers estimated it, shape (n_users, n_items), or `None`.
    complete
        The label of every pair where all are known, int8 of shape (n_users, n_items), or `None`.
    """

    name: str
    train: FeedbackLog | None = None
    test: FeedbackLog | None = None
    propensities: npt.NDArray[np.float64] | None = None
    complete: npt.NDArray[np.int8] | None = None


def expect_rows(name: str, found: int, published: int) -> None:
    """Warn if a file does not have the number of rows that its makers published: it may be cut short."""
    if found != published:
        warn_caller(
            f"{name} has {found:,} rows where {published:,} were published: it may be truncated or a sample",
            IncompleteDatasetWarning,
        )


def numbered_log(table: Any, size: Published, positive_from: float, **options: Any) -> FeedbackLog:
    """Make a log of a table (user, item, rating from 1 to 5, ...) with ids from 1, on the published grid."""
    low, high = (bound.as_py() for bound in pc.min_max(table["rating"]).values())
    if isinstance(low, int) and isinstance(high, int) and not 1 <= low <= high <= 5:
        raise FileFormatError(f"ratings must be whole numbers from 1 to 5; they go from {low} to {high}")
    return FeedbackLog.from_frame(
        table,
        user="user",
        item="item",
        rating="rating",
        positive_from=positive_from,
        all_users=range(1, size.users + 1),
        all_items=range(1, size.items + 1),
        **options,
    )
