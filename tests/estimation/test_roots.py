"""Root mean squared errors: the delta method, for one recommender and for the difference of two."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.estimation.roots import rooted
from verirec.exceptions import MisfitWarning, ParameterError

NAMES = ["ips", "ome-dr", "audited-dr", "survey", "survey-ppi"]


@pytest.fixture(scope="module")
def world():
    return vr.simulate.stars(50, 60, propensities=(0.2, 0.2, 0.3, 0.4, 0.5), random_state=0)


@pytest.fixture(scope="module")
def given(world):
    return {
        "propensities": world.propensities,
        "noise_rates": world.noise,
        "audit": vr.AuditSample(*world.audit(200, random_state=0), levels=world.levels),
        "survey": vr.SurveySample(*world.survey(300, random_state=1), levels=world.levels),
        "estimators": NAMES,
    }


def test_the_root_has_the_delta_methods_error(world, given):
    f = np.full((50, 60), 2.5)
    squares, roots = (vr.estimate(f, world.log, loss=loss, **given) for loss in ("squared", "rmse"))
    for name in NAMES:
        assert roots[name].value == pytest.approx(np.sqrt(squares[name].value))
        assert roots[name].standard_error == pytest.approx(squares[name].standard_error / (2 * roots[name].value))
        assert np.square(roots[name].interval) == pytest.approx(squares[name].interval)
    assert "root mean squared error" in roots.of
    mean = vr.estimate(f, world.log, loss="mae", **given)["ips"].value
    assert mean == vr.estimate(f, world.log, loss="absolute", **given)["ips"].value


def test_the_difference_of_roots_is_that_of_the_two_estimates(world, given):
    one, two = np.full((50, 60), 2.5), world.true_values + np.random.default_rng(0).normal(0, 0.8, (50, 60))
    found = vr.compare(one, two, world.log, loss="rmse", **given)
    apart = [vr.estimate(f, world.log, loss="rmse", **given) for f in (one, two)]
    truth = np.sqrt(world.true_inaccuracy(one)) - np.sqrt(world.true_inaccuracy(two))
    for name in NAMES:
        assert found[name].value == pytest.approx(apart[0][name].value - apart[1][name].value, abs=1e-10)
        low, high = found[name].interval
        assert low < found[name].value < high
    assert abs(found["survey-ppi"].value - truth) < 4 * found["survey-ppi"].standard_error


@pytest.mark.filterwarnings("ignore:the predictions of")
def test_the_error_of_a_difference_is_that_of_scaled_losses(world, given):
    one, two = np.full((50, 60), 2.5), np.broadcast_to(world.true_values.mean(axis=0), (50, 60))
    found = vr.compare(one, two, world.log, loss="rmse", **given)
    apart = [vr.estimate(f, world.log, loss="rmse", **given) for f in (one, two)]
    for name in NAMES:
        a, b = (1 / (2 * each[name].value) for each in apart)

        def linear(f, y, a=a, b=b):
            return np.where(f > 50, b * (f - 100 - y) ** 2, a * (f - y) ** 2)

        plain = vr.compare(one, two + 100, world.log, loss=linear, **(given | {"estimators": [name]}))[name]
        assert found[name].standard_error == pytest.approx(plain.standard_error, rel=1e-6)
        assert np.ptp(found[name].interval) == pytest.approx(np.ptp(plain.interval), rel=1e-6)


def test_a_mean_of_squares_below_0_has_a_root_of_0():
    with pytest.warns(MisfitWarning, match=r"is -0\.1, with a standard error of 0\.2: so near to 0 .* loss='squared'"):
        found = rooted(vr.Estimate(-0.1, 0.2, (-0.5, 0.3)))
    assert found.value == 0
    assert found.standard_error == pytest.approx(np.sqrt(0.2))
    assert found.interval == (0, pytest.approx(np.sqrt(0.3)))


def test_a_difference_from_a_mean_of_squares_near_0_is_as_wide_as_roots_can_be(world, given):
    # All but right: what noise correction leaves of its errors may be on either side of 0.
    near, far = world.true_values + 0.01, np.full((50, 60), 2.5)
    names = given | {"estimators": ["ome-ips"]}
    with pytest.warns(MisfitWarning, match="of squared errors is .* take loss='squared'"):
        found = vr.compare(near, far, world.log, loss="rmse", **names)["ome-ips"]
    assert 0 < found.standard_error < 2
    assert np.ptp(found.interval) < 8


def test_ranges_have_roots_too():
    log = vr.simulate.world(40, 50, observed=0.3, random_state=0).log
    f, region = np.full((40, 50), 0.4), vr.NoiseRegion(0.1, 0.1)
    squares, roots = (vr.estimate(f, log, noise_rates=region, loss=loss)["ome-dr"] for loss in ("squared", "rmse"))
    assert np.square(roots.range) == pytest.approx(squares.range)
    check_refusal(
        lambda: vr.compare(f, f, log, noise_rates=region, loss="rmse"), ParameterError, "has no range over selection"
    )
