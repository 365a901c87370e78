"""Imputed labels of the pairs that nobody rated: a constant, or constants of users and items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import filled, shuffled_rows, totals_of
from verirec.nuisance.solving import conjugate_gradients
from verirec.randomness import RandomState, as_generator
from verirec.scratch import each, those

Array = npt.NDArray[np.float64]

FOLDS: Final = 5
SHRINKAGE: Final = 5.0
"""Rows of average weight that a user's or an item's constant is pulled to zero with."""
_STEPS: Final = 200
_CONVERGED: Final = 1e-9


@dataclass(frozen=True, eq=False)
class Additive:
    """A number for every cell: a constant, plus one of the user and one of the item.

    Of K levels K - 1 numbers, the constants being arrays with a column each in front.
    """

    constant: float | Array
    users: Array
    items: Array

    def at(self, users: npt.NDArray[np.int32], items: npt.NDArray[np.int32]) -> Array:
        """Return the values of single pairs."""
        return np.asarray(np.asarray(self.constant)[..., None] + self.users[..., users] + self.items[..., items])


@dataclass(frozen=True, eq=False)
class ImputedLabels:
    """A label between the classes for every pair.

    Parameters
    ----------
    rows
        Of each observed pair, shape (n,) or (K - 1, n); cross-fitted ones do not know the pair's own label.
    elsewhere
        Of all other pairs.
    fits
        The least-squares problems behind them.
    """

    rows: Array
    elsewhere: Additive
    fits: tuple[_WeightedMean | _TwoWayLeastSquares, ...]

    @property
    def one_for_all(self) -> bool:
        """Whether all pairs have the same label."""
        return isinstance(self.fits[0], _WeightedMean)

    def row_slopes(self, by_user: Array, by_item: Array) -> Callable[[slice], Array]:
        """Return the derivative of a sum over cells by some rows' labels, given the sum's derivative by cell.

        Parameters
        ----------
        by_user, by_item
            The derivatives by imputed label, added up by user and by item.
        """
        slopes = [problem.row_slopes(by_user, by_item) for problem in self.fits]
        return lambda at: np.asarray(sum(of(at) / len(slopes) for of in slopes))


def impute_constant(labels: Array, log: FeedbackLog, weights: Array) -> ImputedLabels:
    r"""Impute one label everywhere, the weighted mean of the corrected ones.

    With weights 1/p and :math:`\tilde r = (r - \rho_{10})/\kappa` that is the denoised inverse-propensity mean.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)
    >>> impute_constant(np.array([1.0, 0.0]), log, np.array([3.0, 1.0])).elsewhere.constant
    0.75
    """
    problem, columns = _WeightedMean(weights), labels.shape[:-1]
    fitted = Additive(problem.fit(labels), np.zeros((*columns, log.n_users)), np.zeros((*columns, log.n_items)))
    of_rows = np.broadcast_to(np.asarray(fitted.constant)[..., None], labels.shape)
    return ImputedLabels(of_rows, fitted, (problem,))


def impute_additive(labels: Array, log: FeedbackLog, weights: Array, random_state: RandomState) -> ImputedLabels:
    r"""Impute :math:`g = c + a_u + b_i`, by weighted ridge regression on the corrected labels, cross-fitted.

    A row's own imputed label comes from the folds without it. A pair that nobody rated gets the mean over folds: its
    fold would be drawn by chance, and this is the mean of what it would get.
    """
    count = min(FOLDS, len(log))
    shuffled = shuffled_rows(len(log), as_generator(random_state))
    fold = each(lambda place: place % count, shuffled, dtype=np.int8)
    fits = tuple(_TwoWayLeastSquares(log, weights, SHRINKAGE, fold, held_out) for held_out in range(count))
    fitted = [problem.fit(labels) for problem in fits]

    def own(at: slice) -> Array:
        found = np.empty((*labels.shape[:-1], len(fold[at])))
        for held_out, one in enumerate(fitted):
            out = fold[at] == held_out
            found[..., out] = one.at(log.users[at][out], log.items[at][out])
        return found

    mean = Additive(
        np.mean([np.asarray(part.constant) for part in fitted], axis=0),
        np.mean([part.users for part in fitted], axis=0),
        np.mean([part.items for part in fitted], axis=0),
    )
    return ImputedLabels(filled(own, len(log), labels.shape[:-1]), mean, fits)


class _WeightedMean:
    """Weighted least squares with a constant alone."""

    def __init__(self, weights: Array) -> None:
        self.weights = _some_weight(weights)
        self.mass = float(self.weights.sum())

    def fit(self, labels: Array) -> float | Array:
        """Fit the constant to labels, or one to each column of them."""
        found = labels @ self.weights / self.mass
        return found if labels.ndim > 1 else float(found)

    def row_slopes(self, by_user: Array, by_item: Array) -> Callable[[slice], Array]:
        """Return the derivative by some rows' labels of a sum with these derivatives by imputed label."""
        scaled = np.asarray(by_user.sum(axis=-1) / self.mass)[..., None]
        return lambda at: self.weights[at] * scaled


class _TwoWayLeastSquares:
    """Weighted least squares with a free constant and penalised ones of users and items, on the rows outside a fold.

    Parameters
    ----------
    log, weights
        All n rows: no part of them is copied.
    shrinkage
        The penalty, in rows of average weight.
    fold, held_out
        Of each row, shape (n,), and the one whose rows are left out.
    """

    def __init__(
        self, log: FeedbackLog, weights: Array, shrinkage: float, fold: npt.NDArray[np.int8], held_out: int
    ) -> None:
        self.log, self._fold, self._held_out = log, fold, held_out
        own = self._inside(weights)
        self._weights = weights if own.sum() > 0 else np.broadcast_to(1.0, len(log))
        self.penalty = shrinkage * (float(own.mean()) if own.sum() > 0 else 1.0)

    def _inside(self, values: Array) -> Array:
        """Return the values of the rows that are fitted to."""
        return those(values, each(np.not_equal, self._fold, self._held_out, dtype=bool))

    def weights(self, at: slice) -> Array:
        """Return the weights of some rows, 0 of those that are left out."""
        return np.asarray(self._weights[at] * (self._fold[at] != self._held_out))

    @cached_property
    def _totals(self) -> tuple[float, Array, Array]:
        total = float(self._inside(self._weights).sum())
        return total, self._by_user(self.weights), self._by_item(self.weights)

    def _by_user(self, values: Callable[[slice], Array]) -> Array:
        return totals_of(self.log.users, values, self.log.n_users)

    def _by_item(self, values: Callable[[slice], Array]) -> Array:
        return totals_of(self.log.items, values, self.log.n_items)

    def fit(self, labels: Array) -> Additive:
        """Fit the constants to labels of all rows, or to each column of them."""
        if labels.ndim > 1:
            return _stacked([self.fit(column) for column in labels])

        def weighted(at: slice) -> Array:
            return self.weights(at) * labels[at]

        total = float(self._inside(each(np.multiply, self._weights, labels)).sum())
        return self._solve(total, self._by_user(weighted), self._by_item(weighted))

    def row_slopes(self, by_user: Array, by_item: Array) -> Callable[[slice], Array]:
        """Return the derivative of a linear function of the constants by some rows' labels: the fit's transpose."""
        if by_user.ndim > 1:
            columns = [self.row_slopes(*column) for column in zip(by_user, by_item, strict=True)]
            return lambda at: np.stack([of(at) for of in columns])
        solved = self._solve(float(by_user.sum()), by_user, by_item)
        return lambda at: self.weights(at) * solved.at(self.log.users[at], self.log.items[at])

    def _solve(self, total: float, by_user: Array, by_item: Array) -> Additive:
        """Solve the normal equations for this right side: conjugate gradients on users and items, the constant free."""
        n_users = self.log.n_users
        mass, user_mass, item_mass = self._totals
        masses = np.concatenate([user_mass, item_mass])
        diagonal = masses + self.penalty
        # With the constant eliminated: each side less what it has in common with the mean of all rows.
        right = np.concatenate([by_user, by_item]) - masses * (total / mass)

        def times(vector: Array) -> Array:
            users, items = vector[:n_users], vector[n_users:]
            of_items = self._by_user(lambda at: self.weights(at) * items[self.log.items[at]])
            of_users = self._by_item(lambda at: self.weights(at) * users[self.log.users[at]])
            product = diagonal * vector + np.concatenate([of_items, of_users])
            return np.asarray(product - masses * (float(masses @ vector) / mass))

        solved = conjugate_gradients(times, right, lambda one: one / diagonal, tolerance=_CONVERGED, steps=_STEPS)
        users, items = solved[:n_users], solved[n_users:]
        return Additive((total - float(masses @ solved)) / mass, users, items)


def _stacked(columns: list[Additive]) -> Additive:
    return Additive(*(np.stack([getattr(one, name) for one in columns]) for name in ("constant", "users", "items")))


def _some_weight(weights: Array) -> Array:
    """Return the weights or, where no row has any, equal ones."""
    return weights if weights.sum() > 0 else np.ones_like(weights)
