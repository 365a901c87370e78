"""Logits with the way back: the same numbers and the same gradients as by autograd, for every kind of model."""

import pytest
import torch
from torch import nn

from verirec.models import CustomModel, FactorModel, NeuralModel
from verirec.models.factors import SideInformation

USERS, ITEMS = torch.tensor([0, 3, 3, 5, 1, 0]), torch.tensor([2, 2, 0, 4, 4, 2])
GRID_USERS, GRID_ITEMS = torch.tensor([5, 0, 0, 2]), torch.tensor([1, 4, 1])


def random_model(kind):
    random = torch.Generator().manual_seed(1)
    side = SideInformation(torch.randn(6, 2, generator=random), torch.randn(5, 3, generator=random))
    model = {
        "factors and constants": lambda: FactorModel(6, 5, 3, random=random),
        "factors alone": lambda: FactorModel(6, 5, 3, constants=False, random=random),
        "constants alone": lambda: FactorModel(6, 5, 0, random=random),
        "features": lambda: FactorModel(6, 5, 3, side=side, random=random),
        "neural": lambda: NeuralModel(6, 5, 3, constants=True, random=random),
    }[kind]()
    with torch.no_grad():
        for one in model.parameters():
            one.copy_(torch.randn(one.shape, generator=random))
    return model


KINDS = ("factors and constants", "factors alone", "constants alone", "features", "neural")
PLACES = {"pairs": (USERS, ITEMS), "rectangle": (GRID_USERS, GRID_ITEMS)}


def gradients(model):
    return {name: torch.zeros_like(one) if one.grad is None else one.grad for name, one in model.named_parameters()}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_logits_and_gradients_are_those_of_autograd(kind, place):
    traced, plain = random_model(kind), random_model(kind)
    where = PLACES[place]
    trace = (traced.trace if place == "pairs" else traced.trace_grid)(*where)
    logits = (plain if place == "pairs" else plain.grid)(*where)
    torch.testing.assert_close(trace.logits, logits)

    slopes = torch.randn(logits.shape, generator=torch.Generator().manual_seed(2))
    trace.back(slopes)
    logits.backward(slopes)
    torch.testing.assert_close(gradients(traced), gradients(plain))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_added_to_what_is_there(kind):
    once, twice = random_model(kind), random_model(kind)
    slopes = torch.ones(len(USERS))
    once.trace(USERS, ITEMS).back(slopes)
    for _ in range(2):
        twice.trace(USERS, ITEMS).back(slopes)
    torch.testing.assert_close(gradients(twice), {name: 2 * value for name, value in gradients(once).items()})


@pytest.mark.parametrize("kind", KINDS)
def test_the_logits_are_a_leaf_and_no_view_of_a_parameter(kind):
    model = random_model(kind)
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    trace = model.trace(USERS, ITEMS)
    assert trace.logits.is_leaf
    assert trace.logits.requires_grad
    with torch.no_grad():
        trace.logits.zero_()
    torch.testing.assert_close({name: one.detach() for name, one in model.named_parameters()}, before)


def test_modules_of_a_users_own_are_asked_anew_each_time():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.users = nn.Embedding(6, 1)

        def forward(self, users, items):
            return self.users(users).squeeze(1)

    model = CustomModel(Own())
    assert model.trace(USERS, ITEMS) is None
    assert model.trace_grid(GRID_USERS, GRID_ITEMS) is None
