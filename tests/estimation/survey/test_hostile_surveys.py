"""Hostile input around surveys: one named error in one line each."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import AuditError, ParameterError, PositionError, SurveyError, SurveyWarning


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(40, 30, observed=0.3, noise_rates=vr.NoiseRates(0.1, 0.05), random_state=0)


@pytest.fixture(scope="module")
def scores(world):
    return 0.1 + 0.8 * world.preferences


def pairs(world, n=60):
    users, items = np.random.default_rng(0).integers([[40], [30]], size=(2, n))
    return users, items, world.true_labels[users, items]


@pytest.mark.parametrize("given", ["s.csv", ([0], [0], [1]), vr.AuditSample([0], [0], [1])])
def test_what_is_no_survey_is_refused_by_an_assessment(world, scores, given):
    check_refusal(lambda: vr.assess(world.log, {"a": scores}, survey=given), SurveyError, "must be a SurveySample")


def test_a_pilot_of_another_grid(world, scores):
    users, items, labels = pairs(world)
    for moved in (vr.SurveySample(users + 40, items, labels), vr.SurveySample(users, items + 30, labels)):
        check_refusal(
            lambda moved=moved: vr.plan_labels(world.log, scores, budget=50, pilot=moved), PositionError, "the pilot's"
        )


@pytest.mark.parametrize("clusters", [[1, "a"] * 30, [1, None] * 30, [{}] * 60])
def test_clusters_that_cannot_be_told_apart(world, clusters):
    users, items, labels = pairs(world)
    given = np.array(clusters, dtype=object)
    check_refusal(lambda: vr.SurveySample(users, items, labels, clusters=given), SurveyError, "clusters must be")


def test_excluding_all_pairs(world, scores):
    every = tuple(part.ravel() for part in np.indices((40, 30)))
    check_refusal(lambda: vr.assess(world.log, {"a": scores}, exclude=every), SurveyError, "leaves no pair")


def test_a_small_sample_of_few_pairs_has_some(world, scores):
    users, items, labels = pairs(world, 200)
    kept = np.zeros((40, 30), bool)
    kept[users[:12], items[:12]] = True
    survey = vr.SurveySample(users, items, labels)
    with pytest.warns(SurveyWarning):
        found = vr.estimate(
            scores, world.log, survey=survey, exclude=np.nonzero(~kept), sample=10, estimators=["survey-ppi"]
        )
    assert np.isfinite(found["survey-ppi"].value)


def test_probabilities_of_nothing(world):
    users, items, labels = pairs(world)
    tiny = np.where(np.arange(60) == 0, 1e-320, 0.5)
    check_refusal(lambda: vr.SurveySample(users, items, labels, tiny), SurveyError, "within a factor of 1e\\+12")
    log = world.log
    check_refusal(
        lambda: vr.AuditSample(log.users[:60], log.items[:60], labels, probabilities=np.full(60, 1e-300)),
        AuditError,
        "above 0 \\(at least 1e-12\\)",
    )


@pytest.mark.parametrize("train", [None, 5, [[]], [None]])
def test_what_cannot_be_trained(world, scores, train):
    check_refusal(lambda: vr.assess(world.log, {"a": scores}, train=train), ParameterError, "train must name methods")


def test_a_long_purpose_is_cut(world, scores):
    long = "ndcg@" + "9" * 5000
    check_refusal(lambda: vr.plan_labels(world.log, scores, budget=20, purpose=long), ParameterError, "purpose must be")
    with pytest.raises(ParameterError) as caught:
        vr.plan_labels(world.log, scores, budget=20, purpose=long)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("folder", [3, "a\0b", ""])
def test_folders_that_are_none(world, folder):
    found = vr.assess(world.log)
    check_refusal(lambda: found.save(folder), ParameterError, "the place to write to must be named")
