"""What all samples of logged pairs check: their pairs, their answers, their probabilities, their rows of a log."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.checks import number_array
from verirec.data.cells import IDS_HINT, Positions, cell_keys, checked_positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.levels import Levels, checked_labels
from verirec.data.pair_keys import places_in
from verirec.exceptions import AuditError, DataError, EmptyLogError, NoiseRateWarning, ReaskError, warn_caller

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int8]

_LEAST: Final = 1e-12
"""A probability below which one over it, squared, says nothing any more."""


class Wording(NamedTuple):
    """How messages speak of a sample, and the class of a refusal."""

    name: str
    article: str
    asked: str
    labels: str
    error: type[DataError]

    @property
    def one(self) -> str:
        """The sample, with its article."""
        return f"{self.article} {self.name}"


AN_AUDIT: Final = Wording("audit", "an", "audited", "true_labels", AuditError)
A_REASK: Final = Wording("re-ask", "a", "re-asked", "labels", ReaskError)


class AskedRows(NamedTuple):
    """The rows of a log that somebody was asked about.

    Parameters
    ----------
    rows
        Their numbers, shape (m,).
    inside
        Which pairs of the sample they are: those that are in the log.
    """

    rows: npt.NDArray[np.int64]
    inside: npt.NDArray[np.bool_]


def checked_pairs(
    words: Wording, users: Any, items: Any, labels: Any, levels: Levels | None = None
) -> tuple[Positions, Positions, Labels]:
    """Accept positions of users and items, and labels of them, 0/1 or values among levels, each of shape (m,)."""
    largest = int(np.iinfo(np.int32).max)
    users = checked_positions(f"the {words.name}'s users", users, largest, IDS_HINT)
    items = checked_positions(f"the {words.name}'s items", items, largest, IDS_HINT)
    values = number_array(f"the {words.name}'s {words.labels}", labels, ndim=1, error=words.error)
    if not len(users) == len(items) == len(values):
        raise words.error(
            f"{words.one}'s users, items and {words.labels} must be of one length; got "
            f"{len(users):,}, {len(items):,} and {len(values):,}"
        )
    if len(values) == 0:
        raise words.error(f"{words.one} needs pairs with {words.labels.replace('_', ' ')}; got none")
    return users, items, checked_labels(f"the {words.name}'s {words.labels}", values, levels, error=words.error)


def checked_probabilities(words: Wording, given: Any, count: int) -> Array:
    """Accept one probability a pair, above 0 and at most 1."""
    values = number_array(f"the {words.name}'s probabilities", given, ndim=1, error=words.error).astype(np.float64)
    if len(values) != count:
        raise words.error(f"{words.one}'s probabilities must be one a pair, {count:,}; got {len(values):,}")
    # One over a weight that was written with few digits can be a little above 1.
    wrong = ~((values >= _LEAST) & (values <= 1 + 1e-6))
    if wrong.any():
        raise words.error(
            f"the {words.name}'s probabilities must be above 0 (at least {_LEAST:g}) and at most 1; "
            f"{int(wrong.sum()):,} of {count:,} are not (first: {values[wrong][0]:g})"
        )
    return np.minimum(values, 1.0)


def find_rows(words: Wording, users: Positions, items: Positions, log: FeedbackLog) -> AskedRows:
    """Find the rows of pairs, each named once; pairs that are not in the log are left out, with a warning."""
    if len(log) == 0:
        raise EmptyLogError(f"{words.one} needs a log with rows; it has none")
    checked_positions(f"the {words.name}'s users", users, log.n_users)
    checked_positions(f"the {words.name}'s items", items, log.n_items)
    asked = cell_keys(users, items, log.n_items)
    if len(np.unique(asked)) < len(asked):
        raise words.error(
            f"{words.one} must name each pair once; {len(asked):,} rows name {len(np.unique(asked)):,} pairs"
        )
    found, inside = places_in(users, items, log.users, log.items)
    if not inside.any():
        raise words.error(
            f"none of the {len(asked):,} {words.asked} pairs is in the log: they say nothing of its noise"
        )
    if not inside.all():
        warn_caller(
            f"{int((~inside).sum()):,} of {len(asked):,} {words.asked} pairs are not in the log and are left out: only "
            "pairs with both labels tell how noisy the log is",
            NoiseRateWarning,
        )
    return AskedRows(found[inside], inside)
