r"""The two-way logistic model on the whole grid, fitted on its margins.

Rows with the same number of observations have the same constant, and so have columns: Newton runs on the table of
*distinct* counts, each with its multiplicity. That table is a few hundred on a side where the grid has millions of
cells, and nothing of the grid's size is ever made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from verirec.data.parts import totals
from verirec.exceptions import PropensityError

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

MOST_ITERATIONS: Final = 100
TOLERANCE: Final = 1e-10
"""Of the gradient, relative to the largest count: where Newton stops."""
ENOUGH: Final = 1e-8
"""What it must reach."""
_SURE: Final = 60.0
"""Log-odds of what is always (or never) observed: e^-60 is 0 beside any share that a log can show."""


@dataclass(frozen=True)
class Side:
    """Rows or columns of the grid, by class: those of one class have one count and so one constant."""

    code: Codes
    size: Array
    count: Array

    @classmethod
    def of(cls, counts: npt.NDArray[Any]) -> Side:
        """Group positions by their counts."""
        count, code, size = np.unique(counts, return_inverse=True, return_counts=True)
        return cls(code, size.astype(np.float64), count.astype(np.float64))

    def sums(self, values: Array) -> Array:
        """Add up values of positions within each class."""
        return totals(self.code, values, len(self.size))


@dataclass(frozen=True, eq=False)
class _System:
    r"""The Newton system of the model at some probabilities: one unknown a class, and the intercept if it is penalised.

    Parameters
    ----------
    weights
        The variance of a cell, p (1 - p), by class of users (rows) and of items (columns).
    rows, columns
        The classes' sizes.
    l2
        Penalty on the constants, not on the intercept.
    """

    weights: Array
    rows: Array
    columns: Array
    l2: float

    @classmethod
    def of(cls, p: Array, rows: Array, columns: Array, l2: float) -> _System:
        """Make it of the probabilities."""
        weights = 1 - p
        weights *= p
        return cls(weights, rows, columns, l2)

    @cached_property
    def row_diagonal(self) -> Array:
        """Information on one row's constant."""
        return _alive(self.weights @ self.columns + self.l2)

    @cached_property
    def column_diagonal(self) -> Array:
        """Information on one column's constant."""
        return _alive(self.weights.T @ self.rows + self.l2)

    def solve(self, row_side: Array, column_side: Array, total: float) -> tuple[Array, Array, float]:
        """Solve for the constants of one row and one column of each class, and the intercept.

        Without a penalty there is no intercept of its own; with one, `total` is its right side, and it is eliminated
        by a second solution (a bordered system).
        """
        row_step, column_step = self._solve(row_side, column_side)
        if self.l2 == 0:
            return row_step, column_step, 0.0
        row_border, column_border = self.weights @ self.columns, self.weights.T @ self.rows
        rows_of_border, columns_of_border = self._solve(row_border, column_border)
        by_rows, by_columns = self.rows * row_border, self.columns * column_border
        left = float(self.rows @ row_border) - float(by_rows @ rows_of_border + by_columns @ columns_of_border)
        # Where every chance has come to 0 or 1, nothing tells the intercept: it stays.
        shift = (total - float(by_rows @ row_step + by_columns @ column_step)) / left if left > 0 else 0.0
        return row_step - shift * rows_of_border, column_step - shift * columns_of_border, shift

    @cached_property
    def _transposed(self) -> _System:
        return _System(self.weights.T, self.columns, self.rows, self.l2)

    def _solve(self, row_side: Array, column_side: Array) -> tuple[Array, Array]:
        """Solve without the intercept, by the Schur complement on the shorter side."""
        from scipy.linalg import lu_solve  # Takes long to import, and is not always needed.

        if len(self.rows) < len(self.columns):
            column_step, row_step = self._transposed._solve(column_side, row_side)
            return row_step, column_step
        # One table of all classes after the other: there may be thousands on a side.
        factorised, to_columns = self._schur, self.weights.T * self.rows
        column_step = np.asarray(lu_solve(factorised, column_side - to_columns @ (row_side / self.row_diagonal)))
        del to_columns
        return (row_side - (self.weights * self.columns) @ column_step) / self.row_diagonal, column_step

    @cached_property
    def _schur(self) -> Any:
        """The system with the rows eliminated, factorised."""
        from scipy.linalg import lu_factor  # Takes long to import, and is not always needed.

        to_rows = self.weights * self.columns
        to_rows /= self.row_diagonal[:, None]
        schur = (self.weights.T * self.rows) @ to_rows
        del to_rows
        np.subtract(0.0, schur, out=schur)
        schur.flat[:: len(schur) + 1] += self.column_diagonal
        if self.l2 == 0:
            # Adding a number to every user and taking it from every item changes nothing: ask for a mean of 0.
            schur += float(self.column_diagonal.mean()) * (self.columns / self.columns.sum())
        return lu_factor(schur, overwrite_a=True)


@dataclass(frozen=True, eq=False)
class TwoWayFit:
    r"""Constants of the model :math:`p = \sigma(\alpha + \beta_u + \gamma_i)`, by class.

    Parameters
    ----------
    users, items
        The classes.
    user_constants, item_constants
        :math:`\alpha + \beta` and :math:`\gamma` of each class.
    l2
        The penalty that beta and gamma were fitted with.
    gradient
        Largest absolute derivative of the penalised log-likelihood with respect to one user's or item's constant,
        divided by the largest count.
    offset
        What is known of the logits besides, by class of users (rows) and of items (columns).
    """

    users: Side
    items: Side
    user_constants: Array
    item_constants: Array
    l2: float
    gradient: float
    offset: Array | float = 0.0

    @cached_property
    def table(self) -> Array:
        """P of each class of users (rows) and items (columns)."""
        return np.asarray(expit(self.user_constants[:, None] + self.item_constants + self.offset))

    @cached_property
    def _system(self) -> _System:
        return _System.of(self.table, self.users.size, self.items.size, self.l2)

    def solve(self, user_side: Array, item_side: Array) -> tuple[Array, Array]:
        r"""Solve :math:`H b = c` for the Hessian H of the whole model, one entry a user and an item.

        A right side that differs within a class is split into the class's mean and the rest; on the rest H is
        diagonal, since it adds up to zero over every class.
        """
        users, items = self.users, self.items
        user_mean = users.sums(user_side) / users.size
        item_mean = items.sums(item_side) / items.size
        user_step, item_step, shift = self._system.solve(user_mean, item_mean, float(user_side.sum()))
        user_information, item_information = self.information()
        user_rest = (user_side - user_mean[users.code]) / user_information
        item_rest = (item_side - item_mean[items.code]) / item_information
        return shift + user_step[users.code] + user_rest, item_step[items.code] + item_rest

    def information(self) -> tuple[Array, Array]:
        """Return the diagonal of the Hessian: of each user's constant and of each item's."""
        return self._system.row_diagonal[self.users.code], self._system.column_diagonal[self.items.code]


def fit_two_way(user_counts: npt.NDArray[Any], item_counts: npt.NDArray[Any], *, l2: float = 0.0) -> TwoWayFit:
    r"""Maximise the log-likelihood of a grid of independent cells given its margins.

    :math:`\sum_{u,i} [o\,z - \log(1 + e^z)] - \frac{\lambda}{2}(|\beta|^2 + |\gamma|^2)` with
    :math:`z = \alpha + \beta_u + \gamma_i`: the counts are sufficient. Without a penalty, users and items that are
    never (or always) observed have no finite constant; they are set apart.

    Parameters
    ----------
    user_counts, item_counts
        Observations of each user and of each item, shapes (n_users,) and (n_items,).
    l2
        :math:`\lambda`.

    Examples
    --------
    >>> fit = fit_two_way(np.array([1, 1]), np.array([1, 1]))
    >>> fit.table.round(3).tolist()
    [[0.5]]
    """
    users, items = Side.of(user_counts), Side.of(item_counts)
    if l2 > 0:
        return fit_classes(users, items, l2=l2)
    apart = _set_apart(users, items)
    beta, gamma, gradient = apart.user_constants, apart.item_constants, 0.0
    if apart.in_users.any() and apart.in_items.any():
        beta[apart.in_users], gamma[apart.in_items], gradient = _newton(
            users.size[apart.in_users],
            items.size[apart.in_items],
            apart.user_counts[apart.in_users],
            apart.item_counts[apart.in_items],
            0.0,
        )
    return TwoWayFit(users, items, beta, gamma, 0.0, gradient)


def fit_classes(users: Side, items: Side, *, l2: float, offset: Array | float = 0.0) -> TwoWayFit:
    """Fit one constant a class, with a penalty and with logits that are known besides (see `TwoWayFit`)."""
    found = _newton(users.size, items.size, users.count, items.count, l2, offset)
    return TwoWayFit(users, items, found[0], found[1], l2, found[2], offset)


class _Apart(NamedTuple):
    """Which classes are left for Newton, with what counts, and the constants of the others."""

    in_users: npt.NDArray[np.bool_]
    in_items: npt.NDArray[np.bool_]
    user_counts: Array
    item_counts: Array
    user_constants: Array
    item_constants: Array


def _set_apart(users: Side, items: Side) -> _Apart:
    """Fix the constants of classes that are never or always observed, until no such class is left."""
    apart = _Apart(
        np.ones(len(users.size), bool),
        np.ones(len(items.size), bool),
        users.count.copy(),
        items.count.copy(),
        np.zeros(len(users.size)),
        np.zeros(len(items.size)),
    )
    signs: list[tuple[Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]] = []
    changed = True
    while changed and apart.in_users.any() and apart.in_items.any():
        changed = False
        for own, own_in, own_counts, constants, other, other_in, other_counts in (
            (users, apart.in_users, apart.user_counts, apart.user_constants, items, apart.in_items, apart.item_counts),
            (items, apart.in_items, apart.item_counts, apart.item_constants, users, apart.in_users, apart.user_counts),
        ):
            never, always = own_in & (own_counts <= 0), own_in & (own_counts >= other.size[other_in].sum())
            signs.append((constants, never, always))
            # Whoever is always observed has used up a count of each one on the other side.
            other_counts[other_in] -= own.size[always].sum()
            own_in &= ~(never | always)
            changed = changed or bool(never.any() or always.any())
    # Whoever was set apart earlier decides about a cell: their constant outweighs all later ones.
    for later, (constants, never, always) in enumerate(reversed(signs), start=1):
        constants[never], constants[always] = -later * _SURE, later * _SURE
    return apart


def _newton(
    rows: Array, columns: Array, row_counts: Array, column_counts: Array, l2: float, offset: Array | float = 0.0
) -> tuple[Array, Array, float]:
    """Maximise over class constants; `rows` and `columns` are the classes' sizes. The intercept goes to the rows'."""
    share = float(row_counts @ rows) / float(rows.sum() * columns.sum())
    alpha = float(_log_odds(np.array(share)))
    beta, gamma = _log_odds(row_counts / columns.sum()) - alpha, _log_odds(column_counts / rows.sum()) - alpha
    if l2 > 0:
        # Starting from nothing but the intercept is safe where a count is 0 and its log-odds are far out.
        beta, gamma = np.zeros_like(beta), np.zeros_like(gamma)
    scale = max(float(row_counts.max()), float(column_counts.max()), 1.0)

    # In place, and none longer than needed: of a table of all classes there is room for few.
    def logits(alpha: float, beta: Array, gamma: Array) -> Array:
        found = alpha + beta[:, None] + gamma
        found += offset
        return found

    def objective(alpha: float, beta: Array, gamma: Array) -> float:
        likelihood = (rows * row_counts) @ (alpha + beta) + (columns * column_counts) @ gamma
        table = logits(alpha, beta, gamma)
        likelihood -= rows @ np.logaddexp(0, table, out=table) @ columns
        return float(likelihood - l2 / 2 * (rows @ beta**2 + columns @ gamma**2))

    value = objective(alpha, beta, gamma)
    for _ in range(MOST_ITERATIONS):
        p = logits(alpha, beta, gamma)
        expit(p, out=p)
        row_rest, column_rest = row_counts - p @ columns, column_counts - p.T @ rows
        row_gradient, column_gradient = row_rest - l2 * beta, column_rest - l2 * gamma
        gradient = max(float(np.abs(row_gradient).max()), float(np.abs(column_gradient).max())) / scale
        if gradient < TOLERANCE:
            break
        system = _System.of(p, rows, columns, l2)
        del p
        row_step, column_step, shift = system.solve(row_gradient, column_gradient, float(rows @ row_rest))
        del system
        length = 1.0
        while True:
            proposal = alpha + length * shift, beta + length * row_step, gamma + length * column_step
            new_value = objective(*proposal)
            # Near the optimum the objective no longer tells steps apart: a full step is taken there.
            if new_value >= value - 1e-12 * abs(value) or length < 1e-10:
                break
            length /= 2
        (alpha, beta, gamma), value = proposal, new_value
    if gradient > ENOUGH:
        raise PropensityError(
            f"the logistic propensity did not converge in {MOST_ITERATIONS} steps (gradient {gradient:.1e}): some "
            "users and items are separated from the others; give l2 a small value such as 0.01"
        )
    return alpha + beta, gamma, gradient


def _alive(information: Array) -> Array:
    """Let a constant that nothing is known of, as it is never or always observed, stand by itself."""
    return np.where(information > 1e-9, information, 1.0)


def _log_odds(share: Array) -> Array:
    inside = np.clip(share, 1e-9, 1 - 1e-9)
    return np.asarray(np.log(inside) - np.log1p(-inside))
