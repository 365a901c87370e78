"""Curves from scores to probabilities: Platt's, with and without a prior, and an isotonic one."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Final, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

Array = npt.NDArray[np.float64]

SLOPE_PRECISION: Final = 4.0
"""Of the normal prior around 1 that a survey's slope has: a standard deviation of 1/2."""
LEVEL_PRECISION: Final = 0.25
"""Of the one around the model's own mean logit that its level has: a standard deviation of 2."""
_STEPS, _HALVINGS = 100, 40


class Curve(Protocol):
    """A function from scores to probabilities strictly between 0 and 1."""

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities, in the shape of the scores."""
        ...

    def logits(self, scores: Array) -> Array | None:
        """Return their logits, where these are what is worked out; else `None`."""
        ...


@dataclass(frozen=True)
class PlattCurve:
    r""":math:`\sigma(b + a (s - m) / t)`: m and t centre and scale the scores."""

    slope: float
    level: float
    centre: float = 0.0
    scale: float = 1.0

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities."""
        return np.asarray(expit(self.logits(scores)))

    def logits(self, scores: Array) -> Array:
        """Return the logits."""
        return np.asarray(self.level + self.slope * ((scores - self.centre) / self.scale))

    @classmethod
    def read(cls, held: dict[str, float]) -> Self:
        """Read back its numbers by name, as `asdict` gives them; what is no curve is a `ValueError`."""
        found = cls(**{name: float(value) for name, value in held.items()})
        if not np.isfinite(astuple(found)).all() or found.scale <= 0:
            raise ValueError("the calibration is no curve")
        return found


@dataclass(frozen=True, eq=False)
class IsotonicCurve:
    """Straight lines between the ends of steps that never fall; flat beyond the last ones."""

    scores: Array
    values: Array

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities."""
        return np.asarray(np.interp(scores, self.scores, self.values))

    def logits(self, scores: Array) -> None:
        """Return nothing: these are made without logits."""
        return


class LabelledScores(NamedTuple):
    """Finite scores, labels (corrected ones may be outside of 0 and 1) and weights of mean 1, shape (n,) each."""

    scores: Array
    labels: Array
    weights: Array


def platt_curve(rows: LabelledScores) -> PlattCurve:
    """Fit Platt's curve by maximum likelihood, labels drawn towards each other as he does."""
    # Divided by the largest first: the square of a large score is no float.
    largest = float(np.abs(rows.scores).max()) or 1.0
    mean, spread = float((rows.scores / largest).mean()), float((rows.scores / largest).std())
    centre, scale = mean * largest, (spread if spread > np.finfo(float).eps else 1.0) * largest
    liked = float(rows.weights @ rows.labels)
    disliked = float(rows.weights.sum()) - liked
    targets = np.where(rows.labels == 1, (liked + 1) / (liked + 2), 1 / (disliked + 2))
    start = np.array([0.0, logit(rows.weights @ targets / rows.weights.sum())])
    slope, level = _logistic((rows.scores - centre) / scale, targets, rows.weights, start, np.zeros(2))
    return PlattCurve(slope, level, centre, scale)


def levelled_curve(rows: LabelledScores, *, both_classes: bool = True) -> PlattCurve:
    r"""Put the level and the slope of a model's logits z right.

    :math:`\sigma(b + a (z - m))` with m the mean logit of these rows minimises the log loss plus
    :math:`\tfrac12 [4 (a - 1)^2 + \tfrac14 (b - m)^2]`: a prior that takes the model at its word, and which a few
    hundred rows outweigh. Weighted rows count as many as they are worth, :math:`(\sum w)^2 / \sum w^2`. The order of
    the logits is the model's: where the rows would turn it round, the slope is 0.

    Parameters
    ----------
    rows
        Logits and labels.
    both_classes
        Whether there are both among the labels; one alone tells nothing of the slope, which stays at 1.

    Examples
    --------
    >>> z = np.linspace(-1.0, 1.0, 400)
    >>> curve = levelled_curve(LabelledScores(z, expit(2 * z - 3), np.ones(400)))
    >>> round(curve.slope, 1), round(float(curve.logits(np.zeros(1))[0]), 1)
    (1.6, -2.8)
    """
    weights = rows.weights * rows.weights.sum() / (rows.weights @ rows.weights)
    centre = float(weights @ rows.scores / weights.sum())
    around, penalty = np.array([1.0, centre]), np.array([SLOPE_PRECISION, LEVEL_PRECISION])
    apart = rows.scores - centre
    slope, level = 1.0, centre
    if both_classes:
        slope, level = _logistic(apart, rows.labels, weights, around, penalty)
    if not both_classes or slope < 0:
        slope = 1.0 if not both_classes else 0.0
        level = _logistic(np.zeros(len(apart)), rows.labels, weights, around, penalty, offset=slope * apart)[1]
    return PlattCurve(slope, level, centre)


def _logistic(
    scores: Array, targets: Array, weights: Array, start: Array, penalty: Array, offset: Array | float = 0.0
) -> tuple[float, float]:
    """Fit slope and level by Newton's method, each step halved until the loss falls; penalties are around the start."""

    def loss(at: Array) -> float:
        logits = offset + at[0] * scores + at[1]
        fit = float(weights @ (np.logaddexp(0, logits) - targets * logits))
        return fit + float(penalty @ (at - start) ** 2) / 2

    found = start
    lowest = loss(found)
    for _ in range(_STEPS):
        f = expit(offset + found[0] * scores + found[1])
        rest, curvature = weights * (f - targets), weights * f * (1 - f)
        gradient = np.array([rest @ scores, rest.sum()]) + penalty * (found - start)
        mixed = curvature @ scores
        hessian = np.array([[curvature @ scores**2, mixed], [mixed, curvature.sum()]]) + np.diag(penalty)
        # Where all scores are one and the same, there is no slope to tell.
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0]
        sizes = 0.5 ** np.arange(_HALVINGS)
        better = next((found - size * step for size in sizes if loss(found - size * step) < lowest), None)
        if better is None:
            break
        found, lowest = better, loss(better)
    return float(found[0]), float(found[1])


def isotonic_curve(rows: LabelledScores) -> IsotonicCurve:
    """Fit the curve that never falls and is nearest to the labels, kept off 0 and 1."""
    from scipy.optimize import isotonic_regression  # Takes long to import, and is not always needed.

    distinct, place = np.unique(rows.scores, return_inverse=True)
    weights = np.bincount(place, weights=rows.weights)
    means = np.bincount(place, weights=rows.weights * rows.labels) / weights
    fitted = isotonic_regression(means, weights=weights)
    ends = np.unique(np.concatenate([fitted.blocks[:-1], fitted.blocks[1:] - 1]))
    least = 1 / (len(rows.labels) + 2)
    return IsotonicCurve(distinct[ends], np.clip(fitted.x[ends], least, 1 - least))
