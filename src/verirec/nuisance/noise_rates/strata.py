"""A log's rows sorted by how likely they are to be positive."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import counts, over_parts
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.nuisance.label_model import LabelModel, parts_by_score
from verirec.nuisance.propensities import as_propensities
from verirec.scratch import each

Array = npt.NDArray[np.float64]
Strata = npt.NDArray[np.integer[Any]]

FOLDS_SEED: Final = 0
"""Of the folds of plans and of audits alike: pairs chosen by one score's strata but counted in another's bias rates."""


def score_rows(
    log: FeedbackLog,
    propensities: Any,
    scores: PredictionsLike | None,
    *,
    folds: int,
    random: np.random.Generator,
) -> Array:
    """Return how likely each row is to be positive, by a score that has not seen it; shape (n,)."""
    if scores is not None:
        return as_predictions(scores, log.n_users, log.n_items).at(log.users, log.items)
    weights = np.broadcast_to(1.0, len(log))
    if propensities is not None:
        weights = each(lambda p: 1 / p, as_propensities(propensities, log).at(log.users, log.items))
    return LabelModel().cross_fit(log, weights, folds, random)


def score_levels(log: FeedbackLog, scores: PredictionsLike | None, random: np.random.Generator) -> Array:
    """As `score_rows`, all rows alike; of levels, how likely a row is to be in the upper half."""
    if log.levels is not None:
        # Where about half of the rows are at least as high, a model of two classes has most to tell.
        below = np.cumsum(counts(log.labels, len(log.levels)))[:-1] / len(log)
        log = log.binary(positive_from=log.levels[int(np.argmin(np.abs(below - 0.5))) + 1])
    return score_rows(log, None, scores, folds=5, random=random)


def sort_into_strata(score: Array, strata: int, random: np.random.Generator) -> Strata:
    """Sort rows into equal parts by their score; each has at least 20 rows. Numbers of as few bytes as will do."""
    count = min(strata, max(len(score) // 20, 1))
    ends = [-(-len(score) * part // count) for part in range(1, count)]
    return parts_by_score(score, ends, random)


def strata_there(strata: Strata) -> npt.NDArray[np.int64]:
    """Return the strata that have rows, in ascending order."""
    return np.flatnonzero(counts(strata, int(strata.max()) + 1))


def table_of(strata: Strata, labels: npt.NDArray[Any], columns: int, weights: Array | None = None) -> Array:
    """Count rows by stratum and label, each as often as its weight says; shape (strata, columns).

    Examples
    --------
    >>> table_of(np.array([0, 1, 1]), np.array([1, 0, 0]), 2).tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    shape = int(strata.max()) + 1, columns

    def of(at: slice) -> Array:
        cells = strata[at].astype(np.int64) * columns + labels[at]
        counted = np.bincount(cells, None if weights is None else weights[at], shape[0] * columns)
        return np.asarray(counted, np.float64)

    return np.asarray(sum(over_parts(of, len(labels)))).reshape(shape)
