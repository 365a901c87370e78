"""Calibration by a survey that judges too: whose curve a pair gets, who is calibrated, whether intervals hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import verirec as vr
from verirec.estimation.calibration import calibrate
from verirec.estimation.cross_calibration import ENOUGH, FOLDS, calibrate_by_survey, can_calibrate
from verirec.exceptions import ScoreWarning

SHAPE = (60, 50)
EVERYWHERE = np.arange(SHAPE[0]), np.arange(SHAPE[1])


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.2, selectivity=2, noise_rates=vr.NoiseRates(0.2, 0.1), random_state=0)


@pytest.fixture(scope="module")
def scores(world):
    """Stars, and numbers of another size and less information."""
    random = np.random.default_rng(0)
    rough = world.preferences + random.normal(0, 0.4, SHAPE)
    return {"stars": 1 + 4 * world.preferences + random.normal(0, 0.8, SHAPE), "rough": 300 * rough - 20}


def drawn(world, pairs, seed, **more):
    users, items = np.divmod(np.random.default_rng(seed).choice(SHAPE[0] * SHAPE[1], pairs, replace=False), SHAPE[1])
    return vr.SurveySample(users, items, world.true_labels[users, items], **more)


# Whose curve


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_a_surveyed_pair_has_a_curve_of_the_other_folds_and_all_others_that_of_the_survey(world, scores, method):
    survey = drawn(world, 250, 0)
    made = calibrate_by_survey(scores, survey, world.log, method)["stars"]
    plainly = calibrate(scores["stars"], world.log, survey=survey, method=method).block(*EVERYWHERE)
    found = made.block(*EVERYWHERE)
    asked = np.zeros(SHAPE, bool)
    asked[survey.users, survey.items] = True
    assert found[~asked] == pytest.approx(plainly[~asked], rel=1e-12)
    assert made.at(survey.users, survey.items) == pytest.approx(found[survey.users, survey.items], rel=1e-12)
    # The label of a pair changes the curves of others, and never its own.
    flipped = survey.labels.copy()
    flipped[7] = 1 - flipped[7]
    other = calibrate_by_survey(scores, vr.SurveySample(survey.users, survey.items, flipped), world.log, method)[
        "stars"
    ].block(*EVERYWHERE)
    own = survey.users[7], survey.items[7]
    assert other[own] == found[own]
    assert (other != found).sum() > (SHAPE[0] * SHAPE[1] / 4 if method == "platt" else 0)
    logits = made.cell_logits(*EVERYWHERE[:1], np.zeros(SHAPE[0], int))
    if method == "platt":
        assert 1 / (1 + np.exp(-logits)) == pytest.approx(found[:, 0])
    else:
        assert logits is None


def test_draws_made_together_are_in_one_fold_and_the_order_of_draws_does_not_matter(world, scores):
    survey = drawn(world, 200, 1)
    clustered = vr.SurveySample(survey.users, survey.items, survey.labels, clusters=survey.users)
    folds = calibrate_by_survey(scores, clustered, world.log)["stars"].folds
    of_user = {}
    for key, fold in zip(np.unique(survey.users * SHAPE[1] + survey.items), folds, strict=True):
        of_user.setdefault(key // SHAPE[1], set()).add(int(fold))
    assert {len(one) for one in of_user.values()} == {1}
    assert set().union(*of_user.values()) == set(range(FOLDS))
    order = np.random.default_rng(0).permutation(len(survey))
    one, two = (calibrate_by_survey(scores, each, world.log)["rough"] for each in (survey, survey.select(order)))
    assert one.block(*EVERYWHERE) == pytest.approx(two.block(*EVERYWHERE), rel=1e-9)


def test_a_pair_that_several_clusters_drew_makes_no_curve_of_its_own(world, scores):
    survey = drawn(world, 200, 2)
    users, items, labels = (np.tile(one, 2) for one in (survey.users, survey.items, survey.labels))
    clusters = np.arange(400) // 10
    flipped = labels.copy()
    flipped[[7, 207]] = 1 - flipped[7]
    found = [
        calibrate_by_survey(scores, vr.SurveySample(users, items, each, clusters=clusters), world.log)["stars"]
        for each in (labels, flipped)
    ]
    own = [one.at(users, items) for one in found]
    assert own[0][7] == own[1][7]
    assert (own[0] != own[1]).any()


def test_which_surveys_can(world):
    enough = drawn(world, ENOUGH, 0)
    assert can_calibrate(enough)
    assert not can_calibrate(None)
    assert not can_calibrate(drawn(world, ENOUGH - 1, 0))
    assert not can_calibrate(drawn(world, ENOUGH, 0, noisy=True))
    assert not can_calibrate(drawn(world, ENOUGH, 0, best=True))
    assert not can_calibrate(vr.SurveySample(enough.users, enough.items, np.arange(ENOUGH) == 0))


# Who is calibrated


def test_all_that_are_compared_are_calibrated_where_one_needs_it(world, scores):
    survey, given = drawn(world, 300, 2), {"stars": scores["stars"], "sharp": 0.1 + 0.8 * world.preferences}
    found = vr.assess(world.log, given, survey=survey, calibrate="platt")
    assert found.calibrated == {}
    assert found.calibrated_by_survey == found.summary["calibrated_by_survey"] == {"stars": 300, "sharp": 300}
    assert any("stars and sharp were calibrated by the survey's 300 pairs" in one for one in found.conclusions)
    made = calibrate_by_survey(given, survey, world.log)
    for name in given:
        own = vr.estimate(made[name], world.log, survey=survey, estimators=["survey"])["survey"]
        assert found.recommenders[name].estimates["survey"].value == pytest.approx(own.value, rel=1e-9)
    # Rankings go by the scores themselves.
    plain = vr.estimate_ranking(scores["stars"], world.log, survey=survey, noise_rates=found.noise)
    assert found.recommenders["stars"].ranking["auc"].value == plain["auc"].value


def test_where_all_are_probabilities_none_is_calibrated(world):
    given = {"sharp": 0.1 + 0.8 * world.preferences}
    found = vr.assess(world.log, given, survey=drawn(world, 300, 2), calibrate="platt")
    assert (found.calibrated, found.calibrated_by_survey) == ({}, {})


@pytest.mark.parametrize("why", ["few pairs", "noisy", "scores of some pairs"])
def test_where_the_survey_cannot_the_log_does(world, scores, why):
    survey = drawn(world, 300, 2, noisy=True) if why == "noisy" else drawn(world, 30 if why == "few pairs" else 300, 2)
    log, given = world.log, scores["stars"]
    if why == "scores of some pairs":
        given = log.users, log.items, given[log.users, log.items]
    found = vr.assess(log, {"stars": given}, survey=survey, noise_rates=world.noise_rates, calibrate="platt")
    assert list(found.calibrated) == ["stars"]
    assert found.calibrated_by_survey == {}


def test_surveyed_pairs_that_are_left_out_do_not_calibrate(world, scores):
    survey = drawn(world, 300, 3)
    gone = survey.users[:100], survey.items[:100]
    found = vr.assess(world.log, {"stars": scores["stars"]}, survey=survey, exclude=gone, calibrate="platt")
    assert found.calibrated_by_survey == {"stars": 200}


# Whether it holds


def test_intervals_hold_the_loss_of_what_was_calibrated_and_not_that_of_knowing_its_labels(world, scores):
    """95% of 120 surveys but for chance; a curve of the same labels that judge would look better than it is."""
    held, off, off_within = [], [], []
    for seed in range(120):
        survey = drawn(world, 250, [seed, 5])
        made = calibrate_by_survey({"rough": scores["rough"]}, survey, world.log, seed=seed)["rough"]
        truth = world.true_inaccuracy(made.block(*EVERYWHERE))
        found = vr.estimate(made, world.log, survey=survey, estimators=["survey"])["survey"]
        held.append(found.interval[0] <= truth <= found.interval[1])
        off.append(found.value - truth)
        within = calibrate(scores["rough"], world.log, survey=survey)
        naive = vr.estimate(within, world.log, survey=survey, estimators=["survey"])["survey"]
        off_within.append(naive.value - world.true_inaccuracy(within.block(*EVERYWHERE)))
    assert np.mean(held) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 120)
    assert abs(np.mean(off)) < 4 * np.std(off) / np.sqrt(120)
    assert np.mean(off) > np.mean(off_within)


def test_models_of_other_libraries_are_calibrated_by_the_survey_too(world, scores):
    users, items = np.divmod(np.arange(SHAPE[0] * SHAPE[1]), SHAPE[1])
    table = pd.DataFrame({"user": users, "item": items, "score": scores["stars"].ravel()})
    survey, rough = drawn(world, 300, 2), 0.1 + 0.8 * world.preferences
    with pytest.warns(ScoreWarning) as told:
        found = vr.compare(table, rough, world.log, survey=survey, estimators=["survey"])
    assert [str(one.message).partition(", each")[0] for one in told] == [
        "a DataFrame was calibrated by the survey's 300 pairs",
        "the other recommender was calibrated by the survey's 300 pairs",
    ]
    assert found["survey"].value == pytest.approx(0.02, abs=0.2)
