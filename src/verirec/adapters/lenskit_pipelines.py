"""Pipelines of LensKit."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from verirec.adapters.adapted import Adapted, Extras, source_of
from verirec.adapters.by_user import Array, scores_by_user
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import AdapterError, NotFittedError


def read(model: Any, log: FeedbackLog, extras: Extras) -> Adapted:
    """Have the pipeline's scorer score all of the log's items for its users, by their ids."""
    source = source_of(model)
    if not hasattr(model, "component"):
        raise AdapterError(f"{source} is no pipeline: the adapter takes LensKit's pipelines with a scorer")
    # A component that was not trained has nothing but its configuration.
    if vars(model.component("scorer")).keys() <= {"config"}:
        raise NotFittedError(f"{source} is not trained: call its train first")
    score_items = import_module("lenskit.operations").score
    users, items = log.user_ids.ids(), log.item_ids.ids()

    def score(positions: Positions) -> Array:
        return np.array([score_items(model, users[user], items).scores() for user in positions], dtype=np.float64)

    return scores_by_user(score, log, source)
