"""Metrics of probabilities against their definitions and against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from plain_formulas import probability as plain
from refusals import check_refusal
from verirec.exceptions import LabelError, ParameterError, PredictionError
from verirec.metrics import brier_score, calibration_error, log_loss

EDGES = [0.0, 1.0, 0.1, 0.3, 0.5, 0.9]
PROBABILITIES = st.one_of(st.sampled_from(EDGES), st.floats(0, 1))
ROWS = st.lists(st.tuples(st.integers(0, 1), PROBABILITIES), min_size=1, max_size=40)


@given(ROWS)
def test_log_loss_is_its_loop_and_scikit_learns(rows):
    labels, f = map(list, zip(*rows, strict=True))
    assert log_loss(labels, f) == pytest.approx(plain.log_loss(labels, f), rel=1e-9, abs=1e-15)
    assert log_loss(labels, f) == pytest.approx(sklearn.metrics.log_loss(labels, f, labels=[0, 1]), rel=1e-9, abs=1e-15)


@given(ROWS)
def test_brier_score_is_its_loop_and_scikit_learns(rows):
    labels, f = map(list, zip(*rows, strict=True))
    assert brier_score(labels, f) == pytest.approx(plain.brier_score(labels, f), rel=1e-12, abs=1e-300)
    if 0 < sum(labels) < len(labels):
        assert brier_score(labels, f) == pytest.approx(sklearn.metrics.brier_score_loss(labels, f), rel=1e-12)


@given(ROWS, st.sampled_from([1, 2, 4, 10, 16]))
def test_calibration_error_is_the_loop_over_bins(rows, bins):
    labels, f = map(list, zip(*rows, strict=True))
    assert calibration_error(labels, f, bins=bins) == pytest.approx(
        plain.calibration_error(labels, f, bins), rel=1e-9, abs=1e-12
    )


def test_ten_bins_are_the_default():
    labels, f = [1, 0, 0, 1], [0.04, 0.06, 0.14, 0.16]
    assert calibration_error(labels, f) == calibration_error(labels, f, bins=10)
    assert calibration_error(labels, f) == pytest.approx(plain.calibration_error(labels, f, 10))


def test_a_probability_of_one_is_in_the_last_bin_with_the_ones_just_below():
    assert calibration_error([0, 1], [1.0, 0.95]) == pytest.approx(abs((1.0 + 0.95) / 2 - 0.5))


def test_sure_and_right_costs_nothing_and_sure_and_wrong_costs_much_and_never_infinity():
    assert log_loss([1, 0], [1.0, 0.0]) == pytest.approx(0, abs=1e-15)
    assert log_loss([1, 0], [0.0, 1.0]) == pytest.approx(-math.log(np.finfo(float).eps), rel=1e-6)
    assert brier_score([1, 0], [1.0, 0.0]) == 0
    assert brier_score([1, 0], [0.0, 1.0]) == 1
    assert calibration_error([1, 0], [1.0, 0.0]) == 0


@pytest.mark.parametrize("metric", [log_loss, brier_score])
def test_proper_scores_are_least_in_expectation_for_the_true_probability(metric):
    labels = (np.arange(1_000) < 300).astype(int)
    values = [metric(labels, np.full(1_000, f)) for f in (0.2, 0.28, 0.3, 0.32, 0.4)]
    assert np.argmin(values) == 2


@pytest.mark.parametrize("metric", [log_loss, brier_score, calibration_error])
def test_the_order_of_the_rows_does_not_matter(metric):
    random = np.random.default_rng(0)
    labels, f, order = random.integers(2, size=500), random.random(500), random.permutation(500)
    assert metric(labels[order], f[order]) == pytest.approx(metric(labels, f), rel=1e-12)


@pytest.mark.parametrize("metric", [log_loss, brier_score, calibration_error])
@pytest.mark.parametrize(
    ("labels", "probabilities", "error", "message"),
    [
        ([1, 0], [0.5, 1.01], PredictionError, "probabilities must be within 0 and 1; 1 of 2 are not"),
        ([1, 0], [-0.5, 2], PredictionError, "probabilities must be within 0 and 1; 2 of 2 are not"),
        ([1, 0], [0.5, np.nan], PredictionError, "must be finite; 1 of 2"),
        ([1, 0], [0.5], PredictionError, r"one score a label, shape \(2,\); got \(1,\)"),
        ([1, 2], [0.5, 0.5], LabelError, "labels must be 0/1; 1 of 2 are not"),
        ([], [], LabelError, "must not be empty"),
        ([1, 0], None, PredictionError, "must be numbers; got object"),
    ],
)
def test_bad_rows_are_refused_in_one_line(metric, labels, probabilities, error, message):
    check_refusal(lambda: metric(labels, probabilities), error, message)


@pytest.mark.parametrize("bins", [0, -3, 2.5, None])
def test_a_wrong_number_of_bins_is_refused_in_one_line(bins):
    check_refusal(lambda: calibration_error([1], [0.5], bins=bins), ParameterError, "bins must be a whole number")
