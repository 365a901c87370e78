"""The fit on the margins against logistic regression with a row a cell, and its solutions against dense ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from sklearn.linear_model import LogisticRegression

from held import held
from plain_formulas import propensities as plain
from verirec.nuisance.propensities.two_way import Side, TwoWayFit, fit_two_way

GRIDS = st.tuples(st.integers(2, 7), st.integers(2, 7), st.integers(0, 2**32 - 1), st.floats(0.2, 0.8)).map(
    lambda drawn: (np.random.default_rng(drawn[2]).random(drawn[:2]) < drawn[3]).astype(int)
)


def random_grid(seed=0, shape=(9, 7)):
    """Give a grid in which nobody is always or never observed."""
    random = np.random.default_rng(seed)
    scores = 0.7 * random.normal(size=(shape[0], 1)) + 0.7 * random.normal(size=shape[1])
    while True:
        grid = (random.random(shape) < 1 / (1 + np.exp(-scores))).astype(int)
        if (grid.sum(0) % shape[0] > 0).all() and (grid.sum(1) % shape[1] > 0).all():
            return grid


NOBODY_APART = st.builds(random_grid, st.integers(0, 2**32 - 1), st.tuples(st.integers(2, 7), st.integers(2, 7)))


def fit(grid, l2=0.0) -> TwoWayFit:
    return fit_two_way(grid.sum(axis=1), grid.sum(axis=0), l2=l2)


def matrix_of(fitted):
    return fitted.table[np.ix_(fitted.users.code, fitted.items.code)]


def constants_of(fitted):
    return fitted.user_constants[fitted.users.code], fitted.item_constants[fitted.items.code]


def penalties_of(grid, l2):
    return np.concatenate([[0.0], np.full(sum(grid.shape), l2)])


def margins_are_met(grid, p):
    scale = max(grid.sum(0).max(), grid.sum(1).max(), 1)
    worst = max(np.abs(p.sum(1) - grid.sum(1)).max(), np.abs(p.sum(0) - grid.sum(0)).max())
    return worst <= 1e-8 * scale


@pytest.mark.parametrize("seed", [0, 2, 3])
@pytest.mark.parametrize("l2", [0.0, 0.01, 0.7, 30.0])
def test_the_fit_is_logistic_regression_with_a_row_a_cell(seed, l2):
    grid = random_grid(seed)
    design = plain.design(*grid.shape)
    coefficients = plain.newton(design, grid.ravel(), penalties_of(grid, l2))
    expected = plain.probabilities(design, coefficients).reshape(grid.shape)
    assert np.allclose(matrix_of(fit(grid, l2)), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("l2", [0.05, 2.0])
def test_with_a_penalty_it_is_scikit_learns_logistic_regression(l2):
    grid = random_grid(1)
    design = plain.design(*grid.shape)[:, 1:]
    learned = LogisticRegression(C=1 / l2, solver="newton-cholesky", tol=1e-10, max_iter=200)
    expected = learned.fit(design, grid.ravel()).predict_proba(design)[:, 1].reshape(grid.shape)
    assert np.allclose(matrix_of(fit(grid, l2)), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_scipy_finds_no_better_constants(l2):
    grid = random_grid(4)
    design, penalties = plain.design(*grid.shape), penalties_of(grid, l2)
    users, items = constants_of(fit(grid, l2))
    ours = np.concatenate([[users.mean()], users - users.mean(), items])
    found = optimize.minimize(
        lambda x: -plain.objective(design, grid.ravel(), penalties, x),
        np.zeros(len(ours)),
        jac=lambda x: penalties * x - design.T @ (grid.ravel() - plain.probabilities(design, x)),
        method="BFGS",
        options={"gtol": 1e-7},
    )
    value = plain.objective(design, grid.ravel(), penalties, ours)
    assert value >= -found.fun - 1e-10
    assert value == pytest.approx(-found.fun, abs=1e-8)


@pytest.mark.parametrize("l2", [1e-6, 0.2, 5.0])
def test_the_penalised_gradient_vanishes_and_the_intercept_is_free(l2):
    grid = random_grid(5)
    fitted = fit(grid, l2)
    users, items = constants_of(fitted)
    rest = grid - matrix_of(fitted)
    alpha = users.mean()
    assert abs(rest.sum()) < 1e-8 * grid.sum()
    assert abs(items.sum()) * l2 < 1e-8 * grid.sum()
    assert np.abs(rest.sum(1) - l2 * (users - alpha)).max() < 1e-8 * grid.sum()
    assert np.abs(rest.sum(0) - l2 * items).max() < 1e-8 * grid.sum()


def test_a_heavy_penalty_leaves_the_density():
    grid = random_grid(6)
    assert np.allclose(matrix_of(fit(grid, 1e9)), grid.mean(), atol=1e-6)


@given(NOBODY_APART)
def test_fitted_margins_are_the_observed_ones(grid):
    assert margins_are_met(grid, matrix_of(fit(grid)))


@given(GRIDS)
def test_fitted_margins_are_the_observed_ones_whoever_is_set_apart(grid):
    assert margins_are_met(grid, matrix_of(fit(grid)))


def with_row(grid, value):
    return np.vstack([grid, np.full((1, grid.shape[1]), value)])


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("side", ["user", "item"])
def test_who_is_never_or_always_observed_has_0_or_1_and_the_others_are_as_without_them(side, value):
    grid = random_grid(7)
    larger = with_row(grid, value) if side == "user" else with_row(grid.T, value).T
    p = matrix_of(fit(larger))
    own, others = (p[-1], p[:-1]) if side == "user" else (p[:, -1], p[:, :-1])
    assert np.allclose(own, value, rtol=0, atol=1e-12)
    assert np.allclose(others, matrix_of(fit(grid)), rtol=0, atol=1e-9)


def test_a_grid_that_is_all_observed_has_1_everywhere():
    assert np.allclose(matrix_of(fit(np.ones((3, 4), int))), 1, rtol=0, atol=1e-12)


CHAINED = {
    "an item that all active users saw": [[0, 0, 0], [1, 1, 0], [1, 0, 1]],
    "an item that only an always observed user saw": [[1, 1, 1], [0, 1, 0], [0, 0, 1]],
    "a staircase": np.triu(np.ones((4, 4), int)),
    "one item": [[1], [0], [0]],
    "no observation": [[0, 0], [0, 0]],
}


@pytest.mark.parametrize("name", CHAINED)
def test_those_set_apart_one_after_the_other_meet_their_margins_too(name):
    grid = np.array(CHAINED[name])
    assert margins_are_met(grid, matrix_of(fit(grid)))


def test_one_user_alone_has_each_item_as_observed():
    assert np.allclose(matrix_of(fit(np.array([[1, 0, 0]]))), [[1, 0, 0]], rtol=0, atol=1e-12)


def test_never_and_always_observed_users_side_by_side():
    grid = random_grid(7)
    larger = with_row(with_row(with_row(grid, 1), 0), 1)
    p = matrix_of(fit(larger))
    assert margins_are_met(larger, p)
    assert np.allclose(p[-3:].mean(axis=1), [1, 0, 1], rtol=0, atol=1e-12)


def test_separated_blocks_meet_their_margins():
    """Rows 0 and 1 see all of columns 0 and 1, rows 2 and 3 nothing of columns 2 and 3."""
    grid = np.array([[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]])
    p = matrix_of(fit(grid))
    assert margins_are_met(grid, p)
    assert np.allclose(p, np.kron([[1, 0.5], [0.5, 0]], np.ones((2, 2))), rtol=0, atol=1e-7)


@pytest.mark.parametrize("l2", [0.1, 3.0])
def test_with_a_penalty_never_and_always_observed_ones_are_like_all_others(l2):
    grid = with_row(with_row(random_grid(7), 1), 0)
    design = plain.design(*grid.shape)
    expected = plain.probabilities(design, plain.newton(design, grid.ravel(), penalties_of(grid, l2)))
    p = matrix_of(fit(grid, l2))
    assert np.allclose(p, expected.reshape(grid.shape), rtol=0, atol=1e-8)
    assert ((p > 0) & (p < 1)).all()


@given(GRIDS, st.randoms(use_true_random=False), st.sampled_from([0.0, 0.5]))
def test_the_fit_goes_along_with_permuted_users_and_items(grid, random, l2):
    rows, columns = list(range(grid.shape[0])), list(range(grid.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    permuted = matrix_of(fit(grid[np.ix_(rows, columns)], l2))
    assert np.allclose(permuted, matrix_of(fit(grid, l2))[np.ix_(rows, columns)], rtol=0, atol=1e-9)


@given(NOBODY_APART)
def test_users_and_items_can_change_places(grid):
    assert np.allclose(matrix_of(fit(grid.T)), matrix_of(fit(grid)).T, rtol=0, atol=1e-8)


def large_counts():
    """Count about 300,000 distinct pairs of 15,400 users and 1,000 items, drawn with skewed activity."""
    random = np.random.default_rng(0)
    activity, popularity = random.lognormal(0, 1, 15_400), random.lognormal(0, 1.2, 1_000)
    users = random.choice(15_400, 325_000, p=activity / activity.sum())
    items = random.choice(1_000, 325_000, p=popularity / popularity.sum())
    cells = np.unique(users.astype(np.int64) * 1_000 + items)
    return np.bincount(cells // 1_000, minlength=15_400), np.bincount(cells % 1_000, minlength=1_000)


@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_a_large_sparse_grid_is_fitted_to_a_gradient_below_1e_8(l2):
    user_counts, item_counts = large_counts()
    assert 280_000 < user_counts.sum() < 330_000
    fitted = fit_two_way(user_counts, item_counts, l2=l2)
    assert fitted.gradient < 1e-8
    users, items = constants_of(fitted)
    alpha = users.mean() if l2 else 0.0
    scale = max(user_counts.max(), item_counts.max())
    by_user = (fitted.table @ fitted.items.size)[fitted.users.code] + l2 * (users - alpha)
    by_item = (fitted.users.size @ fitted.table)[fitted.items.code] + l2 * items
    assert np.abs(by_user - user_counts).max() < 1e-8 * scale
    assert np.abs(by_item - item_counts).max() < 1e-8 * scale


def sides_of(grid, values):
    return values.sum(axis=1), values.sum(axis=0)


@pytest.mark.parametrize("l2", [0.0, 0.4, 10.0])
@pytest.mark.parametrize("shape", [(9, 7), (5, 8)])
def test_solve_is_a_dense_solution_of_the_whole_model(shape, l2):
    grid = random_grid(12, shape)
    fitted = fit(grid, l2)
    # Random values of cells: right sides differ within a class.
    values = np.random.default_rng(1).normal(size=grid.shape)
    user_step, item_step = fitted.solve(*sides_of(grid, values))
    design = plain.design(*grid.shape)
    information = plain.hessian(design, matrix_of(fitted).ravel(), penalties_of(grid, l2))
    expected = design @ np.linalg.pinv(information, rcond=1e-12) @ design.T @ values.ravel()
    assert np.allclose(np.add.outer(user_step, item_step).ravel(), expected, rtol=1e-7, atol=1e-9)


def test_the_right_sides_did_differ_within_a_class():
    grid = random_grid(12)
    assert len(fit(grid).users.size) < len(grid)


def test_solve_leaves_out_those_who_are_set_apart():
    grid = random_grid(12)
    larger = with_row(with_row(grid, 0), 1)
    values = np.random.default_rng(2).normal(size=larger.shape)
    values[-2:] = 0
    user_step, item_step = fit(larger).solve(*sides_of(larger, values))
    small_user, small_item = fit(grid).solve(*sides_of(grid, values[:-2]))
    assert np.allclose(
        np.add.outer(user_step[:-2], item_step), np.add.outer(small_user, small_item), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("l2", [0.0, 0.4])
def test_information_is_the_diagonal_of_the_hessian(l2):
    grid = random_grid(12)
    fitted = fit(grid, l2)
    information = plain.hessian(plain.design(*grid.shape), matrix_of(fitted).ravel(), penalties_of(grid, l2)).diagonal()
    assert np.concatenate(fitted.information()) == pytest.approx(information[1:], rel=1e-9)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_a_class_holds_all_positions_of_one_count(counts, seed):
    side = Side.of(np.array(counts))
    values = np.random.default_rng(seed).normal(size=len(counts))
    assert side.count[side.code].tolist() == counts
    assert side.size.sum() == len(counts)
    for count, total in zip(side.count, side.sums(values), strict=True):
        assert total == pytest.approx(sum(v for v, c in zip(values, counts, strict=True) if c == count), abs=1e-9)


@given(GRIDS)
def test_a_small_penalty_which_the_error_advises_makes_every_grid_converge(grid):
    assert fit(grid, 0.01).gradient < 1e-8


@pytest.mark.parametrize("shape", [(900, 300), (300, 900)])
def test_a_fit_has_room_for_few_tables_of_all_classes(shape):
    counts = [1 + np.arange(size) for size in shape]
    # Of users and items that differ in count, all classes of their own; as many pairs on either side.
    counts[0] = counts[0] * (counts[1].sum() / counts[0].sum())
    fit_two_way(counts[0][:9], counts[1][:9] * counts[0][:9].sum() / counts[1][:9].sum())
    table = 8 * shape[0] * shape[1]
    assert held(lambda: fit_two_way(*counts)) < 5 * table
