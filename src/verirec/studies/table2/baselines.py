"""Recommenders without anything to train: what any method should beat."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.nuisance.propensities import Propensities

Array = npt.NDArray[np.float64]

_PRIOR_ROWS: Final = 2.0
"""Rows of the mean that each item's own are added to, so that no probability is 0 or 1."""


def baseline_scores(name: str, log: FeedbackLog, propensities: Propensities) -> Array:
    r"""Return the probability of each item, the same for all users, shape (n_items,).

    "global-mean": the log's share of positives. "item-mean": the item's own. "item-ips-mean": weighted by 1/p.
    "popularity": the item's number of rows, as its rank between 0 and 1, stretched around the mean so that it stays a
    probability. None corrects for noise.

    Examples
    --------
    >>> from verirec import ConstantPropensity
    >>> log = FeedbackLog.from_arrays([0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 0, 1], n_users=2, n_items=3)
    >>> baseline_scores("item-mean", log, ConstantPropensity().fit(log)).round(3).tolist()
    [0.875, 0.625, 0.75]
    """
    mean = float(log.labels.mean())
    if name == "global-mean":
        return np.full(log.n_items, mean)
    if name == "popularity":
        counts = np.bincount(log.items, minlength=log.n_items)
        ranks = np.searchsorted(np.sort(counts), counts, side="right") / log.n_items
        spread = min(mean, 1 - mean)
        return mean + spread * (ranks - 0.5)
    weights = np.ones(len(log)) if name == "item-mean" else 1 / propensities.at(log.users, log.items)
    weights /= weights.mean()
    liked = np.bincount(log.items, weights * log.labels, log.n_items)
    total = np.bincount(log.items, weights, log.n_items)
    centre = float((weights * log.labels).sum() / weights.sum())
    return (liked + _PRIOR_ROWS * centre) / (total + _PRIOR_ROWS)
