"""From contributions to an estimate: the plain formula, and intervals that cover as often as they say."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusals import check_refusal
from verirec.estimators import Estimate, estimate_from_terms
from verirec.exceptions import DataError, ParameterError

TERMS = st.lists(st.tuples(st.floats(-5, 5), st.floats(0.01, 5)), min_size=2, max_size=30)
REPEATS, ROWS = 4_000, 200


def plain_estimate(terms, confidence):
    total = sum(b for _, b in terms)
    value = sum(a for a, _ in terms) / total
    error = math.sqrt(sum((a - value * b) ** 2 for a, b in terms)) / total
    half = NormalDist().inv_cdf((1 + confidence) / 2) * error
    return value, error, value - half, value + half


@given(TERMS, st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_value_error_and_interval_follow_the_plain_formula(terms, confidence):
    a, b = np.array(terms).T
    estimate = estimate_from_terms(a, b, confidence=confidence)
    computed = (estimate.value, estimate.standard_error, *estimate.interval)
    assert computed == pytest.approx(plain_estimate(terms, confidence), rel=1e-9, abs=1e-9)
    assert estimate.confidence == confidence


def test_the_level_is_nineteen_in_twenty_unless_said_otherwise():
    a = np.arange(5.0)
    assert estimate_from_terms(a, np.ones(5)) == estimate_from_terms(a, np.ones(5), confidence=0.95)


def test_an_estimate_is_of_plain_floats_and_cannot_be_changed():
    estimate = estimate_from_terms(np.array([0.2, 0.4], np.float32), np.ones(2))
    assert all(type(value) is float for value in (estimate.value, estimate.standard_error, *estimate.interval))
    with pytest.raises(AttributeError):
        estimate.value = 0.0
    assert isinstance(estimate, Estimate)


@given(TERMS, st.floats(0.1, 10))
def test_the_scale_of_the_denominators_and_numerators_cancels(terms, scale):
    a, b = np.array(terms).T
    first, second = estimate_from_terms(a, b), estimate_from_terms(scale * a, scale * b)
    assert second.value == pytest.approx(first.value, rel=1e-9, abs=1e-12)
    assert second.standard_error == pytest.approx(first.standard_error, rel=1e-6, abs=1e-9)


def coverage(draw_terms, truth, confidence=0.95):
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(REPEATS):
        low, high = estimate_from_terms(*draw_terms(random), confidence=confidence).interval
        hits += low <= truth <= high
    return hits / REPEATS


@pytest.mark.parametrize(
    ("draw", "truth"),
    [
        (lambda random: random.normal(0.7, 0.3, ROWS), 0.7),
        (lambda random: random.exponential(0.7, ROWS), 0.7),
        (lambda random: (random.random(ROWS) < 0.3).astype(float), 0.3),
    ],
    ids=["normal", "exponential", "binary"],
)
def test_the_interval_of_a_mean_covers_it_as_often_as_it_says(draw, truth):
    assert 0.93 < coverage(lambda random: (draw(random), np.ones(ROWS)), truth) < 0.97


def test_the_interval_of_a_ratio_covers_it_as_often_as_it_says():
    def draw(random):
        weights = random.gamma(4, 0.25, ROWS)
        return weights * (random.random(ROWS) + weights), weights

    # E[w (u + w)] / E[w] for w ~ Gamma(4, 1/4), u ~ U(0, 1): 0.5 + E[w^2].
    assert 0.93 < coverage(draw, 0.5 + 1.25) < 0.97


def test_a_lower_level_covers_less():
    share = coverage(lambda random: (random.normal(size=ROWS), np.ones(ROWS)), 0, confidence=0.8)
    assert share == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(
    ("numerators", "denominators", "options", "error", "message"),
    [
        (np.ones(3), np.zeros(3), {}, DataError, "denominators add up to 0: no pair counts"),
        (np.array([]), np.array([]), {}, DataError, "at least 2 pairs; got 0"),
        (np.ones(1), np.ones(1), {}, DataError, "at least 2 pairs; got 1"),
        (np.ones(3), np.ones(3), {"confidence": 0}, ParameterError, "confidence must be .*above 0 and below 1; got 0"),
        (np.ones(3), np.ones(3), {"confidence": 95}, ParameterError, "confidence must be .*below 1; got 95"),
        (np.ones(3), np.ones(3), {"confidence": "95%"}, ParameterError, "confidence must be .*got '95%'"),
        (np.ones(3), np.ones(1), {}, DataError, "shape|length"),
        (np.ones(3), np.ones(2), {}, DataError, "shape|length"),
        (np.array([1, np.nan]), np.ones(2), {}, DataError, "NaN|finite"),
        (np.ones(2), np.array([1, np.nan]), {}, DataError, "NaN|finite"),
    ],
)
def test_bad_input_is_refused_in_one_line(numerators, denominators, options, error, message):
    check_refusal(lambda: estimate_from_terms(numerators, denominators, **options), error, message)
