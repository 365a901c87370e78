"""Propensities that somebody knows: a matrix, a function, cells, a column of the log."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plain_formulas import propensities as plain
from refusals import check_refusal
from verirec import ConstantPropensity, FeedbackLog, GivenPropensity, LoggedPropensity
from verirec.data.cells import DenseCells
from verirec.exceptions import ParameterError, PositionError, PropensityError
from verirec.nuisance.propensities import as_propensities

MATRIX = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 1.0]])
LOG = plain.log_of([[1, 0, 1], [0, 1, 1]], propensities=[0.1, 0.25, 0.5, 1.0])


def by_function(users, items):
    return MATRIX[users, items]


FORMS = {"matrix": MATRIX, "list": MATRIX.tolist(), "function": by_function, "cells": DenseCells(MATRIX)}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_propensities(form):
    propensities = as_propensities(FORMS[form], LOG)
    assert isinstance(propensities, GivenPropensity)
    assert propensities.shape == (2, 3)
    assert propensities.at([0, 1, 1], [2, 0, 2]).tolist() == [0.3, 0.4, 1.0]
    assert propensities.block([1, 0], [2, 0]).tolist() == [[1.0, 0.4], [0.3, 0.1]]
    assert propensities.inverse_total == pytest.approx(sum(1 / p for p in MATRIX.ravel()))


@pytest.mark.parametrize("form", FORMS)
def test_a_floor_raises_what_is_below_it_and_nothing_else(form):
    floored = GivenPropensity(FORMS[form], floor=0.35).on_grid((2, 3))
    assert floored.floor == 0.35
    assert floored.block([0, 1], [0, 1, 2]).tolist() == [[0.35, 0.35, 0.35], [0.4, 0.5, 1.0]]
    assert floored.inverse_total == pytest.approx(sum(1 / max(p, 0.35) for p in MATRIX.ravel()))
    assert floored.count_floored(LOG) == 2


def test_a_function_gets_flat_positions_and_the_grid_of_the_log():
    seen = []

    def constant(users, items):
        seen.append((users.shape, items.shape))
        return np.full(len(users), 0.5)

    propensities = as_propensities(GivenPropensity(constant), LOG)
    assert propensities.shape == (2, 3)
    assert propensities.block([0, 1], [0, 1, 2]).shape == (2, 3)
    assert seen == [((6,), (6,))]


def test_a_matrix_of_integers_or_truth_values_is_one_of_numbers():
    assert GivenPropensity(np.ones((2, 2), int)).at([0], [1]).tolist() == [1.0]
    assert GivenPropensity(np.ones((2, 2), bool)).at([0], [1]).tolist() == [1.0]


def test_known_propensities_change_no_variance():
    ones = np.ones(len(LOG))
    assert GivenPropensity(MATRIX).variance_change(LOG, -ones, ones) == 0
    assert LoggedPropensity(LOG).variance_change(LOG, -ones, ones) == 0


@given(st.lists(st.sampled_from([0.0, -0.5, 1.5, math.nan, math.inf, 0.5, 1.0]), min_size=1, max_size=12))
def test_the_error_counts_the_values_that_are_no_propensities(values):
    wrong = [value for value in values if not 0 < value <= 1]
    matrix = np.array([values])
    if wrong:
        check_refusal(
            lambda: GivenPropensity(matrix),
            PropensityError,
            rf"^propensities must be above 0 and at most 1; {len(wrong)} of {len(values)} are not "
            rf"\(first: {wrong[0]:g}\)$",
        )
    else:
        assert GivenPropensity(matrix).block([0], range(len(values))).tolist() == [values]


WRONG = r"^propensities must be above 0 and at most 1; "
NEITHER = r"^given propensities must be a matrix of numbers or a function of \(users, items\); got "


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.1, 0.0]], WRONG + r"1 of 2 are not \(first: 0\)$"),
        ([[0.1, -0.2], [0.0, 0.5]], WRONG + r"2 of 4 are not \(first: -0\.2\)$"),
        ([[1.5]], WRONG + r"1 of 1 are not \(first: 1\.5\)$"),
        ([[math.nan]], WRONG + r"1 of 1 are not \(first: nan\)$"),
        ([[True, False]], WRONG + r"1 of 2 are not \(first: 0\)$"),
        (np.zeros((40, 50)), WRONG + r"2,000 of 2,000 are not \(first: 0\)$"),
        ([0.5, 0.5], NEITHER + r"float64 of shape \(2,\)$"),
        (0.5, NEITHER + r"float64 of shape \(\)$"),
        (None, NEITHER + r"object of shape \(\)$"),
        ("logistic", NEITHER),
        ([["a"]], NEITHER),
        ([[0.5 + 1j]], NEITHER),
        ([[0.5], [0.5, 0.5]], r"^propensities must be an array; got a list of uneven or unreadable parts$"),
        (np.ma.masked_array([[0.5, 0.5]], [[True, False]]), r"^propensities must not be masked; 1 of 2 values are$"),
        (np.ones((2, 2, 2)), NEITHER),
        (ConstantPropensity(), NEITHER + r"object of shape \(\)$"),
        (ConstantPropensity, NEITHER + r"object of shape \(\)$"),
    ],
)
def test_what_is_no_matrix_of_propensities_is_refused(values, message):
    check_refusal(lambda: GivenPropensity(values), PropensityError, message)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda users, items: np.zeros(len(users)), WRONG + r"2 of 2 are not \(first: 0\)$"),
        (lambda users, items: np.array([0.5, 1.5]), WRONG + r"1 of 2 are not \(first: 1\.5\)$"),
        (lambda users, items: np.full(len(users), np.nan), r"^the propensity function's result must be finite; 2 of 2"),
        (lambda users, items: 0.5, r"^the propensity function must give one number a pair, shape \(2,\); got \(\)$"),
        (lambda users, items: np.full((1, 2), 0.5), r"^the propensity function must give one number a pair"),
        (lambda users, items: np.array(["a", "b"]), r"^the propensity function's result must be numbers; got <U1$"),
        (lambda users, items: None, r"^the propensity function must give one number a pair"),
    ],
)
def test_a_function_must_give_a_propensity_for_each_pair(function, message):
    check_refusal(lambda: GivenPropensity(function).at([0, 1], [0, 1]), PropensityError, message)


def test_cells_are_checked_where_they_are_looked_at():
    cells = GivenPropensity(DenseCells(np.array([[0.5, 0.0]])))
    assert cells.at([0], [0]).tolist() == [0.5]
    check_refusal(lambda: cells.at([0, 0], [0, 1]), PropensityError, WRONG + r"1 of 2 are not \(first: 0\)$")


@pytest.mark.parametrize("floor", [-0.1, 1.1, math.nan, "0.1", None, True, [0.1]])
@pytest.mark.parametrize(
    "make", [lambda floor: GivenPropensity(MATRIX, floor=floor), lambda floor: LoggedPropensity(LOG, floor=floor)]
)
def test_a_floor_outside_the_unit_interval_is_refused(make, floor):
    check_refusal(lambda: make(floor), ParameterError, r"^floor must be a finite number at least 0 and at most 1; got ")


def test_the_logs_own_propensities_are_those_of_its_rows():
    logged = LoggedPropensity(LOG)
    assert logged.shape == (2, 3)
    assert logged.at(LOG.users, LOG.items).tolist() == [0.1, 0.25, 0.5, 1.0]
    assert logged.at([1, 0], [2, 0]).tolist() == [1.0, 0.1]
    assert LoggedPropensity(LOG, floor=0.3).at(LOG.users, LOG.items).tolist() == [0.3, 0.3, 0.5, 1.0]
    assert LoggedPropensity(LOG, floor=0.3).count_floored(LOG) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda of: of.at([0], [1]), r"^the log has no propensity for 1 of the 1 pairs that are needed$"),
        (lambda of: of.at([0, 0, 1], [0, 1, 0]), r"^the log has no propensity for 2 of the 3 pairs that are needed$"),
        (lambda of: of.block([0, 1], [0, 1, 2]), r"^the log has no propensity for 2 of the 6 pairs that are needed$"),
        (
            lambda of: of.inverse_total,
            r"^the sum of 1/p over the grid needs the propensities of all pairs; LoggedPropensity has those of "
            r"observed pairs only$",
        ),
    ],
)
def test_the_logs_own_propensities_are_not_known_elsewhere(call, message):
    check_refusal(lambda: call(LoggedPropensity(LOG)), PropensityError, message)


@pytest.mark.parametrize(
    ("log", "error", "message"),
    [
        (plain.log_of([[1, 0]]), PropensityError, r"^the log has no column of propensities; name one with propensity="),
        (None, ParameterError, r"^a FeedbackLog is needed; got NoneType$"),
        ("log", ParameterError, r"^a FeedbackLog is needed; got str$"),
        (FeedbackLog, ParameterError, r"^a FeedbackLog is needed; got type$"),
    ],
)
def test_only_a_log_with_propensities_has_some(log, error, message):
    check_refusal(lambda: LoggedPropensity(log), error, message)


@pytest.mark.parametrize(("users", "items"), [([2], [0]), ([-1], [0]), ([0], [3]), ([0.0], [0]), (["0"], [0])])
def test_positions_outside_the_grid_are_refused(users, items):
    for propensities in (GivenPropensity(MATRIX), LoggedPropensity(LOG)):
        with pytest.raises(PositionError):
            propensities.at(users, items)
