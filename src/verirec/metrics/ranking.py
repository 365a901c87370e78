r"""Ranking metrics, vectorised over users and safe under ties.

Where scores tie, the order within the tie carries no information: every metric here is its expected value over all
orders of the tied items. As DCG, hits and F1 are linear in the labels, that is what one gets by giving each item of a
tie the tie's mean label.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from verirec.checks import number_array, one_of, whole_number
from verirec.exceptions import DataError, OneClassWarning, ParameterError, warn_caller
from verirec.formatting import short
from verirec.metrics.inputs import Array, checked_labels, checked_scores, same_length

Convention = Literal["paper", "usual"]
"""What becomes of users without a positive. "paper": they count, with an NDCG of 1 and a Recall of 0, as the paper's
family of code does. "usual": they are left out."""

_LARGEST_USER: Final = 2**31 - 1
"""Users numbered beyond this are renumbered, so that a user and a rank fit one 64-bit integer."""


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
    order, tie = _ties(values)
    warn_of_one_class(truth)
    return _auc(truth, order, tie)


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
        if who.min() < 0 or who.max() > _LARGEST_USER:
            who = np.unique(who, return_inverse=True)[1]
        score_order, tie = _ties(values)
        self.auc = _auc(truth, score_order, tie)
        best_first = tie[-1] - tie
        rank = np.empty(len(truth), np.int64)
        rank[score_order] = best_first
        # One sort by (user, score): `best_first` numbers the distinct scores, so that the two fit one integer.
        key = who.astype(np.int64) * (int(tie[-1]) + 1) + rank
        order = np.argsort(key)
        starts_user = _starts(who[order])
        self._user_of_row = np.cumsum(starts_user) - 1
        first_row = np.flatnonzero(starts_user)
        self._place = np.arange(len(truth)) - first_row[self._user_of_row]
        self._positives = np.add.reduceat(truth[order], first_row, dtype=np.float64)
        self._expected_label = _tie_means(truth[order].astype(np.float64), _starts(key[order]))

    @property
    def n_users(self) -> int:
        """Number of users with at least one row."""
        return len(self._positives)

    def ndcg(self, k: int, *, convention: Convention = "paper") -> float:
        r"""Return the mean NDCG@k: binary gain, discount :math:`1/\log_2(1 + rank)`, ideal the user's k best labels."""
        depth = min(checked_depth(k), int(self._place.max()) + 1)
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
        top = self._place < checked_depth(k)
        gains = self._expected_label[top]
        if by_place is not None:
            gains = gains * by_place[self._place[top]]
        return np.asarray(np.bincount(self._user_of_row[top], weights=gains, minlength=self.n_users), dtype=np.float64)

    def _mean(self, per_user: Array, convention: str) -> float:
        if one_of("convention", convention, ("paper", "usual")) == "usual":
            per_user = per_user[self._positives > 0]
        return float(per_user.mean()) if per_user.size else float("nan")


def checked_depth(k: object) -> int:
    """Accept a depth of at least 1; an array of no dimension is a number too."""
    depth = whole_number("k", k.item() if isinstance(k, np.ndarray) and k.ndim == 0 else k)
    if depth > 2**53:
        raise ParameterError(f"k must be at most {2**53:,}, or it is no float; got {short(k)}")
    return depth


def checked_depths(k: Any) -> list[int]:
    """Accept a depth, or several."""
    is_one = not isinstance(k, Iterable) or (isinstance(k, np.ndarray) and k.ndim == 0)
    depths = [checked_depth(depth) for depth in ([k] if is_one else k)]
    if not depths:
        raise ParameterError("k must name at least one depth; got none")
    return depths


def _ties(scores: Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sort the scores and number the distinct ones, lowest first: (order, number of each in that order)."""
    order = np.argsort(scores)
    return order, np.cumsum(_starts(scores[order])) - 1


def _starts(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Flag where a run of equal values starts."""
    flags = np.empty(len(values), bool)
    flags[:1] = True
    np.not_equal(values[1:], values[:-1], out=flags[1:])
    return flags


def _tie_means(labels: Array, starts: npt.NDArray[np.bool_]) -> Array:
    """Replace each label by the mean of its run."""
    first = np.flatnonzero(starts)
    size = np.diff(np.append(first, len(labels)))
    return np.repeat(np.add.reduceat(labels, first) / size, size)


def _auc(labels: npt.NDArray[np.int8], order: npt.NDArray[np.int64], tie: npt.NDArray[np.int64]) -> float:
    """Count, for each tie, the negatives below it and half of those in it (the Mann-Whitney statistic)."""
    sorted_labels = labels[order].astype(np.float64)
    positives = np.bincount(tie, weights=sorted_labels)
    negatives = np.bincount(tie, weights=1 - sorted_labels)
    pairs = positives.sum() * negatives.sum()
    if pairs == 0:
        return float("nan")
    below = np.cumsum(negatives) - negatives
    return float((positives * (below + negatives / 2)).sum() / pairs)
