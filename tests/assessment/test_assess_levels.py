"""Assessing a log that keeps its levels: stars are judged by what there is, and nothing is said that levels cannot."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from matplotlib.figure import Figure

import verirec as vr
from refusals import check_refusal
from verirec.assessment.level_bounds import LevelBounds
from verirec.assessment.level_plots import levels_plot, transitions_plot
from verirec.exceptions import LabelError, ParameterError, PredictionError, SurveyError

SHAPE = 60, 80


@pytest.fixture(scope="module")
def world():
    return vr.simulate.stars(*SHAPE, random_state=0)


@pytest.fixture(scope="module")
def log(world):
    return world.log


@pytest.fixture(scope="module")
def given(world):
    random = np.random.default_rng(0)
    near = np.clip(0.3 + 0.8 * world.true_values + random.normal(0, 0.4, SHAPE), 1, 5)
    return {"near": near, "far": np.clip(random.normal(3, 1, SHAPE), 1, 5)}


@pytest.fixture(scope="module")
def survey(world):
    return vr.SurveySample(*world.survey(400, random_state=1), levels=world.levels)


@pytest.fixture(scope="module")
def audit(world):
    return vr.AuditSample(*world.audit(200, random_state=2), levels=world.levels)


@pytest.fixture(scope="module")
def surveyed(log, given, survey):
    return vr.assess(log, given, survey=survey)


@pytest.fixture(scope="module")
def alone(log, given):
    return vr.assess(log, given)


def root_of(world, stars):
    return float(np.sqrt(world.true_inaccuracy(stars)))


@pytest.mark.parametrize("loss", ["rmse", "mae"])
def test_with_a_survey_it_says_what_estimate_and_compare_do(log, given, survey, surveyed, loss):
    found = surveyed if loss == "rmse" else vr.assess(log, given, survey=survey, loss=loss)
    assert found.summary["loss"] == loss
    for name, stars in given.items():
        expected = vr.estimate(stars, log, survey=survey, loss=loss, estimators="survey-ppi")["survey-ppi"]
        assert found.summary["headline"][name] == {"estimator": "survey-ppi"} | expected.to_dict()
    by_survey = {"survey": survey, "loss": loss, "estimators": "survey-ppi"}
    decided = vr.compare(given["near"], given["far"], log, **by_survey)["survey-ppi"]
    assert found.comparisons[0].deciding == decided
    assert decided.interval[1] < 0
    assert found.verdicts == [
        {"first": "near", "second": "far", "better": "near", "established": True, "basis": "survey"}
    ]


def test_an_audit_decides_where_propensities_are_known(world, log, given, audit):
    known = vr.GivenPropensity(world.propensities)
    found = vr.assess(log, given, audit=audit, propensities=known)
    expected = vr.estimate(given["near"], log, audit=audit, propensities=known, loss="rmse")["audited-dr"]
    assert found.summary["headline"]["near"] == {"estimator": "audited-dr"} | expected.to_dict()
    assert found.verdicts[0]["basis"] == "audit"
    assert found.verdicts[0]["better"] == "near"
    assert "audit of 200 rows" in found.conclusions[0]
    assert "factor" not in " ".join(found.conclusions)


def test_an_audit_alone_decides_nothing(log, given, audit):
    found = vr.assess(log, given, audit=audit)
    assert found.verdicts[0]["basis"] == "range"
    assert not found.verdicts[0]["established"]
    assert "audited-dr" in found.recommenders["near"].estimates
    assert found.conclusions[0].startswith("This log, even with an audit of 200 rows")


def test_known_propensities_decide_only_if_noise_is_known(world, log, given):
    known = vr.GivenPropensity(world.propensities)
    assert vr.assess(log, given, propensities=known).basis == "range"
    found = vr.assess(log, given, propensities=known, noise_rates=world.noise)
    assert found.basis == "known propensities"
    assert {one["estimator"] for one in found.summary["headline"].values()} == {"ome-dr"}


def test_propensities_by_true_level_are_known_ones(world, log, given, audit):
    by_level = vr.LevelPropensity([0.0625, 0.0625, 0.125, 0.25, 0.5])
    found = vr.assess(log, given, audit=audit, propensities=by_level)
    expected = vr.compare(given["near"], given["far"], log, audit=audit, propensities=by_level, loss="rmse")
    assert found.comparisons[0].deciding == expected["audited-dr"]
    assert (found.basis, found.verdicts[0]["better"]) == ("audit", "near")


@pytest.mark.parametrize("loss", ["log", "rps"])
def test_distributions_are_judged_by_their_losses(world, log, given, survey, loss):
    distances = {name: stars[..., None] - np.array(world.levels) for name, stars in given.items()}
    near = {name: np.exp(-0.5 * one**2) for name, one in distances.items()}
    chances = {name: one / one.sum(axis=-1, keepdims=True) for name, one in near.items()}
    found = vr.assess(log, chances, survey=survey, loss=loss)
    expected = vr.compare(chances["near"], chances["far"], log, survey=survey, loss=loss)["survey-ppi"]
    assert found.comparisons[0].deciding == expected
    low, high = vr.assess(log, chances, loss=loss).recommenders["near"].estimates["range"].range
    assert low <= world.true_inaccuracy(chances["near"], loss) <= high


def test_the_log_alone_cannot_tell_and_says_what_to_ask(world, alone, given):
    assert alone.conclusions[0] == "This log alone cannot tell which recommender is better."
    assert [(one["established"], one["basis"]) for one in alone.verdicts] == [(False, "range")]
    for name, one in alone.recommenders.items():
        low, high = one.estimates["range"].range
        assert low <= root_of(world, given[name]) <= high
    asked = alone.stars.asking
    assert alone.summary["pairs_to_ask_about"] == asked.pairs
    assert f"A survey of {asked.pairs:,} random pairs" in " ".join(alone.conclusions)


def test_a_survey_of_the_size_proposed_is_about_as_sharp_as_said(world, log, given, alone):
    asked = alone.stars.asking
    users, items, levels = world.survey(asked.pairs, random_state=3)
    survey = vr.SurveySample(users, items, levels, levels=world.levels)
    how = {"survey": survey, "loss": "rmse", "estimators": "survey-ppi"}
    low, high = vr.compare(given["near"], given["far"], log, **how)["survey-ppi"].interval
    assert 0.5 < (high - low) / 2 / asked.half_width < 2


@pytest.mark.parametrize("loss", ["rmse", "squared", "absolute"])
def test_no_true_levels_take_losses_or_their_difference_out_of_the_range(loss):
    shape, levels = (1, 4), (1.0, 2.0, 4.0)
    log = vr.FeedbackLog.from_arrays([0, 0], [0, 1], [1, 2], n_users=1, n_items=4, levels=levels)
    random = np.random.default_rng(0)
    one, two = random.uniform(0, 5, (2, *shape))
    bounds = LevelBounds(log, loss, None, 0.95)
    bounds.add("one", one)
    bounds.add("two", two)
    powers = {"rmse": lambda errors: np.sqrt((errors**2).mean()), "squared": lambda errors: (errors**2).mean()}
    judged = powers.get(loss, lambda errors: np.abs(errors).mean())
    worlds = [np.array(truth) for truth in product(levels, repeat=4)]
    losses = np.array([[judged(stars[0] - truth) for stars in (one, two)] for truth in worlds])
    assert bounds.of("one").range == pytest.approx((losses[:, 0].min(), losses[:, 0].max()))
    low, high = bounds.between("one", "two").range
    differences = losses[:, 0] - losses[:, 1]
    assert low <= differences.min() + 1e-12
    assert differences.max() <= high + 1e-12
    if loss != "rmse":
        assert (low, high) == pytest.approx((differences.min(), differences.max()))


def test_a_dominated_recommender_is_established_whatever_people_think(log, given):
    found = vr.assess(log, {"inside": given["near"], "outside": np.full(SHAPE, 9.0)}, clip=None)
    assert found.verdicts[0]["better"] == "inside"
    assert "established by what is possible at all" in " ".join(found.conclusions)


def test_shares_and_mean_of_levels_are_those_of_all_pairs(world, log, surveyed):
    shares = np.bincount(world.places.ravel(), minlength=5) / world.places.size
    for share, one in zip(shares, surveyed.stars.corrected, strict=True):
        assert abs(one.value - share) < 4 * one.standard_error
    mean = surveyed.liked_corrected
    assert abs(mean.value - world.true_values.mean()) < 4 * mean.standard_error
    assert surveyed.stars.logged == pytest.approx(np.bincount(log.labels, minlength=5) / len(log))


def test_page_and_summary_have_what_levels_tell(world, log, given, audit, survey, tmp_path):
    found = vr.assess(log, given, audit=audit, survey=survey, truth={"near": root_of(world, given["near"])})
    page = found.save(tmp_path).read_text()
    for word in ("prediction inaccuracy (RMSE", "logged at", "truly, of all pairs", "are worked out for likes"):
        assert word in page, word
    for word in ("How well they rank", "Labels that are probably wrong", "What if the assumptions", "likes are logged"):
        assert word not in page, word
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert np.shape(summary["noise_rates"]["transitions"]) == (5, 5)
    assert summary["liked"] is None
    assert len(summary["stars"]["shares"]["corrected"]) == 5
    assert summary["ranking"] == {}


def test_the_page_without_true_levels_says_so(alone, tmp_path):
    page = alone.save(tmp_path).read_text()
    assert "This is not known: true levels" in page
    assert "this log alone does not tell" in page
    assert "as liked" not in page


def test_what_is_ready_early_has_the_verdicts(log, given, survey, surveyed):
    early = []
    vr.assess(log, given, survey=survey, ready=early.append)
    assert [one.verdicts for one in early] == [surveyed.verdicts]


@pytest.mark.parametrize(("loss", "estimated"), [("rmse", 1.1), ("log", 1.3)])
def test_what_is_trained_is_judged_on_rows_held_out(log, survey, loss, estimated):
    found = vr.assess(log, train=("mf",), survey=survey, loss=loss)
    assert found.trained == ("mf",)
    assert len(found.log) == pytest.approx(len(log) / 5, abs=1)
    low, high = found.recommenders["mf"].estimates["survey-ppi"].interval
    assert low < high < 2 * estimated


def test_rows_shown_at_random_are_a_survey(world, given):
    log = world.log
    shown = np.random.default_rng(0).random(len(log)) < 0.5
    marked = vr.FeedbackLog.from_arrays(
        log.users, log.items, log.label_values, n_users=SHAPE[0], n_items=SHAPE[1], levels=log.levels, unbiased=shown
    )
    found = vr.assess(marked, given, noise_rates=world.noise)
    assert (found.basis, len(found.survey), len(found.log)) == ("survey", shown.sum(), (~shown).sum())


def test_pictures_are_drawn(world, surveyed, alone):
    assert isinstance(transitions_plot(world.noise, world.levels), Figure)
    for found in (surveyed, alone):
        assert isinstance(levels_plot(found.stars, world.levels), Figure)


BAD = {
    "a selection": (lambda: {"selection": vr.SelectionRange(0, 3)}, ParameterError, "levels have none"),
    "calibration": (lambda: {"calibrate": "platt"}, ParameterError, "keeps its levels has none"),
    "binary rates": (lambda: {"noise_rates": vr.NoiseRates(0.2, 0.1)}, ParameterError, "must be a TransitionMatrix"),
    "another loss": (lambda: {"loss": "brier"}, ParameterError, "brier"),
    "a binary survey": (lambda: {"survey": vr.SurveySample([0, 1], [0, 1], [0, 1])}, SurveyError, "levels"),
    "no audit": (lambda: {"audit": [1, 2]}, ParameterError, "must be an AuditSample"),
    "both": (
        lambda: {"audit": vr.AuditSample([0], [0], [1]), "noise_rates": vr.TransitionMatrix.band(5, 0.3)},
        ParameterError,
        "one of the two",
    ),
    "some pairs": (
        lambda: {"predictions": {"some": ([0, 0, 1], [0, 1, 1], [1.0, 2.0, 3.0])}},
        PredictionError,
        "some: predictions",
    ),
    "a clip": (lambda: {"clip": 7}, ParameterError, "clip"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_a_line(log, given, name):
    made, error, message = BAD[name]
    check_refusal(lambda: vr.assess(log, **({"predictions": given} | made())), error, message)


def test_one_level_alone_is_refused(log, given):
    check_refusal(lambda: vr.assess(log.select(log.labels == 2), given), LabelError, "more than one level")
