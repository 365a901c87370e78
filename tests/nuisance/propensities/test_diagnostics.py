"""What the diagnostics of weights say, against loops, and when they warn."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from held import HALF_A_NUMBER, held_a_row
from plain_formulas import propensities as plain
from refusals import check_refusal
from verirec import ConstantPropensity, GivenPropensity, LoggedPropensity, LogisticPropensity
from verirec.exceptions import EmptyLogError, ParameterError, PositionError

GRID = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 1, 1]])
LOG = plain.log_of(GRID)
MATRICES = st.lists(st.lists(st.floats(0.01, 1), min_size=4, max_size=4), min_size=3, max_size=3)


def simulated(seed=0, shape=(200, 100), level=-1.0):
    """Give true propensities of a grid, and a log drawn from them."""
    random = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-random.normal(level, 0.7, (shape[0], 1)) - random.normal(0, 0.7, shape[1])))
    return p, plain.log_of((random.random(shape) < p).astype(int))


def weights_of(matrix, log=LOG):
    return [1 / matrix[user][item] for user, item in zip(log.users, log.items, strict=True)]


@given(MATRICES)
def test_sizes_weights_and_mass_are_their_formulas(matrix):
    weights = weights_of(matrix)
    seen = GivenPropensity(matrix).diagnostics(LOG)
    assert seen.rows == 8
    assert seen.effective_sample_size == pytest.approx(plain.effective_sample_size(weights), rel=1e-9)
    assert seen.largest_weights == pytest.approx(sorted(weights, reverse=True)[:5], rel=1e-12)
    assert seen.largest_share == pytest.approx(max(weights) / sum(weights), rel=1e-9)
    assert seen.mass == pytest.approx(sum(weights) / 12, rel=1e-9)
    assert (seen.floor, seen.floored) == (0.0, 0)


@given(MATRICES)
def test_balance_is_its_formula(matrix):
    weights = weights_of(matrix)
    seen = GivenPropensity(matrix).diagnostics(LOG)
    assert seen.balance == {
        "user activity": pytest.approx(plain.imbalance(LOG.users.tolist(), 3, weights), rel=1e-9, abs=1e-9),
        "item popularity": pytest.approx(plain.imbalance(LOG.items.tolist(), 4, weights), rel=1e-9, abs=1e-9),
    }


def test_a_log_without_differences_is_balanced():
    seen = ConstantPropensity().fit(plain.log_of(np.eye(4, dtype=int))).diagnostics(plain.log_of(np.eye(4, dtype=int)))
    assert seen.balance == {"user activity": (0.0, 0.0), "item popularity": (0.0, 0.0)}


@given(st.floats(0.05, 1))
def test_equal_weights_are_worth_all_rows(p):
    seen = GivenPropensity(np.full((3, 4), p)).diagnostics(LOG)
    assert seen.effective_sample_size == pytest.approx(8, rel=1e-9)
    assert seen.largest_share == pytest.approx(1 / 8)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_weights_of_the_fitted_model_add_up_to_the_grid_and_balance_it(seed):
    _, log = simulated(seed)
    seen = LogisticPropensity().fit(log).diagnostics(log)
    assert seen.mass == pytest.approx(1, abs=0.02)
    for plainly, weighted in seen.balance.values():
        assert abs(weighted) < 0.05 < abs(plainly)
    assert seen.warnings == ()


def test_the_calibration_of_true_propensities_is_near_the_diagonal():
    p, log = simulated(3)
    table = GivenPropensity(p).diagnostics(log).calibration
    assert len(table) == 10
    assert [predicted for predicted, _ in table] == sorted(predicted for predicted, _ in table)
    for predicted, share in table:
        # 2,000 cells a group, and a sample of the grid tells how many they are to about 1%.
        assert share == pytest.approx(predicted, abs=4 * np.sqrt(predicted / 2_000) + 0.04 * predicted)


def test_the_calibration_of_wrong_propensities_is_off_the_diagonal():
    p, log = simulated(3)
    table = GivenPropensity(1 - p).diagnostics(log).calibration
    assert table[0][0] < 0.5 < table[0][1] or table[-1][0] > 0.8 > table[-1][1]
    assert max(abs(predicted - share) for predicted, share in table) > 0.3


def test_the_calibration_of_a_constant_is_one_group():
    _, log = simulated(4)
    assert ConstantPropensity().fit(log).diagnostics(log).calibration == (
        (pytest.approx(log.density), pytest.approx(log.density)),
    )


def test_without_propensities_of_the_grid_there_is_no_calibration():
    log = plain.log_of(GRID, propensities=np.full(8, 0.5))
    seen = LoggedPropensity(log).diagnostics(log)
    assert seen.calibration == ()
    assert seen.mass == pytest.approx(16 / 12)


def test_diagnostics_are_the_same_every_time():
    p, log = simulated(5)
    assert GivenPropensity(p).diagnostics(log) == GivenPropensity(p).diagnostics(log)


def test_diagnostics_are_ready_for_json():
    p, log = simulated(6)
    seen = GivenPropensity(p, floor=0.2).diagnostics(log)
    read = json.loads(json.dumps(seen.to_dict()))
    assert read["mass"] == seen.mass
    assert read["floored"] == seen.floored > 0
    assert read["warnings"] == list(seen.warnings)
    assert read["balance"]["user activity"] == list(seen.balance["user activity"])


def test_the_floor_and_the_rows_it_changed_are_named():
    seen = GivenPropensity(np.full((3, 4), 0.5), floor=0.6).diagnostics(LOG)
    assert (seen.floor, seen.floored) == (0.6, 8)
    assert seen.largest_weights[0] == pytest.approx(1 / 0.6)


def one_heavy_row(n_rows, p):
    """Give a log of one item that all users rated, the first one with propensity p and the others nearly surely."""
    grid = np.ones((n_rows, 1), int)
    log = plain.log_of(grid)
    matrix = np.full((n_rows, 1), 0.999)
    matrix[0] = p
    return GivenPropensity(matrix), log


def skewed(shape, side):
    """Give a log in which a quarter of users (or items) has nearly all rows, and the density as propensity."""
    grid = np.zeros(shape, int)
    grid[: shape[0] // 4] = 1
    grid[shape[0] // 4 :, 0] = 1
    grid = grid if side == "user" else grid.T
    log = plain.log_of(grid)
    return ConstantPropensity().fit(log), log


def fitted_well(seed=0):
    p, log = simulated(seed)
    return GivenPropensity(p), log


def floored(floor):
    p, log = simulated(0)
    return GivenPropensity(p, floor=floor), log


def of_mass(factor):
    """Give propensities that are wrong by a factor."""
    _, log = simulated(0, level=-1.5)
    right = LogisticPropensity(floor=0).fit(log)
    return GivenPropensity(np.minimum(right.block(range(200), range(100)) * factor, 1)), log


@pytest.mark.parametrize(
    ("triggers", "does_not", "start", "rest"),
    [
        (
            lambda: one_heavy_row(1_000, 1e-6),
            lambda: one_heavy_row(1_000, 0.02),
            "overlap is poor: ",
            r"1,000 weighted rows are worth 1 equally weighted ones",
        ),
        (
            lambda: one_heavy_row(101, 0.4),
            lambda: one_heavy_row(100, 0.4),
            "one row carries ",
            r"2\.4% of all weight",
        ),
        (
            lambda: one_heavy_row(1_000, 0.05),
            lambda: one_heavy_row(1_000, 0.2),
            "one row carries ",
            r"2\.0% of all weight",
        ),
        (
            lambda: of_mass(1.25),
            lambda: of_mass(1.05),
            "the weights add up to ",
            r"0\.80 of the grid where 1 is right: the propensities do not fit the log",
        ),
        (
            lambda: of_mass(0.8),
            lambda: of_mass(0.95),
            "the weights add up to ",
            r"1\.2\d of the grid where 1 is right: the propensities do not fit the log",
        ),
        (
            lambda: skewed((40, 30), "user"),
            fitted_well,
            "weighted rows and grid differ in user activity ",
            r"by \+\d\.\d\d standard deviations",
        ),
        (
            lambda: skewed((40, 30), "item"),
            fitted_well,
            "weighted rows and grid differ in item popularity ",
            r"by \+\d\.\d\d standard deviations",
        ),
        (
            lambda: floored(0.1),
            lambda: floored(0.001),
            "the floor changed the weights of ",
            r"[\d,]+ of [\d,]+ rows",
        ),
    ],
    ids=["overlap", "heavy row, by number", "heavy row, by share", "mass low", "mass high", "users", "items", "floor"],
)
def test_each_warning_is_given_where_it_should_and_not_elsewhere(triggers, does_not, start, rest):
    said, not_said = (of.diagnostics(log).warnings for of, log in (triggers(), does_not()))
    assert [bool(re.fullmatch(start + rest, one)) for one in said if one.startswith(start)] == [True]
    assert [one for one in not_said if one.startswith(start)] == []


def test_true_propensities_of_a_fair_log_raise_no_warning():
    propensities, log = fitted_well(7)
    assert propensities.diagnostics(log).warnings == ()


@pytest.mark.parametrize("log", [None, "log", object, np.eye(3)])
def test_only_a_log_can_be_looked_at(log):
    propensities = GivenPropensity(np.full((3, 4), 0.5))
    check_refusal(lambda: propensities.diagnostics(log), ParameterError, r"^a FeedbackLog is needed; got ")


def test_a_log_of_a_larger_grid_is_refused():
    propensities = GivenPropensity(np.full((2, 2), 0.5))
    check_refusal(lambda: propensities.diagnostics(LOG), PositionError, r"^users must be positions from 0 to 1")


MESSAGE = "^diagnostics need a log with rows; it has none$"


def test_a_log_without_rows_is_refused():
    propensities = GivenPropensity(np.full((3, 4), 0.5))
    check_refusal(lambda: propensities.diagnostics(LOG.select([])), EmptyLogError, MESSAGE)


def test_nothing_is_as_long_as_the_log(in_small_parts):
    def work(log):
        given = LogisticPropensity().fit(log)
        return lambda: given.diagnostics(log)

    assert held_a_row(work) < HALF_A_NUMBER
