"""One user's parameters from a few rows, given the items': by the loss of each head."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.inputs import KnownNoise
from verirec.losses import TransitionMatrix
from verirec.losses.correction import correct_labels
from verirec.nuisance.small_logistic import fit_small
from verirec.training.heads import Head, OrdinalHead, StarsHead

Array = npt.NDArray[np.float64]
UserFit = Callable[[slice, Array, Array, Array, Array], Array]
"""From which rows, what their parameters are multiplied by (n, k), weights (n,), the scores without them (n,) and
penalties (k,) to the parameters (k,)."""

_STEPS: Final = 100
_TOLERANCE: Final = 1e-9
_LEAST: Final = 1e-12
_SIZES: Final = tuple(0.5**halvings for halvings in range(30))


def user_fit(head: Head, ratings: FeedbackLog, items: npt.NDArray[Any], noise: KnownNoise | None) -> UserFit:
    """Return what fits a user's parameters to some of these rows.

    Parameters
    ----------
    head
        Of the model.
    ratings, items
        The rows, and the model's positions of their items.
    noise
        Noise rates, or a matrix of levels; `None` for none.
    """
    matrix = noise if isinstance(noise, TransitionMatrix) else None
    if isinstance(head, StarsHead):
        values = np.asarray(head.levels) if matrix is None else matrix.corrected(np.asarray(head.levels))
        stars = ((values - head.centre) / head.spread)[ratings.labels]
        return lambda rows, inputs, weights, offset, penalty: _ridge(inputs, stars[rows] - offset, weights, penalty)
    if isinstance(head, OrdinalHead):
        chances = np.eye(len(head.levels)) if matrix is None else matrix.matrix
        logged = chances[:, ratings.labels]
        return lambda rows, inputs, weights, offset, penalty: _ordinal(
            head, inputs, logged[:, rows], weights, offset, penalty
        )
    assert not isinstance(noise, TransitionMatrix)  # noqa: S101 -- binary labels have rates
    labels = correct_labels(ratings.labels, noise, ratings.users, items).values
    return lambda rows, inputs, weights, offset, penalty: (
        fit_small(inputs, labels[rows], weights, np.zeros(inputs.shape[1]), offset=offset, penalty=penalty).coefficients
    )


def _ridge(inputs: Array, targets: Array, weights: Array, penalty: Array) -> Array:
    """Return least squares under penalties."""
    weighted = inputs * weights[:, None]
    return np.asarray(np.linalg.solve(weighted.T @ inputs + np.diag(penalty), weighted.T @ targets))


def _ordinal(head: OrdinalHead, inputs: Array, logged: Array, weights: Array, offset: Array, penalty: Array) -> Array:
    r"""Minimise :math:`-\sum w \log (T^\top f)_r` and penalties by Fisher scoring, with steps that lower it.

    Parameters
    ----------
    logged
        T of each level and the one that was logged, shape (K, n).
    """
    found = np.zeros(inputs.shape[1])

    def chances(coefficients: Array) -> tuple[Array, Array]:
        """Return the chance of each row's logged level, and how it changes with the score."""
        scores = offset + inputs @ coefficients
        reached = head.reached(scores)
        slopes = -np.diff(reached * (1 - reached), axis=0, prepend=0.0, append=0.0)
        return np.maximum((logged * head.chances(scores)).sum(0), _LEAST), (logged * slopes).sum(0)

    def loss(coefficients: Array) -> float:
        return float(-weights @ np.log(chances(coefficients)[0]) + (penalty * coefficients) @ coefficients / 2)

    best = loss(found)
    for _ in range(_STEPS):
        chance, change = chances(found)
        score = change / chance
        slope = inputs.T @ (weights * score) - penalty * found
        bend = (inputs * (weights * np.maximum(score**2, 0.05))[:, None]).T @ inputs + np.diag(penalty)
        step = np.linalg.solve(bend, slope)
        size = next((size for size in _SIZES if loss(found + size * step) < best), 0.0)
        if size == 0 or np.abs(step).max() < _TOLERANCE:
            break
        found = found + size * step
        best = loss(found)
    return found
