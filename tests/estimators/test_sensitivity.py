"""Sensitivity: surfaces that are the estimates themselves, and ranges that no wrong propensity of that size leaves."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import verirec as vr
from plain_formulas import estimators as plain
from plain_formulas.inaccuracy import LOSSES
from refusals import check_refusal
from verirec.estimators.sensitivity import Sensitivity, Surface
from verirec.exceptions import LabelError, NoiseRateError, ParameterError, PredictionError

LINEAR = ("ome", "ome-eib", "ome-ips", "ome-snips", "ome-dr", "ome-mrdr", "ome-tdr")
RATES = vr.NoiseRates(0.2, 0.1)


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(60, 80, observed=0.2, selectivity=1, random_state=1)


@pytest.fixture(scope="module")
def recommenders(world):
    return {"bold": 0.3 + 0.5 * world.preferences, "shy": 0.1 + 0.5 * world.preferences}


@pytest.fixture(scope="module")
def found(world, recommenders):
    return vr.sensitivity(recommenders, world.log, propensities=world.propensities)


# Surfaces over the noise rates


@pytest.mark.filterwarnings("ignore:ome-tdr is")
@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("imputation", ["constant", "model"])
@pytest.mark.parametrize("name", LINEAR)
def test_the_surface_is_the_estimate_at_those_rates(world, recommenders, name, imputation, loss):
    options = {"propensities": world.propensities, "imputation": imputation, "loss": loss, "random_state": 5}
    rho01, rho10 = [0.0, 0.13, 0.45], [0.02, 0.31]
    found = vr.sensitivity(recommenders["bold"], world.log, estimator=name, rho01=rho01, rho10=rho10, **options)
    values = found.values("recommender")
    assert values.shape == (3, 2)
    for (row, a), (column, b) in product(enumerate(rho01), enumerate(rho10)):
        rates = vr.NoiseRates(a, b)
        one = vr.estimate(recommenders["bold"], world.log, estimators=name, noise_rates=rates, **options)[name]
        assert values[row, column] == pytest.approx(one.value, abs=1e-9)


def test_rates_that_leave_next_to_no_signal_have_no_value(world, recommenders):
    found = vr.sensitivity(recommenders, world.log, rho01=[0.1, 0.6], rho10=[0.2, 0.5])
    assert np.isnan(found.values("bold")).tolist() == [[False, False], [False, True]]
    assert len(found.to_frame()) == 2 * 3


def test_the_frame_has_one_row_a_recommender_and_a_pair_of_rates(found):
    frame = found.to_frame()
    assert list(frame.columns) == ["recommender", "rho01", "rho10", "ome-dr"]
    assert len(frame) == sum(np.isfinite(found.values(name)).sum() for name in ("bold", "shy"))
    row = frame.iloc[[25]].to_dict("records")[0]
    assert row["ome-dr"] == float(found.surfaces[row["recommender"]].at(row["rho01"], row["rho10"]))
    assert "<table" in found._repr_html_()


def test_names_are_shown_as_text_in_a_notebook(world, recommenders):
    shown = vr.sensitivity({"<b>x</b>": recommenders["bold"]}, world.log)._repr_html_()
    assert "<b>" not in shown
    assert "&lt;b&gt;" in shown


# Where two change places


def test_at_break_even_both_estimates_are_equal(world, recommenders, found):
    line = found.break_even("bold", "shy")
    assert len(line) > 20
    assert ((line >= 0) & (line <= 0.45)).all()
    for rho01, rho10 in line[[0, len(line) // 2, -1]]:
        rates = vr.NoiseRates(rho01, rho10)
        first, second = (
            vr.estimate(f, world.log, propensities=world.propensities, noise_rates=rates)["ome-dr"].value
            for f in recommenders.values()
        )
        assert first == pytest.approx(second, abs=1e-9)


def test_break_even_is_where_the_difference_changes_its_sign(found):
    for rho01, rho10 in found.break_even("bold", "shy"):
        below, above = (
            found.surfaces["bold"].minus(found.surfaces["shy"]).at(rho01, rho10 + step) for step in (-0.01, 0.01)
        )
        assert below * above < 0


def test_it_is_the_same_line_from_both_sides(found):
    np.testing.assert_allclose(found.break_even("bold", "shy"), found.break_even("shy", "bold"), atol=1e-12)


def test_there_is_no_line_where_one_is_better_everywhere(world):
    truth = world.true_labels
    found = vr.sensitivity(
        {"right": 0.1 + 0.8 * truth, "wrong": 0.9 - 0.8 * truth}, world.log, rho01=[0, 0.2], rho10=[0, 0.1]
    )
    assert (found.values("right") < found.values("wrong")).all()
    assert found.break_even("right", "wrong").shape == (0, 2)


def of_surfaces(first, second):
    rates = np.linspace(0, 0.45, 19)
    return Sensitivity("ome-dr", rates, rates, {"a": first, "b": second}, {})


@pytest.mark.parametrize("steepness", [0.0, 1e-6])
def test_a_line_straight_up_is_found_too(steepness):
    """Equal losses on likes: only rho01 decides. The line is rho01 = .2."""
    found = of_surfaces(Surface(1.0, -0.8, -1.0 + steepness), Surface(0.0, 0.0, 0.0))
    difference = found.values("a") - found.values("b")
    assert np.nanmin(difference) < 0 < np.nanmax(difference)
    line = found.break_even("a", "b")
    assert len(line) > 0
    np.testing.assert_allclose(line[:, 0], 0.2, atol=1e-5)


def test_an_unknown_name_is_a_key_error_that_lists_those_there_are(found):
    for call in (lambda: found.values("nope"), lambda: found.break_even("bold", "nope")):
        with pytest.raises(KeyError, match="no recommender 'nope'; there are: bold, shy"):
            call()


# Wrong propensities


@pytest.mark.parametrize(("rates", "name"), [(None, "snips"), (RATES, "ome-snips")])
def test_with_right_propensities_the_range_is_the_self_normalised_estimate(world, recommenders, rates, name):
    options = {"propensities": world.propensities, "noise_rates": rates}
    ranges = vr.sensitivity(recommenders, world.log, **options).propensity_ranges
    for recommender, f in recommenders.items():
        gamma, low, high = ranges[recommender][0]
        expected = vr.estimate(f, world.log, estimators=name, **options)[name].value
        assert (gamma, low, high) == (1, pytest.approx(expected, abs=1e-12), pytest.approx(expected, abs=1e-12))


def test_row_weights_count_in_the_range_as_they_do_in_the_estimate(world, recommenders):
    log = world.log
    weights = np.random.default_rng(0).uniform(0.2, 3, len(log))
    weighted = vr.FeedbackLog.from_arrays(
        log.users, log.items, log.labels, n_users=log.n_users, n_items=log.n_items, weights=weights
    )
    options = {"propensities": world.propensities, "noise_rates": RATES}
    ranges = vr.sensitivity(recommenders, weighted, estimator="ome-snips", **options).propensity_ranges
    expected = vr.estimate(recommenders["bold"], weighted, estimators="ome-snips", **options)["ome-snips"].value
    assert ranges["bold"][0] == (1, pytest.approx(expected, abs=1e-9), pytest.approx(expected, abs=1e-9))


def test_the_range_grows_with_gamma(found):
    for ranges in found.propensity_ranges.values():
        gammas, low, high = np.array(ranges).T
        assert gammas.tolist() == [1.0, 1.1, 1.25, 1.5, 2.0, 3.0]
        assert (np.diff(low) < 0).all()
        assert (np.diff(high) > 0).all()


@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.2, 0.1)])
@pytest.mark.parametrize("seed", range(4))
def test_the_range_is_the_best_and_worst_of_all_corners_of_the_boxes(seed, rates, loss):
    """A ratio of linear functions of the weights has its extremes at corners: all 2^n of them are tried."""
    grid = plain.small_grid(seed, (3, 4), rho01=0.2, rho10=0.1)
    assert 4 <= len(grid.labels) <= 12
    log = vr.FeedbackLog.from_arrays(**grid.rows())
    gammas = (1.0, 1.3, 4.0)
    ranges = vr.sensitivity(
        grid.f, log, propensities=grid.p, noise_rates=vr.NoiseRates(*rates), gammas=gammas, loss=loss
    ).propensity_ranges["recommender"]
    errors = [plain.corrected_error(grid.f[cell], r, LOSSES[loss], *rates) for cell, r in grid.labels.items()]
    for gamma, low, high in ranges:
        boxes = []
        for cell in grid.labels:
            odds = grid.p[cell] / (1 - grid.p[cell])
            ends = [odds * gamma, odds / gamma]
            boxes.append([(1 + end) / end for end in ends])
        means = [np.dot(weights, errors) / sum(weights) for weights in product(*boxes)]
        assert (low, high) == pytest.approx((min(means), max(means)), abs=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"estimator": "dr"}, ParameterError, r"estimator must be one of ome, .*ome-tdr; got 'dr'"),
        ({"estimator": "ome-sdr"}, ParameterError, r"estimator must be one of ome, .*; got 'ome-sdr'"),
        ({"estimator": "nope"}, ParameterError, "nope"),
        ({"gammas": [0.5]}, ParameterError, "gammas must be a finite number at least 1"),
        ({"gammas": [np.inf]}, ParameterError, "gammas must be a finite number at least 1"),
        ({"rho01": []}, ParameterError, "rho01 must be rates"),
        ({"rho10": [0.2, 1.0]}, ParameterError, "rho10 must be rates"),
        ({"rho10": [-0.1]}, ParameterError, "rho10 must be rates"),
        ({"rho10": [np.nan]}, ParameterError, "rho10 must be rates"),
        ({"rho01": 0.2}, ParameterError, "rho01 must be a flat array"),
        ({"noise_rates": 0.2}, ParameterError, "noise_rates must be such as"),
        ({"noise_rates": vr.NoiseRegion(0.1, 0.1)}, ParameterError, "noise_rates must be such as"),
        ({"predictions": np.full((2, 2), 0.5)}, PredictionError, "shape"),
        ({"log": "one class"}, LabelError, "both classes"),
        (
            {"noise_rates": vr.GroupedNoiseRates((RATES,), user_groups=np.zeros(3, int))},
            NoiseRateError,
            "user_groups must name the group of all 60 users",
        ),
    ],
)
def test_bad_input_is_told_in_one_line(world, recommenders, change, error, message):
    log = world.log
    if change.get("log") == "one class":
        log = vr.FeedbackLog.from_arrays(log.users, log.items, np.ones(len(log), int), n_users=60, n_items=80)
    given = {"predictions": recommenders["bold"]} | change | {"log": log}
    check_refusal(lambda: vr.sensitivity(**given), error, message)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"gammas": 2}, id="one number for gammas"),
        pytest.param({"predictions": {}}, id="no recommender"),
    ],
)
def test_these_mistakes_are_told_in_one_line_too(world, recommenders, change):
    given = {"predictions": recommenders["bold"], "log": world.log} | change
    check_refusal(lambda: vr.sensitivity(**given).to_frame(), ParameterError, "gammas|predictions")
