"""A log's rows sorted by how likely they are to be positive."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.nuisance.label_model import LabelModel, by_score
from verirec.nuisance.propensities import as_propensities

FOLDS_SEED: Final = 0
"""Of the folds of plans and of audits alike: pairs chosen by one score's strata but counted in another's bias rates."""


def sort_into_strata(
    log: FeedbackLog,
    propensities: Any,
    scores: PredictionsLike | None,
    *,
    strata: int,
    folds: int,
    random: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """Sort a log's rows into equal parts by a score that has not seen them; each has at least 20 rows."""
    count = min(strata, max(len(log) // 20, 1))
    if scores is not None:
        score = as_predictions(scores, log.n_users, log.n_items).at(log.users, log.items)
    else:
        weights = np.ones(len(log))
        if propensities is not None:
            weights = 1 / as_propensities(propensities, log).at(log.users, log.items)
        score = LabelModel().cross_fit(log, weights, folds, random)
    order = by_score(score, random)
    of_row = np.empty(len(log), np.int64)
    of_row[order] = np.arange(len(log)) * count // len(log)
    return of_row
