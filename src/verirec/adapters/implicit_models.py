"""Models of implicit: alternating least squares, Bayesian personalised ranking, logistic factors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.adapters.adapted import Adapted, Extras, source_of
from verirec.adapters.matching import factors_for
from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import Factors
from verirec.exceptions import AdapterError, NotFittedError, ScoreWarning, warn_caller

_LOOKED_AT: Final = 100_000
"""Rows of a log whose scores are looked at."""
_FAR: Final = 1.5
"""From 0 and 1, for what is fitted to these: well-posed fits of alternating least squares overshoot by less."""


def read(model: Any, log: FeedbackLog, extras: Extras) -> Adapted:
    """Take the factors; constants are among them, as implicit has it."""
    source = source_of(model)
    if not hasattr(model, "user_factors"):
        raise AdapterError(f"{source} has no factors: the adapter takes implicit's ALS, BPR and logistic models")
    if model.user_factors is None or model.item_factors is None:
        raise NotFittedError(f"{source} is not fitted: call its fit first")
    factors = _in_memory(model.user_factors), _in_memory(model.item_factors)
    found = factors_for(log, factors, (None, None), extras, source)
    if any(kind.__name__ == "AlternatingLeastSquares" for kind in type(model).__mro__):
        _warn_of_stored_zeros(found, log, source)
    return Adapted(found, source, probabilities=False)


def _warn_of_stored_zeros(factors: Factors, log: FeedbackLog, source: str) -> None:
    """Say that scores are not what least squares on preferences of 0 and 1 gives: a stored 0 has it run away.

    implicit adds up (c - 1) times each stored pair of a confidence c: of 0 that takes curvature away.
    """
    rows = np.linspace(0, len(log) - 1, min(len(log), _LOOKED_AT)).astype(int)
    users, items = factors.user_factors[log.users[rows]], factors.item_factors[log.items[rows]]
    scores = np.einsum("nk,nk->n", users, items)
    low, high = scores.min(initial=0), scores.max(initial=1)
    if low < -_FAR or high > 1 + _FAR:
        warn_caller(
            f"{source} scores the log's pairs from {low:.3g} to {high:.3g}, though it fits preferences of 0 and 1: if "
            "dislikes were stored as zeros in its matrix, call eliminate_zeros() on that before fit",
            ScoreWarning,
        )


def _in_memory(factors: Any) -> npt.NDArray[Any]:
    """Bring factors that are on a graphics processor here."""
    return np.asarray(factors.to_numpy() if hasattr(factors, "to_numpy") else factors)
