"""Classifiers of scikit-learn, or of its kind, on features of pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.adapters.adapted import Adapted, Extras, source_of
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import AdapterError, AlignmentWarning, NotFittedError, warn_caller
from verirec.formatting import names_in_words

PairFeatures = Callable[[Positions, Positions], Any]


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
    wanted = getattr(model, "feature_names_in_", None)
    features = _named(extras.features or _of_log(log, wanted, source), wanted)

    def predict(users: Positions, items: Positions) -> npt.NDArray[Any]:
        if np.size(users) == 0:  # Which scikit-learn refuses.
            return np.empty(0)
        pairs = features(users, items)
        return np.asarray(model.predict_proba(pairs)[:, 1] if probabilities else model.decision_function(pairs))

    return Adapted(predict, source, probabilities)


def _of_log(log: FeedbackLog, wanted: Sequence[str] | None, source: str) -> PairFeatures:
    """Return a function that puts the log's features of a pair's user and item side by side, in the model's order."""
    sides = [
        (matrix, names, side)
        for side, (matrix, names) in enumerate(
            ((log.user_features, log.user_feature_names), (log.item_features, log.item_feature_names))
        )
        if matrix is not None
    ]
    if not sides:
        raise AdapterError(
            f"{source} needs features of pairs, and the log has none: give features=..., a function of (users, items) "
            "by position, or read the log with user_features and item_features"
        )
    order = _order(wanted, [names for _, names, _ in sides], source)

    def side_by_side(users: Positions, items: Positions) -> npt.NDArray[Any]:
        pairs = np.hstack([matrix[(users, items)[side]] for matrix, _, side in sides])
        return pairs if order is None else pairs[:, order]

    return side_by_side


def _order(wanted: Sequence[str] | None, given: list[tuple[str, ...] | None], source: str) -> list[int] | None:
    """Return where each feature that a model knows by name is among the log's; `None` where one of both has no names.

    Examples
    --------
    >>> _order(["price", "age"], [("age", "sex"), ("price",)], "a classifier")
    [2, 0]
    """
    if wanted is None:
        return None
    if None in given:
        warn_caller(
            f"{source} knows its features by name and the log's have none: they are taken in the model's order, "
            f"{names_in_words([*wanted])}",
            AlignmentWarning,
        )
        return None
    there = [name for names in given if names is not None for name in names]
    unclear = [name for name in wanted if there.count(name) != 1]
    if unclear:
        which = "has no" if unclear[0] not in there else "has more than one"
        raise AdapterError(
            f"{source} was fitted on the features {names_in_words([*wanted])}; the log {which} {unclear[0]!r} among "
            f"its {names_in_words(there)}: name them alike, or give features=..., a function of (users, items)"
        )
    return [there.index(name) for name in wanted]


def _named(features: PairFeatures, wanted: Sequence[str] | None) -> PairFeatures:
    """Have features that come as an array bear the names that the model was fitted with, in their order."""
    if wanted is None:
        return features
    import pandas as pd  # Takes long to import, and only classifiers that were fitted on frames need it.

    def named(users: Positions, items: Positions) -> Any:
        pairs = features(users, items)
        if not isinstance(pairs, np.ndarray) or pairs.shape[1:] != (len(wanted),):
            return pairs
        return pd.DataFrame(pairs, columns=[*wanted])

    return named
