"""The naive estimator: what everybody computes, and what this library exists to correct."""

from __future__ import annotations

import numpy as np

from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimators.terms import Estimate, estimate_from_terms
from verirec.losses import LossLike, get_loss


def naive_estimate(
    predictions: PredictionsLike, log: FeedbackLog, *, loss: LossLike = "log", confidence: float = 0.95
) -> Estimate:
    r"""Average the loss over the log as if it were a clean sample, :math:`|O|^{-1} \sum_O l(f, r)` (paper, Sec. 2.1).

    Its interval holds the chance of the draw only, neither the selection nor the noise: it may be narrow and wrong.

    Parameters
    ----------
    predictions
        In any form that `as_predictions` takes.
    log
        n rows, each with weight 1 (or its own, where the log has weights).

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 0], [1, 0], n_users=2, n_items=1)
    >>> round(naive_estimate(np.full((2, 1), 0.5), log).value, 4)
    0.6931
    """
    checked_log(log)
    values = as_predictions(predictions, log.n_users, log.n_items).at(log.users, log.items)
    # Only their ratios count, and squares of very large or small ones leave the range of floats.
    weights = np.ones(len(log)) if log.weights is None else log.weights / log.weights.max()
    return estimate_from_terms(weights * get_loss(loss).of(values, log.labels), weights, confidence=confidence)
