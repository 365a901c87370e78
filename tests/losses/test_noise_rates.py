from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verirec import NoiseRates
from verirec.exceptions import NoiseRateError

RATES = st.tuples(st.floats(0, 0.99), st.floats(0, 0.99)).filter(lambda rates: sum(rates) < 1)


@given(RATES)
def test_kappa_is_what_noise_leaves_of_the_signal(rates):
    assert NoiseRates(*rates).kappa == pytest.approx(1 - sum(rates))
    assert NoiseRates(*rates).kappa > 0


def test_rates_are_frozen_floats_whatever_number_they_came_as():
    rates = NoiseRates(0, np.float32(0.5))
    assert (type(rates.rho01), type(rates.rho10)) == (float, float)
    assert rates == NoiseRates(0.0, 0.5)
    with pytest.raises(FrozenInstanceError):
        rates.rho01 = 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-0.1, 0.1), r"^rho01 must be a number of at least 0 and below 1; got -0\.1$"),
        ((0.1, -0.1), r"^rho10 must be .*; got -0\.1$"),
        ((1, 0), r"^rho01 must be .*; got 1$"),
        ((0, 1.0), r"^rho10 must be .*; got 1\.0$"),
        ((np.nan, 0), r"^rho01 must be .*; got nan$"),
        ((0, np.inf), r"^rho10 must be .*; got inf$"),
        (("0.1", 0), r"^rho01 must be .*; got '0\.1'$"),
        ((0.1, None), r"^rho10 must be .*; got None$"),
        ((0.5, 0.5), r"^rho01 \+ rho10 must be below 1, or labels carry no signal; got 0\.5 \+ 0\.5$"),
        ((0.6, 0.7), r"^rho01 \+ rho10 must be below 1.*; got 0\.6 \+ 0\.7$"),
        ((0.1, 0.1, ((1, 2), (3, 4))), r"^covariance must be a finite symmetric 2 x 2 matrix; got"),
        ((0.1, 0.1, ((1, 0, 0), (0, 1, 0))), r"^covariance must be a finite symmetric 2 x 2 matrix; got"),
        ((0.1, 0.1, ((np.nan, 0), (0, 1))), r"^covariance must be a finite symmetric 2 x 2 matrix; got"),
        ((0.1, 0.1, 1.0), r"^covariance must be a finite symmetric 2 x 2 matrix; got 1\.0$"),
        ((0.1, 0.1, ((1, 2), (2, 1))), r"^covariance must not have a negative eigenvalue; got"),
        ((0.1, 0.1, "none"), r"^covariance must be .*; got 'none'$"),
        ((0.1, 0.1, ((1, 0), (0,))), r"^covariance must be .*; got"),
    ],
)
def test_rates_without_meaning_are_refused_in_one_line(arguments, message):
    with pytest.raises(NoiseRateError, match=message) as caught:
        NoiseRates(*arguments)
    assert "\n" not in str(caught.value)


def test_a_covariance_is_kept_as_plain_tuples():
    assert NoiseRates(0.1, 0.1, np.diag([0.01, 0.04])).covariance == ((0.01, 0.0), (0.0, 0.04))


@given(RATES, st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1, exclude_max=True))))
def test_observe_flips_a_label_exactly_where_its_uniform_is_below_its_rate(rates, draws):
    rho01, rho10 = rates
    expected = [1 - label if uniform < (rho01 if label else rho10) else label for label, uniform in draws]
    labels = np.array([label for label, _ in draws], np.int8)
    observed = NoiseRates(rho01, rho10).observe(labels, np.array([uniform for _, uniform in draws]))
    assert observed.dtype == np.int8
    assert observed.tolist() == expected


def test_observe_without_noise_changes_nothing_even_at_uniform_zero():
    labels = np.array([0, 1, 0, 1])
    assert NoiseRates(0, 0).observe(labels, np.zeros(4)).tolist() == labels.tolist()


def test_observe_flips_at_the_wanted_rates():
    size = 200_000
    rates = NoiseRates(0.3, 0.1)
    uniforms = np.random.default_rng(0).random(size)
    for label, rate in ((1, rates.rho01), (0, rates.rho10)):
        flipped = (rates.observe(np.full(size, label), uniforms) != label).mean()
        assert abs(flipped - rate) < 4 * np.sqrt(rate * (1 - rate) / size)


@pytest.mark.parametrize("covariance", [[[1e-8, 9e-9], [0, 1e-8]], [[-1e-13, 0], [0, 1e-8]]])
def test_small_covariances_are_checked_by_their_own_scale(covariance):
    with pytest.raises(NoiseRateError, match="covariance must"):
        NoiseRates(0.2, 0.1, covariance)
