r"""A model h of what people say, P(r = 1 | x), on all pairs: debiased, and blind to noise.

Logistic with constants of users and items. In logs as sparse and noisy as these are, factors were measured to add next
to nothing to it out of sample, and to spoil its extremes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from verirec.checks import number_array, real_number, whole_number
from verirec.data.cells import CellValues, Positions
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.parts import totals
from verirec.exceptions import EmptyLogError, ParameterError
from verirec.losses import GroupedNoiseRates, NoiseRates
from verirec.randomness import RandomState, as_generator

Array = npt.NDArray[np.float64]

MOST_ROWS: Final = 1_000_000
"""Rows that a fold's model is fitted to at most: a score needs no more, and may not see its own row in any case."""
_STEEPEST: Final = 350.0
"""Logits of users, and of items, further from 0 would overflow; their probabilities are 0 or 1 in any case."""
_NOISY: Final = 3
"""Times as many sweeps where labels are noisy: expectation-maximisation takes smaller steps."""
_CURVATURE: Final = 0.25
"""The log loss bends at most this much: a parabola with it lies above the loss everywhere."""


class LabelProbabilities(CellValues):
    r""":math:`\sigma(c + a_u + b_i)` of each pair."""

    def __init__(self, level: float, users: Array, items: Array) -> None:
        self.shape = (len(users), len(items))
        self.level, self.users, self.items = level, users, items

    @property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest probability of any pair."""
        low = self.level + float(self.users.min()) + float(self.items.min())
        high = self.level + float(self.users.max()) + float(self.items.max())
        return float(expit(low)), float(expit(high))

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the probabilities."""
        if users.ndim == 2 and users.shape[1] == 1 and items.ndim == 2 and items.shape[0] == 1:
            # A division a cell in place of an exponential.
            odds = self.cell_odds(users, items)
            odds += 1
            return np.asarray(np.reciprocal(odds, out=odds))
        return np.asarray(expit(self.cell_logits(users, items)))

    def cell_odds(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the odds of a 0, exp(-logit): of a block, the outer product of its users' and its items'."""
        return np.asarray(
            np.exp(-np.clip(self.level + self.users[users], -_STEEPEST, _STEEPEST))
            * np.exp(-np.clip(self.items[items], -_STEEPEST, _STEEPEST))
        )

    def cell_logits(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the logits."""
        return np.asarray(self.level + self.users[users] + self.items[items])

    def shifted(self, shift: float) -> LabelProbabilities:
        """Return the probabilities with all logits moved by a number."""
        return LabelProbabilities(self.level + shift, self.users, self.items)


@dataclass(frozen=True)
class LabelModel:
    """How to fit h, by weighted maximum likelihood with a ridge penalty.

    Each sweep majorises the loss by a parabola and solves for users, items and level in turn, so that the penalised
    loss never rises.

    Parameters
    ----------
    penalty
        On each constant, in rows of average weight.
    sweeps
        Over users and items.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 0, 1], n_users=2, n_items=2)
    >>> h = LabelModel(penalty=1).fit(log, np.ones(4))
    >>> h.at([0, 1], [1, 0]).round(2).tolist()
    [0.87, 0.61]
    """

    penalty: float = 10.0
    sweeps: int = 30

    def fit(
        self, log: FeedbackLog, weights: Array, rates: NoiseRates | GroupedNoiseRates | None = None
    ) -> LabelProbabilities:
        r"""Fit to a log's labels, each row with its weight.

        With noise rates the model is one of what people prefer, :math:`P(r^* = 1)`, and what they say follows from it
        as :math:`\rho_{10} + \kappa P(r^* = 1)`: each sweep fits to the labels that are expected to be true, given what
        was said and the model so far (expectation-maximisation, so that the loss still never rises).
        """
        penalty = real_number("penalty", self.penalty, above=0)
        given = _checked_weights(log, weights)
        given = given / given.max()
        scaled = given / given.mean()
        share = float(np.clip(scaled @ log.labels / scaled.sum(), 1e-3, 1 - 1e-3))
        fitted = LabelProbabilities(float(logit(share)), np.zeros(log.n_users), np.zeros(log.n_items))
        expected = _expectation(log, rates)

        def rest() -> Array:
            liked = fitted.cells(log.users, log.items)
            return np.asarray(scaled * (expected(liked) - liked))

        sides = [
            (constants, positions, _CURVATURE * totals(positions, scaled, len(constants)) + penalty)
            for constants, positions in ((fitted.users, log.users), (fitted.items, log.items))
        ]
        for _ in range(whole_number("sweeps", self.sweeps) * (1 if rates is None else _NOISY)):
            for constants, positions, curvature in sides:
                constants += (totals(positions, rest(), len(constants)) - penalty * constants) / curvature
            fitted.level += float(rest().sum()) / (_CURVATURE * float(scaled.sum()))
        return fitted

    def cross_fit(
        self,
        log: FeedbackLog,
        weights: Array,
        folds: int,
        random_state: RandomState,
        rates: NoiseRates | GroupedNoiseRates | None = None,
    ) -> Array:
        """Return h of each row from a model that has not seen the row's fold, shape (n,)."""
        if len(checked_log(log)) < 2:
            raise EmptyLogError(f"cross-fitting needs a log of at least 2 rows; it has {len(log)}")
        count = min(whole_number("folds", folds, min=2), len(log))
        random = as_generator(random_state)
        fold = random.permutation(len(log)) % count
        given = _checked_weights(log, weights)
        values = np.empty(len(log))
        for held_out in range(count):
            out = fold == held_out
            rows = np.flatnonzero(~out)
            if len(rows) > MOST_ROWS:
                rows = np.sort(random.choice(rows, MOST_ROWS, replace=False))
            values[out] = self.fit(log.select(rows), given[rows], rates).at(log.users[out], log.items[out])
        return values


def _expectation(log: FeedbackLog, rates: NoiseRates | GroupedNoiseRates | None) -> Callable[[Array], Array]:
    """Return what gives each row's expected true label, from the probability that it is liked."""
    if rates is None:
        labels = log.labels.astype(np.float64)
        return lambda liked: labels
    rho01, rho10 = rates.of_pairs(log.users, log.items)
    if_liked = np.where(log.labels == 1, 1 - rho01, rho01)
    if_not = np.where(log.labels == 1, rho10, 1 - rho10)
    return lambda liked: if_liked * liked / np.maximum(if_liked * liked + if_not * (1 - liked), 1e-300)


def _checked_weights(log: FeedbackLog, weights: npt.ArrayLike) -> Array:
    given = number_array("weights", weights, ndim=1).astype(np.float64)
    usable = np.isfinite(given).all() and (given >= 0).all() and given.any()
    if len(checked_log(log)) == 0 or given.shape != (len(log),) or not usable:
        raise ParameterError(
            f"a model of labels needs rows and a finite weight of at least 0 for each; got {len(log):,} rows and "
            f"weights of shape {given.shape}"
        )
    return given


def by_score(scores: Array, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Sort rows by score; ties, common where users and items have few rows, are broken by chance, not by row order."""
    return np.lexsort((random.random(len(scores)), scores))
