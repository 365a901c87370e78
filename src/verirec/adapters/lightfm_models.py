"""Models of LightFM."""

from __future__ import annotations

from typing import Any

from verirec.adapters.adapted import Adapted, Extras, source_of
from verirec.adapters.matching import factors_for
from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import NotFittedError


def read(model: Any, log: FeedbackLog, extras: Extras) -> Adapted:
    """Take the representations of users and items, biases and factors; of a model without features."""
    source = source_of(model)
    if model.item_embeddings is None:
        raise NotFittedError(f"{source} is not fitted: call its fit first")
    (user_biases, users), (item_biases, items) = model.get_user_representations(), model.get_item_representations()
    found = factors_for(log, (users, items), (user_biases, item_biases), extras, source)
    return Adapted(found, source, probabilities=False)
