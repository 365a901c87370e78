"""Noise rates from an audit: unbiased, as precise as they say, and never silent about an audit that cannot tell."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import verirec as vr
from plain_formulas import noise_rates as plain
from refusals import check_refusal
from verirec.exceptions import (
    AuditError,
    NoiseRateError,
    NoiseRateWarning,
    ParameterError,
    PositionError,
    SmallAuditWarning,
)
from verirec.nuisance.noise_rates import rates_from_audit

TRUE_RATES = np.array([0.2, 0.1])
WANTED = "must be integers from 0, one a position in the order of the log's ids"
REPETITIONS = 60


def made(seed, observed=0.25):
    return vr.simulate.world(100, 150, observed=observed, weak_separability=False, random_state=seed)


def audit_of(world, rows):
    users, items = world.log.users[rows], world.log.items[rows]
    return vr.AuditSample(users, items, world.at(users, items).true_labels)


def random_audit(world, size, seed=0):
    return audit_of(world, np.random.default_rng(seed).choice(len(world.log), size, replace=False))


def both_rates(rates):
    return rates.rho01, rates.rho10


@pytest.fixture(scope="module")
def world():
    return made(0)


@pytest.fixture(scope="module", params=[200, 500])
def repeated(request):
    """Both methods' rates, and the joint one's variances, in world after world."""
    joint, direct, variances = [], [], []
    for seed in range(REPETITIONS):
        world = made(seed)
        audit = random_audit(world, request.param, seed)
        rates = vr.AuditNoiseRates().fit(world.log, audit=audit)
        joint.append(both_rates(rates))
        variances.append(np.diag(rates.covariance))
        direct.append(both_rates(vr.AuditNoiseRates(method="direct").fit(world.log, audit=audit)))
    return np.array(joint), np.array(direct), np.array(variances)


def test_the_joint_rates_are_unbiased(repeated):
    joint, _, _ = repeated
    standard_error = joint.std(axis=0, ddof=1) / np.sqrt(REPETITIONS)
    assert (np.abs(joint.mean(axis=0) - TRUE_RATES) < 3.5 * standard_error).all()


def test_the_joint_rates_are_more_precise_than_the_direct_ones(repeated):
    joint, direct, _ = repeated
    assert (((joint - TRUE_RATES) ** 2).mean(axis=0) < 0.95 * ((direct - TRUE_RATES) ** 2).mean(axis=0)).all()


def test_standard_errors_are_the_spread_of_the_rates(repeated):
    joint, _, variances = repeated
    # A standard deviation of 60 numbers is itself known to 9%.
    ratio = np.sqrt(variances.mean(axis=0)) / joint.std(axis=0, ddof=1)
    assert ((ratio > 0.75) & (ratio < 1.33)).all()


def test_intervals_cover_the_true_rates(repeated):
    joint, _, variances = repeated
    covered = (np.abs(joint - TRUE_RATES) < 1.96 * np.sqrt(variances)).mean(axis=0)
    assert (covered > 0.87).all()


def test_an_audit_that_prefers_negative_labels_misleads_the_direct_rates_and_not_the_joint_ones():
    joint, direct = [], []
    for seed in range(30):
        world = made(seed)
        chance = np.where(world.log.labels == 0, 5.0, 1.0)
        rows = np.random.default_rng(seed).choice(len(world.log), 500, replace=False, p=chance / chance.sum())
        audit = audit_of(world, rows)
        joint.append(both_rates(vr.AuditNoiseRates().fit(world.log, audit=audit)))
        direct.append(both_rates(vr.AuditNoiseRates(method="direct").fit(world.log, audit=audit)))
    joint, direct = np.array(joint), np.array(direct)
    standard_error = joint.std(axis=0, ddof=1) / np.sqrt(len(joint))
    assert (np.abs(joint.mean(axis=0) - TRUE_RATES) < 3.5 * standard_error).all()
    assert direct.mean(axis=0)[0] > 0.4
    assert direct.mean(axis=0)[1] < 0.05


def test_direct_rates_are_the_audits_shares_of_wrong_labels(world):
    rows = np.random.default_rng(3).choice(len(world.log), 300, replace=False)
    audit = audit_of(world, rows)
    rates = vr.AuditNoiseRates(method="direct").fit(world.log, audit=audit)
    pairs = list(zip(world.log.labels[rows].tolist(), audit.true_labels.tolist(), strict=True))
    assert both_rates(rates) == pytest.approx(plain.shares_of_wrong_labels(pairs))
    assert rates.covariance[0][1] == 0


@pytest.mark.parametrize("strata", [1, 10])
def test_an_audit_of_the_whole_log_leaves_nothing_to_estimate(world, strata):
    audit = audit_of(world, np.arange(len(world.log)))
    joint = vr.AuditNoiseRates(strata=strata).fit(world.log, audit=audit)
    direct = vr.AuditNoiseRates(method="direct").fit(world.log, audit=audit)
    assert both_rates(joint) == pytest.approx(both_rates(direct), abs=1e-9)
    np.testing.assert_allclose(joint.covariance, direct.covariance, rtol=0.02, atol=1e-12)


def test_neither_the_order_of_the_log_nor_that_of_the_audit_matters(world):
    scores = np.random.default_rng(0).random((100, 150))
    audit = random_audit(world, 300)
    order, shuffled = np.random.default_rng(1).permutation(len(world.log)), np.random.default_rng(2).permutation(300)
    turned = vr.AuditSample(audit.users[shuffled], audit.items[shuffled], audit.true_labels[shuffled])
    one = vr.AuditNoiseRates().fit(world.log, audit=audit, scores=scores)
    other = vr.AuditNoiseRates().fit(world.log.select(order), audit=turned, scores=scores)
    assert both_rates(other) == pytest.approx(both_rates(one), abs=1e-9)


def test_a_better_score_makes_the_rates_more_precise(world):
    audit = random_audit(world, 300)
    blind = np.random.default_rng(0).random((100, 150))
    errors = [
        np.trace(vr.AuditNoiseRates().fit(world.log, audit=audit, scores=scores).covariance)
        for scores in (world.preferences, blind)
    ]
    assert errors[0] < errors[1]


def test_the_same_random_state_gives_the_same_rates(world):
    audit = random_audit(world, 300)
    first, again, other = (
        vr.AuditNoiseRates(random_state=state).fit(world.log, audit=audit, propensities=world.propensity_values)
        for state in (5, 5, 6)
    )
    assert first == again
    assert first != other


def test_diagnostics_say_what_was_counted(world):
    audit = random_audit(world, 300)
    facts = vr.AuditNoiseRates().fit(world.log, audit=audit).diagnostics
    positives = int(audit.true_labels.sum())
    expected = {"method": "audit, joint", "audited": 300, "positives": positives, "negatives": 300 - positives}
    assert 0.05 < facts.pop("agreement") <= 1
    assert facts == expected | {"strata": 10, "weighted": False, "source": "an audit of 300 pairs"}


def share_of_the_rarer_audited_label(labels, audited):
    """The share of rows that were audited, of the label of which fewer were."""
    return min((labels[audited] == label).sum() / (labels == label).sum() for label in (0, 1))


@pytest.mark.parametrize("method", ["joint", "direct"])
def test_rates_say_what_they_rest_on(world, method):
    audit = random_audit(world, 300)
    assert vr.AuditNoiseRates(method=method).fit(world.log, audit=audit).source == "an audit of 300 pairs"
    found = rates_from_audit(world.log, audit, vr.ConstantPropensity().fit(world.log))
    assert found.source == "an audit of 300 pairs"


@pytest.mark.parametrize("method", ["joint", "direct"])
def test_rates_say_which_log_was_audited_and_what_share_of_it_or_of_the_groups_rows(world, method):
    rows, groups = np.random.default_rng(0).choice(len(world.log), 500, replace=False), np.arange(100) % 2
    audit, of_row = audit_of(world, rows), groups[world.log.users]
    rates = vr.AuditNoiseRates(method=method).fit(world.log, audit=audit)
    share = share_of_the_rarer_audited_label(world.log.labels, rows)
    assert rates.audit == (world.log.fingerprint, pytest.approx(share))
    found = rates.covariance_beside_noise(world.log.fingerprint)
    np.testing.assert_allclose(found, (1 - 2 * share) * np.array(rates.covariance))
    by_group = vr.AuditNoiseRates(method=method, user_groups=groups).fit(world.log, audit=audit)
    for group, of_group in enumerate(by_group.rates):
        inside = np.flatnonzero(of_row == group)
        audited = np.flatnonzero(np.isin(inside, rows))
        share = share_of_the_rarer_audited_label(world.log.labels[inside], audited)
        assert of_group.audit == (world.log.fingerprint, pytest.approx(share))


def test_where_labels_are_audited_unequally_the_smaller_share_counts(world):
    positive, negative = (np.flatnonzero(world.log.labels == label) for label in (1, 0))
    audit = audit_of(world, np.concatenate([positive[:400], negative[:100]]))
    rates = vr.AuditNoiseRates().fit(world.log, audit=audit)
    assert rates.audit.share == pytest.approx(min(400 / len(positive), 100 / len(negative)))


# Groups


@pytest.fixture(scope="module")
def grouped():
    """Odd users' labels are much noisier than even users'."""
    world = vr.simulate.world(150, 200, observed=0.3, weak_separability=False, selectivity=1.0, random_state=1)
    users, items = world.log.users, world.log.items
    groups = np.arange(150) % 2
    true_labels = world.at(users, items).true_labels
    labels, uniforms = np.empty(len(world.log), np.int8), np.random.default_rng(0).random(len(world.log))
    for group, rates in enumerate((vr.NoiseRates(0.1, 0.05), vr.NoiseRates(0.3, 0.25))):
        inside = groups[users] == group
        labels[inside] = rates.observe(true_labels[inside], uniforms[inside])
    log = vr.FeedbackLog.from_arrays(users, items, labels, n_users=150, n_items=200)
    rows = np.random.default_rng(1).choice(len(log), 1_200, replace=False)
    return world, log, groups, vr.AuditSample(users[rows], items[rows], true_labels[rows])


@pytest.mark.parametrize("method", ["joint", "direct"])
def test_two_groups_of_users_are_told_apart(grouped, method):
    _, log, groups, audit = grouped
    rates = vr.AuditNoiseRates(method=method, user_groups=groups).fit(log, audit=audit)
    assert isinstance(rates, vr.GroupedNoiseRates)
    for of_group, expected in zip(rates.rates, ((0.1, 0.05), (0.3, 0.25)), strict=True):
        errors = np.sqrt(np.diag(of_group.covariance))
        assert (np.abs(np.array(both_rates(of_group)) - expected) < 3.5 * errors).all()
        assert (errors < 0.04).all()


def test_groups_of_items_are_those_of_the_turned_log(grouped):
    _, log, groups, audit = grouped
    turned = vr.FeedbackLog.from_arrays(log.items, log.users, log.labels, n_users=200, n_items=150)
    turned_audit = vr.AuditSample(audit.items, audit.users, audit.true_labels)
    by_user = vr.AuditNoiseRates(method="direct", user_groups=groups).fit(log, audit=audit)
    by_item = vr.AuditNoiseRates(method="direct", item_groups=groups).fit(turned, audit=turned_audit)
    for one, other in zip(by_item.rates, by_user.rates, strict=True):
        assert (one.rho01, one.rho10, one.covariance) == (other.rho01, other.rho10, other.covariance)
        assert one.audit == (turned.fingerprint, other.audit.share)
    assert by_item.user_groups is None
    np.testing.assert_array_equal(by_item.item_groups, groups)


def test_one_group_alone_has_the_rates_of_all(grouped):
    _, log, _, audit = grouped
    alone = vr.AuditNoiseRates(user_groups=np.zeros(150, int)).fit(log, audit=audit)
    assert alone.rates == (vr.AuditNoiseRates().fit(log, audit=audit),)


def test_rates_by_group_go_into_an_estimate_with_their_uncertainty(grouped):
    world, log, groups, audit = grouped
    rates = vr.AuditNoiseRates(user_groups=groups).fit(log, audit=audit)
    known = vr.GroupedNoiseRates(tuple(vr.NoiseRates(*both_rates(of)) for of in rates.rates), user_groups=groups)
    options = {"propensities": world.propensity_values, "estimators": ["ips", "ome-ips", "ome-dr"]}
    predictions = np.clip(world.preferences, 0.2, 0.8)
    estimates = vr.estimate(predictions, log, noise_rates=rates, **options)
    sure = vr.estimate(predictions, log, noise_rates=known, **options)
    truth = world.true_inaccuracy(predictions)
    for name in ("ome-ips", "ome-dr"):
        assert estimates[name].value == pytest.approx(sure[name].value)
        assert estimates[name].standard_error > sure[name].standard_error
        assert abs(estimates[name].value - truth) < 3.5 * estimates[name].standard_error
        assert abs(estimates[name].value - truth) < abs(estimates["ips"].value - truth)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"user_groups": np.zeros(149, int)}, ParameterError, r"^user_groups must have 150 entries, .*; got 149$"),
        ({"item_groups": np.zeros(150, int)}, ParameterError, r"^item_groups must have 200 entries, .*; got 150$"),
        (
            {"user_groups": np.zeros(150)},
            NoiseRateError,
            f"^user_groups {WANTED}; got float64",
        ),
        ({"user_groups": np.full(150, -1)}, NoiseRateError, f"^user_groups {WANTED}; got -1 to -1"),
        (
            {"user_groups": np.zeros((150, 1), int)},
            NoiseRateError,
            rf"^user_groups {WANTED}; .*\(150, 1\)$",
        ),
        (
            {"user_groups": np.zeros(150, int), "item_groups": np.zeros(200, int)},
            ParameterError,
            "^give user_groups or item_groups, not both$",
        ),
        ({"user_groups": np.full(150, 1)}, AuditError, "^group 0 has no audited pair$"),
    ],
)
def test_bad_groups_are_refused(grouped, options, error, message):
    _, log, _, audit = grouped
    check_refusal(lambda: vr.AuditNoiseRates(**options).fit(log, audit=audit), error, message)


def test_a_group_without_an_audited_pair_is_refused(grouped):
    _, log, groups, audit = grouped
    inside = groups[audit.users] == 0
    only_even = vr.AuditSample(audit.users[inside], audit.items[inside], audit.true_labels[inside])
    model = vr.AuditNoiseRates(user_groups=groups)
    check_refusal(lambda: model.fit(log, audit=only_even), AuditError, "^group 1 has no audited pair$")


def test_warnings_and_errors_name_the_group(grouped):
    _, log, groups, audit = grouped
    odd = np.flatnonzero(groups[audit.users] == 1)
    few = np.concatenate([np.flatnonzero(groups[audit.users] == 0), odd[:20]])
    part = vr.AuditSample(audit.users[few], audit.items[few], audit.true_labels[few])
    with pytest.warns(SmallAuditWarning, match=r"^an audit of 20 pairs in group 1 leaves"):
        vr.AuditNoiseRates(user_groups=groups).fit(log, audit=part)
    keep = np.concatenate([few[:-20], odd[audit.true_labels[odd] == 1]])
    part = vr.AuditSample(audit.users[keep], audit.items[keep], audit.true_labels[keep])
    model = vr.AuditNoiseRates(user_groups=groups)
    check_refusal(lambda: model.fit(log, audit=part), AuditError, "^an audit without a true negative in group 1 ")


# Audits that cannot tell, or not well


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], [], []), AuditError, "^an audit needs pairs with true labels; got none$"),
        (([0, 1], [0], [1, 0]), AuditError, r"must be of one length; got 2, 1 and 2$"),
        (([0, 1], [0, 1], [1]), AuditError, r"must be of one length; got 2, 2 and 1$"),
        (([0, 1], [0, 1], [1, 2]), AuditError, r"^the audit's true_labels must be 0/1; 1 are not$"),
        (([0, 1], [0, 1], [-1, 0.5]), AuditError, r"^the audit's true_labels must be 0/1; 2 are not$"),
        (([0], [0], [np.nan]), AuditError, r"^the audit's true_labels must be 0/1; 1 are not$"),
        (([0], [0], ["yes"]), AuditError, r"^the audit's true_labels must be numbers; got <U3$"),
        (([0], [0], [[1]]), AuditError, r"^the audit's true_labels must be a flat array; got shape \(1, 1\)$"),
        (([-1], [0], [1]), PositionError, r"^the audit's users must be positions .*\(row 0 has -1\)$"),
        (([0], [2**31], [1]), PositionError, r"^the audit's items must be positions "),
        (
            ([0.0], [0], [1]),
            PositionError,
            r"^the audit's users must be integers \(positions\); got float64: log\.user_ids",
        ),
        ((["ann"], [0], [1]), PositionError, r"^the audit's users must be integers \(positions\)"),
        (([[0]], [0], [1]), PositionError, r"^the audit's users must be a flat array of positions"),
        (([0, 1], [0, 1], [1, 0], [0.5]), AuditError, "^an audit's probabilities must be one a pair, 2; got 1$"),
        (([0, 1], [0, 1], [1, 0], [0.5, 0]), AuditError, r"^the audit's probabilities must be above 0 .*first: 0\)$"),
        (([0, 1], [0, 1], [1, 0], [-0.5, 1]), AuditError, r"at most 1; 1 of 2 are not \(first: -0.5\)$"),
        (([0, 1], [0, 1], [1, 0], [1.5, np.nan]), AuditError, r"at most 1; 2 of 2 are not \(first: 1.5\)$"),
        (([0, 1], [0, 1], [1, 0], [np.nan, 1]), AuditError, r"at most 1; 1 of 2 are not \(first: nan\)$"),
        (([0], [0], [1], ["half"]), AuditError, "^the audit's probabilities must be numbers; got <U4$"),
    ],
)
def test_what_is_no_audit_is_refused(arguments, error, message):
    check_refusal(lambda: vr.AuditSample(*arguments), error, message)


def test_pairs_carry_their_probabilities_into_the_log(world):
    users, items = world.log.users[[5, 2]], world.log.items[[5, 2]]
    found = vr.AuditSample(users, items, [1, 0], [0.25, 1]).rows_in(world.log)
    assert found.rows.tolist() == [5, 2]
    assert found.probabilities.tolist() == [0.25, 1]
    simple = vr.AuditSample(users, items, [1, 0]).rows_in(world.log)
    assert simple.probabilities.tolist() == [2 / len(world.log)] * 2


@pytest.mark.parametrize(("column", "expected"), [("probability", [0.5, 0.25]), ("weight", [2, 4])])
def test_a_file_may_say_how_likely_each_pair_was_to_be_audited(tmp_path, column, expected):
    log = vr.FeedbackLog.from_arrays([0, 1, 1], [0, 0, 1], [1, 0, 1], n_users=2, n_items=2)
    (tmp_path / "audit.csv").write_text(f"user,item,true_label,{column}\n0,0,1,{expected[0]}\n1,1,0,{expected[1]}\n")
    assert vr.AuditSample.from_file(tmp_path / "audit.csv", log).probabilities.tolist() == [0.5, 0.25]


def test_true_labels_may_be_booleans():
    assert vr.AuditSample([0, 1], [0, 1], [True, False]).true_labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"true_labels": np.zeros(300, int)},
            AuditError,
            "^an audit without a true positive cannot tell rho01; it has",
        ),
        ({"true_labels": np.ones(300, int)}, AuditError, "^an audit without a true negative cannot tell rho10; it has"),
        ({"users": np.full(300, 100)}, PositionError, r"^the audit's users must be positions from 0 to 99; 300 of 300"),
        ({"items": np.full(300, 150)}, PositionError, r"^the audit's items must be positions from 0 to 149; 300 of"),
        (
            {"users": np.zeros(300, int), "items": np.repeat(np.arange(150), 2)},
            AuditError,
            "^an audit must name each pair once; 300 rows name 150 pairs$",
        ),
    ],
)
@pytest.mark.parametrize("method", ["joint", "direct"])
def test_an_audit_that_does_not_fit_the_log_is_refused(world, method, change, error, message):
    audit = random_audit(world, 300)
    parts = {"users": audit.users, "items": audit.items, "true_labels": audit.true_labels} | change
    model = vr.AuditNoiseRates(method=method)
    check_refusal(lambda: model.fit(world.log, audit=vr.AuditSample(**parts)), error, message)


def unlogged(world, count):
    users, items = np.nonzero(~world.observed)
    return users[:count], items[:count]


def test_pairs_outside_of_the_log_are_left_out_with_a_warning(world):
    audit = random_audit(world, 300)
    users, items = unlogged(world, 40)
    true_labels = np.concatenate([1 - np.zeros(40, int), audit.true_labels])
    wider = vr.AuditSample(np.concatenate([users, audit.users]), np.concatenate([items, audit.items]), true_labels)
    with pytest.warns(NoiseRateWarning, match="^40 of 340 audited pairs are not in the log and are left out"):
        rates = vr.AuditNoiseRates().fit(world.log, audit=wider)
    assert rates == vr.AuditNoiseRates().fit(world.log, audit=audit)


def test_an_audit_wholly_outside_of_the_log_is_refused(world):
    outside = vr.AuditSample(*unlogged(world, 40), np.arange(40) % 2)
    message = "^none of the 40 audited pairs is in the log"
    check_refusal(lambda: vr.AuditNoiseRates().fit(world.log, audit=outside), AuditError, message)


@pytest.mark.parametrize("method", ["joint", "direct"])
def test_an_audit_is_called_small_by_how_open_it_leaves_the_rates(world, method):
    model = vr.AuditNoiseRates(method=method)
    with pytest.warns(SmallAuditWarning) as told:
        rates = model.fit(world.log, audit=random_audit(world, 20, seed=1))
    width = 1.959964 * np.sqrt(np.diag(rates.covariance)).max()
    assert width > 0.15
    assert str(told[0].message) == (
        "an audit of 20 pairs leaves the noise rates very uncertain: a 95% interval reaches "
        f"{width:.2f} to either side; plan_labels tells how many more pairs it takes"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rates = model.fit(world.log, audit=random_audit(world, 150))
    assert 1.959964 * np.sqrt(np.diag(rates.covariance)).max() < 0.15


@pytest.mark.filterwarnings("ignore::verirec.exceptions.SmallAuditWarning")
@pytest.mark.parametrize("label", [0, 1])
def test_an_audit_of_one_label_only_is_warned_of(world, label):
    rows = np.flatnonzero(world.log.labels == label)[:300]
    with pytest.warns(NoiseRateWarning, match="^no audited pair has one of the two labels: the rates then rest on"):
        rates = vr.AuditNoiseRates().fit(world.log, audit=audit_of(world, rows))
    assert rates.audit.share == 0


@pytest.mark.parametrize("method", ["joint", "direct"])
def test_where_labels_decide_what_is_logged_the_rates_are_right_only_if_weighted(method):
    """As naive Bayes has it: of what is said, one label is logged four times as often."""
    found, shape = {"weighted": [], "not": []}, (60, 80)
    for seed in range(40):
        random = np.random.default_rng(seed)
        truth = (random.random(shape) < random.uniform(0.1, 0.9, shape[1])).astype(int)
        said = vr.NoiseRates(*TRUE_RATES).observe(truth, random.random(shape))
        logged, asked = random.random(shape) < np.where(said == 1, 0.4, 0.1), random.random(shape) < 0.3
        log, sample = (
            vr.FeedbackLog.from_arrays(*np.nonzero(seen), said[seen], n_users=60, n_items=80)
            for seen in (logged, asked)
        )
        rows = random.choice(len(log), 400, replace=False)
        audit = vr.AuditSample(log.users[rows], log.items[rows], truth[log.users[rows], log.items[rows]])
        propensities = vr.NaiveBayesPropensity(unbiased=sample).fit(log)
        for case, p in (("weighted", propensities), ("not", None)):
            rates = vr.AuditNoiseRates(method=method).fit(log, audit=audit, propensities=p)
            assert rates.diagnostics["weighted"] == (case == "weighted")
            found[case].append(both_rates(rates))
    z = {
        case: (np.mean(rates, axis=0) - TRUE_RATES) / (np.std(rates, axis=0, ddof=1) / np.sqrt(40))
        for case, rates in found.items()
    }
    assert (np.abs(z["weighted"]) < 3.5).all()
    assert (np.abs(z["not"]) > 10).all()


@pytest.mark.parametrize("method", ["joint", "direct"])
def test_rates_of_zero_come_with_a_warning_and_a_positive_covariance(method):
    noiseless = vr.simulate.world(100, 150, noise_rates=vr.NoiseRates(0, 0), observed=0.25, random_state=0)
    with pytest.warns(NoiseRateWarning) as caught:
        rates = vr.AuditNoiseRates(method=method).fit(noiseless.log, audit=random_audit(noiseless, 300))
    said = {str(one.message).split(" is estimated at 0")[0] for one in caught}
    assert said <= {"rho01", "rho10"}
    assert len(said) >= 1
    if method == "direct":
        assert said == {"rho01", "rho10"}
    assert max(both_rates(rates)) < 0.01
    assert np.isfinite(rates.covariance).all()
    assert np.linalg.eigvalsh(rates.covariance).min() > 0


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"method": "guess"}, {}, "^method must be one of direct, joint; got 'guess'$"),
        ({"method": None}, {}, "^method must be one of direct, joint; got None$"),
        ({"strata": 0}, {}, "^strata must be a whole number of at least 1; got 0$"),
        ({"folds": 1}, {}, "^folds must be a whole number of at least 2; got 1$"),
        ({"random_state": -1}, {}, "^random_state must be "),
        ({}, {"audit": None}, "^audit must be an AuditSample; got NoneType$"),
        ({}, {"audit": ([0], [0], [1])}, "^audit must be an AuditSample; got tuple$"),
        ({}, {"log": "log.csv"}, "^a FeedbackLog is needed; got str$"),
    ],
)
def test_bad_options_are_refused(world, options, arguments, message):
    given = {"log": world.log, "audit": random_audit(world, 300)} | arguments
    log = given.pop("log")
    check_refusal(lambda: vr.AuditNoiseRates(**options).fit(log, **given), ParameterError, message)


def test_rates_that_leave_no_signal_are_refused(world):
    audit = random_audit(world, 300)
    turned = vr.AuditSample(audit.users, audit.items, 1 - audit.true_labels)
    model = vr.AuditNoiseRates(method="direct")
    check_refusal(lambda: model.fit(world.log, audit=turned), NoiseRateError, r"^rho01 \+ rho10 must be below 1")


def test_a_log_of_one_row_is_refused_by_name():
    log = vr.FeedbackLog.from_arrays([0], [0], [1], n_users=2, n_items=2)
    audit = vr.AuditSample([0], [0], [1])
    check_refusal(lambda: vr.AuditNoiseRates().fit(log, audit=audit), AuditError, "without a true negative")


def test_a_sample_is_short_to_show():
    sample = vr.AuditSample(np.arange(1_000), np.zeros(1_000, int), np.arange(1_000) % 4 == 0)
    assert repr(sample) == "AuditSample(1,000 pairs, 25.0% truly positive)"
    assert "<td>250 (25.0%)</td>" in sample._repr_html_()
