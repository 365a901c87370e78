"""Models of RecBole, whose data set knows their ids."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from verirec.adapters.adapted import Adapted, Extras, source_of
from verirec.adapters.by_user import Array, places_of, scores_by_user
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import AdapterError


def read(model: Any, log: FeedbackLog, extras: Extras) -> Adapted:
    """Have the model score all items of its users; the data set maps tokens to its numbers."""
    source, dataset = source_of(model), extras.dataset
    if dataset is None:
        raise AdapterError(f"{source} needs the data set that it was trained on: vr.adapt(model, log, dataset=...)")
    torch, interaction = import_module("torch"), import_module("recbole.data.interaction").Interaction
    users = places_of(log.user_ids.ids().tolist(), dataset.field2token_id[model.USER_ID])
    items = places_of(log.item_ids.ids().tolist(), dataset.field2token_id[model.ITEM_ID])
    model.eval()

    def score(positions: Positions) -> Array:
        found, known = np.full((len(positions), log.n_items), np.nan), users[positions] >= 0
        if known.any():
            asked = interaction({model.USER_ID: torch.tensor(users[positions][known])}).to(model.device)
            with torch.no_grad():
                scores = model.full_sort_predict(asked).view(int(known.sum()), -1).cpu().numpy()
            found[np.ix_(known, items >= 0)] = scores[:, items[items >= 0]]
        return found

    return scores_by_user(score, log, source, users >= 0)
