"""The likelihood of first and second answers: what is maximised, and how precise the rates are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from plain_formulas import noise_rates as plain
from verirec.nuisance.noise_rates.joint import AuditCounts
from verirec.nuisance.noise_rates.repeated import repeated_rates

SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)


def chances(share, rho01, rho10):
    """P(first, second) of a row, shape (2, 2)."""
    liked, not_liked = np.array([rho01, 1 - rho01]), np.array([1 - rho10, rho10])
    return share * np.outer(liked, liked) + (1 - share) * np.outer(not_liked, not_liked)


def expected(shares, rows, asked, rho01, rho10):
    """Counts as the model expects them, in place of a draw."""
    both = np.array([asked * chances(share, rho01, rho10) for share in shares])
    once = np.array([rows * chances(share, rho01, rho10).sum(axis=1) for share in shares])
    return AuditCounts(once[:, 1], once[:, 0], both)


def drawn(seed, shares, rows, asked, rho01, rho10):
    random = np.random.default_rng(seed)
    both = [random.multinomial(asked, chances(share, rho01, rho10).ravel()).reshape(2, 2) for share in shares]
    positive = np.array([random.binomial(rows, chances(share, rho01, rho10)[1].sum()) for share in shares], float)
    return AuditCounts(positive, rows - positive, np.array(both, float))


@pytest.mark.parametrize("rates", [(0.2, 0.1), (0.1, 0.2), (0.3, 0.25), (0.05, 0.0), (0.02, 0.02)])
@pytest.mark.parametrize("shares", [SHARES, (0.3, 0.6), (0.02, 0.2)])
def test_counts_as_expected_give_back_the_rates(shares, rates):
    found = repeated_rates(expected(shares, 5_000, 500, *rates))
    assert (found.rho01, found.rho10) == pytest.approx(rates, abs=1e-4)
    np.testing.assert_allclose(found.shares, shares, atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_no_start_of_a_general_optimiser_finds_a_larger_likelihood(seed):
    counts = drawn(seed, SHARES, 400, 100, 0.2, 0.1)
    found = repeated_rates(counts)
    reached = plain.repeated_log_likelihood(counts, found.rho01, found.rho10, found.shares.clip(1e-12, 1 - 1e-12))
    random = np.random.default_rng(seed)
    bounds = [(1e-9, 0.49)] * 2 + [(1e-9, 1 - 1e-9)] * len(SHARES)
    ends = []
    for _ in range(3):
        end = minimize(
            lambda at: -plain.repeated_log_likelihood(counts, at[0], at[1], at[2:]),
            random.uniform(0.05, 0.45, len(bounds)),
            bounds=bounds,
            method="L-BFGS-B",
            options={"ftol": 1e-13},
        )
        ends.append(-end.fun)
    assert max(ends) == pytest.approx(reached, abs=1e-3)
    assert max(ends) <= reached + 1e-5


def test_the_covariance_is_the_inverse_of_the_information():
    counts = expected(SHARES, 2_000, 400, 0.2, 0.1)
    at, step = np.array([0.2, 0.1, *SHARES]), 1e-4

    def likelihood(point):
        return plain.repeated_log_likelihood(counts, point[0], point[1], point[2:])

    size = len(at)
    information, steps = np.empty((size, size)), np.eye(size) * step
    for a in range(size):
        for b in range(size):
            ends = [i * j * likelihood(at + i * steps[a] + j * steps[b]) for i in (1, -1) for j in (1, -1)]
            information[a, b] = -sum(ends) / (4 * step**2)
    np.testing.assert_allclose(repeated_rates(counts).covariance, np.linalg.inv(information)[:2, :2], rtol=0.01)


def test_answers_differ_on_a_straight_line_of_the_share_of_positive_labels():
    rho01, rho10 = 0.2, 0.1
    for share in SHARES:
        table = chances(share, rho01, rho10)
        line = rho10 * (1 - rho01) + (rho01 - rho10) * table[1].sum()
        assert table[1, 0] == pytest.approx(line)
        assert table[0, 1] == pytest.approx(line)


def test_where_all_answers_agree_the_rates_are_0_with_an_interval_as_long_as_the_rule_of_three():
    counts = expected((0.2, 0.8), 5_000, 100, 0.0, 0.0)
    found = repeated_rates(counts)
    assert (found.rho01, found.rho10) == pytest.approx((0, 0), abs=1e-6)
    reach = 1.96 * np.sqrt(np.diag(found.covariance))
    # Of 200 pairs half were liked: of none among 100 the rule of three has .03, of which two answers make one half.
    assert ((reach > 0.01) & (reach < 0.05)).all()


def test_the_numbers_of_strata_do_not_matter():
    counts = drawn(0, SHARES, 400, 100, 0.2, 0.1)
    one, other = (
        repeated_rates(counts),
        repeated_rates(AuditCounts(counts.positive[::-1], counts.negative[::-1], counts.both[::-1])),
    )
    assert (one.rho01, one.rho10) == pytest.approx((other.rho01, other.rho10), abs=1e-5)


@pytest.mark.parametrize("asked", [40, 100, 400])
@pytest.mark.parametrize("rates", [(0.2, 0.1), (0.05, 0.05)])
def test_intervals_hold_the_rates(asked, rates):
    found = [repeated_rates(drawn(seed, SHARES, 3_000, asked, *rates)) for seed in range(400)]
    errors = np.array([(one.rho01, one.rho10) for one in found]) - rates
    covered = np.abs(errors) <= 1.96 * np.sqrt([np.diag(one.covariance) for one in found])
    assert (covered.mean(axis=0) > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / 400)).all()
    assert (np.abs(errors.mean(axis=0)) < 0.25 * errors.std(axis=0)).all()
