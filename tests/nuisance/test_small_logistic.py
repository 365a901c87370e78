"""Logistic models of a few coefficients."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from verirec.nuisance import small_logistic
from verirec.nuisance.small_logistic import SmallRows, fit_small, fit_small_parts


def test_it_maximises_the_penalised_likelihood():
    random = np.random.default_rng(0)
    features, offset = random.normal(size=(200, 3)), random.normal(size=200)
    labels, weights = random.integers(2, size=200) * 1.3 - 0.15, random.random(200) + 0.1
    prior = np.array([0.5, -0.5, 0.0])

    def loss(c):
        eta = offset + features @ c
        return weights @ (np.logaddexp(0, eta) - labels * eta) + 0.7 * ((c - prior) ** 2).sum() / 2

    found = fit_small(features, labels, weights, prior, offset=offset, penalty=0.7)
    expected = minimize(loss, prior, tol=1e-12).x
    np.testing.assert_allclose(found.coefficients, expected, atol=1e-5)
    bend = weights * found.liked * (1 - found.liked)
    np.testing.assert_allclose(np.linalg.inv(found.inverse), (features.T * bend) @ features + 0.7 * np.eye(3))


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_one_class_has_a_finite_fit(label):
    found = fit_small(np.ones((50, 1)), np.full(50, label), np.ones(50), np.zeros(1), penalty=0.1)
    assert np.isfinite(found.coefficients).all()
    assert (found.coefficients[0] > 3) == (label == 1)


@pytest.mark.parametrize("seed", range(6))
def test_a_curve_of_rare_likes_is_fitted_to_its_end(seed):
    """Whole steps of Newton's method go back and forth for ever at seed 2."""
    random = np.random.default_rng(seed)
    d = np.clip(0.6 - random.gamma(0.3, 2.0, 1_500), -8, 1)
    features = np.stack([np.ones_like(d), random.normal(-3, 0.13, 1_500), d, d**2], axis=1)
    labels = (random.random(1_500) < 1 / (1 + np.exp(3.8 + 0.9 * d))).astype(float)
    weights = random.lognormal(0, 1, 1_500)
    weights, prior = weights / weights.mean(), np.array([0.0, 1.0, 0.0, 0.0])
    found = fit_small(features, labels, weights, prior)
    left = features.T @ (weights * (labels - found.liked)) - (found.coefficients - prior)
    np.testing.assert_allclose(left, 0, atol=1e-4)


@pytest.mark.parametrize("glance", [1_000, 10**6])
def test_parts_of_a_long_log_have_the_coefficients_of_the_whole(monkeypatch, glance):
    monkeypatch.setattr(small_logistic, "_GLANCE", glance)
    random, prior = np.random.default_rng(5), np.array([0.0, 1.0, 0.0])
    features = np.column_stack([np.ones(200_000), random.normal(size=(200_000, 2))])
    labels = (random.random(200_000) < 0.3 + 0.2 * (features[:, 1] > 0)) * 1.4 - 0.2
    rows = SmallRows(features, labels, random.uniform(0.5, 2, 200_000))
    whole = fit_small(*rows, prior)
    found, inverse = fit_small_parts(lambda at: SmallRows(*(column[at] for column in rows)), 200_000, prior)
    assert found == pytest.approx(whole.coefficients, abs=1e-8)
    assert inverse == pytest.approx(whole.inverse, rel=1e-6)
    settled = fit_small_parts(lambda at: SmallRows(*(column[at] for column in rows)), 200_000, prior, settled=True)
    assert settled[1] == pytest.approx(whole.inverse, rel=1e-10)
