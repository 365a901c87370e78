r"""Selection by taste, :math:`P(o = 1 | r^*) = \sigma(\beta_u + \gamma_i + \delta r^*)`, at a given delta.

What people like of what they log, :math:`q = P(r^* = 1 | o = 1) = \sigma(x)`, comes from a model of logged labels. By
Bayes' rule

.. math:: logit\,P(o = 1) = \beta_u + \gamma_i + h(x), \qquad h(x) = -\log(1 - q + q e^{-\delta}),

so that the constants are a logistic regression of which pairs were logged, with offset h. h depends on the sum of a
user's and an item's part of x: users of about the same count and the same part have about the same constant. Newton
runs on the table of such classes, at most some thousand a side; each user's and item's own constant follows from the
classes of the other side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from verirec.data.cells import Positions
from verirec.data.parts import counts as counts_of
from verirec.data.parts import parts_of, totals
from verirec.nuisance.label_model import LabelProbabilities
from verirec.nuisance.propensities.two_way import Side, TwoWayFit, fit_classes
from verirec.scratch import each

Array = npt.NDArray[np.float64]

MOST_CLASSES: Final = 1_000
"""Users, or items, of which each is a class of its own."""
_LEVELS: Final = 32
"""Of counts, and of the parts of x, by which larger sides are put into classes."""
_RIDGE: Final = 0.01
"""Penalty on the constants: those who log nothing, or all, have finite ones."""
_ROUNDS: Final = 5
_STEPS: Final = 6


def tilt_offset(logits: Array, delta: float) -> Array:
    r"""Return h, the log-odds that taste adds: :math:`\log(1 + e^x) - \log(1 + e^{x - \delta})`.

    Examples
    --------
    >>> tilt_offset(np.array([-50.0, 0.0, 50.0]), 1.0).round(3).tolist()
    [0.0, 0.38, 1.0]
    """
    return np.asarray(np.logaddexp(0, logits) - np.logaddexp(0, logits - delta))


@dataclass(frozen=True, eq=False)
class TiltedSelection:
    """Constants of users and items at some delta.

    Parameters
    ----------
    user_constants, item_constants
        Beta, with the level in it, and gamma.
    fitted
        The same by class.
    user_logits, item_logits
        The classes' parts of x.
    liked
        Of logged pairs.
    delta
        By how much a like raises the log-odds of being logged.
    """

    user_constants: Array
    item_constants: Array
    fitted: TwoWayFit
    user_logits: Array
    item_logits: Array
    liked: LabelProbabilities
    delta: float

    @classmethod
    def fit(
        cls,
        users: Positions,
        items: Positions,
        shape: tuple[int, int],
        liked: LabelProbabilities,
        delta: float,
        left_out: tuple[Positions, Positions] | None = None,
    ) -> TiltedSelection:
        """Fit the constants to which pairs were logged.

        Parameters
        ----------
        users, items
            Logged pairs.
        shape
            The grid's (n_users, n_items).
        liked, delta
            As above.
        left_out
            Pairs that do not count: they are taken for logged as often as is expected (expectation-maximisation).
        """
        by_side = liked.level + liked.users, liked.items
        counts = [
            counts_of(positions, size).astype(float) for positions, size in zip((users, items), shape, strict=True)
        ]
        codes = [_classes(count, logits) for count, logits in zip(counts, by_side, strict=True)]
        means = [
            totals(code, part, code.max() + 1) / np.bincount(code) for code, part in zip(codes, by_side, strict=True)
        ]
        offset = tilt_offset(means[0][:, None] + means[1], delta)
        expected = [np.zeros(size) for size in shape]
        pairs = None if left_out is None or len(left_out[0]) == 0 else left_out
        for _ in range(1 if pairs is None else _ROUNDS):
            sides = [_side(code, count + more) for code, count, more in zip(codes, counts, expected, strict=True)]
            fitted = fit_classes(*sides, l2=_RIDGE, offset=offset)
            if pairs is not None:
                of_pairs = each(partial(_looked_up, fitted.table, codes), *pairs)
                expected = [totals(of, of_pairs, size) for of, size in zip(pairs, shape, strict=True)]
        own = _own_constants(fitted, counts, expected, by_side, means, delta)
        return cls(own[0], own[1], fitted, means[0], means[1], liked, delta)

    def logits(self, users: Positions, items: Positions) -> Array:
        """Return beta + gamma."""
        return np.asarray(self.user_constants[users] + self.item_constants[items])

    def chances(self, users: Positions, items: Positions) -> Array:
        """Return P(o = 1), over all labels."""
        x = self.liked.cell_logits(users, items)
        return np.asarray(expit(self.logits(users, items) + tilt_offset(x, self.delta)))

    def solve(self, by_user: Array, by_item: Array) -> tuple[Array, Array]:
        """Solve H b = c for the Hessian of the fit, one entry a user and an item."""
        return self.fitted.solve(by_user, by_item)

    def pull(self, solved: tuple[Array, Array]) -> Array:
        r"""Return what delta, a and b of x = a + b z do to an estimate by way of the constants, shape (3,).

        With :math:`b = H^{-1} c`, c being the estimate's slopes by the constants, the constants' change is
        :math:`-H^{-1} \partial_\theta \sum P`: here its product with c, as sums over the table of classes. The slope
        of h is :math:`\sigma(x - \delta)` by delta, and :math:`\sigma(x) - \sigma(x - \delta)` by x; that by b is left
        with x in place of z.
        """
        fitted = self.fitted
        sides = [
            totals(side.code, values, len(side.size)) / side.size
            for side, values in zip((fitted.users, fitted.items), solved, strict=True)
        ]
        mass = fitted.users.size[:, None] * fitted.items.size * fitted.table * (1 - fitted.table)
        mass *= sides[0][:, None] + sides[1]
        x = self.user_logits[:, None] + self.item_logits
        unlogged = expit(x - self.delta)
        by_x = mass * (expit(x) - unlogged)
        return -np.array([(mass * unlogged).sum(), by_x.sum(), (by_x * x).sum()])


def _looked_up(table: Array, codes: list[npt.NDArray[np.int64]], users: Positions, items: Positions) -> Array:
    """Return what a table of classes has for pairs."""
    return np.asarray(table[codes[0][users], codes[1][items]])


def _classes(counts: Array, logits: Array) -> npt.NDArray[np.int64]:
    """Number the classes of a side: each its own or, of a long one, by levels of count and of x."""
    if len(counts) <= MOST_CLASSES:
        return np.arange(len(counts))
    levels = [_level(np.log1p(counts)), _level(logits)]
    return np.asarray(np.unique(levels[0] * _LEVELS + levels[1], return_inverse=True)[1])


def _level(values: Array) -> npt.NDArray[np.int64]:
    low, high = float(values.min()), float(values.max())
    return np.minimum(((values - low) / max(high - low, 1e-12) * _LEVELS).astype(np.int64), _LEVELS - 1)


def _side(code: npt.NDArray[np.int64], counts: Array) -> Side:
    size = np.bincount(code).astype(float)
    return Side(code, size, totals(code, counts, len(size)) / size)


def _own_constants(
    fitted: TwoWayFit, counts: list[Array], expected: list[Array], logits: Any, means: list[Array], delta: float
) -> list[Array]:
    """Solve for each user's and each item's own constant against the classes of the other side."""
    found = []
    classes = (fitted.users, fitted.items)
    constants = (fitted.user_constants, fitted.item_constants)
    for own, other in ((0, 1), (1, 0)):
        start = constants[own][classes[own].code]
        if len(classes[own].size) < len(start):
            wanted = counts[own] + expected[own]
            for part in parts_of(len(start), size=max(1, (1 << 20) // len(means[other]))):
                offset = constants[other] + tilt_offset(logits[own][part, None] + means[other], delta)
                start[part] = _solved(start[part], wanted[part], offset, classes[other].size)
        found.append(start)
    return found


def _solved(start: Array, wanted: Array, offset: Array, sizes: Array) -> Array:
    """Newton's method for each row by itself; rows that nothing was logged of stay where they are."""
    found = start.copy()
    for _ in range(_STEPS):
        p = expit(found[:, None] + offset)
        step = (wanted - p @ sizes) / np.maximum((p * (1 - p)) @ sizes, 1e-9)
        found += np.where(wanted > 0, np.clip(step, -1, 1), 0.0)
    return found
