"""How far propensities reach: what is to be expected of intervals before any label is seen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, poisson

from verirec.nuisance.propensities.reach import reach


def third_moment(p):
    """Of o - p, over both values of o."""
    return p * (1 - p) ** 3 + (1 - p) * (0 - p) ** 3


def plain(p, used, counts, unlike):
    """Try every number of pairs to give up, by loops."""
    order = sorted(range(len(p)), key=lambda cell: used[cell])
    best = 0.0
    for k in range(len(p)):
        lost = sum(counts[c] for c in order[:k]) + sum(counts[c] * (1 - p[c] / used[c]) for c in order[k:])
        variance = sum(counts[c] * p[c] * (1 - p[c]) / used[c] ** 2 for c in order[k:])
        third = sum(counts[c] * third_moment(p[c]) / used[c] ** 3 for c in order[k:])
        off, skewness = unlike * lost / variance**0.5, third / variance**1.5
        z = norm.ppf(0.975)
        by_skewness = 2 * z * norm.pdf(z) * (z**4 + 2 * z**2 - 3) / 18
        best = max(best, norm.cdf(z - off) - norm.cdf(-z - off) - by_skewness * skewness**2)
    return best


@pytest.mark.parametrize("unlike", [1.0, 0.6])
@pytest.mark.parametrize("floor", [0.0, 0.01])
def test_the_coverage_is_that_of_a_plain_loop(unlike, floor):
    random = np.random.default_rng(0)
    p = random.beta(0.7, 5, 60)
    counts = random.uniform(1, 30, 60)
    used = np.maximum(p, floor)
    found = reach(p, used, counts, unlike=unlike)
    assert found.coverage == pytest.approx(plain(p, used, counts, unlike), rel=1e-9)


@pytest.mark.parametrize("rows", [3, 6, 10, 30])
@pytest.mark.parametrize("others", [1 / 6, 1.0])
def test_the_price_of_skewness_is_that_of_a_poisson_number_of_heavy_rows(rows, others):
    """A Poisson number of rows beside a normal sum of as much variance as `others` times theirs: exact coverage."""
    seen, spread = np.arange(200), np.sqrt(others * rows)
    reaches = norm.ppf(0.975) * np.sqrt(seen + spread**2)
    held = norm.cdf((reaches - seen + rows) / spread) - norm.cdf((-reaches - seen + rows) / spread)
    exact = float(poisson.pmf(seen, rows) @ held)
    # So many rare pairs that giving them up is no way out, and others whose rows are many and light.
    p = np.array([1e-4, 0.5])
    counts = np.array([rows / p[0], others * rows / p[0] ** 2])
    assert reach(p, p, counts).coverage == pytest.approx(exact, abs=0.012)


def test_few_pairs_that_are_never_logged_do_no_harm_and_many_do():
    p = np.array([1e-12, 0.1])
    coverage = [reach(p, p, np.array([rare, 60_000.0])).coverage for rare in (1, 30, 300, 1_500)]
    assert coverage == sorted(coverage, reverse=True)
    assert coverage[1] > 0.949
    assert coverage[3] < 0.5


def test_a_floor_does_not_make_rare_pairs_common():
    p, counts = np.array([1e-5, 0.1]), np.array([3_000.0, 60_000.0])
    bare, floored = (reach(p, np.maximum(p, floor), counts).coverage for floor in (0.0, 0.05))
    assert bare < 0.1
    assert floored < 0.1


def test_pairs_that_are_always_logged_need_nothing():
    assert reach(np.ones(5), np.ones(5), np.ones(5)).coverage == pytest.approx(0.95)


def test_it_names_the_rarest_pairs_with_half_of_the_variance():
    p, counts = np.array([0.5, 1e-3, 0.25]), np.array([900.0, 50.0, 50.0])
    found = reach(p, p, counts)
    assert found.share == pytest.approx(0.05)
    assert found.rows == pytest.approx(0.05)
