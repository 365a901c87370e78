"""A log's rows sorted by how likely they are to be positive."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.nuisance.label_model import LabelModel, parts_by_score
from verirec.nuisance.propensities import as_propensities

Array = npt.NDArray[np.float64]

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
    weights = np.ones(len(log))
    if propensities is not None:
        weights = 1 / as_propensities(propensities, log).at(log.users, log.items)
    return LabelModel().cross_fit(log, weights, folds, random)


def sort_into_strata(score: Array, strata: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Sort rows into equal parts by their score; each has at least 20 rows."""
    count = min(strata, max(len(score) // 20, 1))
    return parts_by_score(score, [-(-len(score) * part // count) for part in range(1, count)], random)
