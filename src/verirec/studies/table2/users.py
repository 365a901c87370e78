"""What each test user adds to a metric: so that an interval can tell what other users would have given."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog

Array = npt.NDArray[np.float64]

METRICS: Final = ("auc", "ndcg", "recall", "log_loss")
"""Metrics with intervals over users, in the order of the rows of `influences`."""


def influences(scores: Array, log: FeedbackLog, k: int) -> npt.NDArray[np.float32]:
    r"""Return how much each test user moves each metric, shape (4, users with rows), in the order of their positions.

    A metric over users drawn anew varies by :math:`\sum_u \phi_u^2`. For means over users :math:`\phi_u` is
    :math:`(x_u - \bar x)/U`; for the log loss the same over rows; for AUC the sum of the user's placements (DeLong et
    al. 1988), :math:`\sum_{u,+} (V_{10} - A)/n_1 + \sum_{u,-} (V_{01} - A)/n_0`.
    """
    _, who = np.unique(log.users, return_inverse=True)
    labels = log.labels.astype(np.float64)
    f = np.clip(scores, 1e-12, 1 - 1e-12)
    loss = -labels * np.log(f) - (1 - labels) * np.log1p(-f)
    ndcg, recall = _by_user(scores, labels, who, k)
    users = len(ndcg)
    return np.stack(
        [
            np.bincount(who, _placements(scores, labels), users),
            (ndcg - ndcg.mean()) / users,
            (recall - recall.mean()) / users,
            np.bincount(who, loss - loss.mean(), users) / len(log),
        ]
    ).astype(np.float32)


def half_width(differences: Array, z: float = 1.96) -> float:
    """Return half the width of a 95% interval of a difference, from the users' differences in influence.

    Examples
    --------
    >>> round(half_width(np.array([0.01, -0.01, 0.02, -0.02])), 3)
    0.072
    """
    count = len(differences)
    return float(z * np.sqrt((differences**2).sum() * count / (count - 1)))


def _placements(scores: Array, labels: Array) -> Array:
    """Return each row's share of AUC's influence."""
    positive = labels == 1
    ones, zeros = np.sort(scores[positive]), np.sort(scores[~positive])
    if len(ones) == 0 or len(zeros) == 0:
        return np.zeros(len(scores))

    def below(sorted_values: Array, values: Array) -> Array:
        left, right = (np.searchsorted(sorted_values, values, side) for side in ("left", "right"))
        return np.asarray((left + right) / (2 * len(sorted_values)))

    found = np.empty(len(scores))
    found[positive] = below(zeros, scores[positive])
    found[~positive] = 1 - below(ones, scores[~positive])
    auc = found[positive].mean()
    return np.asarray(np.where(positive, (found - auc) / len(ones), (found - auc) / len(zeros)))


def _by_user(scores: Array, labels: Array, who: npt.NDArray[np.int64], k: int) -> tuple[Array, Array]:
    """Return NDCG@k and Recall@k of each user, in the paper's convention; ties in the order of the rows."""
    order = np.lexsort((-scores, who))
    users, gains = who[order], labels[order]
    first = np.searchsorted(users, np.arange(users[-1] + 1))
    place = np.arange(len(users)) - first[users]
    top = place < k
    positives = np.bincount(users, gains)
    discounts = 1 / np.log2(np.arange(2, k + 2))
    dcg = np.bincount(users[top], gains[top] * discounts[place[top]], len(positives))
    ideal = np.append(0.0, np.cumsum(discounts))[np.minimum(positives, k).astype(np.int64)]
    ndcg = np.divide(dcg, ideal, out=np.ones_like(dcg), where=ideal > 0)
    return ndcg, np.bincount(users[top], gains[top], len(positives)) / np.maximum(positives, 1)
