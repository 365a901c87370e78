r"""Ranking metrics, vectorised over users and safe under ties.

Where scores tie, the order within the tie carries no information: every metric here is its expected value over all
orders of the tied items. As DCG, hits and F1 are linear in the labels, that is what one gets by giving each item of a
tie the tie's mean label.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from verirec.checks import number_array, one_of, whole_number
from verirec.data.parts import parts_of
from verirec.exceptions import DataError, OneClassWarning, ParameterError, warn_caller
from verirec.formatting import short
from verirec.metrics.inputs import Array, checked_labels, checked_scores, same_length
from verirec.scratch import each, long_array, those

Convention = Literal["paper", "usual"]
"""What becomes of users without a positive. "paper": they count, with an NDCG of 1 and a Recall of 0, as the paper's
family of code does. "usual": they are left out."""

_AT_A_TIME: Final = 1 << 14
"""Rows that are sorted at a time; their users are numbered by 16 bits."""
_SIDES: Final[tuple[Literal["left", "right"], ...]] = ("left", "right")


def auc(labels: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """Return the area under the ROC curve over all pairs at once: P(a positive's score > a negative's), ties half.

    Parameters
    ----------
    labels, scores
        0/1 and finite numbers, shape (n,).

    Returns
    -------
    The area, or NaN, with a `OneClassWarning`, if there is one class only.

    Examples
    --------
    >>> auc([0, 1, 1], [0.2, 0.2, 0.9])
    0.75
    """
    truth, values = checked_labels(labels), checked_scores(scores)
    same_length(truth, values)
    warn_of_one_class(truth)
    return _auc(truth, values)


def warn_of_one_class(labels: npt.NDArray[np.int8]) -> None:
    """Warn where there is no positive, or nothing else, to compare."""
    if labels.min() == labels.max():
        warn_caller(f"all {len(labels):,} labels are {labels[0]}: AUC compares two classes and is NaN", OneClassWarning)


class UserRankings:
    """Each user's test items in the order of their scores; all metrics at any depth follow from it.

    Only users with at least one row count. The sums run over a user's *test* items, not over the catalogue.

    Parameters
    ----------
    users
        Positions or any other integers, shape (n,).
    labels, scores
        0/1 and finite numbers, shape (n,).

    Examples
    --------
    >>> rankings = UserRankings([0, 0, 0, 1], [1, 0, 1, 0], [0.9, 0.8, 0.1, 0.5])
    >>> rankings.recall(1), rankings.recall(1, convention="usual")
    (0.25, 0.5)
    """

    def __init__(self, users: npt.ArrayLike, labels: npt.ArrayLike, scores: npt.ArrayLike) -> None:
        truth, values = checked_labels(labels), checked_scores(scores)
        who = number_array("users", users, ndim=1, error=DataError, kinds="iu")
        same_length(truth, values)
        if who.shape != truth.shape:
            raise DataError(f"there must be one user a label, shape {truth.shape}; got {who.shape}")
        self.auc = _auc(truth, values)
        self._arrange(who, truth, values)

    def _arrange(self, who: npt.NDArray[Any], gains: npt.NDArray[Any], scores: Array) -> None:
        """Sort each user's rows by score: what is gained at each place, and all of a user's."""
        if each(np.less, who[1:], who[:-1], dtype=bool).any():
            by_user = np.argsort(who, kind="stable")
            who, gains, scores = who[by_user], gains[by_user], scores[by_user]
        self._first_row = np.flatnonzero(_starts(who))
        self._rows = np.diff(self._first_row, append=len(who))
        self._positives = np.add.reduceat(gains, self._first_row, dtype=np.float64)
        self._expected_label = long_array(len(who))
        for some in _users_at_a_time(self._first_row):
            counts = self._rows[some]
            rows = slice(self._first_row[some.start], self._first_row[some.start] + counts.sum())
            own = np.repeat(np.arange(len(counts), dtype=np.uint16), counts)
            self._expected_label[rows] = _expected_labels(own, gains[rows], scores[rows])

    @property
    def n_users(self) -> int:
        """Number of users with at least one row."""
        return len(self._positives)

    def ndcg(self, k: int, *, convention: Convention = "paper") -> float:
        r"""Return the mean NDCG@k: binary gain, discount :math:`1/\log_2(1 + rank)`, ideal the user's k best labels."""
        depth = min(checked_depth(k), int(self._rows.max()))
        discounts = 1 / np.log2(np.arange(2, depth + 2))
        ideal = np.append(0.0, np.cumsum(discounts))[np.minimum(self._positives, depth).astype(np.int64)]
        gained = self._top_sum(k, discounts)
        return self._mean(np.divide(gained, ideal, out=np.ones_like(gained), where=ideal > 0), convention)

    def recall(self, k: int, *, convention: Convention = "paper") -> float:
        """Return the mean Recall@k: hits among the k best, divided by the user's positives."""
        return self._mean(self._top_sum(k) / np.maximum(self._positives, 1), convention)

    def precision(self, k: int, *, convention: Convention = "paper") -> float:
        """Return the mean Precision@k: hits among the k best, divided by k even where a user has fewer rows."""
        return self._mean(self._top_sum(k) / checked_depth(k), convention)

    def f1(self, k: int, *, convention: Convention = "paper") -> float:
        """Return the mean F1@k, the harmonic mean of Precision@k and Recall@k: 2 hits / (k + positives)."""
        return self._mean(2 * self._top_sum(k) / (checked_depth(k) + self._positives), convention)

    def _top_sum(self, k: int, by_place: Array | None = None) -> Array:
        """Sum expected labels over each user's first k places, each place with its factor."""
        counted = np.minimum(self._rows, checked_depth(k))
        first = np.cumsum(counted) - counted
        place = np.arange(int(counted.sum())) - np.repeat(first, counted)
        gains = self._expected_label[np.repeat(self._first_row, counted) + place]
        if by_place is not None:
            gains *= by_place[place]
        return np.asarray(np.add.reduceat(gains, first))

    def _mean(self, per_user: Array, convention: str) -> float:
        if one_of("convention", convention, ("paper", "usual")) == "usual":
            per_user = per_user[self._positives > 0]
        return float(per_user.mean()) if per_user.size else float("nan")


class GradedRankings(UserRankings):
    r"""Each user's test items in the order of their scores, each item with a gain.

    Parameters
    ----------
    users, scores
        As in `UserRankings`.
    gains
        Finite numbers of at least 0, shape (n,): of a level's place j from 0, mostly :math:`2^j - 1`.

    Examples
    --------
    >>> gains = [7, 0, 3]
    >>> round(GradedRankings([0, 0, 0], gains, [0.1, 0.9, 0.8]).ndcg(2), 3)
    0.213
    """

    def __init__(self, users: npt.ArrayLike, gains: npt.ArrayLike, scores: npt.ArrayLike) -> None:
        given, values = checked_scores(gains, "gains"), checked_scores(scores)
        who = number_array("users", users, ndim=1, error=DataError, kinds="iu")
        if not who.shape == given.shape == values.shape:
            raise DataError(
                f"users, gains and scores must be of one length; got {len(who)}, {len(given)}, {len(values)}"
            )
        if (given < 0).any():
            raise DataError(f"gains must be at least 0; {int((given < 0).sum()):,} are not")
        self._arrange(who, given, given)
        self._best = self._expected_label
        self._arrange(who, given, values)

    def ndcg(self, k: int, *, convention: Convention = "paper") -> float:
        r"""Return the mean NDCG@k: gains with discount :math:`1/\log_2(1 + rank)`, ideal the user's k largest ones."""
        discounts = 1 / np.log2(np.arange(2, min(checked_depth(k), int(self._rows.max())) + 2))
        found, self._expected_label = self._expected_label, self._best
        ideal, self._expected_label = self._top_sum(k, discounts), found
        gained = self._top_sum(k, discounts)
        return self._mean(np.divide(gained, ideal, out=np.ones_like(gained), where=ideal > 0), convention)


def checked_depth(k: object) -> int:
    """Accept a depth of at least 1; an array of no dimension is a number too."""
    depth = whole_number("k", k.item() if isinstance(k, np.ndarray) and k.ndim == 0 else k)
    if depth > 2**53:
        raise ParameterError(f"k must be at most {2**53:,}, or it is no float; got {short(k)}")
    return depth


def checked_depths(k: Any) -> list[int]:
    """Accept a depth, or several."""
    try:
        several = list(k)
    except (TypeError, AttributeError):  # One, or what cannot be gone through.
        several = [k.item() if isinstance(k, np.ndarray) else k]
    depths = [checked_depth(depth) for depth in several]
    if not depths:
        raise ParameterError("k must name at least one depth; got none")
    return depths


def _users_at_a_time(first_row: npt.NDArray[np.int64]) -> Iterator[slice]:
    """Walk over users in runs of some `_AT_A_TIME` rows: what is sorted stays near the processor, however many rows."""
    begun, n_users = 0, len(first_row)
    while begun < n_users:
        ended = int(np.searchsorted(first_row, first_row[begun] + _AT_A_TIME))
        yield slice(begun, ended)
        begun = ended


def _expected_labels(users: npt.NDArray[np.uint16], labels: npt.NDArray[np.int8], scores: Array) -> Array:
    """Sort rows by user and score, the best first; each has the mean label of its tie."""
    order = np.argsort(-scores)
    # By user within that: numbers of 16 bits are sorted by counting, in time that does not depend on their order.
    order = order[np.argsort(users[order], kind="stable")]
    return _tie_means(labels[order].astype(np.float64), _starts(scores[order]) | _starts(users))


def _starts(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Flag where a run of equal values starts."""
    flags = long_array(len(values), bool)
    flags[:1] = True
    np.not_equal(values[1:], values[:-1], out=flags[1:])
    return flags


def _tie_means(labels: Array, starts: npt.NDArray[np.bool_]) -> Array:
    """Replace each label by the mean of its run."""
    first = np.flatnonzero(starts)
    size = np.diff(np.append(first, len(labels)))
    return np.repeat(np.add.reduceat(labels, first) / size, size)


def _auc(labels: npt.NDArray[np.int8], scores: Array) -> float:
    """Count, for each positive, the negatives below it and half of those that tie (the Mann-Whitney statistic)."""
    positives, negatives = (those(scores, each(np.equal, labels, label, dtype=bool)) for label in (1, 0))
    pairs = len(positives) * len(negatives)
    if pairs == 0:
        return float("nan")
    positives.sort()
    negatives.sort()
    both = (np.searchsorted(negatives, positives[at], side) for at in parts_of(len(positives)) for side in _SIDES)
    return sum(int(one.sum()) for one in both) / (2 * pairs)
