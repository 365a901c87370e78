"""Noise between levels: what a matrix must be, and that its inverse takes noise out of losses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from refusals import check_refusal
from verirec.exceptions import NoiseRateError, NoiseRateWarning
from verirec.losses import CorrectedLevels, NoiseRates, TransitionMatrix, correct_labels, errors_of
from verirec.losses.noise_rates import AuditOrigin

RATES = NoiseRates(0.2, 0.1, covariance=((4e-4, 1e-4), (1e-4, 9e-4)))
WIDE = TransitionMatrix([[0.7, 0.2, 0.1], [0.15, 0.7, 0.15], [0.05, 0.15, 0.8]])


def losses_by_level(seed=0):
    """A loss a level, in steps: the losses, the lowest and the steps."""
    values = np.random.default_rng(seed).normal(size=3)
    return values, values[:1], np.diff(values)[:, None]


def test_corrected_losses_are_right_on_average():
    values, lowest, steps = losses_by_level()
    said = CorrectedLevels.of(np.arange(3), 3, WIDE).values
    by_said = errors_of(np.repeat(lowest, 3), np.repeat(steps, 3, axis=1), said)
    np.testing.assert_allclose(WIDE.matrix @ by_said, values, atol=1e-12)
    np.testing.assert_allclose(by_said, WIDE.inverse @ values, atol=1e-12)


def test_without_noise_levels_stay_as_they_are():
    found = CorrectedLevels.of(np.array([0, 2, 1]), 3, None)
    assert found.values.tolist() == [[0, 1, 1], [0, 1, 0]]
    assert found.covariance is None
    assert len(found.slopes) == 0


def test_two_levels_are_corrected_as_two_noise_rates():
    labels, pairs = np.array([0, 1, 1, 0]), np.arange(4)
    binary = correct_labels(labels, RATES, pairs, pairs)
    found = CorrectedLevels.of(labels, 2, TransitionMatrix.of_rates(RATES))
    np.testing.assert_allclose(found.values[0], binary.values, atol=1e-12)
    slopes, every = np.array([0.3, -1.0, 2.0, 0.5]), slice(None)
    np.testing.assert_allclose(
        found.noise_variance(every, slopes[None]), binary.noise_variance(every, slopes), atol=1e-12
    )
    variances = [
        labels.rate_gradient(every, own) @ labels.covariance @ labels.rate_gradient(every, own)
        for labels, own in ((found, slopes[None]), (binary, slopes))
    ]
    assert variances[0] == pytest.approx(variances[1], abs=1e-14)


def test_noise_variance_is_right_on_average():
    slopes = np.array([1.0, -0.4])
    reached = np.concatenate([[0.0], np.cumsum(slopes)])
    by_said = WIDE.inverse @ reached
    plain = WIDE.matrix @ by_said**2 - reached**2  # Var of the corrected sum, given each true level.
    found = CorrectedLevels.of(np.arange(3), 3, WIDE).noise_variance(slice(None), np.repeat(slopes[:, None], 3, axis=1))
    np.testing.assert_allclose(WIDE.matrix @ found, plain, atol=1e-12)


def test_the_derivative_by_each_entry_is_that_of_a_small_step():
    places, slopes, step = np.array([0, 1, 2, 2]), np.random.default_rng(0).normal(size=(2, 4)), 1e-6
    noise = TransitionMatrix(WIDE.matrix, np.eye(9) * 1e-4)
    labels = CorrectedLevels.of(places, 3, noise)
    found = labels.rate_gradient(slice(None), slopes)
    for entry, moved in enumerate(labels.moved(step)):
        matrix = WIDE.matrix.copy()
        matrix.flat[entry] += step
        reached = np.cumsum(np.linalg.inv(matrix)[:, :0:-1], axis=1)[:, ::-1]
        change = ((reached[places].T - labels.values) * slopes).sum()
        assert found[entry] == pytest.approx(change / step, abs=1e-4)
        assert ((moved.values - labels.values) * slopes).sum() == pytest.approx(change, abs=1e-9)


def test_true_levels_can_follow_noisy_ones():
    noise = TransitionMatrix(WIDE.matrix, np.eye(9) * 1e-4)
    labels = CorrectedLevels.of(np.array([1, 0]), 3, noise).extended(np.array([2, 1]))
    assert labels.values[:, 2:].tolist() == [[1, 1], [1, 0]]
    slopes = np.array([[0, 0, 1, 1.0], [0, 0, 1, 1]])
    assert not labels.rate_gradient(slice(None), slopes).any()
    assert labels.noise_variance(slice(None), slopes)[2:] == pytest.approx([0, 0])
    assert labels.select(np.array([2])).values.tolist() == [[1], [1]]


def test_levels_are_observed_as_often_as_the_matrix_says():
    drawn = WIDE.observe(np.full(20_000, 1), np.random.default_rng(0).random(20_000))
    np.testing.assert_allclose(np.bincount(drawn) / 20_000, WIDE.matrix[1], atol=0.015)


def test_what_is_known_of_a_matrix():
    assert TransitionMatrix.of_rates(RATES).norm == pytest.approx((1 + 0.1) / 0.7)
    assert WIDE.condition == pytest.approx(np.linalg.cond(WIDE.matrix))
    np.testing.assert_allclose(WIDE.inverse.sum(axis=1), 1)
    assert repr(WIDE) == "TransitionMatrix(3 levels, 73.3% kept on average)"
    assert "true level 2" in WIDE._repr_html_()
    assert WIDE.source == "given"
    own = TransitionMatrix(WIDE.matrix, np.eye(9), AuditOrigin(7, 0.1))
    assert own.covariance_beside_noise(7)[0, 0] == pytest.approx(0.8)
    assert own.covariance_beside_noise(8)[0, 0] == 1
    assert WIDE.covariance_beside_noise(7) is None


def test_labels_of_little_signal_are_warned_of():
    with pytest.warns(NoiseRateWarning, match="condition number of .*, and its inverse a norm of"):
        TransitionMatrix([[0.52, 0.48], [0.48, 0.52]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TransitionMatrix.band(5, 0.3)


@pytest.mark.parametrize(
    ("matrix", "more", "message"),
    [
        ([[0.9, 0.2], [0.1, 0.9]], {}, "each row of a transition matrix must add up to 1; row 0 adds up to 1.1"),
        ([[1.1, -0.1], [0.1, 0.9]], {}, "entries of at least 0"),
        ([[np.nan, 1], [0, 1]], {}, "entries of at least 0"),
        ([[0.5, 0.5]], {}, "must be square, with a row a level; got shape"),
        ([0.5, 0.5], {}, "a matrix"),
        ([["a", "b"], ["c", "d"]], {}, "must be numbers"),
        (
            np.full((3, 3), 1 / 3),
            {},
            "must have an inverse, or labels carry no signal; this one has a condition number",
        ),
        ([[0.5000001, 0.4999999], [0.5, 0.5]], {}, "condition number of 1e.07"),
        ([[0.9, 0.1], [0.1, 0.9]], {"covariance": np.eye(2)}, "finite symmetric 4 x 4 matrix"),
        ([[0.9, 0.1], [0.1, 0.9]], {"covariance": -np.eye(4)}, "must not have a negative eigenvalue"),
        ([[0.9, 0.1], [0.1, 0.9]], {"diagnostics": 3}, "diagnostics must be a mapping of names; got 3"),
        ([[0.9, 0.1], [0.1, 0.9]], {"audit": 3}, "audit must be an AuditOrigin; got int"),
    ],
)
def test_what_is_no_transition_matrix(matrix, more, message):
    check_refusal(lambda: TransitionMatrix(matrix, **more), NoiseRateError, message)
