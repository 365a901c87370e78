"""Assessing a log of clicks alone: the survey judges, and the page says nothing that clicks cannot tell."""

from __future__ import annotations

import json

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import LabelError, PredictionError

SHAPE = 80, 60


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.3, selectivity=2, noise_rates=vr.NoiseRates(0.3, 0.05), random_state=4)


@pytest.fixture(scope="module")
def clicks(world):
    return world.log.select(world.log.labels == 1)


@pytest.fixture(scope="module")
def given(world):
    return {"sharp": 0.1 + 0.8 * world.preferences, "blunt": 0.4 + 0.2 * world.preferences}


@pytest.fixture(scope="module")
def survey(world):
    users, items = np.random.default_rng(0).integers([[80], [60]], size=(2, 400))
    return vr.SurveySample(users, items, world.true_labels[users, items])


@pytest.fixture(scope="module")
def found(clicks, given, survey):
    return vr.assess(clicks, given, survey=survey)


def test_the_survey_decides(clicks, given, survey, found):
    assert found.verdicts == [
        {"first": "sharp", "second": "blunt", "better": "sharp", "established": True, "basis": "survey"}
    ]
    one = found.recommenders["sharp"].estimates["survey-ppi"]
    assert one.interval == vr.estimate(given["sharp"], clicks, survey=survey)["survey-ppi"].interval
    assert set(found.recommenders["sharp"].estimates) == {"survey", "survey-ppi"}
    assert found.comparisons[0].naive is None
    assert (found.strength, found.suspects, found.sensitivity) == (None, None, None)


def test_page_and_summary_say_what_clicks_tell(found, tmp_path):
    page = found.save(tmp_path).read_text()
    assert "clicks of 80 users" in page
    assert all(word not in page for word in ("As logged", "propensity</em>", "How noisy the labels are"))
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["comparisons"][0]["naive"] is None
    assert "as it stands" not in " ".join(found.conclusions)


def test_exploration_traffic_judges_clicks(world, given):
    log, random = world.log, np.random.default_rng(1)
    shown = random.random(len(log)) < 0.4
    kept = shown | (log.labels == 1)
    both = vr.FeedbackLog.from_arrays(
        log.users[kept], log.items[kept], log.labels[kept], n_users=80, n_items=60, unbiased=shown[kept]
    )
    found = vr.assess(both, given)
    assert found.clicks
    assert found.basis == "survey"


def test_periods_of_clicks_are_monitored_by_surveys(clicks, given, survey):
    times = np.array(["2024-01-05", "2024-02-05"], "datetime64[D]")[np.arange(len(clicks)) % 2]
    log = vr.FeedbackLog.from_arrays(
        clicks.users, clicks.items, clicks.labels, n_users=80, n_items=60, timestamps=times
    )
    found = vr.monitor(log, given, surveys={"2024-01": survey})
    assert found.periods[0].found.basis == "survey"
    assert "both classes" in found.periods[1].lacking


def test_what_clicks_cannot_tell_is_refused(clicks, given, survey, world):
    check_refusal(lambda: vr.assess(clicks, given), LabelError, "of clicks alone, a survey of random pairs will do")
    some = (clicks.users, clicks.items, np.full(len(clicks), 0.5))
    refused = "predictions of all pairs are needed"
    check_refusal(lambda: vr.assess(clicks, {"some": some}, survey=survey), PredictionError, refused)
