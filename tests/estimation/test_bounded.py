"""Estimates of shares: inside their range, with intervals that are never empty and that hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from verirec.estimation.bounded import within_range
from verirec.estimation.intervals import Estimate, normal_interval


def estimate(value, error, confidence=0.95):
    return Estimate(value, error, normal_interval(value, error, confidence), confidence)


@given(st.floats(-3, 4), st.floats(0, 2), st.floats(0.01, 0.999), st.floats(0.1, 10))
def test_value_and_interval_are_inside_and_in_order(value, error, confidence, most):
    one = within_range(estimate(value, error, confidence), most)
    low, high = one.interval
    assert 0 <= low <= one.value + 1e-12
    assert one.value - 1e-12 <= high <= most * (1 + 1e-12)
    assert one.standard_error == error
    assert ("outside" in one.diagnostics) == (not 0 <= value <= most)


@given(st.floats(0.5, 1.5), st.floats(0, 0.4), st.floats(0, 1))
def test_above_the_middle_no_truth_that_was_held_is_lost(value, error, truth):
    raw = estimate(value, error)
    low, high = within_range(raw).interval
    if raw.interval[0] <= truth <= raw.interval[1]:
        assert low - 1e-12 <= truth <= high + 1e-12


@pytest.mark.parametrize("value", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_below_the_middle_the_ends_are_as_far_as_their_own_standard_errors(value, confidence):
    """Wilson's interval, found by trying all shares."""
    error = 0.3 * value
    low, high = within_range(estimate(value, error, confidence)).interval
    shares = np.linspace(0, 1, 1_000_001)[1:-1]
    own = error * np.sqrt(shares * (1 - shares) / (value * (1 - value)))
    inside = shares[np.abs(value - shares) <= norm.ppf((1 + confidence) / 2) * own]
    assert (low, high) == pytest.approx((inside.min(), inside.max()), abs=2e-6)


@pytest.mark.parametrize(("likes", "rows"), [(6, 300), (30, 300), (100, 300), (290, 300)])
def test_the_mean_of_draws_is_held_as_often_as_the_interval_says(likes, rows):
    truth, random = likes / rows, np.random.default_rng(0)
    held = []
    for found in random.binomial(rows, truth, 4_000) / rows:
        low, high = within_range(estimate(found, np.sqrt(found * (1 - found) / rows))).interval
        held.append(low <= truth <= high)
    assert 0.92 <= np.mean(held) <= 0.975


def test_a_scale_changes_nothing_but_the_scale():
    one, other = within_range(estimate(0.3, 0.2)), within_range(estimate(1.2, 0.8), 4.0)
    assert other.interval == pytest.approx([4 * end for end in one.interval])
