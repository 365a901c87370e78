"""Logistic regression over the whole grid with user-item features: Newton steps by conjugate gradients, in blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from verirec.data.cells import FactorCells, Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import Block, Grid
from verirec.data.parts import totals
from verirec.exceptions import PropensityError
from verirec.nuisance.propensities.two_way import ENOUGH, fit_two_way
from verirec.nuisance.solving import conjugate_gradients

Array = npt.NDArray[np.float64]

MOST_ITERATIONS: Final = 50
TOLERANCE: Final = 1e-9
_BLOCK: Final = 1 << 18
_FURTHEST: Final = 12.0
"""Starting constants stay within this: an item that nobody rated would start at minus infinity."""


@dataclass(frozen=True, eq=False)
class FeatureFit:
    r"""Coefficients of :math:`x_u^\top W x_i + \beta_u + \gamma_i`, and the features they belong to.

    Parameters
    ----------
    user_features, item_features
        Standardised, shapes (n_users, a) and (n_items, b).
    coefficients
        W, beta and gamma in one flat array.
    l2
        The penalty that W was fitted with; the constants are free, so that users' and items' counts are met exactly.
    gradient
        Largest absolute derivative of the penalised log-likelihood, divided by the largest count.
    """

    user_features: Array
    item_features: Array
    coefficients: Array
    l2: float
    gradient: float = np.inf

    @property
    def shape(self) -> tuple[int, int]:
        """The grid's."""
        return len(self.user_features), len(self.item_features)

    @property
    def grid(self) -> Grid:
        """The grid, in blocks whose few arrays stay near the processor."""
        return Grid(self.shape, _BLOCK)

    def logits_of(self, coefficients: Array) -> FactorCells:
        """Return the linear predictor of any coefficients."""
        n_users, n_items = self.shape
        products, user_constants, item_constants = np.split(coefficients, [-n_users - n_items, -n_items])
        matrix = products.reshape(self.user_features.shape[1], self.item_features.shape[1])
        return FactorCells(self.user_features @ matrix, self.item_features, user_constants, item_constants)

    @cached_property
    def logits(self) -> FactorCells:
        """The fitted linear predictor."""
        return self.logits_of(self.coefficients)

    def adjoint(self, users: Positions, items: Positions, values: Array) -> Array:
        """Add values of pairs up by coefficient: the transpose of the linear predictor."""
        n_users, n_items = self.shape
        by_user = np.zeros((n_users, self.item_features.shape[1]))
        for column in range(self.item_features.shape[1]):
            by_user[:, column] = totals(users, values * self.item_features[items, column], n_users)
        return np.concatenate(
            [(self.user_features.T @ by_user).ravel(), totals(users, values, n_users), totals(items, values, n_items)]
        )

    def over_grid(self, values: Callable[[Array, Positions, Positions], Array]) -> Array:
        """Add a function of the probabilities up by coefficient, over the whole grid, block by block."""
        n_users, n_items = self.shape
        products = np.zeros((self.user_features.shape[1], self.item_features.shape[1]))
        by_user, by_item = np.zeros(n_users), np.zeros(n_items)

        def visit(block: Block) -> tuple[Array, Array, Array]:
            users, items = block
            part = values(expit(self.logits.cells(users[:, None], items[None, :])), users, items)
            product = self.user_features[users].T @ (part @ self.item_features[items])
            return product, part.sum(axis=1), part.sum(axis=0)

        for (users, items), (product, of_users, of_items) in self.grid.map_blocks(visit):
            products += product
            by_user[users] += of_users
            by_item[items] += of_items
        return np.concatenate([products.ravel(), by_user, by_item])

    @cached_property
    def penalties(self) -> Array:
        """The penalty of each coefficient."""
        n_users, n_items = self.shape
        penalties = np.full(len(self.coefficients), self.l2)
        penalties[-n_users - n_items :] = 0.0
        return penalties

    @cached_property
    def information(self) -> Array:
        """The diagonal of the Hessian."""
        squares = FeatureFit(self.user_features**2, self.item_features**2, self.coefficients, self.l2)
        # Same probabilities, squared features: what the diagonal adds up.
        squares.__dict__["logits"] = self.logits
        return np.maximum(squares.over_grid(lambda p, users, items: p * (1 - p)) + self.penalties, 1e-12)

    @cached_property
    def leverages(self) -> FactorCells:
        """Each pair's leverage, by the diagonal of the Hessian."""
        inverse = FeatureFit(self.user_features**2, self.item_features**2, 1 / self.information, self.l2)
        return inverse.logits

    def solve(self, right_side: Array, *, tolerance: float = 1e-6) -> Array:
        """Solve with the Hessian, by conjugate gradients."""

        def times_hessian(vector: Array) -> Array:
            direction = self.logits_of(vector)
            product = self.over_grid(
                lambda p, users, items: p * (1 - p) * direction.cells(users[:, None], items[None, :])
            )
            return np.asarray(product + self.penalties * vector)

        return conjugate_gradients(times_hessian, right_side, self.information, tolerance=tolerance, steps=1_000)


def fit_with_features(log: FeedbackLog, *, l2: float, tolerance: float = TOLERANCE) -> FeatureFit:
    """Maximise the penalised log-likelihood of being observed over all pairs, from the two-way fit on.

    Parameters
    ----------
    log
        With features of both sides.
    l2
        Penalty of W.
    tolerance
        A gradient this small, relative to its scale, ends it.
    """
    if not Grid(log.shape).fits:
        raise PropensityError(
            f"a logistic propensity with features visits all {log.n_cells:,} pairs, which are too many; leave the "
            "features out: features=False"
        )
    user_features, item_features = _standardised(log.user_features), _standardised(log.item_features)
    counts = np.bincount(log.users, minlength=log.n_users), np.bincount(log.items, minlength=log.n_items)
    start = fit_two_way(*counts, l2=max(l2, 1e-3))
    coefficients = np.concatenate(
        [
            np.zeros(user_features.shape[1] * item_features.shape[1]),
            np.clip(start.user_constants[start.users.code], -_FURTHEST, _FURTHEST),
            np.clip(start.item_constants[start.items.code], -_FURTHEST, _FURTHEST),
        ]
    )
    observed = FeatureFit(user_features, item_features, coefficients, l2).adjoint(
        log.users, log.items, np.ones(len(log))
    )
    scale = float(max(counts[0].max(), counts[1].max()))
    fitted = FeatureFit(user_features, item_features, coefficients, l2)
    value = _objective(fitted, observed)
    for _ in range(MOST_ITERATIONS):
        gradient = observed - fitted.over_grid(lambda p, users, items: p) - fitted.penalties * fitted.coefficients
        largest = float(np.abs(gradient).max()) / scale
        if largest < tolerance:
            return FeatureFit(user_features, item_features, fitted.coefficients, l2, largest)
        step = fitted.solve(gradient, tolerance=min(0.1, largest**0.5))
        length = 1.0
        while True:
            candidate = FeatureFit(user_features, item_features, fitted.coefficients + length * step, l2)
            new_value = _objective(candidate, observed)
            if new_value >= value - 1e-12 * abs(value) or length < 1e-10:
                break
            length /= 2
        fitted, value = candidate, new_value
    if largest > ENOUGH:
        raise PropensityError(
            f"the logistic propensity with features did not converge in {MOST_ITERATIONS} steps (gradient "
            f"{largest:.1e}): some users, items or features are always or never observed; give l2 a value such as 0.1"
        )
    return FeatureFit(user_features, item_features, fitted.coefficients, l2, largest)


def _objective(fitted: FeatureFit, observed: Array) -> float:
    normaliser = fitted.grid.total(lambda users, items: np.logaddexp(0, fitted.logits.cells(users, items)))
    penalty = float(fitted.penalties @ fitted.coefficients**2) / 2
    return float(observed @ fitted.coefficients) - normaliser - penalty


def _standardised(features: npt.NDArray[np.float64] | None) -> Array:
    matrix = np.asarray(features, dtype=np.float64)
    spread = matrix.std(axis=0)
    return np.asarray((matrix - matrix.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
