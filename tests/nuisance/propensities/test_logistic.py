"""The logistic model as estimators use it: its floor, and what learning it does to an estimate's variance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from held import HALF_A_NUMBER, held_a_row
from plain_formulas import propensities as plain
from refusals import check_refusal
from verirec import FeedbackLog, LogisticPropensity, Propensities
from verirec.exceptions import EmptyLogError, ParameterError

LOGS = 300


def example(seed=0, shape=(12, 9)):
    random = np.random.default_rng(seed)
    z = random.normal(0, 0.7, (shape[0], 1)) + random.normal(0, 0.7, shape[1])
    while True:
        grid = (random.random(shape) < 1 / (1 + np.exp(-z))).astype(int)
        if (grid.sum(0) % shape[0] > 0).all() and (grid.sum(1) % shape[1] > 0).all():
            return grid, plain.log_of(grid)


def everywhere(propensities):
    return propensities.block(range(propensities.shape[0]), range(propensities.shape[1]))


def dense_change(grid, log, fitted, l2, slopes, influence):
    penalties = np.concatenate([[0.0], np.full(sum(grid.shape), l2)])
    rows = log.users.astype(int) * log.n_items + log.items
    return plain.variance_change(
        plain.design(*grid.shape), everywhere(fitted).ravel(), penalties, rows, slopes, influence
    )


@pytest.mark.parametrize("l2", [0, 0.3])
def test_propensities_of_a_log_are_logistic_regression_on_its_grid(l2):
    grid, log = example()
    design = plain.design(*grid.shape)
    penalties = np.concatenate([[0.0], np.full(sum(grid.shape), float(l2))])
    expected = plain.probabilities(design, plain.newton(design, grid.ravel(), penalties)).reshape(grid.shape)
    fitted = LogisticPropensity(l2=l2, floor=0).fit(log)
    assert isinstance(fitted, Propensities)
    assert fitted.shape == grid.shape
    assert np.allclose(everywhere(fitted), expected, rtol=0, atol=1e-9)


def test_the_order_of_rows_and_their_labels_do_not_matter():
    _, log = example(1)
    shuffled = log.select(np.random.default_rng(0).permutation(len(log)))
    expected = everywhere(LogisticPropensity().fit(log))
    assert np.array_equal(everywhere(LogisticPropensity().fit(shuffled)), expected)
    assert np.array_equal(everywhere(LogisticPropensity().fit(log.with_labels(1 - log.labels))), expected)


def test_without_features_the_default_is_plain_maximum_likelihood():
    _, log = example(2)
    assert np.array_equal(everywhere(LogisticPropensity().fit(log)), everywhere(LogisticPropensity(l2=0).fit(log)))


def test_the_default_floor_is_a_hundredth_of_the_density():
    grid, _ = example(3)
    grid[0] = 0
    log = plain.log_of(grid)
    p = everywhere(LogisticPropensity().fit(log))
    assert LogisticPropensity().fit(log).floor == pytest.approx(log.density / 100)
    assert p[0].tolist() == pytest.approx([log.density / 100] * log.n_items)
    assert (everywhere(LogisticPropensity(floor=0).fit(log))[0] < 1e-12).all()


@pytest.mark.parametrize("floor", [0.0, 0.2, 0.55, 1.0])
def test_the_total_of_inverse_propensities_is_that_of_all_cells(floor):
    _, log = example(4)
    fitted = LogisticPropensity(floor=floor).fit(log)
    expected = sum(1 / max(p, floor) for row in everywhere(LogisticPropensity(floor=0).fit(log)).tolist() for p in row)
    assert fitted.inverse_total == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("l2", [0.0, 0.5])
@pytest.mark.parametrize("seed", [5, 6, 7])
def test_the_change_of_the_variance_is_the_dense_formula(seed, l2):
    grid, log = example(seed)
    fitted = LogisticPropensity(l2=l2, floor=0).fit(log)
    slopes, influence = np.random.default_rng(seed).normal(size=(2, len(log)))
    expected = dense_change(grid, log, fitted, l2, slopes, influence)
    assert fitted.variance_change(log, slopes, influence) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("value", [0, 1])
def test_the_change_of_the_variance_is_the_dense_formula_where_a_user_is_set_apart(value):
    grid, _ = example(8)
    grid[3] = value
    log = plain.log_of(grid)
    fitted = LogisticPropensity(floor=0).fit(log)
    slopes, influence = np.random.default_rng(0).normal(size=(2, len(log)))
    # Who is always observed neither learns nor teaches: the grid without them gives the same.
    others, rows = np.delete(grid, 3, axis=0), log.users != 3
    expected = dense_change(
        others,
        plain.log_of(others),
        LogisticPropensity(floor=0).fit(plain.log_of(others)),
        0.0,
        slopes[rows],
        influence[rows],
    )
    assert fitted.variance_change(log, slopes, influence) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("seed", [9, 10, 11])
def test_learning_takes_variance_away_from_a_weighted_sum(seed):
    """With slopes of minus the influence, as of a sum of e/p, the change is minus a square."""
    _, log = example(seed, (30, 25))
    fitted = LogisticPropensity(floor=0).fit(log)
    errors = np.random.default_rng(seed).uniform(0.5, 1.5, len(log))
    influence = errors / fitted.at(log.users, log.items) / log.n_cells
    assert fitted.variance_change(log, -influence, influence) < 0


def test_an_estimate_that_does_not_depend_on_propensities_is_left_alone():
    _, log = example(12)
    fitted = LogisticPropensity().fit(log)
    assert fitted.variance_change(log, np.zeros(len(log)), np.ones(len(log))) == 0


@settings(max_examples=20)
@given(st.floats(0.01, 100))
def test_the_change_grows_with_the_square_of_the_units(scale):
    _, log = example(13)
    fitted = LogisticPropensity().fit(log)
    slopes, influence = np.random.default_rng(0).normal(size=(2, len(log)))
    once = fitted.variance_change(log, slopes, influence)
    assert fitted.variance_change(log, scale * slopes, scale * influence) == pytest.approx(scale**2 * once, rel=1e-9)


def test_rows_at_the_floor_do_not_move_with_the_constants():
    _, log = example(14)
    fitted = LogisticPropensity(floor=1.0 - 1e-3).fit(log)
    assert fitted.count_floored(log) == len(log)
    influence = np.ones(len(log))
    assert fitted.variance_change(log, -influence, influence) == 0


@pytest.mark.parametrize("seed", [14, 15])
def test_the_rows_that_the_floor_holds_have_no_slope_and_the_others_keep_theirs(seed):
    grid, log = example(seed)
    free = LogisticPropensity(floor=0).fit(log)
    p = free.at(log.users, log.items)
    fitted = LogisticPropensity(floor=float(np.quantile(p, 0.4))).fit(log)
    slopes, influence = np.random.default_rng(seed).normal(size=(2, len(log)))
    assert 0 < fitted.count_floored(log) < len(log)
    expected = dense_change(grid, log, free, 0.0, np.where(p < fitted.floor, 0.0, slopes), influence)
    assert fitted.variance_change(log, slopes, influence) == pytest.approx(expected, rel=1e-7, abs=1e-9)


def simulated_errors(shape, level, errors_of):
    """Simulate `LOGS` logs; give the standard deviation of the weighted estimates, and both predictions of it."""
    random = np.random.default_rng(2024)
    p = 1 / (1 + np.exp(-random.normal(level, 0.6, (shape[0], 1)) - random.normal(0, 0.6, shape[1])))
    errors = errors_of(random, p)
    values, changed, unchanged = [], [], []
    for _ in range(LOGS):
        log = plain.log_of((random.random(shape) < p).astype(int))
        fitted = LogisticPropensity(floor=0).fit(log)
        learned = fitted.at(log.users, log.items)
        influence = errors[log.users, log.items] / learned / log.n_cells
        values.append(influence.sum())
        unchanged.append(float((1 - learned) @ influence**2))
        changed.append(unchanged[-1] + fitted.variance_change(log, -influence, influence))
    assert np.mean(values) == pytest.approx(errors.mean(), abs=4 * np.std(values) / math.sqrt(LOGS) + 0.005)
    return np.std(values, ddof=1), math.sqrt(np.mean(changed)), math.sqrt(np.mean(unchanged))


@pytest.mark.parametrize(
    "errors_of",
    [
        lambda random, p: random.random(p.shape),
        lambda random, p: random.exponential(1, p.shape),
        lambda random, p: 2 * p * random.random(p.shape),
    ],
    ids=["uniform", "exponential", "larger where observed"],
)
def test_the_standard_error_of_a_weighted_estimate_is_that_of_simulated_logs(errors_of):
    """300 logs tell a standard deviation to 4% of itself: three times that is allowed.

    1,500 logs have it 2% too small to 7% too large; taken as known, the propensities would make it at least 30% too
    large.
    """
    simulated, changed, unchanged = simulated_errors((60, 50), 0.5, errors_of)
    assert 0.88 * simulated < changed < 1.12 * simulated
    assert unchanged > 1.3 * simulated


def test_where_constants_explain_nearly_all_the_standard_error_errs_on_the_wide_side():
    """Errors that hardly differ, some ten rows a constant: 1.5 times as wide, and the 12% of 300 logs."""
    simulated, changed, unchanged = simulated_errors(
        (40, 30), -0.5, lambda random, p: 0.5 + 0.5 * random.random(p.shape)
    )
    assert simulated < changed < 1.65 * simulated
    assert changed < unchanged


SMALL = FeedbackLog.from_arrays([0, 1, 1], [0, 1, 0], [1, 0, 1], n_users=2, n_items=3)
EMPTY = SMALL.select([])
FEATURED = plain.log_of([[1, 0], [0, 1]], user_features=[[0.0], [1.0]], item_features=[[0.0], [1.0]])


@pytest.mark.parametrize("log", [SMALL, FEATURED], ids=["plain", "with features"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"l2": -1}, r"^l2 must be a finite number at least 0; got -1$"),
        ({"l2": 1e-10}, r"^l2 must be 0 or at least 1e-09, or it is lost in rounding; got 1e-10$"),
        ({"l2": "1"}, r"^l2 must be .*; got '1'$"),
        ({"l2": math.nan}, r"^l2 must be .*; got nan$"),
        ({"l2": math.inf}, r"^l2 must be .*; got inf$"),
        ({"l2": True}, r"^l2 must be .*; got True$"),
        ({"l2": [1]}, r"^l2 must be .*; got \[1\]$"),
        ({"l2": float}, r"^l2 must be .*; got <class 'float'>$"),
        ({"floor": -0.01}, r"^floor must be a finite number at least 0 and at most 1; got -0\.01$"),
        ({"floor": 1.01}, r"^floor must be .*; got 1\.01$"),
        ({"floor": "0"}, r"^floor must be .*; got '0'$"),
        ({"floor": math.nan}, r"^floor must be .*; got nan$"),
    ],
)
def test_settings_without_meaning_are_refused(log, arguments, message):
    check_refusal(lambda: LogisticPropensity(**arguments).fit(log), ParameterError, message)


@pytest.mark.parametrize("features", ["no", [], np.ones((2, 2))], ids=["string", "list", "matrix"])
def test_features_must_be_true_or_false(features):
    check_refusal(lambda: LogisticPropensity(features=features).fit(SMALL), ParameterError, "^features must be")


@pytest.mark.parametrize(
    ("log", "error", "message"),
    [
        (EMPTY, EmptyLogError, r"^propensities cannot be estimated from a log without rows$"),
        (None, ParameterError, r"^a FeedbackLog is needed; got NoneType$"),
        ("log", ParameterError, r"^a FeedbackLog is needed; got str$"),
        (FeedbackLog, ParameterError, r"^a FeedbackLog is needed; got type$"),
        (np.eye(2), ParameterError, r"^a FeedbackLog is needed; got ndarray$"),
    ],
)
def test_only_a_log_with_rows_can_be_learnt_from(log, error, message):
    check_refusal(lambda: LogisticPropensity().fit(log), error, message)


def test_a_fit_makes_nothing_as_long_as_the_log(in_small_parts):
    assert held_a_row(lambda log: lambda: LogisticPropensity().fit(log)) < HALF_A_NUMBER
