"""Logistic models of a few coefficients, of weighted rows whose labels may be corrected ones, outside of 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from verirec.data.parts import SHORT, over_parts

Array = npt.NDArray[np.float64]

_STEPS: Final = 50
_NEAR: Final = 1e-6
"""A step so short is the last one, and what is left after it of the order of its square; the loss, a sum over all rows,
would not tell it from none."""
_GLANCE: Final = 1 << 20
"""Rows of a long log from which a first guess is made: what is left to do with all of them is a step or two."""
_SIZES: Final = tuple(0.5**halvings for halvings in range(40))


class _State(NamedTuple):
    """The penalised loss at some coefficients, its downward slope, shape (k,), and its curvature, (k, k)."""

    loss: float
    slope: Array
    bend: Array


class SmallRows(NamedTuple):
    """Some rows: features (n, k), labels and weights, shape (n,) each."""

    features: Array
    labels: Array
    weights: Array


class SmallFit(NamedTuple):
    """Coefficients, shape (k,); the inverse of the penalised information, (k, k); and each row's probability, (n,)."""

    coefficients: Array
    inverse: Array
    liked: Array


def fit_small(
    features: Array,
    labels: Array,
    weights: Array,
    prior: Array,
    *,
    offset: Array | float = 0.0,
    penalty: Array | float = 1.0,
) -> SmallFit:
    r"""Solve :math:`\sum w\,\phi\,(y - \sigma(o + \phi^\top c)) = \lambda (c - c_0)` by Newton's method.

    Parameters
    ----------
    features, labels, weights
        Shapes (n, k), (n,) and (n,).
    prior
        :math:`c_0`, shape (k,): what coefficients are drawn to, so that they are finite.
    offset
        Logits to start from, shape (n,).
    penalty
        :math:`\lambda`, in rows; one for all, or one a coefficient, shape (k,).

    Examples
    --------
    >>> found = fit_small(np.ones((4, 1)), np.array([1.0, 1, 1, 0]), np.ones(4), np.zeros(1), penalty=1e-9)
    >>> found.coefficients.round(3).tolist(), float(found.liked[0].round(3))
    ([1.099], 0.75)
    """
    rows = SmallRows(features, labels, weights)

    def at(coefficients: Array) -> _State:
        return _penalised(_sums(rows, offset, coefficients), coefficients, prior, penalty)

    found, _ = _newton(at, prior.astype(np.float64))
    return SmallFit(found, np.asarray(np.linalg.inv(at(found).bend), np.float64), expit(offset + features @ found))


def fit_small_parts(
    rows: Callable[[slice], SmallRows], length: int, prior: Array, *, settled: bool = False
) -> tuple[Array, Array]:
    """Solve the same for a log of any length, with a penalty of one row: coefficients, and the inverse information.

    Parameters
    ----------
    rows
        Gives a part of the rows, to threads too.
    length
        How many there are.
    prior
        As in `fit_small`.
    settled
        Whether the information is that at the coefficients, as in `fit_small`, for which all rows are visited once
        more; else it is that of a last short step before.

    Examples
    --------
    >>> half = SmallRows(np.ones((2, 1)), np.array([1.0, 0.0]), np.ones(2))
    >>> fit_small_parts(lambda part: half, 2, np.zeros(1))[0].tolist()
    [0.0]
    """

    def first(count: int) -> Callable[[Array], _State]:
        def at(coefficients: Array) -> _State:
            parts = over_parts(lambda part: _sums(rows(part), 0.0, coefficients), count, size=SHORT)
            loss, slope, bend = (sum(one) for one in zip(*parts, strict=True))
            return _penalised(_State(loss, slope, bend), coefficients, prior, 1.0)

        return at

    start = prior.astype(np.float64)
    if length > 2 * _GLANCE:
        start, _ = _newton(first(_GLANCE), start)
    found, bend = _newton(first(length), start)
    if settled:
        bend = first(length)(found).bend
    return found, np.asarray(np.linalg.inv(bend), np.float64)


def _sums(rows: SmallRows, offset: Array | float, coefficients: Array) -> _State:
    """Add up the loss, its slope and its curvature over rows."""
    features, labels, weights = rows
    logits = offset + features @ coefficients
    # Of exponentials and logarithms, those that NumPy works out several at a time: rows may be many.
    small = np.exp(-np.abs(logits))
    liked = np.where(logits < 0, small, 1.0) / (1 + small)
    loss = float(weights @ (np.maximum(logits, 0) + np.log(1 + small) - labels * logits))
    bend = (features * (weights * liked * (1 - liked))[:, None]).T @ features
    return _State(loss, features.T @ (weights * (labels - liked)), bend)


def _penalised(sums: _State, coefficients: Array, prior: Array, penalty: Array | float) -> _State:
    apart = coefficients - prior
    loss = sums.loss + float((penalty * apart) @ apart / 2)
    return _State(loss, sums.slope - penalty * apart, sums.bend + penalty * np.eye(len(prior)))


def _newton(at: Callable[[Array], _State], found: Array) -> tuple[Array, Array]:
    """Go to the smallest loss; return the coefficients, and the curvature there or a last short step before."""
    here = at(found)
    for _ in range(_STEPS):
        step = np.linalg.solve(here.bend, here.slope)
        if np.abs(step).max() < _NEAR:
            return found + step, here.bend
        # Far from the optimum a whole step can lead away from it: half of it, and so on, until the loss falls.
        tried = ((size, at(found + size * step)) for size in _SIZES)
        size, there = next(((size, state) for size, state in tried if state.loss < here.loss), (0.0, here))
        found, here = found + size * step, there
        if size == 0:
            break
    return found, here.bend
