"""Models of implicit: alternating least squares, Bayesian personalised ranking, logistic factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.adapters.adapted import Adapted, Extras, source_of
from verirec.adapters.matching import factors_for
from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import AdapterError, NotFittedError


def read(model: Any, log: FeedbackLog, extras: Extras) -> Adapted:
    """Take the factors; constants are among them, as implicit has it."""
    source = source_of(model)
    if not hasattr(model, "user_factors"):
        raise AdapterError(f"{source} has no factors: the adapter takes implicit's ALS, BPR and logistic models")
    if model.user_factors is None or model.item_factors is None:
        raise NotFittedError(f"{source} is not fitted: call its fit first")
    factors = _in_memory(model.user_factors), _in_memory(model.item_factors)
    return Adapted(factors_for(log, factors, (None, None), extras, source), source, probabilities=False)


def _in_memory(factors: Any) -> npt.NDArray[Any]:
    """Bring factors that are on a graphics processor here."""
    return np.asarray(factors.to_numpy() if hasattr(factors, "to_numpy") else factors)
