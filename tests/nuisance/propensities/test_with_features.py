"""Logistic propensities with features against plain Newton on the full design."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plain_formulas import propensities as plain
from verirec import LogisticPropensity, load_dataset
from verirec.nuisance.propensities.with_features import fit_with_features


def example(seed=0, shape=(9, 8), widths=(2, 3)):
    """Give a grid whose observation depends on features, its log, and the features."""
    random = np.random.default_rng(seed)
    features = tuple(random.normal(3, 2, size=(size, width)) for size, width in zip(shape, widths, strict=True))
    z = (features[0][:, :1] - 3) @ (features[1][:, :1] - 3).T / 4
    while True:
        grid = (random.random(shape) < 1 / (1 + np.exp(-z))).astype(int)
        if (grid.sum(0) % shape[0] > 0).all() and (grid.sum(1) % shape[1] > 0).all():
            return grid, plain.log_of(grid, user_features=features[0], item_features=features[1]), features


def everywhere(propensities):
    return propensities.block(range(propensities.shape[0]), range(propensities.shape[1]))


def dense(grid, features, l2):
    matrix = plain.design(*grid.shape, *features)
    penalties = np.full(matrix.shape[1], l2)
    penalties[: 1 + sum(grid.shape)] = 0
    return matrix, penalties


def dense_fit(grid, features, l2):
    matrix, penalties = dense(grid, features, l2)
    return plain.probabilities(matrix, plain.newton(matrix, grid.ravel(), penalties)).reshape(grid.shape)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("l2", [0.1, 1.0, 50.0])
def test_the_fit_is_penalised_logistic_regression_with_products_of_features_and_free_constants(seed, l2):
    grid, log, features = example(seed)
    fitted = LogisticPropensity(l2=l2, floor=0).fit(log)
    assert np.allclose(everywhere(fitted), dense_fit(grid, features, l2), rtol=0, atol=1e-7)


def test_without_a_penalty_it_is_plain_maximum_likelihood():
    grid, log, features = example(2, (20, 18), (1, 1))
    fitted = LogisticPropensity(l2=0, floor=0).fit(log)
    assert np.allclose(everywhere(fitted), dense_fit(grid, features, 0.0), rtol=0, atol=1e-6)


def test_the_default_penalty_is_one():
    _, log, _ = example(3)
    default, named = LogisticPropensity().fit(log), LogisticPropensity(l2=1).fit(log)
    assert np.array_equal(everywhere(default), everywhere(named))


@pytest.mark.parametrize("l2", [0.1, 5.0])
def test_margins_are_met_and_the_gradient_vanishes(l2):
    grid, log, features = example(4)
    fitted = fit_with_features(log, l2=l2)
    p = everywhere(LogisticPropensity(l2=l2, floor=0).fit(log))
    scale = max(grid.sum(0).max(), grid.sum(1).max())
    assert fitted.gradient < 1e-8
    assert np.abs(p.sum(1) - grid.sum(1)).max() < 1e-8 * scale
    assert np.abs(p.sum(0) - grid.sum(0)).max() < 1e-8 * scale
    users, items = (plain.standardised(of) for of in features)
    of_products = users.T @ (grid - p) @ items - l2 * fitted.coefficients[:6].reshape(2, 3)
    assert np.abs(of_products).max() < 1e-8 * scale


@pytest.mark.parametrize("value", [0, 1])
def test_margins_are_met_where_somebody_is_never_or_always_observed(value):
    grid, _, (users, items) = example(5)
    grid[0] = value
    p = everywhere(LogisticPropensity(floor=0).fit(plain.log_of(grid, user_features=users, item_features=items)))
    scale = max(grid.sum(0).max(), grid.sum(1).max())
    assert np.abs(p.sum(1) - grid.sum(1)).max() < 1e-8 * scale
    assert np.abs(p.sum(0) - grid.sum(0)).max() < 1e-8 * scale


@pytest.mark.parametrize("sides", [("user_features",), ("item_features",), ()])
def test_features_count_only_if_both_sides_have_them(sides):
    grid, _, features = example(6)
    given_features = dict(zip(("user_features", "item_features"), features, strict=True))
    log = plain.log_of(grid, **{side: given_features[side] for side in sides})
    plain_fit = LogisticPropensity().fit(plain.log_of(grid))
    assert np.array_equal(everywhere(LogisticPropensity().fit(log)), everywhere(plain_fit))


def test_features_can_be_left_aside():
    grid, log, _ = example(7)
    aside, without = LogisticPropensity(features=False).fit(log), LogisticPropensity().fit(plain.log_of(grid))
    assert np.array_equal(everywhere(aside), everywhere(without))
    assert not np.allclose(everywhere(aside), everywhere(LogisticPropensity().fit(log)), atol=1e-2)


@settings(max_examples=10)
@given(st.floats(0.01, 100), st.floats(-50, 50), st.sampled_from([1, -1]))
def test_units_and_origin_of_features_do_not_matter(scale, shift, sign):
    grid, log, (users, items) = example(8)
    other = plain.log_of(grid, user_features=sign * scale * users + shift, item_features=items - shift)
    expected = everywhere(LogisticPropensity().fit(log))
    assert np.allclose(everywhere(LogisticPropensity().fit(other)), expected, rtol=0, atol=1e-7)


def test_features_that_are_constant_or_repeated_change_nothing_much():
    grid, _, (users, items) = example(9)
    constant = np.ones((len(users), 1))
    log = plain.log_of(grid, user_features=np.hstack([users, constant]), item_features=items)
    expected = everywhere(LogisticPropensity().fit(plain.log_of(grid, user_features=users, item_features=items)))
    assert np.allclose(everywhere(LogisticPropensity().fit(log)), expected, rtol=0, atol=1e-7)
    useless = plain.log_of(grid, user_features=constant, item_features=items)
    without = everywhere(LogisticPropensity().fit(plain.log_of(grid)))
    assert np.allclose(everywhere(LogisticPropensity().fit(useless)), without, rtol=0, atol=1e-7)


def test_pairs_and_rectangles_agree():
    _, log, _ = example(10)
    fitted = LogisticPropensity().fit(log)
    users, items = np.divmod(np.arange(log.n_cells), log.n_items)
    assert np.allclose(fitted.at(users, items), everywhere(fitted).ravel(), rtol=1e-12)


def test_a_solution_is_a_dense_one():
    grid, log, features = example(11)
    fitted = fit_with_features(log, l2=0.5)
    matrix, penalties = dense(grid, features, 0.5)
    p = everywhere(LogisticPropensity(l2=0.5, floor=0).fit(log)).ravel()
    values = np.random.default_rng(0).normal(size=grid.size)
    users, items = np.divmod(np.arange(grid.size), grid.shape[1])
    solved = fitted.solve(fitted.adjoint(users, items, values), tolerance=1e-10)
    inverse = np.linalg.pinv(plain.hessian(matrix, p, penalties), rcond=1e-12)
    expected = matrix @ inverse @ matrix.T @ values
    assert np.allclose(fitted.logits_of(solved).cells(users, items), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", [12, 13])
def test_the_change_of_the_variance_is_the_dense_formula(seed):
    grid, log, features = example(seed)
    fitted = LogisticPropensity(l2=0.5, floor=0).fit(log)
    matrix, penalties = dense(grid, features, 0.5)
    random = np.random.default_rng(seed)
    slopes, influence = random.normal(size=(2, len(log)))
    rows = np.flatnonzero(grid.ravel())
    expected = plain.variance_change(matrix, everywhere(fitted).ravel(), penalties, rows, slopes, influence)
    assert fitted.variance_change(log, slopes, influence) == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("widths", [(2, 4), pytest.param((None, None), marks=pytest.mark.long)])
def test_coat_is_fitted_with_its_features(real_data, widths):
    log = load_dataset("coat", data_home=real_data("coat")).train
    if log.user_features is None or log.item_features is None:
        pytest.skip("this copy of Coat has no features")
    users, items = log.user_features[:, : widths[0]], log.item_features[:, : widths[1]]
    log = replace(log, user_features=users, item_features=items)
    fitted = LogisticPropensity(floor=0).fit(log)
    p = everywhere(fitted)
    by_user, by_item = np.bincount(log.users, minlength=290), np.bincount(log.items, minlength=300)
    scale = max(by_user.max(), by_item.max())
    assert np.abs(p.sum(1) - by_user).max() < 1e-8 * scale
    assert np.abs(p.sum(0) - by_item).max() < 1e-8 * scale
    # The features say something: observed pairs are more likely than under the constants alone.
    two_way = LogisticPropensity(features=False, floor=0).fit(log)
    assert np.log(fitted.at(log.users, log.items)).mean() > np.log(two_way.at(log.users, log.items)).mean()
