"""What surveyed pairs stand for, and when they cannot be random ones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import verirec as vr
from plain_formulas import surveys as plain
from refusals import check_refusal
from verirec.estimation.survey.draws import draws_of, target_of
from verirec.exceptions import NoiseRateError, PositionError, SurveyError, SurveyWarning

SHAPE = (60, 80)
RATES = vr.NoiseRates(0.2, 0.1)


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.2, noise_rates=RATES, random_state=3)


def surveyed(world, cells, **more):
    users, items = np.divmod(np.asarray(cells), SHAPE[1])
    return vr.SurveySample(users, items, world.true_labels[users, items], **more)


def random_cells(n, seed=0):
    return np.random.default_rng(seed).choice(SHAPE[0] * SHAPE[1], n, replace=False)


def drawn(survey, log, rates=None, exclude=None):
    return draws_of(survey, target_of(survey, log, exclude), log, rates)


def test_shares_clusters_and_facts(world):
    h = np.random.default_rng(1).uniform(0.5, 2, 100)
    survey = surveyed(world, random_cells(100), probabilities=h, clusters=np.arange(100) // 4)
    found = drawn(survey, world.log)
    np.testing.assert_allclose(found.shares, plain.shares(h))
    assert found.effective == pytest.approx(plain.kish(1 / h))
    assert found.groups == 25
    logged = set(zip(world.log.users.tolist(), world.log.items.tolist(), strict=True))
    pairs = zip(survey.users.tolist(), survey.items.tolist(), strict=True)
    assert found.logged.tolist() == [pair in logged for pair in pairs]
    assert found.facts["surveyed"] == 100
    assert found.facts["liked"] == survey.labels.sum()
    assert found.facts["disliked"] == 100 - survey.labels.sum()
    assert found.facts["target_pairs"] == SHAPE[0] * SHAPE[1]
    assert not found.facts["noisy"]


def test_deviations_are_sums_over_clusters(world):
    clusters = np.random.default_rng(2).integers(12, size=100)
    found = drawn(surveyed(world, random_cells(100), clusters=clusters), world.log)
    values = np.random.default_rng(3).normal(size=100)
    for centre in (None, 0.3):
        middle = values.mean() if centre is None else centre
        wanted = plain.cluster_sums(values, [0.01] * 100, clusters.tolist(), middle)
        np.testing.assert_allclose(found.deviations(values, centre), [wanted[g] for g in sorted(wanted)], atol=1e-15)


def test_pairs_that_are_left_out_do_not_count(world):
    survey = surveyed(world, random_cells(100), probabilities=np.linspace(1, 2, 100))
    exclude = survey.users[:30], survey.items[:30]
    found = drawn(survey, world.log, exclude=exclude)
    assert len(found) == 70
    assert found.facts["left_out"] == 30
    np.testing.assert_allclose(found.shares, plain.shares(np.linspace(1, 2, 100)[30:]))
    check_refusal(
        lambda: drawn(survey, world.log, exclude=(survey.users, survey.items)),
        SurveyError,
        "all 100 surveyed pairs are among those that are left out",
    )


def test_noisy_labels_are_corrected(world):
    survey = surveyed(world, random_cells(100), noisy=True)
    check_refusal(lambda: drawn(survey, world.log), NoiseRateError, "labels are noisy: give noise_rates")
    found = drawn(survey, world.log, RATES)
    np.testing.assert_allclose(found.labels.values, (survey.labels - 0.1) / 0.7)
    exact = drawn(surveyed(world, random_cells(100)), world.log, RATES)
    np.testing.assert_array_equal(exact.labels.values, survey.labels)


def test_a_frame_is_whom_it_speaks_for(world):
    users = np.arange(20)
    cells = np.random.default_rng(5).choice(20 * SHAPE[1], 200, replace=False)
    survey = surveyed(world, cells, frame=users)
    target = target_of(survey, world.log, None)
    assert len(target) == 20 * SHAPE[1]
    with pytest.warns(SurveyWarning, match=r"200 pairs are of 20 users.*speaks for these users.*clusters=users"):
        taken = target_of(surveyed(world, cells), world.log, None)
    assert taken.users.tolist() == users.tolist()
    clustered = surveyed(world, cells, clusters=cells // SHAPE[1])
    assert target_of(clustered, world.log, None).frame is None


@pytest.mark.parametrize("seed", range(20))
def test_random_pairs_are_warned_of_in_no_way(world, seed):
    survey = surveyed(world, random_cells(300, seed))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(drawn(survey, world.log)) == 300


def test_logged_pairs_are_no_survey(world):
    log = world.log
    labels = world.true_labels[log.users, log.items]
    rows = np.random.default_rng(0).choice(len(log), 200, replace=False)
    audit = vr.SurveySample(log.users[rows], log.items[rows], labels[rows])
    check_refusal(lambda: drawn(audit, log), SurveyError, "all 200 surveyed pairs are logged ones.*audit=")
    rest = random_cells(60)
    mixed = vr.SurveySample(
        np.append(log.users[rows], rest // SHAPE[1]),
        np.append(log.items[rows], rest % SHAPE[1]),
        np.append(labels[rows], world.true_labels.ravel()[rest]),
    )
    with pytest.warns(SurveyWarning) as caught:
        drawn(mixed, log)
    assert any("are in the log where 20.3% of random pairs would be" in str(one.message) for one in caught)


def test_rows_shown_at_random_are_not_missed_in_the_log(world):
    """They are rows of the log themselves: no pair is in it twice."""
    log, cells = world.log, random_cells(200, 1)
    users, items = np.divmod(np.setdiff1d(cells, log.users * SHAPE[1] + log.items), SHAPE[1])
    labels = world.at(users, items).true_labels
    both = vr.FeedbackLog.from_arrays(
        np.append(log.users, users),
        np.append(log.items, items),
        np.append(log.labels, labels),
        n_users=SHAPE[0],
        n_items=SHAPE[1],
        unbiased=np.arange(len(log) + len(users)) >= len(log),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn(vr.SurveySample.from_unbiased(both), both, RATES)


def test_users_who_log_more_than_others(world):
    activity = np.bincount(world.log.users, minlength=SHAPE[0])
    busy = np.sort(np.argsort(activity)[-15:])
    cells = (busy[:, None] * SHAPE[1] + np.arange(0, 80, 8)).ravel()
    with pytest.warns(SurveyWarning) as caught:
        drawn(surveyed(world, cells, frame=busy), world.log)
    said = [str(one.message) for one in caught]
    assert any(one.startswith("the survey's users log more than other users") for one in said)
    busy = np.sort(np.argsort(activity)[-30:])
    cells = (busy[:, None] * SHAPE[1] + np.arange(0, 80, 8)).ravel()
    with pytest.warns(SurveyWarning) as caught:
        drawn(surveyed(world, cells, clusters=cells // SHAPE[1]), world.log)
    said = [str(one.message) for one in caught]
    assert any("the users of the surveyed pairs log more than those the answer is for" in one for one in said)


def test_few_of_a_class(world):
    flat = world.true_labels.ravel()
    cells = np.concatenate([np.flatnonzero(flat == 1)[::200][:4], np.flatnonzero(flat == 0)[::40][:46]])
    with pytest.warns(SurveyWarning, match=r"only 4 of 50 surveyed pairs are liked.*fewer than 10.*about 102 pairs"):
        drawn(surveyed(world, cells), world.log)


@pytest.mark.parametrize(
    ("survey", "error", "message"),
    [
        ([(0, 0, 1)], SurveyError, "survey must be a SurveySample; got list"),
        (vr.SurveySample([60], [0], [1]), PositionError, "the survey's users must be positions from 0 to 59"),
        (vr.SurveySample([0], [80], [1]), PositionError, "the survey's items must be positions from 0 to 79"),
        (vr.SurveySample([0], [0], [1], frame=[0, 60]), PositionError, "the survey's frame must be positions"),
        (vr.SurveySample([0, 1], [0, 1], [1, 0]), SurveyError, "at least 3 clusters to tell its own error; it has 2"),
    ],
)
def test_bad_surveys_for_a_log(world, survey, error, message):
    check_refusal(lambda: drawn(survey, world.log), error, message)
