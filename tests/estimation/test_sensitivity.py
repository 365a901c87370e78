"""Sensitivity: surfaces that are the estimates themselves, and ranges that no wrong propensity of that size leaves."""

from __future__ import annotations

from importlib import import_module
from itertools import product

import numpy as np
import pytest

import verirec as vr
from plain_formulas import estimators as plain
from plain_formulas.inaccuracy import LOSSES
from refusals import check_refusal
from verirec.estimation.catalogue import chosen
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.sensitivity import Sensitivity, Surface, flip_factor
from verirec.estimation.setup import make_problem
from verirec.exceptions import LabelError, NoiseRateError, ParameterError, PredictionError
from verirec.nuisance.propensities import as_propensities

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
        check_refusal(call, KeyError, "^no recommender 'nope'; there are: bold, shy$")
        check_refusal(call, ParameterError, "nope")
    check_refusal(lambda: found.values(["bold"]), KeyError, "no recommender")


def test_rates_that_leave_no_signal_have_no_value_and_are_no_reason_for_noise(world, recommenders):
    """Any warning would be an error here: at .5 and .5 there is a division by 0."""
    found = vr.sensitivity(recommenders, world.log, rho01=[0.1, 0.5], rho10=[0.1, 0.5], estimator="ome-snips")
    assert np.isnan(found.values("bold")).tolist() == [[False, False], [False, True]]


# Wrong propensities


@pytest.mark.parametrize(("rates", "name"), [(None, "snips"), (RATES, "ome-snips")])
def test_with_right_propensities_the_range_is_the_self_normalised_estimate(world, recommenders, rates, name):
    options = {"propensities": world.propensities, "noise_rates": rates}
    ranges = vr.sensitivity(recommenders, world.log, **options).propensity_ranges
    for recommender, f in recommenders.items():
        gamma, low, high = ranges[recommender][0]
        expected = vr.estimate(f, world.log, estimators=name, **options)[name].value
        assert (gamma, low, high) == (1, pytest.approx(expected, abs=1e-12), pytest.approx(expected, abs=1e-12))


def test_the_range_of_a_long_log_is_that_of_a_short_one_but_for_a_little(world, recommenders, monkeypatch):
    """Classes are so narrow that where weights switch inside of one hardly counts; they never go beyond the range."""
    monkeypatch.setattr(import_module("verirec.estimation.sensitivity"), "_EXACT_ROWS", 10)
    close = vr.sensitivity(recommenders, world.log, propensities=world.propensity_values, noise_rates=RATES)
    monkeypatch.undo()
    exact = vr.sensitivity(recommenders, world.log, propensities=world.propensity_values, noise_rates=RATES)
    for name, ranges in exact.propensity_ranges.items():
        for (gamma, low, high), (_, near_low, near_high) in zip(ranges, close.propensity_ranges[name], strict=True):
            assert (near_low, near_high) == pytest.approx((low, high), abs=1e-6), gamma
            assert near_low >= low - 1e-12
            assert near_high <= high + 1e-12


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


def tiny(seed):
    """A log of 8 rows with weights, its propensities, and two recommenders, not too far apart."""
    random = np.random.default_rng(seed)
    cells = random.choice(12, 8, replace=False)
    order = np.argsort(cells)
    users, items = np.divmod(cells[order], 4)
    labels = random.permutation([0, 0, 0, 1, 1, 1, 0, 1])[order]
    p = random.uniform(0.2, 0.9, (3, 4))
    log = {"users": users, "items": items, "labels": labels, "n_users": 3, "n_items": 4}
    return log, random.uniform(0.3, 3, 8)[order], p, random.uniform(0.2, 0.8, (2, 3, 4))


def studies_of(log, p, both, loss="log"):
    pairs = LoggedPairs(log, as_propensities(p, log))
    return [make_problem(f, pairs, chosen("ome-snips", with_rates=True), loss=loss) for f in both]


def all_corner_means(values, p, gamma, weights):
    """Give the weighted means at all 2^n corners of the boxes of propensities; row weights multiply these."""
    odds = p / (1 - p)
    boxes = np.stack([weights * (1 + 1 / (odds * end)) for end in (gamma, 1 / gamma)], axis=1)
    corners = np.array(list(product(*boxes)))
    return corners @ values / corners.sum(axis=1)


def errors_of(f, log, loss, rates):
    rows = zip(log.users, log.items, log.labels, strict=True)
    return np.array([plain.corrected_error(f[user, item], r, LOSSES[loss], *rates) for user, item, r in rows])


def searched_flip(differences, p, weights, most=21.0):
    """Try one gamma after the other, by half percents: the first at which some corner has the other one ahead."""
    start = np.sign(all_corner_means(differences, p, 1.0, weights)[0])
    gamma = 1.0
    while gamma < most:
        if (all_corner_means(differences, p, gamma, weights) * start <= 0).any():
            return gamma
        gamma *= 1.005
    return np.inf


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_row_weights_count_at_all_corners_of_the_boxes(seed, weighted):
    columns, weights, p, (f, _) = tiny(seed)
    log = vr.FeedbackLog.from_arrays(**columns, **({"weights": weights} if weighted else {}))
    ranges = vr.sensitivity(
        f, log, propensities=p, noise_rates=RATES, estimator="ome-snips", gammas=(1.0, 1.4, 3.0)
    ).propensity_ranges["recommender"]
    errors = errors_of(f, log, "log", (0.2, 0.1))
    for gamma, low, high in ranges:
        means = all_corner_means(errors, p[log.users, log.items], gamma, weights if weighted else np.ones(8))
        assert (low, high) == pytest.approx((means.min(), means.max()), abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_over_a_region_the_range_is_that_of_all_its_rates(weighted):
    columns, weights, p, (f, _) = tiny(0)
    log = vr.FeedbackLog.from_arrays(**columns, **({"weights": weights} if weighted else {}))
    gammas, region = (1.0, 1.4, 3.0), vr.NoiseRegion(0.3, 0.2)
    found = vr.sensitivity(f, log, propensities=p, noise_rates=region, estimator="ome-snips", gammas=gammas)
    inside = [errors_of(f, log, "log", (a, b)) for a in np.linspace(0, 0.3, 7) for b in np.linspace(0, 0.2, 7)]
    for gamma, low, high in found.propensity_ranges["recommender"]:
        of_rows, own = p[log.users, log.items], weights if weighted else np.ones(8)
        means = np.concatenate([all_corner_means(errors, of_rows, gamma, own) for errors in inside])
        assert (low, high) == pytest.approx((means.min(), means.max()), abs=1e-12)


def test_the_surfaces_are_the_same_whatever_the_rates_at_which_propensities_vary(world, recommenders, found):
    for noise in (RATES, vr.NoiseRegion(0.3, 0.2)):
        other = vr.sensitivity(recommenders, world.log, propensities=world.propensities, noise_rates=noise)
        assert other.surfaces == found.surfaces
        assert other.propensity_ranges != found.propensity_ranges


# Where wrong propensities make two change places


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("loss", "rates"), [("log", (0.0, 0.0)), ("log", (0.2, 0.1)), ("squared", (0.05, 0.3))])
@pytest.mark.parametrize("seed", range(6))
def test_the_flip_factor_is_the_one_that_a_search_finds(seed, loss, rates, weighted):
    columns, weights, p, both = tiny(seed)
    log = vr.FeedbackLog.from_arrays(**columns, **({"weights": weights} if weighted else {}))
    factor = flip_factor(*studies_of(log, p, both, loss), vr.NoiseRates(*rates))
    first, second = (errors_of(f, log, loss, rates) for f in both)
    expected = searched_flip(first - second, p[log.users, log.items], weights if weighted else np.ones(8))
    assert factor == pytest.approx(expected, rel=0.02)
    # It does not depend on which of the two comes first.
    assert flip_factor(*studies_of(log, p, both[::-1], loss), vr.NoiseRates(*rates)) == pytest.approx(factor, rel=1e-9)


def test_the_searches_above_find_factors_of_all_kinds():
    found = set()
    for seed in range(6):
        columns, _, p, both = tiny(seed)
        log = vr.FeedbackLog.from_arrays(**columns)
        found.add(round(flip_factor(*studies_of(log, p, both), RATES), 1))
    assert len(found) >= 4
    assert min(found) < 2 < max(found)


def test_labels_as_they_are_have_the_flip_factor_of_rates_of_0():
    columns, _, p, both = tiny(1)
    studies = studies_of(vr.FeedbackLog.from_arrays(**columns), p, both)
    assert flip_factor(*studies, None) == flip_factor(*studies, vr.NoiseRates(0, 0)) > 1


def test_the_flip_factor_of_a_region_is_the_least_of_its_corners_that_agree():
    columns, _, p, both = tiny(9)
    studies = studies_of(vr.FeedbackLog.from_arrays(**columns), p, both)
    region = vr.NoiseRegion(0.1, 0.1)
    at_corners = [flip_factor(*studies, corner) for corner in region.corners]
    assert 1 < min(at_corners) < max(at_corners)
    assert flip_factor(*studies, region) == min(at_corners)
    # Nor is there a smaller one inside.
    inside = [flip_factor(*studies, vr.NoiseRates(a, b)) for a in (0.02, 0.07) for b in (0.02, 0.07)]
    assert min(inside) >= min(at_corners) * (1 - 0.01)


def test_where_rates_of_the_region_disagree_nothing_need_be_wrong_for_a_flip(world, recommenders):
    """The line of break-even runs through it: each of the two is ahead at some corner, and clearly."""
    studies = studies_of(world.log, world.propensities, recommenders.values())
    region = vr.NoiseRegion(0.45, 0.45)
    at_corners = [
        vr.compare(
            *recommenders.values(),
            world.log,
            propensities=world.propensities,
            noise_rates=corner,
            estimators="ome-snips",
        )["ome-snips"].value
        for corner in region.corners
    ]
    assert min(at_corners) < 0 < max(at_corners)
    assert min(flip_factor(*studies, corner) for corner in region.corners) > 1.0
    assert flip_factor(*studies, region) == 1.0


@pytest.mark.parametrize("turned", [False, True])
def test_one_that_is_better_on_every_row_stays_ahead_whatever_the_propensities(turned):
    columns, weights, p, _ = tiny(3)
    log = vr.FeedbackLog.from_arrays(**columns, weights=weights)
    right, wrong = np.full((3, 4), 0.5), np.full((3, 4), 0.5)
    right[log.users, log.items] = np.where(log.labels == 1, 0.6, 0.4)
    wrong[log.users, log.items] = np.where(log.labels == 1, 0.55, 0.45)
    both = (wrong, right) if turned else (right, wrong)
    assert flip_factor(*studies_of(log, p, both), vr.NoiseRates(0, 0)) == np.inf


def test_a_recommender_and_itself_change_places_at_once():
    columns, _, p, (f, _) = tiny(4)
    assert flip_factor(*studies_of(vr.FeedbackLog.from_arrays(**columns), p, (f, f.copy())), RATES) == 1.0


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
        pytest.param({"gammas": b"x"}, id="bytes for gammas"),
        pytest.param({"gammas": "2"}, id="text for gammas"),
        pytest.param({"predictions": {}}, id="no recommender"),
    ],
)
def test_these_mistakes_are_told_in_one_line_too(world, recommenders, change):
    given = {"predictions": recommenders["bold"], "log": world.log} | change
    check_refusal(lambda: vr.sensitivity(**given).to_frame(), ParameterError, "gammas|predictions")
