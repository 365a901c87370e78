"""Metrics of probabilities: proper scores and calibration."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from verirec.checks import whole_number
from verirec.data.parts import parts_of
from verirec.exceptions import PredictionError
from verirec.losses import get_loss
from verirec.metrics.inputs import Array, checked_labels, checked_scores, same_length
from verirec.scratch import each


def log_loss(labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> float:
    r"""Return the mean of :math:`-y \log f - (1-y) \log(1-f)`; f is kept a machine epsilon away from 0 and 1.

    Examples
    --------
    >>> round(log_loss([1, 0], [0.8, 0.4]), 4)
    0.367
    """
    truth, f = _checked(labels, probabilities)
    epsilon, loss = np.finfo(np.float64).eps, get_loss("log")
    return float(each(lambda one, label: loss.of(np.clip(one, epsilon, 1 - epsilon), label), f, truth).mean())


def brier_score(labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> float:
    """Return the mean of (f - y)^2.

    Examples
    --------
    >>> round(brier_score([1, 0], [0.8, 0.4]), 4)
    0.1
    """
    truth, f = _checked(labels, probabilities)
    return float(each(get_loss("squared").of, f, truth).mean())


def calibration_error(labels: npt.ArrayLike, probabilities: npt.ArrayLike, *, bins: int = 10) -> float:
    r"""Return the expected calibration error, :math:`\sum_b (n_b/n)\,|\bar f_b - \bar y_b|` over bins of equal width.

    Examples
    --------
    >>> round(calibration_error([1, 0, 1, 1], [0.7, 0.7, 0.7, 0.7]), 4)
    0.05
    """
    truth, f = _checked(labels, probabilities)
    count = whole_number("bins", bins, max=1_000_000)
    gap = np.zeros(count)
    for at in parts_of(len(f)):
        of_pair = np.minimum((f[at] * count).astype(np.int64), count - 1)
        gap += np.bincount(of_pair, weights=f[at] - truth[at], minlength=count)
    return float(np.abs(gap).sum() / len(f))


def are_probabilities(scores: Array) -> bool:
    """Tell whether all scores are within 0 and 1."""
    return bool(scores.min(initial=0) >= 0 and scores.max(initial=0) <= 1)


def _checked(labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> tuple[npt.NDArray[np.int8], Array]:
    truth, f = checked_labels(labels), checked_scores(probabilities)
    same_length(truth, f)
    if not are_probabilities(f):
        outside = int(((f < 0) | (f > 1)).sum())
        raise PredictionError(f"probabilities must be within 0 and 1; {outside:,} of {f.size:,} are not")
    return truth, f
