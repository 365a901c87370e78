r"""A model h of what people say, P(r = 1 | x), on all pairs: debiased, and blind to noise.

Logistic with constants of users and items and, if wanted, factors, fitted by inverse-propensity weighted maximum
likelihood with a ridge penalty. Each sweep majorises the loss by a parabola (its curvature is at most 1/4) and solves
for one side at a time, so that the penalised loss never rises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from verirec.checks import real_number, whole_number
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import CellValues, FactorCells, Positions, parts_of, totals
from verirec.randomness import RandomState, as_generator

Array = npt.NDArray[np.float64]

_CURVATURE: Final = 0.25
_START_SPREAD: Final = 0.1
_PART: Final = 1 << 18
"""Rows whose products of factors are held at a time."""


class LabelProbabilities(CellValues):
    """P(r = 1) of each pair."""

    def __init__(self, logits: FactorCells) -> None:
        self.shape = logits.shape
        self.logits = logits

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Give the probabilities."""
        return np.asarray(expit(self.logits.cells(users, items)))


@dataclass(frozen=True)
class LabelModel:
    """How to fit h.

    Parameters
    ----------
    rank
        Number of factors; 0 leaves the constants alone.
    penalty
        Ridge penalty on each coefficient, in rows of average weight.
    sweeps
        Over users and items.
    random_state
        Of the factors' start.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 0, 1], n_users=2, n_items=2)
    >>> h = LabelModel().fit(log, np.ones(4))
    >>> h.at([0, 1], [1, 0]).round(2).tolist()
    [0.83, 0.65]
    """

    rank: int = 0
    penalty: float = 3.0
    sweeps: int = 30
    random_state: RandomState = 0

    def fit(self, log: FeedbackLog, weights: Array) -> LabelProbabilities:
        """Fit to a log's labels, each row with its weight."""
        rank, sweeps = whole_number("rank", self.rank, least=0), whole_number("sweeps", self.sweeps)
        penalty = real_number("penalty", self.penalty, above=0)
        random = as_generator(self.random_state)
        scaled = weights / weights.mean()
        share = float(np.clip(scaled @ log.labels / scaled.sum(), 1e-3, 1 - 1e-3))
        users = _Side(log.users, random.normal(0, _START_SPREAD, (log.n_users, rank)), np.zeros(log.n_users))
        items = _Side(log.items, random.normal(0, _START_SPREAD, (log.n_items, rank)), np.zeros(log.n_items))
        level = float(logit(share))
        for _ in range(sweeps):
            for own, other in ((users, items), (items, users)):
                own.improve(other, level, log.labels, scaled, penalty)
            rest = scaled * (log.labels - expit(level + users.with_(items)))
            level += float(rest.sum()) / (_CURVATURE * float(scaled.sum()))
        return LabelProbabilities(FactorCells(users.factors, items.factors, users.constants, items.constants, level))

    def cross_fit(self, log: FeedbackLog, weights: Array, folds: int, random_state: RandomState) -> Array:
        """Give h of each row from a model that has not seen the row's fold, shape (n,)."""
        count = min(whole_number("folds", folds, least=2), len(log))
        fold = as_generator(random_state).permutation(len(log)) % count
        values = np.empty(len(log))
        for held_out in range(count):
            out = fold == held_out
            rows = np.flatnonzero(~out)
            fitted = self.fit(log.select(rows), weights[rows])
            values[out] = fitted.at(log.users[out], log.items[out])
        return values


@dataclass(eq=False)
class _Side:
    """The users or the items: which one each row has, their factors and their constants."""

    of_row: npt.NDArray[np.int32]
    factors: Array
    constants: Array

    def with_(self, other: _Side) -> Array:
        """Give the rows' linear predictor, without the level."""
        constants = self.constants[self.of_row] + other.constants[other.of_row]
        if self.factors.shape[1] == 0:
            return np.asarray(constants)
        products = np.empty(len(self.of_row))
        for part in parts_of(len(self.of_row), size=_PART):
            own, others = self.factors[self.of_row[part]], other.factors[other.of_row[part]]
            products[part] = np.einsum("nk,nk->n", own, others)
        return np.asarray(constants + products)

    def improve(self, other: _Side, level: float, labels: Array, weights: Array, penalty: float) -> None:
        """Minimise the majorising parabola over this side's coefficients."""
        size, rank = self.factors.shape
        rest = weights * (labels - expit(level + self.with_(other)))
        curvature = _CURVATURE * weights
        if rank == 0:
            gradient = totals(self.of_row, rest, size) - penalty * self.constants
            self.constants += gradient / (totals(self.of_row, curvature, size) + penalty)
            return
        # One small system a user (or item): its factors and its constant together.
        matrices = np.zeros((size, rank + 1, rank + 1))
        gradients = np.zeros((size, rank + 1))
        for part in parts_of(len(rest), size=_PART):
            rows = np.concatenate([other.factors[other.of_row[part]], np.ones((part.stop - part.start, 1))], axis=1)
            for one in range(rank + 1):
                gradients[:, one] += totals(self.of_row[part], rest[part] * rows[:, one], size)
                for two in range(one + 1):
                    matrices[:, one, two] += totals(
                        self.of_row[part], curvature[part] * rows[:, one] * rows[:, two], size
                    )
        for one in range(rank + 1):
            matrices[:, one, one] += penalty
            matrices[:, :one, one] = 0.0
            matrices[:, :one, one] += matrices[:, one, :one]
        coefficients = np.concatenate([self.factors, self.constants[:, None]], axis=1)
        coefficients += np.linalg.solve(matrices, (gradients - penalty * coefficients)[..., None])[..., 0]
        self.factors, self.constants = coefficients[:, :rank], coefficients[:, rank]
