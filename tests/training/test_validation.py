"""Stopping: the validation error is `estimate`'s, and patience is a table."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.special import expit

import verirec as vr
from verirec.estimation.catalogue import ESTIMATORS
from verirec.models import FactorModel
from verirec.training.heads import MOST_LOGIT, BinaryHead
from verirec.training.validation import SAMPLE, Patience, Validator

RATES = vr.NoiseRates(0.2, 0.1)
USABLE = [name for name, estimator in ESTIMATORS.items() if not estimator.needs_all_propensities]


@pytest.fixture(scope="module")
def world():
    """More unobserved pairs than the sample has."""
    return vr.simulate.world(150, 200, observed=0.1, selectivity=1, noise_rates=RATES, random_state=2)


def a_model(spread=3.0, seed=0):
    random = torch.Generator().manual_seed(seed)
    model = FactorModel(150, 200, 2, random=random)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(spread**0.5 * torch.randn(parameter.shape, generator=random))
    return model


def validator(world, name, **options):
    loss = options.pop("loss", "log")
    arguments = {"rates": RATES, "head": BinaryHead(loss), "seed": 4} | options
    propensities = vr.GivenPropensity(world.propensity_values).on_grid((150, 200))
    return Validator(world.log, propensities, name, **arguments)


def estimated(world, model, name, *, rates=RATES, loss="log", seed=4):
    logits = model.grid(torch.arange(150), torch.arange(200)).detach().double().numpy()
    result = vr.estimate(
        expit(np.clip(logits, -MOST_LOGIT, MOST_LOGIT)),
        world.log,
        propensities=world.propensity_values,
        noise_rates=rates,
        estimators=[name],
        loss=loss,
        sample=SAMPLE,
        random_state=seed,
    )
    return result[name].value


@pytest.mark.parametrize("name", USABLE)
def test_the_validation_error_is_the_estimators(world, name):
    model = a_model()
    logits = model.grid(torch.arange(150), torch.arange(200)).abs()
    assert 0.05 < float((logits > MOST_LOGIT).float().mean()) < 0.6
    assert validator(world, name)(model) == pytest.approx(estimated(world, model, name), rel=1e-5)


@pytest.mark.parametrize("name", ["naive", "snips", "dr"])
def test_estimators_without_correction_need_no_rates(world, name):
    model = a_model()
    found = validator(world, name, rates=None)(model)
    assert found == pytest.approx(estimated(world, model, name, rates=None), rel=1e-5)
    # And take no notice of them.
    assert found == validator(world, name)(model)


@pytest.mark.parametrize("name", ["naive", "ome-dr"])
def test_the_validation_error_is_of_the_loss(world, name):
    model = a_model()
    found = validator(world, name, loss="squared")(model)
    assert found == pytest.approx(estimated(world, model, name, loss="squared"), rel=1e-5)


def test_rates_by_group_will_do(world):
    rates = vr.GroupedNoiseRates([vr.NoiseRates(0.1, 0.1), vr.NoiseRates(0.3, 0)], user_groups=np.arange(150) % 2)
    model = a_model()
    found = validator(world, "ome-dr", rates=rates)(model)
    assert found == pytest.approx(estimated(world, model, "ome-dr", rates=rates), rel=1e-5)


def test_a_validator_says_the_same_of_the_same_model_and_changes_nothing(world):
    validate, model = validator(world, "ome-dr"), a_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch_state = torch.get_rng_state()
    first = validate(model)
    other = validate(a_model(seed=1))
    assert validate(model) == first != other
    assert validator(world, "ome-dr", seed=5)(model) != first
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), torch_state)


def test_overconfidence_beyond_the_cut_off_is_not_rewarded(world):
    """Ten times the logits on the pairs where a corrected loss falls without end."""
    validate = validator(world, "ome-ips")
    large, larger = a_model(1e5), a_model(1e7)
    assert validate(larger) == pytest.approx(validate(large), rel=0.01)


@pytest.mark.parametrize(
    ("most", "values", "better", "over", "best", "best_epoch"),
    [
        (2, [3, 2, 1], [1, 1, 1], [0, 0, 0], 1, 3),
        (2, [1, 2, 3], [1, 0, 0], [0, 0, 1], 1, 1),
        (2, [2, 3, 1, 5, 5], [1, 0, 1, 0, 0], [0, 0, 0, 0, 1], 1, 3),
        (1, [2, 2], [1, 0], [0, 1], 2, 1),
        (3, [-1, -2, -2, -2, -2], [1, 1, 0, 0, 0], [0, 0, 0, 0, 1], -2, 2),
        (None, [1, 2, 2, 2, 2, 2], [1, 0, 0, 0, 0, 0], [0] * 6, 1, 1),
        (2, [math.nan, math.nan], [0, 0], [0, 1], math.inf, 0),
        (2, [1, math.nan, 0.5], [1, 0, 1], [0, 0, 0], 0.5, 3),
        (1, [], [], [], math.inf, 0),
    ],
)
def test_patience(most, values, better, over, best, best_epoch):
    patience = Patience(most)
    found = [(patience.better(value, epoch), patience.over) for epoch, value in enumerate(values, 1)]
    assert found == [(bool(one), bool(end)) for one, end in zip(better, over, strict=True)]
    assert (patience.best, patience.best_epoch) == (best, best_epoch)
