"""From draws to an interval: against loops, and its own symmetries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from plain_formulas import surveys as plain
from refusals import check_refusal
from verirec.estimation.survey.draws import Draws
from verirec.estimation.survey.inference import Mean, inferred, intercept
from verirec.exceptions import PredictionError
from verirec.losses import CorrectedLabels


def made(seed, n, *, weighted=True, each=1, share=0.3):
    random = np.random.default_rng(seed)
    weights = random.uniform(0.2, 3, n) if weighted else np.ones(n)
    labels = (random.random(n) < share).astype(float)
    labels[:2] = 0, 1
    clusters = np.unique(np.arange(n) // each, return_inverse=True)[1]
    nowhere = np.zeros(n, np.int32)
    corrected = CorrectedLabels(labels, np.zeros(n))
    return Draws(nowhere, nowhere, corrected, weights / weights.sum(), clusters, np.zeros(n, bool)), random


@given(st.integers(0, 10**6), st.integers(6, 40), st.booleans(), st.integers(1, 2), st.integers(0, 1))
def test_value_error_and_interval_by_loops(seed, n, weighted, each, fitted):
    draws, random = made(seed, n, weighted=weighted, each=each)
    constants, slopes = random.normal(size=n), random.normal(size=n)
    liked = random.uniform(0.01, 0.9, n) if weighted else None
    found = inferred(Mean(0.7, constants, slopes, liked, 0.01, fitted), draws, 0.9)
    parts = (constants.tolist(), slopes.tolist(), draws.labels.values.tolist(), draws.shares.tolist())
    value, error, ends = plain.interval(
        0.7, *parts, draws.clusters.tolist(), liked=liked, fitted=fitted, confidence=0.9, extra=0.01
    )
    assert found.value == pytest.approx(value)
    assert found.standard_error == pytest.approx(error)
    assert found.interval == pytest.approx(ends)
    assert found.interval[0] <= found.value <= found.interval[1]


@given(st.integers(0, 10**6), st.booleans())
def test_the_intercept_by_newton(seed, weighted):
    draws, random = made(seed, 30, weighted=weighted)
    logits = random.normal(-1, 2, 30)
    wanted = plain.intercept(logits.tolist(), draws.labels.values.tolist(), draws.shares.tolist())
    assert intercept(logits, draws) == pytest.approx(wanted, abs=1e-6)


def test_corrected_labels_beyond_0_and_1_have_an_intercept_too():
    draws, random = made(1, 30)
    logits = random.normal(size=30)
    for labels in (np.zeros(30), np.ones(30), np.full(30, -0.14), np.full(30, 1.3)):
        moved = Draws(
            draws.users, draws.items, CorrectedLabels(labels, np.zeros(30)), draws.shares, draws.clusters, draws.logged
        )
        found = intercept(logits, moved)
        assert np.isfinite(found)
        assert 0 <= expit(logits + found).min() <= expit(logits + found).max() <= 1


@given(st.integers(0, 10**6), st.floats(-5, 5), st.floats(0.1, 10))
def test_moved_and_stretched(seed, shift, scale):
    """The interval of a + b x is a + b times that of x."""
    draws, random = made(seed, 20)
    constants, slopes = random.normal(size=20), random.normal(size=20)

    def of(constants, slopes, base):
        return inferred(Mean(base, constants, slopes), draws, 0.95)

    plain_one, other = of(constants, slopes, 0.0), of(scale * constants, scale * slopes, shift)
    assert other.value == pytest.approx(shift + scale * plain_one.value)
    assert other.interval == pytest.approx(tuple(shift + scale * end for end in plain_one.interval))


def test_uncertain_noise_rates_add_to_the_variance():
    draws, random = made(2, 50)
    slopes = random.normal(size=50)
    by_rate, covariance = random.normal(size=(2, 50)), np.array([[4e-2, 1e-3], [1e-3, 2e-2]])
    labels = CorrectedLabels(draws.labels.values, np.zeros(50), tuple(by_rate), covariance)
    noisy = Draws(draws.users, draws.items, labels, draws.shares, draws.clusters, draws.logged)
    mean = Mean(0.0, np.zeros(50), slopes)
    sure, unsure = (inferred(mean, one, 0.95) for one in (draws, noisy))
    gradient = [sum(v * d * s for v, d, s in zip(draws.shares, slopes, one, strict=True)) for one in by_rate]
    added = sum(gradient[a] * covariance[a, b] * gradient[b] for a in range(2) for b in range(2))
    assert unsure.standard_error**2 - sure.standard_error**2 == pytest.approx(added)
    assert unsure.diagnostics["variance"]["noise_rates"] == pytest.approx(added)


def test_losses_beyond_all_numbers():
    draws, _ = made(0, 10)
    far = np.full(10, 1e200)
    check_refusal(lambda: inferred(Mean(0.0, far, far), draws, 0.95), PredictionError, "too large")
