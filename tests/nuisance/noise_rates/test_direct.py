"""An audit's own shares of wrong labels, and whether the joint rates agree with them."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from verirec.exceptions import NoiseRateWarning
from verirec.nuisance.noise_rates.direct import chance_of_audit, direct_rates, share_variance


def rates_of(shape=(150, 200), *, seed, near_threshold, size, chances=None):
    """Fit joint rates to an audit of a world whose labels are wrong at random, or near people's thresholds."""
    random = np.random.default_rng(seed)
    utility = random.normal(0, 0.5, (shape[0], 1)) + random.normal(0, 0.5, shape[1])
    utility = utility + 0.4 * random.normal(size=(shape[0], 3)) @ random.normal(size=(3, shape[1]))
    felt = utility + random.normal(0, 0.4, shape)
    truth = felt > 0
    said = felt + random.normal(0, 0.6, shape) > 0 if near_threshold else truth ^ (random.random(shape) < 0.15)
    users, items = np.nonzero(random.random(shape) < 0.2)
    log = vr.FeedbackLog.from_arrays(users, items, said[users, items].astype(int), n_users=shape[0], n_items=shape[1])
    each = np.ones(len(log)) if chances is None else chances(log)
    each = each * size / each.sum()
    rows = np.flatnonzero(random.random(len(log)) < each)
    audit = vr.AuditSample(users[rows], items[rows], truth[users[rows], items[rows]].astype(int), each[rows])
    return log, truth[users, items], audit


def test_weights_undo_an_unequal_choice():
    log, truth, audit = rates_of(
        seed=0, near_threshold=True, size=4_000, chances=lambda log: np.where(log.labels == 1, 1.0, 3.0)
    )
    logged = [(log.labels[truth == own] != own).mean() for own in (1, 0)]
    weighted = vr.AuditNoiseRates(method="direct").fit(log, audit=audit)
    plainly = vr.AuditNoiseRates(method="direct").fit(
        log, audit=vr.AuditSample(audit.users, audit.items, audit.true_labels)
    )
    assert [weighted.rho01, weighted.rho10] == pytest.approx(logged, abs=0.03)
    assert plainly.rho01 > logged[0] + 0.1


def test_equal_weights_count():
    labels, truths = np.array([1, 1, 0, 0, 0, 1]), np.array([1, 1, 1, 0, 0, 0])
    found = direct_rates(labels, truths, np.full(6, 7.0))
    assert found.rates == pytest.approx((1 / 3, 1 / 3))
    assert found.rows == pytest.approx((3, 3))


@pytest.mark.parametrize("total", [1, 2, 5, 30, 1_000])
def test_no_wrong_row_leaves_a_rate_as_open_as_the_rule_of_three_says(total):
    assert 0 < share_variance(0, total) <= 0.25 / total
    assert share_variance(0, total) == pytest.approx(share_variance(total, total))
    if total >= 30:
        assert 1.96 * np.sqrt(share_variance(0, total)) == pytest.approx(3 / total, rel=0.1)


@pytest.mark.parametrize("method", ["joint", "direct"])
def test_a_perfect_audit_gives_rates_of_zero_with_an_interval(method):
    """Strata that are positive throughout, where rounding once left a rate of -2e-9."""
    random = np.random.default_rng(0)
    users, items = np.divmod(np.arange(2_000), 50)
    labels = (items < 25).astype(int)
    log = vr.FeedbackLog.from_arrays(users, items, labels, n_users=40, n_items=50)
    rows = random.choice(2_000, 200, replace=False)
    with pytest.warns(NoiseRateWarning, match="is estimated at 0"):
        rates = vr.AuditNoiseRates(method=method).fit(log, audit=vr.AuditSample(users[rows], items[rows], labels[rows]))
    for rate, (low, high) in zip((rates.rho01, rates.rho10), rates.interval().values(), strict=True):
        assert 0 <= rate < 1e-6
        assert low == 0
        assert 2.5 / 100 < high < 4 / 80


def test_an_audit_far_from_what_is_expected_is_unlikely():
    labels, expected = np.repeat([0, 1], 100).astype(np.int8), np.repeat([0.1, 0.9], 100)
    as_expected = np.concatenate([np.arange(100) < 10, np.arange(100) < 90]).astype(np.int8)
    assert chance_of_audit(labels, as_expected, expected, np.ones(200)) == 1
    off = np.concatenate([np.arange(100) < 25, np.arange(100) < 90]).astype(np.int8)
    assert chance_of_audit(labels, off, expected, np.ones(200)) < 1e-5
    assert chance_of_audit(labels, off, expected, np.full(200, 9.0)) < 1e-5


def test_where_people_err_near_their_threshold_the_joint_rates_are_warned_of():
    log, _, audit = rates_of(seed=1, near_threshold=True, size=1_200)
    with pytest.warns(NoiseRateWarning, match="assume that the noise is the same for all pairs of a class") as caught:
        rates = vr.AuditNoiseRates().fit(log, audit=audit)
    assert "audited-dr" in str(caught[0].message)
    assert rates.diagnostics["agreement"] < 0.1
    assert 0 <= rates.diagnostics["separability"].p_value <= 1
    assert rates.diagnostics["direct"][0] > rates.rho01


def test_where_noise_is_the_same_for_all_they_hardly_ever_are():
    alarms = 0
    for seed in range(12):
        log, _, audit = rates_of((80, 100), seed=seed, near_threshold=False, size=400)
        alarms += vr.AuditNoiseRates(strata=5).fit(log, audit=audit).diagnostics["agreement"] < 0.1
    assert alarms <= 1
