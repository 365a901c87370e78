"""Paths of penalties: what is fitted, in which order, from where, and what is chosen."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from method_worlds import RATES, featured_log, matrix, method_of, small_world
from method_worlds import validate_often as validate_often

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import ParameterError
from verirec.methods.paths import PENALTIES, PenaltyPath, fit_path

pytestmark = pytest.mark.filterwarnings("ignore:learnt noise rates came out at max_rate")

LOG, GIVEN = small_world().log, {"propensities": small_world().propensities}
SHORT = {"epochs": 30}


def a_path(name="mf", values=(4, 1, 16), *, log=LOG, parameter="penalty_factors", given=GIVEN, **options):
    return fit_path(method_of(name, **SHORT | options), log, values, parameter=parameter, **given)


def test_values_are_sorted_and_taken_once():
    path = a_path(values=[4, 64, 4.0, np.float32(0.5), 64])
    assert path.values == (0.5, 4.0, 64.0)
    assert [one.penalty_factors for one in path.methods] == [0.5, 4.0, 64.0]
    assert isinstance(path, PenaltyPath)
    assert a_path(values=(one for one in (3, 2))).values == (2.0, 3.0)


@pytest.mark.parametrize("parameter", PENALTIES)
def test_any_penalty_can_be_gone_along(parameter):
    path = a_path(parameter=parameter, log=featured_log(), model="features", solver="gradient", epochs=6)
    assert path.parameter == parameter
    assert [getattr(one, parameter) for one in path.methods] == [1.0, 4.0, 16.0]
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
        (5, r"values must be some penalties, such as \[4, 8, 16\]; got 5"),
        ("4, 8", "values must be some penalties"),
        (np.eye(2), "values must be some penalties"),
        ([None], "values must be a finite number"),
    ],
)
def test_values_must_be_penalties(values, message):
    check_refusal(lambda: a_path(values=values), ParameterError, message)


@pytest.mark.parametrize("method", [vr.methods.OMEDR, "ome-dr", None])
def test_the_method_must_be_one(method):
    check_refusal(lambda: fit_path(method, LOG, [1]), ParameterError, "method must be one of verirec.methods")


@pytest.mark.parametrize("parameter", ["dim", "penalty", "learning_rate", None])
def test_the_parameter_must_be_a_penalty(parameter):
    message = "parameter must be one of penalty_constants, penalty_factors, penalty_features; got"
    check_refusal(lambda: a_path(parameter=parameter), ParameterError, message)


def test_other_parameters_are_looked_at_as_ever():
    check_refusal(lambda: a_path(dim=-1), ParameterError, "dim must be a whole number")


def test_the_best_is_the_one_with_the_least_validation_error():
    path = a_path(values=[64, 16, 4, 1, 0.01])
    errors = [one.report_.validation_error for one in path.methods]
    assert path.best.report_.validation_error == min(errors)
    assert path.best is path.methods[int(np.argmin(errors))]


def test_without_held_out_rows_there_is_no_best():
    path = a_path(validation=0)
    assert all(math.isnan(one.report_.validation_error) for one in path.methods)
    check_refusal(
        lambda: path.best, ParameterError, r"without held-out rows \(validation=0\) there is nothing to choose"
    )


def test_a_penalty_below_the_bound_is_refused_along_the_way():
    call = lambda: a_path("ome", [90, 0.1], validation=0, given=GIVEN | {"noise_rates": RATES})  # noqa: E731
    check_refusal(call, ParameterError, "the loss of ome may have no minimum: take at least")


@pytest.mark.parametrize("solver", ["sweep", "gradient"])
@pytest.mark.parametrize("name", ["mf", "ome-dr"])
def test_the_first_fit_is_a_plain_one(name, solver):
    options = {"solver": solver, "epochs": 30 if solver == "sweep" else 8}
    path = a_path(name, [8, 32], **options)
    plain = method_of(name, **options, penalty_factors=8.0).fit(LOG, **GIVEN)
    np.testing.assert_array_equal(matrix(path.methods[0]), matrix(plain))
    assert path.methods[0].report_.history == plain.report_.history
    assert path.methods[0].report_.validation_error == plain.report_.validation_error


@pytest.mark.parametrize("solver", ["sweep", "gradient"])
def test_the_same_path_twice_is_the_same(solver):
    epochs = 30 if solver == "sweep" else 8
    one, again = (a_path("ome-dr", solver=solver, epochs=epochs) for _ in range(2))
    for left, right in zip(one.methods, again.methods, strict=True):
        np.testing.assert_array_equal(matrix(left), matrix(right))
    assert one.frame().equals(again.frame())


def test_the_method_that_is_given_is_not_trained():
    method = method_of("mf", **SHORT)
    before = method.get_params()
    fit_path(method, LOG, [4, 1], **GIVEN)
    assert not hasattr(method, "recommender_")
    assert method.get_params() == before


def test_each_fit_has_a_model_of_its_own():
    path = a_path(values=[16, 1])
    kept = matrix(path.methods[0])
    with torch.no_grad():
        path.methods[1].recommender_.model.user_factors += 1
    np.testing.assert_array_equal(matrix(path.methods[0]), kept)


@pytest.mark.parametrize("values", [(5, 8), (5, 64, 8)])
def test_each_fit_ends_at_its_own_optimum_whatever_else_is_tried(values):
    """By sweeps without held-out rows, which go on until they converge."""
    options = {"validation": 0, "patience": None, "epochs": 600, "dim": 2}
    path = a_path(values=values, **options)
    for one in path.methods:
        alone = method_of("mf", **options | {"penalty_factors": one.penalty_factors}).fit(LOG, **GIVEN)
        assert one.report_.stopped_because == "converged"
        np.testing.assert_allclose(matrix(one), matrix(alone), atol=2e-3)


def test_validation_errors_are_near_to_those_of_plain_fits():
    path = a_path("ips", values=[2, 8, 32])
    for one in path.methods:
        alone = method_of("ips", **SHORT, penalty_factors=one.penalty_factors).fit(LOG, **GIVEN)
        assert one.report_.validation_error == pytest.approx(alone.report_.validation_error, abs=0.02)


def test_factors_shrink_along_the_way():
    path = a_path(values=[0.5, 1_000], validation=0, epochs=120)
    spread = [
        float((one.recommender_.model.user_factors @ one.recommender_.model.item_factors.T).detach().std())
        for one in path.methods
    ]
    assert spread[0] > 0.1
    assert spread[1] < 1e-3


def test_progress_hears_of_every_fit():
    heard = []
    path = fit_path(method_of("mf", **SHORT), LOG, [1, 4], progress=lambda *at: heard.append(at), **GIVEN)
    assert heard == [(1, 2, path.methods[0].report_.validation_error), (2, 2, path.methods[1].report_.validation_error)]


def test_the_table_has_a_row_for_each_penalty():
    path = a_path(parameter="penalty_constants")
    table = path.frame()
    assert list(table.columns) == ["penalty_constants", "validation_error", "epochs", "stopped_because"]
    assert table["penalty_constants"].tolist() == [1.0, 4.0, 16.0]
    assert table["validation_error"].tolist() == [one.report_.validation_error for one in path.methods]
    assert table["epochs"].tolist() == [len(one.report_.history) for one in path.methods]
    assert table["stopped_because"].tolist() == [one.report_.stopped_because for one in path.methods]
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
        assert (one.report_.history[0]["rho01"], one.report_.history[0]["rho10"]) == pytest.approx(
            (1 - h.max(), h.min())
        )


def test_weights_of_features_are_started_from_too():
    """With penalties all but alike, a second fit goes on as the first would have."""
    options = {"model": "features", "validation": 0, "epochs": 12, "patience": None, "penalty_factors": 1.0}
    values, given = [4, 4.000001], {"log": featured_log(), "parameter": "penalty_constants"}
    first, second = a_path(values=values, **given, **options).methods
    longer = method_of("mf", **options | {"epochs": 13}).fit(featured_log(), **GIVEN)
    assert len(first.report_.history) == 12
    assert second.report_.history[0]["loss"] == pytest.approx(longer.report_.history[12]["loss"], rel=1e-5)
