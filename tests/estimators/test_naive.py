"""The naive estimate: a mean over the log, weighted where the log is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plain_formulas import inaccuracy
from refusals import check_refusal
from verirec import Factors, FeedbackLog, NoiseRates, naive_estimate, simulate
from verirec.exceptions import ParameterError, PredictionError

SHAPE = (6, 9)
MATRIX = np.random.default_rng(0).uniform(0.05, 0.95, SHAPE)


def log_of(cells, labels, weights=None):
    users, items = np.divmod(np.asarray(cells), SHAPE[1])
    return FeedbackLog.from_arrays(users, items, labels, n_users=SHAPE[0], n_items=SHAPE[1], weights=weights)


@pytest.fixture(scope="module")
def log():
    return log_of(np.arange(0, 54, 3), np.tile([1, 0, 0], 6))


@pytest.mark.parametrize("loss", inaccuracy.LOSSES)
def test_it_is_the_mean_loss_over_the_log(log, loss):
    losses = [
        inaccuracy.LOSSES[loss](MATRIX[user, item], label)
        for user, item, label in zip(log.users, log.items, log.labels, strict=True)
    ]
    estimate = naive_estimate(MATRIX, log, loss=loss)
    assert estimate.value == pytest.approx(np.mean(losses), rel=1e-12)
    assert estimate.standard_error == pytest.approx(np.std(losses) / np.sqrt(len(losses)), rel=1e-12)


def test_all_forms_of_predictions_agree(log):
    forms = [
        MATRIX.tolist(),
        lambda users, items: MATRIX[users, items],
        (log.users, log.items, MATRIX[log.users, log.items]),
        Factors(MATRIX, np.eye(SHAPE[1]), link="identity"),
    ]
    for form in forms:
        assert naive_estimate(form, log).value == pytest.approx(naive_estimate(MATRIX, log).value, rel=1e-12)


@given(st.lists(st.integers(1, 5), min_size=6, max_size=6), st.lists(st.integers(0, 1), min_size=6, max_size=6))
def test_a_row_of_weight_n_has_the_value_of_n_such_rows(weights, labels):
    # A pair is in a log once, so the copies are other items that are predicted the same.
    predictions = np.repeat(MATRIX[:, :1], SHAPE[1], axis=1)
    users = np.arange(6)
    weighted = log_of(users * SHAPE[1], labels, weights)
    copied = log_of(
        np.concatenate([user * SHAPE[1] + np.arange(weight) for user, weight in zip(users, weights, strict=True)]),
        np.repeat(labels, weights),
    )
    expected = naive_estimate(predictions, copied).value
    assert naive_estimate(predictions, weighted).value == pytest.approx(expected, rel=1e-12)


def test_a_row_of_weight_zero_counts_for_nothing(log):
    weights = np.arange(len(log)) % 2
    weighted = log_of(log.users * SHAPE[1] + log.items, log.labels, weights)
    kept = log.select(weights == 1)
    weighted, unweighted = naive_estimate(MATRIX, weighted), naive_estimate(MATRIX, kept)
    assert weighted.value == pytest.approx(unweighted.value, rel=1e-12)
    assert weighted.standard_error == pytest.approx(unweighted.standard_error, rel=1e-12)


def test_in_a_world_without_selection_and_noise_it_is_near_the_truth():
    world = simulate.world(
        200, 300, noise_rates=NoiseRates(0, 0), selectivity=0, observed=0.3, weak_separability=False, random_state=0
    )
    estimate = naive_estimate(world.preferences, world.log)
    assert abs(estimate.value - world.true_inaccuracy(world.preferences)) < 3.3 * estimate.standard_error


def test_in_a_selective_and_noisy_world_its_interval_misses_the_truth():
    world = simulate.world(200, 300, selectivity=3, weak_separability=False, random_state=0)
    low, high = naive_estimate(world.preferences, world.log).interval
    assert not low <= world.true_inaccuracy(world.preferences) <= high


@pytest.mark.parametrize(
    ("predictions", "options", "error", "message"),
    [
        (MATRIX.T, {}, PredictionError, r"must have shape \(6, 9\); got \(9, 6\)"),
        (np.zeros(SHAPE), {}, PredictionError, "strictly between 0 and 1; 18 of 18 predictions are not"),
        (np.full(SHAPE, np.nan), {"loss": "squared"}, PredictionError, "must be finite"),
        (([0], [0], [0.5]), {}, PredictionError, "do not cover 17 of the 18 pairs that are needed"),
        (lambda users, items: [0.5], {}, PredictionError, r"one number a pair, shape \(18,\); got \(1,\)"),
        (None, {}, PredictionError, "must be a dense array .*got NoneType"),
        (MATRIX, {"loss": "0/1"}, ParameterError, "loss must be one of absolute, log, squared"),
        (MATRIX, {"confidence": 1}, ParameterError, "confidence must be .*below 1; got 1"),
    ],
)
def test_bad_input_is_refused_in_one_line(log, predictions, options, error, message):
    check_refusal(lambda: naive_estimate(predictions, log, **options), error, message)


@pytest.mark.parametrize("scale", [1e-170, 1e200, 1e308])
def test_only_the_ratios_of_weights_count_however_large_they_are(scale):
    users, items, labels = [0, 0, 1], [0, 1, 0], [1, 0, 1]
    plain, scaled = (
        naive_estimate(
            np.array([[0.3, 0.6], [0.8, 0.5]]),
            FeedbackLog.from_arrays(users, items, labels, n_users=2, n_items=2, weights=np.full(3, weight)),
        )
        for weight in (1.0, scale)
    )
    assert scaled == plain
