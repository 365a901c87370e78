"""Classifiers of scikit-learn, or of its kind, on features of pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.adapters.adapted import Adapted, Extras, source_of
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import AdapterError, NotFittedError


def read(model: Any, log: FeedbackLog, extras: Extras) -> Adapted:
    """Have the classifier say of each pair's features how likely its label is 1, or else score it."""
    source = source_of(model)
    probabilities = hasattr(model, "predict_proba")
    if not probabilities and not hasattr(model, "decision_function"):
        raise AdapterError(f"{source} is no classifier: the adapter takes what has predict_proba or decision_function")
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise NotFittedError(f"{source} is not fitted: call its fit first")
    if len(classes) != 2 or not np.isin(classes, [0, 1]).all():
        raise AdapterError(f"{source} must tell labels 0 from 1; its classes are {', '.join(map(str, classes[:10]))}")
    features = extras.features or _of_log(log, source)

    def predict(users: Positions, items: Positions) -> npt.NDArray[Any]:
        pairs = features(users, items)
        return np.asarray(model.predict_proba(pairs)[:, 1] if probabilities else model.decision_function(pairs))

    return Adapted(predict, source, probabilities)


def _of_log(log: FeedbackLog, source: str) -> Callable[[Positions, Positions], npt.NDArray[Any]]:
    """Return a function that puts the log's features of a pair's user and item side by side."""
    user_features, item_features = log.user_features, log.item_features
    if user_features is None and item_features is None:
        raise AdapterError(
            f"{source} needs features of pairs, and the log has none: give features=..., a function of (users, items) "
            "by position, or read the log with user_features and item_features"
        )

    def side_by_side(users: Positions, items: Positions) -> npt.NDArray[Any]:
        parts = ((user_features, users), (item_features, items))
        return np.hstack([matrix[at] for matrix, at in parts if matrix is not None])

    return side_by_side
