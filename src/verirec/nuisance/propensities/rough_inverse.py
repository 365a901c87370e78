r"""What nearly solves with the Hessian of a logistic regression with features over the grid, from sums of weights.

The Hessian of :math:`x_u^\top W x_i + \beta_u + \gamma_i`, with weights :math:`w = p (1 - p)` of the cells, is

.. math:: \begin{pmatrix} A & B \\ B^\top & C \end{pmatrix}, \quad
    C = \begin{pmatrix} D_u & w \\ w^\top & D_i \end{pmatrix}

where the D have the weights' sums by user and by item. B is known exactly from the weighted means of the other side's
features. Two parts are replaced: w in C by its projection on the features of both sides, which makes C the diagonal
and a matrix of low rank, and :math:`A - B C^{-1} B^\top`, all that W's block is needed for, by the Kronecker product of
users' features' covariance within items and items' within users.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_LEAST: Final = 1e-12
_FLAT: Final = 1e-6
"""Directions with less than this part of the largest variance are those of constant or repeated features."""
_CLOSEST: Final = 0.95
"""The largest correlation between the sides that is used: where it is 1 there is nothing to invert."""


@dataclass(frozen=True, eq=False)
class Side:
    """The features of users or of items, and sums of the weights over each one's cells.

    Parameters
    ----------
    features
        Shape (n, a).
    weights
        Sums of the weights, shape (n,).
    others
        Sums of the weights times the other side's features, shape (n, b).
    """

    features: Array
    weights: Array
    others: Array

    @cached_property
    def mean(self) -> Array:
        """The features' mean, by weight."""
        return np.asarray(self.weights @ self.features / self.weights.sum())

    @cached_property
    def whitening(self) -> Array:
        """What turns centred features into uncorrelated ones of variance 1, a column for each."""
        centred = self.features - self.mean
        variances, axes = np.linalg.eigh((self.weights / self.weights.sum() * centred.T) @ centred)
        kept = variances > max(_FLAT * variances[-1], _LEAST)
        return np.asarray(axes[:, kept] / np.sqrt(variances[kept]))

    def around(self, other: Side) -> Array:
        """Return the covariance of this side's features within each one of the other side, times all the weight."""
        between = (other.others.T / other.weights) @ other.others
        return np.asarray((self.weights * self.features.T) @ self.features - between)


class RoughInverse:
    """Solves nearly the same system as the Hessian; symmetric and positive definite whatever the weights are.

    Parameters
    ----------
    users, items
        Both sides; `others` of users sum items' features, and the other way round.
    l2
        The penalty of W.
    """

    def __init__(self, users: Side, items: Side, l2: float) -> None:
        self.users, self.items = users, items
        self.total = float(users.weights.sum())
        self.user_axes, self.item_axes, self.correlations = self._canonical()
        (of_users, self.user_rotation), (of_items, self.item_rotation) = (
            np.linalg.eigh(one.around(other)) for one, other in ((users, items), (items, users))
        )
        spreads = np.outer(np.maximum(of_users, 0.0), np.maximum(of_items, 0.0)) / self.total
        self.bends = np.maximum(spreads + l2, _LEAST)

    def _canonical(self) -> tuple[Array, Array, Array]:
        """Return features of users and of items, uncorrelated but in pairs, and the correlation of each pair."""
        users, items = self.users, self.items
        mixed = users.features.T @ users.others / self.total - np.outer(users.mean, items.mean)
        left, correlations, right = np.linalg.svd(users.whitening.T @ mixed @ items.whitening, full_matrices=False)
        user_axes = (users.features - users.mean) @ (users.whitening @ left)
        item_axes = (items.features - items.mean) @ (items.whitening @ right.T)
        return user_axes, item_axes, np.minimum(correlations, _CLOSEST)

    def __call__(self, right: Array) -> Array:
        """Solve for a right side: W, beta and gamma in one flat array."""
        users, items = self.users, self.items
        n_users, n_items = len(users.weights), len(items.weights)
        products, by_user, by_item = np.split(right, [-n_users - n_items, -n_items])
        of_users, of_items = self._constants(by_user, by_item)
        rest = products.reshape(users.features.shape[1], -1)
        rest = rest - (users.features.T * of_users) @ users.others - (items.others.T * of_items) @ items.features
        solved = self.user_rotation.T @ rest @ self.item_rotation / self.bends
        solved = self.user_rotation @ solved @ self.item_rotation.T
        back_users, back_items = self._constants(
            np.einsum("ub,ub->u", users.features @ solved, users.others),
            np.einsum("ib,ib->i", items.others @ solved, items.features),
        )
        return np.concatenate([solved.ravel(), of_users - back_users, of_items - back_items])

    def _constants(self, by_user: Array, by_item: Array) -> tuple[Array, Array]:
        """Solve with what stands for C, but for the constants' common level, of which one of the two is free."""
        r = self.correlations
        of_users, of_items = self.user_axes.T @ by_user, self.item_axes.T @ by_item
        scale = r / ((1 - r**2) * self.total)
        level_users, level_items = by_user.sum() / (2 * self.total), by_item.sum() / (2 * self.total)
        return (
            by_user / self.users.weights + self.user_axes @ (scale * (r * of_users - of_items)) - level_items,
            by_item / self.items.weights + self.item_axes @ (scale * (r * of_items - of_users)) - level_users,
        )
