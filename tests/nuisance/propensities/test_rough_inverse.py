"""The preconditioner of propensities with features against dense Hessians."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from verirec.nuisance.propensities.rough_inverse import RoughInverse, Side

L2 = 0.5
SHAPE, WIDTHS = (60, 40), (4, 3)


def features(seed):
    random = np.random.default_rng(seed)
    return [random.normal(0.3, 1.0, size=(size, width)) for size, width in zip(SHAPE, WIDTHS, strict=True)]


def hessian(x, y, weights):
    """Give the dense Hessian: a column of the design for each product of features, each user and each item."""
    n_users, n_items = weights.shape
    design = np.hstack(
        [
            np.einsum("ua,ib->uiab", x, y).reshape(n_users * n_items, -1),
            np.kron(np.eye(n_users), np.ones((n_items, 1))),
            np.kron(np.ones((n_users, 1)), np.eye(n_items)),
        ]
    )
    penalties = np.zeros(design.shape[1])
    penalties[: x.shape[1] * y.shape[1]] = L2
    return (design.T * weights.ravel()) @ design + np.diag(penalties)


def dense(x, y, weights):
    """Give the preconditioner as a matrix."""
    rough = RoughInverse(Side(x, weights.sum(1), weights @ y), Side(y, weights.sum(0), weights.T @ x), L2)
    size = x.shape[1] * y.shape[1] + sum(weights.shape)
    return np.column_stack([rough(column) for column in np.eye(size)])


def tilted(x, y, strength, seed):
    """Give weights that depend on products of features, and on each user and item."""
    random = np.random.default_rng(seed)
    matrix = random.normal(0, strength / np.sqrt(x.shape[1] * y.shape[1]), size=(x.shape[1], y.shape[1]))
    constants = random.normal(size=(len(x), 1)) + random.normal(size=len(y))
    return np.exp(x @ matrix @ y.T + constants - 4)


def test_it_is_exact_where_weights_are_products_of_a_users_and_an_items():
    x, y = features(0)
    random = np.random.default_rng(0)
    weights = np.outer(random.uniform(0.1, 1, len(x)), random.uniform(0.1, 1, len(y)))
    matrix = hessian(x, y, weights)
    right = matrix @ random.normal(size=len(matrix))
    assert np.allclose(matrix @ (dense(x, y, weights) @ right), right, rtol=1e-8, atol=1e-8 * np.abs(right).max())


@pytest.mark.parametrize("strength", [0.0, 1.0, 3.0])
def test_it_is_symmetric_and_positive_definite(strength):
    x, y = features(1)
    matrix = dense(x, y, tilted(x, y, strength, 1))
    assert np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-9 * np.abs(matrix).max())
    assert np.linalg.eigvalsh((matrix + matrix.T) / 2)[0] > 0


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_it_leaves_a_fifth_of_the_condition_that_the_diagonal_leaves_or_less(seed):
    x, y = features(seed)
    weights = tilted(x, y, 1.0, seed)
    matrix, rough = hessian(x, y, weights), dense(x, y, weights)
    values = eigh(matrix, np.linalg.inv((rough + rough.T) / 2), eigvals_only=True)
    values = values[values > 1e-6]  # one level of the constants is free
    diagonal = eigh(matrix, np.diag(np.diag(matrix)), eigvals_only=True)
    assert len(values) == len(matrix) - 1
    assert values[-1] / values[0] < diagonal[-1] / diagonal[diagonal > 1e-6][0] / 5


def test_constant_and_repeated_features_do_no_harm():
    x, y = features(5)
    x = np.column_stack([x, np.zeros(len(x)), x[:, 0]])
    matrix = dense(x, y, tilted(x[:, :4], y, 1.0, 5))
    assert np.isfinite(matrix).all()
    assert np.linalg.eigvalsh((matrix + matrix.T) / 2)[0] > 0
