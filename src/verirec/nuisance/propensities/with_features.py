"""Logistic regression over the whole grid with user-item features: Newton steps by conjugate gradients, in blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.cells import FactorCells, Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import Block, Grid
from verirec.data.parts import counts, parts_of, totals
from verirec.exceptions import PropensityError
from verirec.nuisance.propensities.rough_inverse import RoughInverse, Side
from verirec.nuisance.propensities.two_way import ENOUGH, fit_two_way
from verirec.nuisance.solving import conjugate_gradients

Array = npt.NDArray[np.float64]

_LEAST: Final = 1e-12
_SINGLE: Final = 1e-4
"""Steps are not solved for more closely: single precision would not tell."""
_LOOSEST: Final = 0.1
"""Steps are solved for at least this closely."""
_NEAR: Final = 1e-2
"""From a gradient this small on, relative to its scale, what nearly solves for a step is not made anew."""
_OVERSHOT: Final = 0.5
"""A step may end where the likelihood falls by this part of how it rose at its start."""
MOST_ITERATIONS: Final = 50
TOLERANCE: Final = 1e-9
_BLOCK: Final = 1 << 18
_FURTHEST: Final = 30.0
"""Where constants without an end start: their probabilities are 0 or 1 to thirteen digits."""
_NEARLY_FREE: Final = 1e-3
"""The penalty of constants that start the fit; in it they are free."""


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
        products, user_constants, item_constants = self._sides(coefficients)
        matrix = products.reshape(self.user_features.shape[1], self.item_features.shape[1])
        return FactorCells(self.user_features @ matrix, self.item_features, user_constants, item_constants)

    @cached_property
    def logits(self) -> FactorCells:
        """The fitted linear predictor."""
        return self.logits_of(self.coefficients)

    def adjoint(self, users: Positions, items: Positions, values: Array) -> Array:
        """Add values of pairs up by coefficient: the transpose of the linear predictor."""
        from scipy.sparse import csr_array  # Takes long to import, and is not always needed.

        n_users, n_items = self.shape
        # Of some rows of a log, few users have any.
        own = slice(int(users.min()), int(users.max()) + 1)
        matrix = csr_array((values, (users - own.start, items)), shape=(own.stop - own.start, n_items))
        products = self.user_features[own].T @ (matrix @ self.item_features)
        return np.concatenate([products.ravel(), totals(users, values, n_users), totals(items, values, n_items)])

    def over_grid(
        self,
        values: Callable[..., Array],
        *others: Array,
        kind: type[np.floating[Any]] = np.float64,
        squared: bool = False,
    ) -> Array:
        """Add a function of the logits up by coefficient, over the whole grid, block by block.

        Parameters
        ----------
        values
            Of a block's logits, and of those of other coefficients, if any; it may overwrite them.
        others
            Other coefficients.
        kind
            The precision of a block; blocks are added up in double precision.
        squared
            Whether to add up by squared features, as the diagonal of a Hessian does.
        """
        n_users, n_items = self.shape
        factors = [self._as_products(one, kind) for one in (self.coefficients, *others)]
        power = 2 if squared else 1
        user_features = (self.user_features**power).astype(kind)
        with_sum = np.column_stack([self.item_features**power, np.ones(n_items)]).astype(kind)

        def visit(block: Block) -> tuple[slice, slice, Array, Array, Array]:
            users, items = (slice(side[0], side[-1] + 1) for side in block)
            part = values(*(left[users] @ right[items].T for left, right in factors))
            by_user = part @ with_sum[items]
            return users, items, user_features[users].T @ by_user[:, :-1], by_user[:, -1], part.sum(axis=0)

        products = np.zeros((self.user_features.shape[1], self.item_features.shape[1]))
        by_user, by_item = np.zeros(n_users), np.zeros(n_items)
        for _, (users, items, product, of_users, of_items) in self.grid.map_blocks(visit):
            products += product
            by_user[users] += of_users
            by_item[items] += of_items
        return np.concatenate([products.ravel(), by_user, by_item])

    def _as_products(self, coefficients: Array, kind: type[np.floating[Any]]) -> tuple[Array, Array]:
        """Write the linear predictor as products of users' and items' vectors alone: constants are two more entries."""
        cells = self.logits_of(coefficients)
        left = np.column_stack([cells.user_factors, cells.user_constants, np.ones(self.shape[0])])
        right = np.column_stack([cells.item_factors, np.ones(self.shape[1]), cells.item_constants])
        return left.astype(kind), right.astype(kind)

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
        return np.maximum(self.over_grid(_bends, squared=True) + self.penalties, _LEAST)

    @cached_property
    def leverages(self) -> FactorCells:
        """Each pair's leverage, by the diagonal of the Hessian."""
        inverse = FeatureFit(self.user_features**2, self.item_features**2, 1 / self.information, self.l2)
        return inverse.logits

    @cached_property
    def rough_inverse(self) -> RoughInverse:
        """What nearly solves with the Hessian."""
        n_users, n_items = self.shape
        left, right = self._as_products(self.coefficients, np.float32)
        x, y = (
            np.column_stack([side, np.ones(len(side))]).astype(np.float32)
            for side in (self.user_features, self.item_features)
        )

        def visit(block: Block) -> tuple[slice, slice, Array, Array]:
            users, items = (slice(side[0], side[-1] + 1) for side in block)
            weights = _bends(left[users] @ right[items].T)
            return users, items, weights @ y[items], weights.T @ x[users]

        by_user, by_item = np.zeros((n_users, y.shape[1])), np.zeros((n_items, x.shape[1]))
        for _, (users, items, of_users, of_items) in self.grid.map_blocks(visit):
            by_user[users] += of_users
            by_item[items] += of_items
        return RoughInverse(
            Side(self.user_features, np.maximum(by_user[:, -1], _LEAST), by_user[:, :-1]),
            Side(self.item_features, np.maximum(by_item[:, -1], _LEAST), by_item[:, :-1]),
            self.l2,
        )

    def _sides(self, coefficients: Array) -> list[Array]:
        """Return W, flat, beta and gamma."""
        n_users, n_items = self.shape
        return np.split(coefficients, [-n_users - n_items, -n_items])

    def solve(
        self,
        right_side: Array,
        *,
        roughly: RoughInverse | None = None,
        tolerance: float = 1e-6,
        kind: type[np.floating[Any]] = np.float64,
    ) -> Array:
        """Solve with the Hessian, by conjugate gradients that `roughly` steers; `kind` as in `over_grid`."""

        def times_hessian(vector: Array) -> Array:
            product = self.over_grid(_bent, vector, kind=kind)
            return np.asarray(product + self.penalties * vector)

        return conjugate_gradients(
            times_hessian, right_side, roughly or self.rough_inverse, tolerance=tolerance, steps=1_000
        )


def _probabilities(logits: Array) -> Array:
    """Turn logits into probabilities, in place."""
    with np.errstate(over="ignore"):
        np.exp(np.negative(logits, out=logits), out=logits)
    logits += 1
    return np.reciprocal(logits, out=logits)


def _bends(logits: Array) -> Array:
    """Turn logits into p (1 - p), in place, exact where p is near to 0 or 1."""
    np.exp(np.copysign(logits, -1, out=logits), out=logits)
    rest = 1 + logits
    rest *= rest
    return np.divide(logits, rest, out=logits)


def _bent(logits: Array, direction: Array) -> Array:
    """Multiply a direction by p (1 - p) of logits, in place."""
    direction *= _bends(logits)
    return direction


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
    rows = counts(log.users, log.n_users), counts(log.items, log.n_items)
    start = fit_two_way(*rows, l2=_NEARLY_FREE)
    coefficients = np.concatenate(
        [
            np.zeros(user_features.shape[1] * item_features.shape[1]),
            _started(start.user_constants[start.users.code], rows[0], log.n_items),
            _started(start.item_constants[start.items.code], rows[1], log.n_users),
        ]
    )
    unfitted = FeatureFit(user_features, item_features, coefficients, l2)
    parts = ((log.users[at], log.items[at]) for at in parts_of(len(log)))
    observed = sum(unfitted.adjoint(*pairs, np.ones(len(pairs[0]))) for pairs in parts)
    scale = float(max(rows[0].max(), rows[1].max()))

    def gradient_at(coefficients: Array) -> tuple[FeatureFit, Array]:
        fitted = FeatureFit(user_features, item_features, coefficients, l2)
        return fitted, observed - fitted.over_grid(_probabilities) - fitted.penalties * coefficients

    fitted, gradient = gradient_at(coefficients)
    roughly = fitted.rough_inverse
    for _ in range(MOST_ITERATIONS):
        largest = float(np.abs(gradient).max()) / scale
        if largest < tolerance:
            return FeatureFit(user_features, item_features, fitted.coefficients, l2, largest)
        if largest > _NEAR:
            roughly = fitted.rough_inverse
        # Steps need no more digits than single precision has: what is wrong with one, the next puts right.
        close = max(min(_LOOSEST, largest**0.5), _SINGLE, _LOOSEST * tolerance / largest)
        step = fitted.solve(gradient, roughly=roughly, tolerance=close, kind=np.float32)
        length, slope = 1.0, float(gradient @ step)
        while True:
            candidate, new_gradient = gradient_at(fitted.coefficients + length * step)
            # The likelihood is concave: where it does not fall along the step, it has risen all the way.
            if new_gradient @ step >= -_OVERSHOT * slope or length < 1e-10:
                break
            length /= 2
        fitted, gradient = candidate, new_gradient
    # A gradient that is no number is none that is small enough.
    if not largest <= ENOUGH:
        raise PropensityError(
            f"the logistic propensity with features did not converge in {MOST_ITERATIONS} steps (gradient "
            f"{largest:.1e}): some users, items or features are always or never observed; give l2 a value such as 0.1"
        )
    return FeatureFit(user_features, item_features, fitted.coefficients, l2, largest)


def _started(constants: Array, counts: npt.NDArray[np.int64], most: int) -> Array:
    """Start those who are never or always observed, whose constants would go further with every step, far out."""
    return np.where(counts == 0, -_FURTHEST, np.where(counts == most, _FURTHEST, constants))


def _standardised(features: npt.NDArray[np.float64] | None) -> Array:
    matrix = np.asarray(features, dtype=np.float64)
    spread = matrix.std(axis=0)
    return np.asarray((matrix - matrix.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
