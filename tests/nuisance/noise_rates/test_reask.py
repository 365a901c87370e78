"""Noise rates from second answers: right where errors are independent, and never silent where they cannot tell."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import (
    AnswersWarning,
    LabelError,
    NoiseRateWarning,
    ParameterError,
    PositionError,
    ReaskError,
    SmallAuditWarning,
)

RATES = vr.NoiseRates(0.2, 0.1)
SHAPE = (100, 150)


def made(seed, spread=1.5, rates=RATES):
    """Draw a log and the true labels of its rows."""
    random = np.random.default_rng(seed)
    logits = random.normal(0, spread, (SHAPE[0], 1)) + random.normal(0, spread, SHAPE[1])
    users, items = np.nonzero(random.random(SHAPE) < 0.4)
    truth = (random.random(len(users)) < 1 / (1 + np.exp(-logits[users, items]))).astype(np.int8)
    labels = rates.observe(truth, random.random(len(users)))
    return vr.FeedbackLog.from_arrays(users, items, labels, n_users=SHAPE[0], n_items=SHAPE[1]), truth


def asked_again(log, truth, size, seed=0, rates=RATES):
    random = np.random.default_rng(seed)
    rows = random.choice(len(log), size, replace=False)
    return vr.ReaskSample(log.users[rows], log.items[rows], rates.observe(truth[rows], random.random(size)))


def both_rates(rates):
    return np.array([rates.rho01, rates.rho10])


@pytest.fixture(scope="module")
def world():
    return made(0)


@pytest.fixture(scope="module")
def reask(world):
    return asked_again(*world, 600)


def test_rates_are_as_precise_as_they_say():
    errors, standard_errors = [], []
    for seed in range(40):
        log, truth = made(seed)
        rates = vr.ReaskNoiseRates().fit(log, reask=asked_again(log, truth, 600, seed))
        errors.append(both_rates(rates) - (0.2, 0.1))
        standard_errors.append(np.sqrt(np.diag(rates.covariance)))
    errors, standard_errors = np.array(errors), np.array(standard_errors)
    assert (np.abs(errors.mean(axis=0)) < 3.5 * errors.std(axis=0) / np.sqrt(40)).all()
    ratio = np.sqrt((standard_errors**2).mean(axis=0)) / errors.std(axis=0, ddof=1)
    # A standard deviation of 40 numbers is itself known to 11%.
    assert ((ratio > 0.7) & (ratio < 1.45)).all()
    assert (np.abs(errors) < 1.96 * standard_errors).mean() > 0.87


def test_a_choice_by_label_is_allowed_for():
    errors = []
    for seed in range(25):
        log, truth = made(seed)
        chance = np.where(log.labels == 0, 5.0, 1.0)
        random = np.random.default_rng(seed)
        rows = random.choice(len(log), 800, replace=False, p=chance / chance.sum())
        again = RATES.observe(truth[rows], random.random(800))
        rates = vr.ReaskNoiseRates().fit(log, reask=vr.ReaskSample(log.users[rows], log.items[rows], again))
        errors.append(both_rates(rates) - (0.2, 0.1))
    errors = np.array(errors)
    assert (np.abs(errors.mean(axis=0)) < 3.5 * errors.std(axis=0, ddof=1) / np.sqrt(25)).all()


def test_people_who_repeat_their_mistakes_make_the_rates_too_small(world, reask):
    log, truth = world
    rows = np.random.default_rng(0).choice(len(log), 600, replace=False)
    wrong = (log.labels[rows] != truth[rows]) & (np.random.default_rng(1).random(600) < 0.5)
    again = np.where(wrong, log.labels[rows], reask.labels)
    repeated = vr.ReaskNoiseRates().fit(log, reask=vr.ReaskSample(log.users[rows], log.items[rows], again))
    assert both_rates(repeated).sum() < both_rates(vr.ReaskNoiseRates().fit(log, reask=reask)).sum() - 0.03


def test_diagnostics_say_what_was_counted(world, reask):
    rates = vr.ReaskNoiseRates().fit(world[0], reask=reask)
    facts = dict(rates.diagnostics)
    assert 0 < facts.pop("agreement") <= 1
    low, high = facts.pop("said")
    assert 0 < low < 0.35 < 0.6 < high < 1
    assert 0.1 < facts.pop("differ") < 0.4
    assert facts == {
        "method": "second answers",
        "asked": 600,
        "strata": 10,
        "weighted": False,
        "source": "second answers to 600 pairs",
    }
    assert rates.source == "second answers to 600 pairs"
    assert rates.audit is None


def test_the_order_of_rows_does_not_matter(world, reask):
    log = world[0]
    scores = np.random.default_rng(3).random(SHAPE) + log_shares(log)
    order, turned = np.random.default_rng(1).permutation(len(log)), np.random.default_rng(2).permutation(len(reask))
    one = vr.ReaskNoiseRates().fit(log, reask=reask, scores=scores)
    again = vr.ReaskSample(reask.users[turned], reask.items[turned], reask.labels[turned])
    other = vr.ReaskNoiseRates().fit(log.select(order), reask=again, scores=scores)
    assert both_rates(other) == pytest.approx(both_rates(one), abs=1e-9)
    assert vr.ReaskNoiseRates().fit(log, reask=reask) == vr.ReaskNoiseRates().fit(log, reask=reask)


def log_shares(log):
    """A score by users and items that owes nothing to the order of rows."""
    by_user = np.bincount(log.users, weights=log.labels, minlength=SHAPE[0]) / np.bincount(log.users)
    by_item = np.bincount(log.items, weights=log.labels, minlength=SHAPE[1]) / np.bincount(log.items)
    return 3 * (by_user[:, None] + by_item)


def test_equal_probabilities_change_nothing(world, reask):
    log = world[0]
    given = vr.ReaskSample(reask.users, reask.items, reask.labels, np.full(600, 0.1))
    one, other = (vr.ReaskNoiseRates().fit(log, reask=sample) for sample in (reask, given))
    assert both_rates(one) == pytest.approx(both_rates(other), abs=1e-7)


def test_rates_go_into_an_assessment_which_does_not_rest_on_an_audit(world, reask):
    log = world[0]
    rates = vr.ReaskNoiseRates().fit(log, reask=reask)
    predictions = {"one": np.full(SHAPE, 0.4), "two": np.full(SHAPE, 0.6)}
    found = vr.assess(log, predictions, noise_rates=rates)
    assert found.noise_source == "second answers to 600 pairs"
    assert {verdict["basis"] for verdict in found.verdicts} == {"range"}


def test_where_all_answers_agree_the_rates_are_0_with_an_interval():
    log, _ = made(0, rates=vr.NoiseRates(0, 0))
    same = vr.ReaskSample(log.users[:300], log.items[:300], log.labels[:300])
    with pytest.warns(NoiseRateWarning, match="^all 300 second answers agree"):
        rates = vr.ReaskNoiseRates().fit(log, reask=same)
    assert both_rates(rates) == pytest.approx((0, 0), abs=1e-6)
    assert all(0.005 < high < 0.1 for _, high in rates.interval().values())


# Second answers that cannot tell, or not well


def test_likes_that_do_not_differ_between_strata_are_refused_and_an_audit_named():
    log, truth = made(0, spread=0.0)
    message = "^second answers cannot tell the two rates apart here: .* no more than by chance; true labels .*audit"
    check_refusal(lambda: vr.ReaskNoiseRates().fit(log, reask=asked_again(log, truth, 600)), ReaskError, message)


def test_few_pairs_of_likes_that_hardly_differ_are_warned_of_or_refused():
    log, truth = made(0, spread=0.5)
    with pytest.warns(SmallAuditWarning, match=r"^a re-ask of 400 pairs leaves the noise rates very uncertain"):
        vr.ReaskNoiseRates().fit(log, reask=asked_again(log, truth, 400))
    noisy, truth = made(0, spread=0.8, rates=vr.NoiseRates(0.3, 0.25))
    again = asked_again(noisy, truth, 60, rates=vr.NoiseRates(0.3, 0.25))
    check_refusal(lambda: vr.ReaskNoiseRates().fit(noisy, reask=again), ReaskError, "too uncertain.*an audit")


def test_second_answers_with_other_rates_are_warned_of(world):
    log, truth = world
    with pytest.warns(NoiseRateWarning, match="^second answers do not seem to be as noisy as the log's labels"):
        vr.ReaskNoiseRates().fit(log, reask=asked_again(log, truth, 1_500, rates=vr.NoiseRates(0.02, 0.3)))


def changed(reask, **parts):
    return vr.ReaskSample(**{"users": reask.users, "items": reask.items, "labels": reask.labels} | parts)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda one: "reask.csv", ParameterError, "^reask must be a ReaskSample; got str$"),
        (lambda one: changed(one, users=np.full(600, 100)), PositionError, "^the re-ask's users must be positions"),
        (
            lambda one: changed(one, users=np.zeros(600, int), items=np.arange(600) % 150),
            ReaskError,
            "^a re-ask must name each pair once; 600 rows name 150 pairs$",
        ),
        (
            lambda one: vr.ReaskSample(one.users[:49], one.items[:49], one.labels[:49]),
            ReaskError,
            "^a re-ask needs at least 50 pairs of the log; it has 49$",
        ),
    ],
)
def test_what_does_not_fit_the_log_is_refused(world, reask, change, error, message):
    check_refusal(lambda: vr.ReaskNoiseRates().fit(world[0], reask=change(reask)), error, message)


@pytest.mark.parametrize(("label", "word"), [(0, "dislikes"), (1, "likes")])
def test_pairs_of_one_label_alone_are_refused(world, label, word):
    log = world[0]
    rows = np.flatnonzero(log.labels == label)[:200]
    sample = vr.ReaskSample(log.users[rows], log.items[rows], np.arange(200) % 2)
    message = f"^a re-ask needs pairs of both labels; all 200 were logged as {word}$"
    check_refusal(lambda: vr.ReaskNoiseRates().fit(log, reask=sample), ReaskError, message)


def test_a_log_of_one_class_is_refused(world, reask):
    log = world[0]
    ones = vr.FeedbackLog.from_arrays(log.users, log.items, np.ones(len(log), int), n_users=100, n_items=150)
    check_refusal(lambda: vr.ReaskNoiseRates().fit(ones, reask=reask), LabelError, "^a re-ask needs a log with rows of")


def test_pairs_outside_of_the_log_are_left_out_with_a_warning_or_refused(world, reask):
    log = world[0]
    logged = np.zeros(SHAPE, bool)
    logged[log.users, log.items] = True
    users, items = (side[:40] for side in np.nonzero(~logged))
    outside = vr.ReaskSample(users, items, np.zeros(40, int))
    check_refusal(
        lambda: vr.ReaskNoiseRates().fit(log, reask=outside), ReaskError, "^none of the 40 re-asked pairs is in the log"
    )
    wider = vr.ReaskSample(
        *(
            np.concatenate(two)
            for two in zip((users, items, np.zeros(40, int)), (reask.users, reask.items, reask.labels), strict=True)
        )
    )
    with pytest.warns(NoiseRateWarning, match="^40 of 640 re-asked pairs are not in the log and are left out"):
        assert vr.ReaskNoiseRates().fit(log, reask=wider) == vr.ReaskNoiseRates().fit(log, reask=reask)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], [], []), ReaskError, "^a re-ask needs pairs with labels; got none$"),
        (
            ([0, 1], [0], [1, 0]),
            ReaskError,
            "^a re-ask's users, items and labels must be of one length; got 2, 1 and 2$",
        ),
        (([0], [0], [2]), ReaskError, "^the re-ask's labels must be 0/1; 1 are not$"),
        (([0], [0], [np.nan]), ReaskError, "^the re-ask's labels must be 0/1; 1 are not$"),
        (([-1], [0], [1]), PositionError, "^the re-ask's users must be positions"),
        (([0], [0], [1], [0]), ReaskError, r"^the re-ask's probabilities must be above 0 .*first: 0\)$"),
        (([0], [0], [1], [0.5, 1]), ReaskError, "^a re-ask's probabilities must be one a pair, 1; got 2$"),
    ],
)
def test_what_is_no_re_ask_is_refused(arguments, error, message):
    check_refusal(lambda: vr.ReaskSample(*arguments), error, message)


# Files


@pytest.fixture
def small_log():
    return vr.FeedbackLog.from_arrays([0, 1, 1], [0, 0, 1], [1, 0, 1], n_users=2, n_items=2)


@pytest.mark.parametrize("column", ["answer", "second_label", "true_label", "label"])
def test_a_file_has_second_answers_by_the_logs_ids(tmp_path, small_log, column):
    (tmp_path / "again.csv").write_text(f"user;item;{column};probability\n0;0;yes;0,5\n1;1;no;0,25\n1;0;;1\n")
    found = vr.ReaskSample.from_file(tmp_path / "again.csv", small_log)
    assert (found.users.tolist(), found.items.tolist(), found.labels.tolist()) == ([0, 1], [0, 1], [1, 0])
    # One of three pairs was not answered.
    assert found.probabilities == pytest.approx([1 / 3, 1 / 6])


def test_answers_that_repeat_are_merged_and_answers_that_contradict_refused(tmp_path, small_log):
    file = tmp_path / "again.csv"
    file.write_text("user,item,answer\n0,0,1\n0,0,1\n1,1,0\n")
    with pytest.warns(AnswersWarning, match=r"1 rows repeat"):
        assert len(vr.ReaskSample.from_file(file, small_log)) == 2
    file.write_text("user,item,answer,person\n0,0,1,a\n0,0,0,b\n1,1,0,a\n")
    message = r"^again.csv: answers of one person to one pair contradict each other in "
    check_refusal(lambda: vr.ReaskSample.from_file(file, small_log), ReaskError, message)
    file.write_text("user,item,answer\n0,0,2\n")
    check_refusal(lambda: vr.ReaskSample.from_file(file, small_log), ReaskError, "^again.csv: answer must be 0 or 1")
