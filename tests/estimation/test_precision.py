"""Where single precision enters, and what it changes: the log loss of single-precision factors, on the grid alone."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from verirec.data.predictions import as_predictions
from verirec.estimation.cell_losses import CellLosses
from verirec.estimation.unobserved import visit_unobserved
from verirec.losses import get_loss

RANK = 8
UNIT = 2.0**-24
RATES = vr.NoiseRates(0.2, 0.1, covariance=((4e-4, 0.0), (0.0, 4e-4)))


def factors(scale, dtype, shape=(120, 150), constant=0.0):
    """Give factors that are single-precision numbers, held as either kind."""
    random = np.random.default_rng(3)
    sides = [random.normal(0, scale**0.5, (size, RANK)).astype(np.float32).astype(dtype) for size in shape]
    constants = [random.normal(0, scale, size).astype(np.float32).astype(dtype) for size in shape]
    return vr.Factors(*sides, *constants, constant=constant)


def sums(given, log, loss="log"):
    losses = CellLosses(as_predictions(given, *log.shape), get_loss(loss))
    return visit_unobserved(losses, log, *losses.of_rows(log.users, log.items))


def bounds(given):
    """Give the most that each cell's loss can be off by: (k + 8) units of the sum of what its logit is made of."""
    parts = np.abs(given.user_factors) @ np.abs(given.item_factors).T + abs(given.constant)
    parts += np.abs(given.user_constants)[:, None] + np.abs(given.item_constants)
    return (RANK + 8) * UNIT * (1 + parts)


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(120, 150, observed=0.1, random_state=0)


@pytest.mark.parametrize("constant", [0.0, -8.0, 30.0])
@pytest.mark.parametrize("scale", [1e-4, 0.1, 1.0, 30.0, 1e4, 1e15])
def test_the_sums_of_single_precision_factors_are_within_the_bound(world, scale, constant):
    single, double = (factors(scale, dtype, constant=constant) for dtype in (np.float32, np.float64))
    found, exact, most = sums(single, world.log), sums(double, world.log), bounds(double)
    assert (np.abs(found.if_negative - exact.if_negative) <= most.sum(axis=1)).all()
    assert (np.abs(found.by_user - exact.by_user) <= most.sum(axis=1)).all()
    assert (np.abs(found.by_item - exact.by_item) <= most.sum(axis=0)).all()


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_the_walk_over_double_precision_factors_is_in_double_precision(world, scale):
    given = factors(scale, np.float64)
    logits = given.user_factors @ given.item_factors.T + given.user_constants[:, None] + given.item_constants
    logits[world.log.users, world.log.items] = -np.inf
    expected = np.logaddexp(0, logits).sum(axis=1)
    assert sums(given, world.log).if_negative == pytest.approx(expected, rel=1e-12, abs=1e-10)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_other_losses_are_in_double_precision(world, loss):
    single, double = (sums(factors(1.0, dtype), world.log, loss) for dtype in (np.float32, np.float64))
    # The logits alone are rounded.
    assert single.if_negative == pytest.approx(double.if_negative, rel=1e-6)
    assert single.if_negative.dtype == single.by_item.dtype == np.float64


@pytest.mark.filterwarnings("ignore::verirec.exceptions.ScoreWarning")
@pytest.mark.parametrize("scale", [0.1, 1.0, 8.0])
def test_no_digit_that_is_shown_changes(world, scale):
    options = {"propensities": world.propensity_values, "noise_rates": RATES, "estimators": "all"}
    single, double = (vr.estimate(factors(scale, dtype), world.log, **options) for dtype in (np.float32, np.float64))
    for name in double:
        error = double[name].standard_error
        assert single[name].value == pytest.approx(double[name].value, rel=1e-6, abs=1e-4 * error), name
        assert single[name].standard_error == pytest.approx(error, rel=1e-5), name


def test_sums_may_be_larger_than_single_precision_can_hold(world):
    random = np.random.default_rng(0)
    sides = [np.ones((120, 1), np.float32), random.uniform(1e36, 3e37, (150, 1)).astype(np.float32)]
    found = sums(vr.Factors(*sides), world.log)
    assert np.isfinite(found.if_negative).all()
    assert found.if_negative.sum() > np.finfo(np.float32).max
