"""Exploration beside policy traffic: rows shown at random are a survey, the others go by their own propensities."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import verirec as vr
from verirec.cli import main as main_module
from verirec.exceptions import MisfitWarning

SHAPE = 120, 100


def traffic(seed):
    """Return a log of impressions by two policies, each row with its own policy's propensity, and who likes what."""
    random = np.random.default_rng(seed)
    likes = random.random(SHAPE) < 0.15 + 0.7 * random.random(SHAPE[1])
    by_policy = np.clip(0.05 + 0.4 * random.random(SHAPE[1]), 0, 1) * np.ones(SHAPE)
    explored = 0.02 + 0.04 * random.random(SHAPE)
    at_random = random.random(SHAPE) < explored
    shown = at_random | (random.random(SHAPE) < by_policy)
    users, items = np.nonzero(shown)
    unbiased = at_random[users, items]
    own = np.where(unbiased, explored[users, items], by_policy[users, items])
    log = vr.FeedbackLog.from_arrays(
        users, items, likes[users, items], n_users=SHAPE[0], n_items=SHAPE[1], unbiased=unbiased, propensities=own
    )
    return log, likes


@pytest.fixture(scope="module")
def log():
    return traffic(0)[0]


PREDICTIONS = np.tile(np.linspace(0.2, 0.7, SHAPE[1]), (SHAPE[0], 1))


def test_exploration_is_a_survey_with_its_own_probabilities(log):
    survey = vr.SurveySample.from_unbiased(log)
    np.testing.assert_array_equal(survey.probabilities, log.propensities[log.unbiased])


def test_rows_of_two_policies_weighted_together_are_warned_of(log):
    with pytest.warns(MisfitWarning) as caught:
        vr.estimate(PREDICTIONS, log, estimators="snips")
    told = " ".join(str(one.message) for one in caught)
    assert "others are weighted together" in told
    assert "each row has that of its own policy, where several could have shown it" in told


def test_each_by_its_own_road_is_not_warned_of(log):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rest = vr.split_unbiased(log).self_selected
        rates = vr.NoiseRates(0.0, 0.0)
        found = vr.estimate(PREDICTIONS, rest, survey=vr.SurveySample.from_unbiased(log), noise_rates=rates)
    assert found.headline == "survey-ppi"


def test_the_survey_of_uneven_exploration_holds_the_truth():
    held = []
    for seed in range(100):
        log, likes = traffic(seed)
        truth = -(likes * np.log(PREDICTIONS) + (1 - likes) * np.log1p(-PREDICTIONS)).mean()
        rest, survey = vr.split_unbiased(log).self_selected, vr.SurveySample.from_unbiased(log)
        given = {"survey": survey, "noise_rates": vr.NoiseRates(0.0, 0.0), "estimators": "survey-ppi"}
        low, high = vr.estimate(PREDICTIONS, rest, **given)["survey-ppi"].interval
        held.append(low <= truth <= high)
    # Three standard errors of 100 repetitions.
    assert np.mean(held) >= 0.95 - 0.065


def test_one_command_assesses_both(tmp_path, monkeypatch):
    log, _ = traffic(0)
    log.to_frame().to_csv(tmp_path / "shown.csv", index=False)
    np.save(tmp_path / "scores.npy", PREDICTIONS)
    words = ["shown.csv", "--rating", "label", "--unbiased", "unbiased", "--propensity-column", "propensity"]
    more = ["--rho01", "0", "--rho10", "0", "--predictions", "mine=scores.npy", "--out", "out"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["verirec", "assess", *words, *more])
    with pytest.raises(SystemExit) as ended:
        main_module.main()
    assert not ended.value.code
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["basis"] == "survey"
    assert summary["selection"]["surveyed"] == int(log.unbiased.sum())
    assert summary["recommenders"]["mine"]["ome-dr"]["value"] > 0
