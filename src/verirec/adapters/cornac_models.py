"""Models of Cornac."""

from __future__ import annotations

from typing import Any

import numpy as np

from verirec.adapters.adapted import Adapted, Extras, source_of
from verirec.adapters.by_user import Array, places_of, scores_by_user
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import NotFittedError


def read(model: Any, log: FeedbackLog, extras: Extras) -> Adapted:
    """Have the model score a user's items; it knows the ids that it was trained on."""
    source = source_of(model)
    if not model.is_fitted:
        raise NotFittedError(f"{source} is not fitted: call its fit first")
    users = places_of(log.user_ids.ids().tolist(), model.uid_map)
    items = places_of(log.item_ids.ids().tolist(), model.iid_map)

    def score(positions: Positions) -> Array:
        found = np.full((len(positions), log.n_items), np.nan)
        for line, user in enumerate(users[positions]):
            if user >= 0:
                scores = np.asarray(model.score(int(user)), dtype=np.float64)
                there = (items >= 0) & (items < len(scores))
                found[line, there] = scores[items[there]]
        return found

    return scores_by_user(score, log, source, users >= 0)
