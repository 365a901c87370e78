"""Learners: steps of Adam with penalties' gradients, as by hand; parameters tied to one tensor; going on exactly."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from verirec.models import FactorModel, Model, Penalties
from verirec.models.factors import SideInformation
from verirec.models.scoring import Penalised
from verirec.training.learner import Learner, minimise_together

SHAPE = 4, 5
USERS, ITEMS = (torch.as_tensor(side) for side in np.divmod(np.arange(20), 5))
TARGETS = torch.randn(20, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
PENALTIES = Penalties(constants=0.3, factors=0.7, features=0.11)
RATE, EPSILON = 0.05, 1e-12
ROWS = [1.0, 2.5, 20.0]


def a_model(seed=0):
    features, random = torch.Generator().manual_seed(8), torch.Generator().manual_seed(seed)
    side = SideInformation(torch.randn(4, 2, generator=features), torch.randn(5, 3, generator=features))
    model = FactorModel(*SHAPE, 2, side=side, random=random).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=random, dtype=torch.float64))
    return model


def strengths(rows, penalties=PENALTIES):
    """Give the penalties by name, a row's share of them: users' and items' alike."""
    return {
        "constant": 0.0,
        "user_factors": penalties.factors / rows,
        "item_factors": penalties.factors / rows,
        "user_constants": penalties.constants / rows,
        "item_constants": penalties.constants / rows,
        "user_weights": penalties.features / rows,
        "item_weights": penalties.features / rows,
        "interactions": penalties.features / rows,
    }


def loss_of(model, targets=TARGETS):
    return ((model(USERS, ITEMS) - targets) ** 2).mean()


def close(one, other):
    for name, value in other.state_dict().items():
        torch.testing.assert_close(one.state_dict()[name], value, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("rows", ROWS)
def test_steps_are_those_of_torchs_adam_with_the_penalties_gradients(rows):
    own, by_hand = a_model(), a_model()
    learner = Learner(own, PENALTIES, RATE, rows)
    adam = torch.optim.Adam(by_hand.parameters(), lr=RATE, eps=EPSILON)
    for _ in range(6):
        found, expected = learner.minimise(loss_of(own)), loss_of(by_hand)
        assert found.item() == pytest.approx(expected.item(), rel=1e-9)
        assert not found.requires_grad
        adam.zero_grad()
        expected.backward()
        for name, parameter in by_hand.named_parameters():
            parameter.grad += strengths(rows)[name] * parameter.detach()
        adam.step()
        close(own, by_hand)


@pytest.mark.parametrize("rows", ROWS)
def test_penalties_are_half_of_squares_by_row(rows):
    """The same steps with the penalty written into the loss."""
    own, by_hand = a_model(), a_model()
    learner, plain = Learner(own, PENALTIES, RATE, rows), Learner(by_hand, Penalties(0, 0, 0), RATE)
    for _ in range(4):
        learner.minimise(loss_of(own))
        penalty = sum(strengths(rows)[name] / 2 * (value**2).sum() for name, value in by_hand.named_parameters())
        plain.minimise(loss_of(by_hand) + penalty)
        close(own, by_hand)


def test_without_rows_penalties_are_of_one_row():
    one, other = Learner(a_model(), PENALTIES, RATE), Learner(a_model(), PENALTIES, RATE, 1.0)
    for _ in range(3):
        assert one.minimise(loss_of(one.model)) == other.minimise(loss_of(other.model))
        assert torch.equal(one.flat, other.flat)


@pytest.mark.parametrize("rows", ROWS)
def test_a_step_is_the_formula_of_kingma_and_ba(rows):
    model = a_model()
    learner = Learner(model, PENALTIES, RATE, rows)
    names = [name for name, _ in model.named_parameters()]
    values = {name: value.detach().numpy().copy() for name, value in model.named_parameters()}
    first, second = ({name: np.zeros_like(values[name]) for name in names} for _ in range(2))
    for step in range(1, 4):
        with torch.no_grad():
            for name, value in model.named_parameters():
                value.copy_(torch.as_tensor(values[name]))
        gradients = torch.autograd.grad(loss_of(model), [value for _, value in model.named_parameters()])
        for name, gradient in zip(names, gradients, strict=True):
            slope = gradient.numpy() + strengths(rows)[name] * values[name]
            first[name] = 0.9 * first[name] + 0.1 * slope
            second[name] = 0.999 * second[name] + 0.001 * slope**2
            mean, square = first[name] / (1 - 0.9**step), second[name] / (1 - 0.999**step)
            values[name] = values[name] - RATE * mean / (np.sqrt(square) + EPSILON)
        learner.minimise(loss_of(model))
        for name, value in model.named_parameters():
            np.testing.assert_allclose(value.detach().numpy(), values[name], rtol=1e-9, atol=1e-11)


def test_gradients_as_small_as_those_of_a_large_grid_still_count():
    """Of a mean over 1e9 cells: Adam's steps do not depend on the loss's scale."""
    large, small = a_model(), a_model()
    learners = [Learner(model, Penalties(0, 0, 0), RATE) for model in (large, small)]
    for _ in range(3):
        learners[0].minimise(loss_of(large))
        learners[1].minimise(1e-6 * loss_of(small))
    torch.testing.assert_close(large.user_factors, small.user_factors, rtol=1e-3, atol=1e-4)


def check_tied(learner):
    """Every parameter and every gradient is a part of one tensor, in order."""
    start = 0
    for parameter in learner.model.parameters():
        stop = start + parameter.numel()
        for whole, part in ((learner.flat, parameter.data), (learner.gradient, parameter.grad)):
            assert part.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
            assert part.storage_offset() == start
            assert part.is_contiguous()
            assert torch.equal(part.reshape(-1), whole[start:stop])
        start = stop
    assert start == learner.flat.numel()


def test_parameters_stay_tied_to_one_tensor():
    model = a_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    learner = Learner(model, PENALTIES, RATE)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    check_tied(learner)
    for _ in range(2):
        learner.minimise(loss_of(model))
    check_tied(learner)
    model.load_state_dict(before)
    check_tied(learner)
    assert torch.equal(model.user_factors, before["user_factors"])
    model.forget_cold(torch.tensor([0]), torch.tensor([1]))
    check_tied(learner)
    other = Learner(a_model(3), PENALTIES, RATE)
    other.minimise(loss_of(other.model))
    learner.load(other.state())
    check_tied(learner)
    kept = learner.flat.detach().clone()
    learner.minimise(loss_of(model))
    assert not torch.equal(learner.flat, kept)
    check_tied(learner)


class Linear(Model):
    """Logits that are a linear function of features of the pair, u and i put together."""

    def __init__(self, features):
        super().__init__()
        self.features = features
        self.weights = nn.Parameter(torch.zeros(features.shape[1], dtype=torch.float64))

    def forward(self, users, items):
        return self.features[users * SHAPE[1] + items] @ self.weights

    def penalised(self):
        yield Penalised([self.weights], "factors")


def test_a_quadratic_is_minimised_at_the_ridge_solution():
    """The penalty is the precision of a normal prior, beside that of the rows."""
    features = torch.randn(20, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    learner = Learner(Linear(features), Penalties(0, 10, 0), 0.05, rows=20)
    for _ in range(1_500):
        learner.minimise(((learner.model(USERS, ITEMS) - TARGETS) ** 2).mean() / 2)
    x, y = features.numpy(), TARGETS.numpy()
    expected = np.linalg.solve(x.T @ x + 10 * np.eye(3), x.T @ y)
    np.testing.assert_allclose(learner.model.weights.detach().numpy(), expected, atol=1e-5)


def test_two_models_step_together_down_one_loss():
    own, by_hand = [a_model(0), a_model(1)], [a_model(0), a_model(1)]
    others = Penalties(constants=0.01, factors=0.02, features=0.03)
    learners = [Learner(own[0], PENALTIES, RATE, 2.5), Learner(own[1], others, 2 * RATE, 0.5)]
    optimisers = [
        torch.optim.Adam(model.parameters(), lr=rate, eps=EPSILON)
        for model, rate in zip(by_hand, (RATE, 2 * RATE), strict=True)
    ]
    scale = [strengths(2.5), strengths(0.5, others)]

    def together(models):
        product = models[0](USERS, ITEMS) * models[1](USERS, ITEMS)
        return ((product - TARGETS) ** 2).mean() + loss_of(models[0]) + loss_of(models[1], 0)

    for _ in range(4):
        found, expected = minimise_together(together(own), *learners), together(by_hand)
        assert found.item() == pytest.approx(expected.item(), rel=1e-9)
        assert not found.requires_grad
        for optimiser in optimisers:
            optimiser.zero_grad()
        expected.backward()
        for model, strength in zip(by_hand, scale, strict=True):
            for name, parameter in model.named_parameters():
                parameter.grad += strength[name] * parameter.detach()
        for optimiser in optimisers:
            optimiser.step()
        for model, plain in zip(own, by_hand, strict=True):
            close(model, plain)


def test_a_loss_that_reaches_into_another_model_leaves_it_alone():
    """Its step by a loss of its own is as if the other had never been."""
    one, other, alone = Learner(a_model(0), PENALTIES, RATE), Learner(a_model(1), PENALTIES, RATE), a_model(1)
    apart = Learner(alone, PENALTIES, RATE)
    kept = other.flat.detach().clone()
    one.minimise((one.model(USERS, ITEMS) * other.model(USERS, ITEMS)).mean())
    assert torch.equal(other.flat, kept)
    other.minimise(loss_of(other.model))
    apart.minimise(loss_of(alone))
    assert torch.equal(other.flat, apart.flat)


def test_frozen_parameters_stay():
    model = a_model()
    model.item_factors.requires_grad_(False)
    kept = model.item_factors.clone()
    learner = Learner(model, PENALTIES, RATE)
    assert learner.flat.numel() == sum(one.numel() for one in model.parameters()) - kept.numel()
    moved = model.user_factors.detach().clone()
    learner.minimise(loss_of(model))
    assert torch.equal(model.item_factors, kept)
    assert not torch.equal(model.user_factors, moved)


@pytest.mark.parametrize("steps", [1, 5])
def test_going_on_from_a_state_is_going_on(steps):
    learner = Learner(a_model(), PENALTIES, RATE)
    for _ in range(steps):
        learner.minimise(loss_of(learner.model))
    state = copy.deepcopy(learner.state())
    fresh = Learner(a_model(7), PENALTIES, RATE)
    fresh.minimise(loss_of(fresh.model))
    fresh.load(state)
    for _ in range(5):
        assert learner.minimise(loss_of(learner.model)) == fresh.minimise(loss_of(fresh.model))
        assert torch.equal(learner.flat, fresh.flat)
    for name, value in learner.state().items():
        assert torch.equal(value, fresh.state()[name]), name


def test_a_loaded_state_is_not_written_to():
    learner = Learner(a_model(), PENALTIES, RATE)
    learner.minimise(loss_of(learner.model))
    state = copy.deepcopy(learner.state())
    kept = copy.deepcopy(state)
    learner.load(state)
    learner.minimise(loss_of(learner.model))
    assert all(torch.equal(state[name], kept[name]) for name in kept)


def test_going_on_from_the_very_start():
    learner, fresh = Learner(a_model(), PENALTIES, RATE), Learner(a_model(7), PENALTIES, RATE)
    fresh.load(copy.deepcopy(learner.state()))
    assert learner.minimise(loss_of(learner.model)) == fresh.minimise(loss_of(fresh.model))
    assert torch.equal(learner.flat, fresh.flat)
