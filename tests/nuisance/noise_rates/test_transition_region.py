"""Noise between levels that a log allows without an audit."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from verirec.exceptions import AuditError, EmptyLogError, NoiseRateError, NoiseRateWarning, ParameterError
from verirec.nuisance.noise_rates.transition_forms import band_matrix, ordinal_matrix


@pytest.fixture(scope="module")
def world():
    return vr.simulate.stars(80, 120, noise=vr.TransitionMatrix.band(5, 0.3), random_state=0)


@pytest.mark.parametrize("logged", [0.1, 0.5])
@pytest.mark.parametrize(("form", "make", "rate"), [("band", band_matrix, 0.1237), ("ordinal", ordinal_matrix, 0.2013)])
def test_the_true_noise_is_in_the_region(form, make, rate, logged):
    """Scores that know the true levels make strata of a level or two: the log then bounds the noise closely."""
    noise = vr.TransitionMatrix(make(5, rate))
    true = 1 - np.diag(noise.matrix).mean()
    for seed in range(5):
        world = vr.simulate.stars(60, 100, noise=noise, random_state=seed, propensities=(logged,) * 5)
        region = vr.identified_transitions(world.log, form=form, scores=world.true_values)
        assert not region.cut_off
        assert true <= region.most
    if logged == 0.5:
        assert region.most < 2 * true


@pytest.fixture(scope="module")
def halves():
    """Return a log of two levels, in the halves of which 10.13% and 89.87% are high, and a score that tells them."""
    users, items = np.divmod(np.arange(80_000), 200)
    high = np.arange(80_000) % 40_000 < 4_052
    second = np.repeat([False, True], 40_000)
    log = vr.FeedbackLog.from_arrays(
        users, items, (high != second).astype(int), n_users=400, n_items=200, levels=[0, 1]
    )  # fmt: skip
    return log, (users, items, second.astype(float))


def test_what_the_log_allows_is_rounded_up(halves):
    log, scores = halves
    found = vr.identified_transitions(log, form="band", strata=2, scores=scores, confidence=1e-6)
    # What is counted is as noisy as 10.13%, which lies between the rates that are tried; chance may do a tenth of a
    # per cent more.
    assert 0.1013 <= found.most <= 0.1013 + 0.0015


def test_a_region_that_the_log_does_not_bound_says_that_it_is_cut_off(world):
    for form in ("band", "ordinal"):
        with pytest.warns(NoiseRateWarning, match=f"does not bound noise of {form} form: the region is cut off at"):
            region = vr.identified_transitions(world.log, form=form)
        assert region.cut_off
        assert region.matrices[-1].norm == pytest.approx(10, abs=0.01)


def test_with_two_levels_the_tails_bound_it():
    # A tenth of the lowest stratum is logged as high: more noise than that cannot be.
    users, items = np.divmod(np.arange(2_000), 100)
    score = np.repeat([0.0, 1.0], 1_000)
    labels = np.concatenate([np.arange(1_000) % 10 == 0, np.arange(1_000) % 10 != 0]).astype(int)
    log = vr.FeedbackLog.from_arrays(users, items, labels, n_users=20, n_items=100, levels=[0, 1])
    region = vr.identified_transitions(log, form="band", strata=2, scores=(users, items, score))
    chance = 2.5 * np.sqrt(0.1 * 0.9 / 1_000)
    assert 0.1 <= region.most <= 0.1 + chance + 0.005


def test_estimates_are_ranges_that_hold_those_of_its_matrices(world):
    f = 0.5 + 0.7 * world.true_values
    region = vr.identified_transitions(world.log, form="band", scores=world.true_values)
    options = {"propensities": world.propensities, "loss": "squared", "estimators": "ome-dr"}
    found = vr.estimate(f, world.log, noise_rates=region, **options)["ome-dr"]
    assert isinstance(found, vr.EstimateRange)
    for matrix in region.matrices:
        one = vr.estimate(f, world.log, noise_rates=matrix, **options)["ome-dr"].value
        assert found.range[0] - 1e-12 <= max(one, 0) <= found.range[1] + 1e-12
    assert found.interval[0] <= world.true_inaccuracy(f) <= found.interval[1]


@pytest.mark.filterwarnings("ignore:the log does not bound:verirec.exceptions.NoiseRateWarning")
def test_hardly_any_signal_is_not_considered(world):
    assert max(one.norm for one in vr.identified_transitions(world.log).matrices) <= 10


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"form": "free"}, ParameterError, "take an audit"),
        ({"form": []}, ParameterError, "form must be one of"),
        ({"confidence": 1.5}, ParameterError, "confidence"),
        ({"strata": 0}, ParameterError, "strata"),
    ],
)
def test_bad_options(world, given, error, said):
    with pytest.raises(error, match=said):
        vr.identified_transitions(world.log, **given)


def test_bad_logs(world):
    with pytest.raises(ParameterError, match="identified_region"):
        vr.identified_transitions(world.log.binary(positive_from=4))
    users, items = np.divmod(np.arange(900), 30)
    fine = vr.FeedbackLog.from_arrays(users, items, users, n_users=30, n_items=30, levels=range(30))
    with pytest.raises(ParameterError, match="at most 20 levels; the log has 30"):
        vr.identified_transitions(fine)
    audit = vr.AuditSample(users[:200], items[:200], users[:200], levels=range(30))
    with pytest.raises(AuditError, match="at most 20 levels; the log has 30"):
        vr.AuditTransitionMatrix().fit(fine, audit=audit)
    with pytest.raises(EmptyLogError, match="10 rows"):
        vr.identified_transitions(world.log.select(np.arange(10)))


def test_a_region_has_matrices_of_one_size():
    for given in ((), [1], (vr.TransitionMatrix.band(3, 0.1), vr.TransitionMatrix.band(4, 0.1))):
        with pytest.raises(NoiseRateError, match="at least one"):
            vr.TransitionRegion(given, "band", 0.1)


def test_a_region_is_for_as_many_levels_as_the_log_has(world):
    region = vr.TransitionRegion((vr.TransitionMatrix.band(3, 0.1),), "band", 0.1)
    with pytest.raises(ParameterError, match="5 levels"):
        vr.estimate(world.true_values, world.log, noise_rates=region, loss="squared")
