"""Models of RecTools, which recommend by the data set that they were trained on."""

from __future__ import annotations

from typing import Any

import numpy as np

from verirec.adapters.adapted import Adapted, Extras, source_of
from verirec.adapters.by_user import Array, places_of, scores_by_user
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import AdapterError, NotFittedError


def read(model: Any, log: FeedbackLog, extras: Extras) -> Adapted:
    """Have the model recommend all items to all users, and take the scores."""
    source = source_of(model)
    if not model.is_fitted:
        raise NotFittedError(f"{source} is not fitted: call its fit first")
    if extras.dataset is None:
        raise AdapterError(f"{source} needs the data set that it was trained on: vr.adapt(model, log, dataset=...)")
    theirs = extras.dataset.user_id_map.external_ids.tolist(), extras.dataset.item_id_map.external_ids.tolist()
    ours = log.user_ids.ids().tolist(), log.item_ids.ids().tolist()
    users = places_of(ours[0], {one: place for place, one in enumerate(theirs[0])})
    # The other way round: which of the log's items each of the model's is.
    items = places_of(theirs[1], {one: place for place, one in enumerate(ours[1])})
    column_of = dict(zip(theirs[1], items.tolist(), strict=True))

    def score(positions: Positions) -> Array:
        found = np.full((len(positions), log.n_items), np.nan)
        known = {theirs[0][user]: line for line, user in enumerate(users[positions]) if user >= 0}
        if known:
            told = model.recommend(list(known), extras.dataset, k=len(theirs[1]), filter_viewed=False)
            lines = told["user_id"].map(known).to_numpy()
            columns = told["item_id"].map(column_of).to_numpy()
            found[lines[columns >= 0], columns[columns >= 0]] = told["score"].to_numpy()[columns >= 0]
        return found

    return scores_by_user(score, log, source, users >= 0)
