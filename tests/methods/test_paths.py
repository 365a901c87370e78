"""Paths of penalties: what is fitted, in which order, from where, and what is chosen."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from method_worlds import RATES, featured_log, matrix, method_of, small_world
from method_worlds import judge_often as judge_often

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import ParameterError
from verirec.methods.paths import PENALTIES, PenaltyPath, fit_path

pytestmark = pytest.mark.filterwarnings("ignore:learnt noise rates came out at most_rate")

LOG, GIVEN = small_world().log, {"propensities": small_world().propensities}
SHORT = {"epochs": 30}


def a_path(name="mf", values=(4, 1, 16), *, log=LOG, parameter="penalty_factors", given=GIVEN, **options):
    return fit_path(method_of(name, **SHORT | options), log, values, parameter=parameter, **given)


def test_values_are_sorted_and_taken_once():
    path = a_path(values=[4, 64, 4.0, np.float32(0.5), 64])
    assert path.values == (64.0, 4.0, 0.5)
    assert [one.penalty_factors for one in path.methods] == [64.0, 4.0, 0.5]
    assert isinstance(path, PenaltyPath)
    assert a_path(values=(one for one in (2, 3))).values == (3.0, 2.0)


@pytest.mark.parametrize("parameter", PENALTIES)
def test_any_penalty_can_be_gone_along(parameter):
    path = a_path(parameter=parameter, log=featured_log(), model="features", solver="gradient", epochs=6)
    assert path.parameter == parameter
    assert [getattr(one, parameter) for one in path.methods] == [16.0, 4.0, 1.0]
    others = [name for name in PENALTIES if name != parameter]
    assert all(getattr(one, other) == getattr(method_of("mf"), other) for one in path.methods for other in others)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "values must hold at least one penalty; got none"),
        ([1, -1], "values must be a finite number at least 0; got -1"),
        ([math.nan], "values must be a finite number at least 0; got nan"),
        ([math.inf], "values must be a finite number at least 0; got inf"),
        (["much"], "values must be a finite number"),
        ([None], "values must be a finite number"),
    ],
)
def test_values_must_be_penalties(values, message):
    check_refusal(lambda: a_path(values=values), ParameterError, message)


@pytest.mark.parametrize("parameter", ["dim", "penalty", "learning_rate", None])
def test_the_parameter_must_be_a_penalty(parameter):
    message = "parameter must be one of penalty_constants, penalty_factors, penalty_features; got"
    check_refusal(lambda: a_path(parameter=parameter), ParameterError, message)


def test_other_parameters_are_looked_at_as_ever():
    check_refusal(lambda: a_path(dim=0), ParameterError, "dim must be a whole number")


def test_the_best_is_the_one_with_the_least_held_out_error():
    path = a_path(values=[64, 16, 4, 1, 0.01])
    errors = [one.held_out_error_ for one in path.methods]
    assert path.best.held_out_error_ == min(errors)
    assert path.best is path.methods[int(np.argmin(errors))]


def test_without_held_out_rows_there_is_no_best():
    path = a_path(validation=0)
    assert all(math.isnan(one.held_out_error_) for one in path.methods)
    check_refusal(
        lambda: path.best, ParameterError, r"without held-out rows \(validation=0\) there is nothing to choose"
    )


def test_a_penalty_below_the_bound_is_refused_along_the_way():
    call = lambda: a_path("ome", [90, 0.1], validation=0, given=GIVEN | {"noise_rates": RATES})  # noqa: E731
    check_refusal(call, ParameterError, "the loss of ome may have no minimum: take at least")


@pytest.mark.parametrize("solver", ["sweep", "gradient"])
@pytest.mark.parametrize("name", ["mf", "ome-dr"])
def test_the_first_fit_is_a_plain_one(name, solver):
    path = a_path(name, [8, 32], solver=solver)
    plain = method_of(name, **SHORT, solver=solver, penalty_factors=32.0).fit(LOG, **GIVEN)
    np.testing.assert_array_equal(matrix(path.methods[0]), matrix(plain))
    assert path.methods[0].history_ == plain.history_
    assert path.methods[0].held_out_error_ == plain.held_out_error_


@pytest.mark.parametrize("solver", ["sweep", "gradient"])
def test_the_same_path_twice_is_the_same(solver):
    one, again = (a_path("ome-dr", solver=solver) for _ in range(2))
    for left, right in zip(one.methods, again.methods, strict=True):
        np.testing.assert_array_equal(matrix(left), matrix(right))
    assert one.frame().equals(again.frame())


def test_the_method_that_is_given_is_not_trained():
    method = method_of("mf", **SHORT)
    before = method.get_params()
    fit_path(method, LOG, [4, 1], **GIVEN)
    assert not hasattr(method, "model_")
    assert method.get_params() == before


def test_each_fit_has_a_model_of_its_own():
    path = a_path(values=[16, 1])
    kept = matrix(path.methods[0])
    with torch.no_grad():
        path.methods[1].model_.user_factors += 1
    np.testing.assert_array_equal(matrix(path.methods[0]), kept)


def test_later_fits_are_short_and_near_to_where_they_lead():
    """By sweeps without held-out rows, each value's own optimum."""
    options = {"validation": 0, "patience": None, "epochs": 600, "dim": 2}
    path = a_path(values=[8, 5], **options)
    assert len(path.methods[1].history_) <= max(2, len(path.methods[0].history_) // 6)
    options |= {"penalty_factors": 5.0}
    np.testing.assert_allclose(matrix(path.methods[1]), matrix(method_of("mf", **options).fit(LOG, **GIVEN)), atol=0.05)


@pytest.mark.parametrize("solver", ["sweep", "gradient"])
def test_factors_that_collapsed_can_grow_again(solver):
    options = {"validation": 0, "epochs": 120, "batch_size": 2_000, "solver": solver}
    path = a_path(values=[1_000, 0.5], **options)
    spread = [float((one.model_.user_factors @ one.model_.item_factors.T).detach().std()) for one in path.methods]
    assert spread[0] < 1e-3
    assert spread[1] > 0.1


def test_progress_hears_of_every_fit():
    heard = []
    path = fit_path(method_of("mf", **SHORT), LOG, [1, 4], progress=lambda *at: heard.append(at), **GIVEN)
    assert heard == [(1, 2, path.methods[0].held_out_error_), (2, 2, path.methods[1].held_out_error_)]


def test_the_table_has_a_row_for_each_penalty():
    path = a_path(parameter="penalty_constants")
    table = path.frame()
    assert list(table.columns) == ["penalty_constants", "held_out_error", "epochs", "stopped_because"]
    assert table["penalty_constants"].tolist() == [16.0, 4.0, 1.0]
    assert table["held_out_error"].tolist() == [one.held_out_error_ for one in path.methods]
    assert table["epochs"].tolist() == [len(one.history_) for one in path.methods]
    assert table["stopped_because"].tolist() == [one.stopped_because_ for one in path.methods]
    assert path._repr_html_().count("<tr") == 4


def test_propensities_are_fitted_once():
    class Counted(vr.LogisticPropensity):
        fits = 0

        def fit(self, log):
            Counted.fits += 1
            return super().fit(log)

    a_path("ips", given={"propensities": Counted()})
    assert Counted.fits == 1


def test_rates_are_learnt_anew_by_each_fit():
    h = np.random.default_rng(8).uniform(0.08, 0.88, (30, 40))
    path = a_path("ome-dr", h=h, refresh_after=1)
    for one in path.methods:
        assert (one.history_[0]["rho01"], one.history_[0]["rho10"]) == pytest.approx((1 - h.max(), h.min()))


def test_weights_of_features_are_started_from_too():
    """With penalties all but alike, a second fit goes on as the first would have."""
    options = {"model": "features", "validation": 0, "epochs": 12, "patience": None, "penalty_factors": 1.0}
    values, given = [4, 4.000001], {"log": featured_log(), "parameter": "penalty_constants"}
    first, second = a_path(values=values, **given, **options).methods
    longer = method_of("mf", **options | {"epochs": 13}).fit(featured_log(), **GIVEN)
    assert len(first.history_) == 12
    assert second.history_[0]["loss"] == pytest.approx(longer.history_[12]["loss"], rel=1e-5)
