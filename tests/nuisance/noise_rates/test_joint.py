"""The joint likelihood of a log's labels and an audit's: what is maximised, and how precise the rates are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from plain_formulas import noise_rates as plain
from verirec.nuisance.noise_rates.direct import direct_rates
from verirec.nuisance.noise_rates.joint import AuditCounts, joint_rates


def drawn(seed, shares, rows, audited, rho01=0.2, rho10=0.1):
    """Draw counts from the model itself, `rows` without and `audited` with an audit in each stratum."""
    random = np.random.default_rng(seed)
    positive = [random.binomial(rows, share * (1 - rho01) + (1 - share) * rho10) for share in shares]
    cells = [[(1 - s) * (1 - rho10), s * rho01, (1 - s) * rho10, s * (1 - rho01)] for s in shares]
    both = np.array([random.multinomial(audited, chances).reshape(2, 2) for chances in cells], float)
    return AuditCounts(np.array(positive, float), rows - np.array(positive, float), both)


INTERIOR = {
    "two strata": AuditCounts(
        np.array([170.0, 730.0]),
        np.array([830.0, 270.0]),
        np.array([[[45.0, 1.0], [5.0, 4.0]], [[5.0, 9.0], [1.0, 36.0]]]),
    ),
    "one stratum": drawn(0, (0.4,), 1_000, 150),
    "three strata, few audited": drawn(1, (0.2, 0.5, 0.8), 600, 40),
    "five strata": drawn(2, (0.1, 0.3, 0.5, 0.7, 0.9), 300, 60),
    "much noise": drawn(3, (0.2, 0.6, 0.9), 500, 100, 0.35, 0.3),
    "a stratum without an audit": AuditCounts(
        np.array([300.0, 500.0, 200.0]),
        np.array([700.0, 400.0, 300.0]),
        np.array([[[60.0, 6.0], [7.0, 20.0]], [[20.0, 9.0], [4.0, 50.0]], [[0.0, 0.0], [0.0, 0.0]]]),
    ),
}


def best_shares(counts, rho01, rho10):
    """Maximise over each stratum's share alone, the rates given."""
    shares = []
    for stratum in range(len(counts.positive)):
        of_one = AuditCounts(*(part[stratum : stratum + 1] for part in (counts.positive, counts.negative, counts.both)))
        found = minimize_scalar(
            lambda share, part=of_one: -plain.log_likelihood(part, rho01, rho10, [share]),
            bounds=(1e-9, 1 - 1e-9),
            method="bounded",
            options={"xatol": 1e-12},
        )
        shares.append(float(found.x))
    return shares


def best_likelihood(counts, rates):
    return plain.log_likelihood(counts, *rates, best_shares(counts, *rates))


def hessian(function, point, step=1e-4):
    size = len(point)
    matrix = np.empty((size, size))
    steps = np.eye(size) * step
    for a in range(size):
        for b in range(size):
            corners = [(i, j, function(point + i * steps[a] + j * steps[b])) for i in (1, -1) for j in (1, -1)]
            matrix[a, b] = sum(i * j * value for i, j, value in corners) / (4 * step**2)
    return matrix


@pytest.mark.parametrize("name", INTERIOR)
def test_no_start_of_a_general_optimiser_finds_a_larger_likelihood(name):
    counts = INTERIOR[name]
    rates = joint_rates(counts)[:2]
    reached = best_likelihood(counts, rates)
    random = np.random.default_rng(0)
    bounds = [(1e-6, 0.48)] * 2 + [(1e-6, 1 - 1e-6)] * len(counts.positive)
    ends = []
    for _ in range(4):
        start = np.array([random.uniform(low + 0.02, high - 0.02) for low, high in bounds])
        found = minimize(
            lambda at: -plain.log_likelihood(counts, at[0], at[1], at[2:]),
            start,
            bounds=bounds,
            method="L-BFGS-B",
            options={"ftol": 1e-14, "gtol": 1e-6, "maxiter": 2_000},
        )
        assert -found.fun <= reached + 1e-6
        ends.append((-found.fun, found.x[:2]))
    best, at = max(ends, key=lambda end: end[0])
    assert best == pytest.approx(reached, abs=1e-4)
    assert at == pytest.approx(rates, abs=2e-3)


@pytest.mark.parametrize("name", INTERIOR)
def test_the_likelihood_is_flat_at_the_rates(name):
    counts = INTERIOR[name]
    rates = np.array(joint_rates(counts)[:2])
    for step in 1e-4 * np.eye(2):
        slope = (best_likelihood(counts, rates + step) - best_likelihood(counts, rates - step)) / 2e-4
        assert abs(slope) < 1e-3 * counts.both.sum()


@pytest.mark.parametrize("name", INTERIOR)
def test_the_covariance_is_the_inverse_of_the_informations_schur_complement(name):
    counts = INTERIOR[name]
    rho01, rho10, covariance, _ = joint_rates(counts)
    point = np.array([rho01, rho10, *best_shares(counts, rho01, rho10)])
    information = -hessian(lambda at: plain.log_likelihood(counts, at[0], at[1], at[2:]), point)
    rates, crossed, shares = information[:2, :2], information[:2, 2:], information[2:, 2:]
    expected = np.linalg.inv(rates - crossed @ np.linalg.inv(shares) @ crossed.T)
    np.testing.assert_allclose(covariance, expected, rtol=2e-3, atol=1e-8)


@pytest.mark.parametrize("strata", [1, 3])
@given(cells=st.lists(st.integers(1, 60), min_size=12, max_size=12))
def test_where_every_row_is_audited_the_rates_are_the_shares_of_wrong_labels(strata, cells):
    both = np.array(cells[: 4 * strata], float).reshape(strata, 2, 2)
    none = np.zeros(strata)
    counts = AuditCounts(none, none, both)
    pairs = [(r, t) for part in both for r in (0, 1) for t in (0, 1) for _ in range(int(part[r, t]))]
    expected = plain.shares_of_wrong_labels(pairs)
    assert joint_rates(counts)[:2] == pytest.approx(expected, abs=1e-9)
    labels, truths = np.array(pairs, np.int8).T
    assert direct_rates(labels, truths, np.ones(len(pairs))).rates == pytest.approx(expected)


def test_where_every_row_is_audited_the_variances_are_binomial():
    both = np.array([[[45.0, 10.0], [5.0, 40.0]], [[30.0, 8.0], [4.0, 70.0]]])
    rho01, rho10, covariance, _ = joint_rates(AuditCounts(np.zeros(2), np.zeros(2), both))
    positives, negatives = both[:, :, 1].sum(), both[:, :, 0].sum()
    expected = np.diag([rho01 * (1 - rho01) / positives, rho10 * (1 - rho10) / negatives])
    np.testing.assert_allclose(covariance, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("positive", "negative", "both"),
    [
        ([0, 0], [0, 0], [[[50, 0], [0, 0]], [[0, 0], [0, 50]]]),
        ([0, 80], [0, 20], [[[50, 0], [0, 0]], [[5, 10], [0, 50]]]),
    ],
    ids=["all of it audited and right", "one pure stratum audited whole"],
)
def test_a_pure_stratum_that_was_audited_whole_does_no_harm(positive, negative, both):
    counts = AuditCounts(*(np.array(part, float) for part in (positive, negative, both)))
    rho01, rho10, covariance, _ = joint_rates(counts)
    assert 0 <= rho01 < 1
    assert rho10 == pytest.approx(0, abs=1e-6)
    assert np.isfinite(covariance).all()


def test_more_rows_make_the_rates_more_precise():
    few = drawn(4, (0.2, 0.5, 0.8), 200, 60)
    variances = [np.diag(joint_rates(few)[2])]
    for times in (3, 30):
        more = AuditCounts(few.positive * times, few.negative * times, few.both)
        variances.append(np.diag(joint_rates(more)[2]))
    whole = AuditCounts(few.positive * 30, few.negative * 30, few.both * 30)
    assert (variances[1] < variances[0]).all()
    assert (variances[2] < variances[1]).all()
    np.testing.assert_allclose(np.diag(joint_rates(whole)[2]), variances[0] / 30, rtol=1e-6)


def test_rows_without_an_audit_make_the_rates_more_precise_than_the_audit_alone():
    counts = drawn(5, (0.1, 0.4, 0.9), 2_000, 80)
    alone = AuditCounts(np.zeros(3), np.zeros(3), counts.both)
    assert (np.diag(joint_rates(counts)[2]) < np.diag(joint_rates(alone)[2])).all()


@pytest.mark.parametrize(
    "both",
    [
        [[[50, 0], [5, 40]], [[20, 0], [2, 60]]],
        [[[50, 6], [0, 40]], [[20, 7], [0, 60]]],
        [[[50, 0], [0, 10]], [[20, 0], [0, 60]]],
    ],
    ids=["no false negative", "no false positive", "no wrong label"],
)
def test_without_a_wrong_label_in_the_audit_the_covariance_is_still_finite_and_positive(both):
    counts = AuditCounts(np.array([170.0, 730.0]), np.array([830.0, 270.0]), np.array(both, float))
    covariance = np.array(joint_rates(counts)[2])
    assert np.isfinite(covariance).all()
    assert np.linalg.eigvalsh(covariance).min() > 0


def test_an_inner_rate_has_its_own_curvature_even_if_the_audit_has_no_wrong_label():
    # Most audited rows are positive ones: the other rows tell rho01.
    both = np.array([[[15.0, 0.0], [2.0, 39.0]], [[17.0, 0.0], [40.0, 2.0]]])
    counts = AuditCounts(np.array([275.0, 182.0]), np.array([588.0, 868.0]), both)
    rho01, rho10, covariance, _ = joint_rates(counts)
    assert rho01 > 0.05
    point = np.array([rho01, rho10, *best_shares(counts, rho01, rho10)])
    information = -hessian(lambda at: plain.log_likelihood(counts, at[0], at[1], at[2:]), point)
    np.testing.assert_allclose(covariance, np.linalg.inv(information)[:2, :2], rtol=5e-3)


@pytest.mark.parametrize("label", [0, 1])
def test_an_audit_of_one_label_alone_tells_both_rates(label):
    rho01, rho10, rows, audited = 0.2, 0.1, 20_000, 500
    positive, negative, both = np.zeros(5), np.zeros(5), np.zeros((5, 2, 2))
    # What the model expects, row by row of the table, in place of a draw.
    for stratum, share in enumerate((0.05, 0.25, 0.5, 0.75, 0.95)):
        chances = [[plain.chance(r, t, share, rho01, rho10) for t in (0, 1)] for r in (0, 1)]
        negative[stratum], positive[stratum] = rows * sum(chances[0]), rows * sum(chances[1])
        both[stratum, label] = audited * np.array(chances[label]) / sum(chances[label])
        (positive if label else negative)[stratum] -= audited
    assert joint_rates(AuditCounts(positive, negative, both))[:2] == pytest.approx((rho01, rho10), abs=1e-5)


@given(seed=st.integers(0, 10_000))
def test_neither_the_order_of_rows_nor_the_numbers_of_strata_matter(seed):
    random = np.random.default_rng(seed)
    labels, strata = random.integers(2, size=90).astype(np.int8), random.integers(3, size=90)
    rows = random.choice(90, 30, replace=False)
    true_labels = random.integers(2, size=30).astype(np.int8)
    order, names = random.permutation(90), random.permutation(3) * 7 + 2
    place = np.argsort(order)
    shuffled = random.permutation(30)
    one = AuditCounts.of(labels, strata, rows, true_labels)
    other = AuditCounts.of(labels[order], names[strata[order]], place[rows[shuffled]], true_labels[shuffled])
    numbers = np.argsort(names)
    np.testing.assert_array_equal(other.both, one.both[numbers])
    np.testing.assert_array_equal(other.positive, one.positive[numbers])
    np.testing.assert_array_equal(other.negative, one.negative[numbers])


def test_the_rates_do_not_depend_on_how_strata_are_numbered():
    counts = INTERIOR["five strata"]
    turned = AuditCounts(counts.positive[::-1], counts.negative[::-1], counts.both[::-1])
    assert joint_rates(turned)[:2] == pytest.approx(joint_rates(counts)[:2], abs=1e-7)
    np.testing.assert_allclose(joint_rates(turned)[2], joint_rates(counts)[2], rtol=1e-4)


@given(seed=st.integers(0, 10_000))
def test_rows_are_counted_as_by_hand(seed):
    random = np.random.default_rng(seed)
    labels, strata = random.integers(2, size=40).astype(np.int8), random.choice([1, 4, 6], 40)
    rows = random.choice(40, 15, replace=False)
    true_labels = random.integers(2, size=15).astype(np.int8)
    counts = AuditCounts.of(labels, strata, rows, true_labels)
    audited = dict(zip(rows.tolist(), true_labels.tolist(), strict=True))
    positive, negative, both = plain.count_rows(labels.tolist(), strata.tolist(), audited)
    assert (counts.positive.tolist(), counts.negative.tolist(), counts.both.tolist()) == (positive, negative, both)
