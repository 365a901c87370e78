"""Corrected labels: the paper's surrogate loss, right on average by enumeration, slopes as derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plain_formulas.correction import chance, surrogate
from verirec import GroupedNoiseRates, NoiseRates
from verirec.losses import AuditOrigin, correct_labels, get_loss

RATES = st.tuples(st.floats(0, 0.9), st.floats(0, 0.9)).filter(lambda rates: 1 - rates[0] - rates[1] >= 0.1)
PREDICTIONS = st.lists(st.tuples(st.floats(1e-6, 1 - 1e-6), st.integers(0, 1)), min_size=1, max_size=20)
COVARIANCE = ((0.01, 0.001), (0.001, 0.02))
BOTH = np.array([0, 1])
LOSSES = {"log": "log", "squared": "squared", "absolute": "absolute", "one's own": lambda f, y: np.cos(f) * (1 + 2 * y)}


def corrected(labels, rates, **options):
    pairs = np.arange(len(labels))
    return correct_labels(np.asarray(labels), rates, pairs, pairs, **options)


@pytest.mark.parametrize("name", LOSSES)
@given(rows=PREDICTIONS, rates=RATES)
def test_with_corrected_labels_every_loss_is_the_papers_surrogate(name, rows, rates):
    predictions, labels = (np.array(column) for column in zip(*rows, strict=True))
    if_positive, if_negative = get_loss(LOSSES[name]).halves(predictions)
    values = corrected(labels, NoiseRates(*rates)).values
    expected = [surrogate(r, l1, l0, *rates) for r, l1, l0 in zip(labels, if_positive, if_negative, strict=True)]
    assert (values * if_positive + (1 - values) * if_negative).tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(RATES)
def test_corrected_labels_are_right_on_average(rates):
    zero, one = corrected(BOTH, NoiseRates(*rates)).values
    for r_star in (0, 1):
        mean = chance(0, r_star, *rates) * zero + chance(1, r_star, *rates) * one
        assert mean == pytest.approx(r_star, abs=1e-12)


@given(RATES)
def test_the_variance_is_right_on_average(rates):
    found = corrected(BOTH, NoiseRates(*rates))
    for r_star in (0, 1):
        chances = [chance(r, r_star, *rates) for r in (0, 1)]
        expected = sum(c * (value - r_star) ** 2 for c, value in zip(chances, found.values, strict=True))
        mean = sum(c * variance for c, variance in zip(chances, found.variance, strict=True))
        assert mean == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(RATES)
def test_slopes_are_the_derivatives_by_both_rates(rates):
    found = corrected(BOTH, NoiseRates(*rates, covariance=COVARIANCE))
    step = 1e-6

    def values(rho01, rho10):
        return (BOTH - rho10) / (1 - rho01 - rho10)

    rho01, rho10 = rates
    expected = (
        (values(rho01 + step, rho10) - values(rho01 - step, rho10)) / (2 * step),
        (values(rho01, rho10 + step) - values(rho01, rho10 - step)) / (2 * step),
    )
    assert len(found.slopes) == 2
    for slope, derivative in zip(found.slopes, expected, strict=True):
        assert slope.tolist() == pytest.approx(derivative.tolist(), rel=1e-6, abs=1e-6)
    assert found.covariance.tolist() == [list(row) for row in COVARIANCE]


@pytest.mark.parametrize("share", [0, 0.25, 1])
def test_the_covariance_is_less_what_an_audit_of_the_rows_shares_with_their_noise(share):
    rates = NoiseRates(0.2, 0.1, COVARIANCE, AuditOrigin(17, share))
    both = GroupedNoiseRates([rates, NoiseRates(0.1, 0.1, COVARIANCE)], user_groups=[0, 1])
    # By default the labels are not those that were audited.
    for options, factor in (
        ({"log": 17}, {0: 1, 0.25: 0.5, 1: 0}[share]),
        ({"log": 18}, 1),
        ({"log": None}, 1),
        ({}, 1),
    ):
        expected = factor * np.array(COVARIANCE)
        np.testing.assert_allclose(corrected(BOTH, rates, **options).covariance, expected, rtol=1e-12)
        found = corrected(BOTH, both, **options).covariance
        np.testing.assert_allclose(found[:2, :2], expected, rtol=1e-12)
        np.testing.assert_allclose(found[2:, 2:], COVARIANCE, rtol=1e-12)
        assert not found[:2, 2:].any()
        assert not found[2:, :2].any()


SHAPE_OF_GROUPS = {"user_groups": [0, 2, 1, 0], "item_groups": [1, 0, 2]}
USERS, ITEMS = np.divmod(np.arange(12), 3)
LABELS = np.arange(12) % 2


def grouped(rates, side, covariance=COVARIANCE):
    return GroupedNoiseRates([NoiseRates(*of, covariance=covariance) for of in rates], **{side: SHAPE_OF_GROUPS[side]})


@pytest.mark.parametrize("side", SHAPE_OF_GROUPS)
@given(rates=st.tuples(RATES, RATES, RATES))
def test_each_row_is_corrected_by_the_rates_of_its_group(side, rates):
    found = correct_labels(LABELS, grouped(rates, side), USERS, ITEMS)
    for row in range(12):
        group = SHAPE_OF_GROUPS[side][USERS[row] if side == "user_groups" else ITEMS[row]]
        alone = corrected(LABELS[[row]], NoiseRates(*rates[group]))
        assert found.values[row] == pytest.approx(alone.values[0], rel=1e-12)
        assert found.variance[row] == pytest.approx(alone.variance[0], rel=1e-12)


@pytest.mark.parametrize("side", SHAPE_OF_GROUPS)
def test_slopes_of_groups_are_the_derivatives_by_each_groups_rates(side):
    rates = np.array([(0.1, 0.2), (0.3, 0.0), (0.05, 0.4)])
    found = correct_labels(LABELS, grouped(rates, side), USERS, ITEMS)
    assert np.shape(found.slopes) == (6, 12)
    assert found.covariance.shape == (6, 6)
    for place in range(6):
        step = np.zeros((3, 2))
        step[divmod(place, 2)] = 1e-6
        # Below 0 there are no rates: the formula, not the class.
        group = grouped(rates, side).group_of(USERS, ITEMS)
        ahead, behind = (
            (LABELS - moved[group, 1]) / (1 - moved[group, 0] - moved[group, 1])
            for moved in (rates + step, rates - step)
        )
        assert found.slopes[place].tolist() == pytest.approx(((ahead - behind) / 2e-6).tolist(), rel=1e-6, abs=1e-6)


def test_known_rates_have_no_slopes():
    for rates in (NoiseRates(0.2, 0.1), grouped([(0.1, 0.2)] * 3, "user_groups", covariance=None)):
        found = correct_labels(LABELS[:4], rates, USERS[:4], ITEMS[:4])
        assert found.slopes == ()
        assert found.covariance is None


@pytest.mark.parametrize("rates", [None, NoiseRates(0, 0), grouped([(0, 0)] * 3, "item_groups", covariance=None)])
def test_without_noise_labels_stay_as_they_are(rates):
    found = correct_labels(LABELS.astype(np.int8), rates, USERS, ITEMS)
    assert found.values.dtype == np.float64
    assert found.values.tolist() == LABELS.tolist()
    assert found.variance.tolist() == [0.0] * 12


def test_corrected_labels_are_not_cut_off():
    values = corrected(BOTH, NoiseRates(0.2, 0.1)).values
    assert values.tolist() == pytest.approx([-1 / 7, 9 / 7])


def test_labels_that_are_corrected_are_left_as_they_were():
    labels = np.array([0, 1, 1], np.int8)
    corrected(labels, NoiseRates(0.2, 0.1))
    assert labels.tolist() == [0, 1, 1]
    assert corrected(labels, None).values is not labels
