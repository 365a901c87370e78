"""What every metric asks of its labels and scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.checks import number_array
from verirec.data.parts import parts_of
from verirec.exceptions import LabelError, PredictionError

Array = npt.NDArray[np.float64]


def checked_labels(labels: npt.ArrayLike) -> npt.NDArray[np.int8]:
    """Accept a flat array of 0/1 labels, not empty."""
    truth = number_array("labels", labels, ndim=1, error=LabelError)
    if truth.size == 0:
        raise LabelError("labels must not be empty")
    wrong = sum(int(((truth[at] != 0) & (truth[at] != 1)).sum()) for at in parts_of(len(truth)))
    if wrong:
        raise LabelError(f"labels must be 0/1; {wrong:,} of {truth.size:,} are not")
    return truth.astype(np.int8, copy=False)


def checked_scores(scores: npt.ArrayLike, name: str = "scores") -> Array:
    """Accept a flat array of finite scores."""
    values = number_array(name, scores, ndim=1, error=PredictionError)
    wrong = sum(int((~np.isfinite(values[at])).sum()) for at in parts_of(len(values)))
    if wrong:
        raise PredictionError(f"{name} must be finite; {wrong:,} of {values.size:,} are NaN or infinite")
    return values.astype(np.float64, copy=False)


def same_length(labels: npt.NDArray[Any], scores: npt.NDArray[Any]) -> None:
    """Raise `PredictionError` unless there is one score for each label."""
    if labels.shape != scores.shape:
        raise PredictionError(f"there must be one score a label, shape {labels.shape}; got {scores.shape}")
