"""From a word, a module or a function to a model; modules that are none are refused before training."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from refusals import check_refusal
from verirec.exceptions import ModelError, ParameterError
from verirec.models import CustomModel, FactorModel, NeuralModel, build_model
from verirec.models.factors import SideInformation

SHAPE = 6, 7
SIDE = SideInformation(torch.ones(6, 2), torch.ones(7, 3))


def built(kind, shape=SHAPE, dim=3, *, constants=True, side=SIDE, seed=0):
    random = torch.Generator().manual_seed(seed)
    return build_model(kind, shape, dim, constants=constants, side=side, random=random)


class Own(nn.Module):
    """Embeddings and what is done to their product."""

    def __init__(self, n_users=6, n_items=7, after=lambda logits: logits):
        super().__init__()
        self.users, self.items, self.after = nn.Embedding(n_users, 2), nn.Embedding(n_items, 2), after

    def forward(self, users, items):
        return self.after((self.users(users) * self.items(items)).sum(1))


def of(function):
    """A module that says what a function of (users, items) does."""

    class Says(Own):
        def forward(self, users, items):
            return function(users, items)

    return Says()


@pytest.mark.parametrize(
    ("kind", "constants", "made", "parameters"),
    [
        ("mf", True, FactorModel, 6 * 3 + 7 * 3 + 6 + 7 + 1),
        ("mf", False, FactorModel, 6 * 3 + 7 * 3),
        ("constants", True, FactorModel, 6 + 7 + 1),
        ("constants", False, FactorModel, 6 + 7 + 1),
        ("features", True, FactorModel, 6 * 3 + 7 * 3 + 6 + 7 + 1 + 2 + 3 + 2 * 3),
        ("features", False, FactorModel, 6 * 3 + 7 * 3 + 2 + 3 + 2 * 3),
        ("ncf", True, NeuralModel, 6 * 3 + 7 * 3 + 6 * 3 + 3 + 3 + 6 + 7 + 1),
        ("ncf", False, NeuralModel, 6 * 3 + 7 * 3 + 6 * 3 + 3 + 3),
        (Own(), True, CustomModel, 6 * 2 + 7 * 2),
        (Own, True, CustomModel, 6 * 2 + 7 * 2),
    ],
)
def test_each_kind_has_the_parameters_it_promises(kind, constants, made, parameters):
    model = built(kind, constants=constants)
    assert type(model) is made
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
    assert model(torch.tensor([0, 5]), torch.tensor([6, 0])).shape == (2,)
    assert model.training


@pytest.mark.parametrize("kind", ["mf", "constants", "features", "ncf"])
def test_one_seed_one_start(kind):
    first, again, other = (built(kind, seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    if kind != "constants":
        assert not all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("kind", ["mf", "constants", "features", "ncf"])
def test_global_random_numbers_are_left_alone(kind):
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    built(kind)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert (np.random.get_state()[1] == numpy_state).all()  # noqa: NPY002


def test_constants_alone_have_the_same_start_whatever_they_are_given():
    for name, value in built("constants").state_dict().items():
        assert not value.any(), name


@pytest.mark.parametrize("wrap", [lambda own: own, CustomModel], ids=["a module", "a model"])
def test_a_module_is_copied_and_never_changed(wrap):
    given = wrap(Own())
    before = {name: value.clone() for name, value in given.state_dict().items()}
    model = built(given)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name.removeprefix("module.") if wrap is not CustomModel else name])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    model(torch.tensor([0]), torch.tensor([0])).sum().backward()
    assert all(torch.equal(value, before[name]) for name, value in given.state_dict().items())
    assert all(parameter.grad is None for parameter in given.parameters())


def test_a_function_is_told_the_grids_size():
    asked = []

    def make(n_users, n_items):
        asked.append((n_users, n_items))
        return Own(n_users, n_items)

    assert built(make, (3, 9)).module.items.num_embeddings == 9
    assert asked == [(3, 9)]


def test_a_column_of_logits_is_taken_for_a_list():
    model = built(Own(after=lambda logits: logits[:, None]))
    assert model(torch.tensor([1, 2, 3]), torch.tensor([1, 2, 3])).shape == (3,)
    assert model.grid(torch.tensor([1, 2]), torch.tensor([1, 2, 3])).shape == (2, 3)


def test_logits_that_happen_to_be_all_alike_are_logits():
    """A model of zeros, as many start, and one of a constant between 0 and 1."""
    for start in (0.0, 0.4):
        module = Own(after=lambda logits, start=start: 0 * logits + start)
        assert isinstance(built(module), CustomModel)


def fails(users, items):
    raise RuntimeError("no luck\nat all")


def fails_silently(users, items):
    raise RuntimeError


def without_parameters(users, items):
    return users - items + 0.5


class Bare(nn.Module):
    """No parameters."""

    def forward(self, users, items):
        return without_parameters(users, items)


def frozen():
    module = Own()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return module


REFUSED = {
    "an unknown word": ("svd", ParameterError, r'must be "mf", "constants".*got \'svd\''),
    "a number": (3, ParameterError, "got 3"),
    "nothing": (None, ParameterError, "got None"),
    "a function of no module": (lambda n_users, n_items: 3, ParameterError, "function of"),
    "probabilities": (Own(after=torch.sigmoid), ModelError, "leave out its last sigmoid"),
    "a matrix": (of(lambda users, items: torch.zeros(len(users), 2)), ModelError, r"shape \(256,\); got \(256, 2\)"),
    "one number": (of(lambda users, items: torch.zeros(())), ModelError, r"one logit a pair.*got \(\)"),
    "too few": (of(lambda users, items: torch.zeros(3)), ModelError, r"got \(3,\)"),
    "a row": (of(lambda users, items: torch.zeros(1, len(users))), ModelError, r"got \(1, 256\)"),
    "NaN": (Own(after=lambda logits: logits / 0 * 0), ModelError, "NaN or infinity before any training"),
    "infinity": (Own(after=lambda logits: logits + torch.inf), ModelError, "NaN or infinity"),
    "an array": (of(lambda users, items: np.zeros(len(users))), ModelError, "tensor of logits; got ndarray"),
    "nothing at all": (of(lambda users, items: None), ModelError, "got NoneType"),
    "whole numbers": (of(lambda users, items: users), ModelError, "tensor of logits"),
    "an error": (of(fails), ModelError, "it raised RuntimeError: no luck"),
    "an error without a word": (of(fails_silently), ModelError, "it raised RuntimeError"),
    "one argument": (nn.Linear(2, 2), ModelError, r"two tensors of positions \(users, items\).*TypeError"),
    "too few users": (Own(2, 7), ModelError, "IndexError"),
    "no parameters": (Bare(), ModelError, "no parameters to train"),
    "frozen parameters": (frozen(), ModelError, "no parameters to train"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_model_is_refused_before_training(what):
    kind, error, message = REFUSED[what]
    check_refusal(lambda: built(kind), error, message)


def test_features_need_features():
    check_refusal(
        lambda: built("features", side=SideInformation()), ModelError, "needs a log with user or item features"
    )
    assert isinstance(built("features", side=SideInformation(items=torch.ones(7, 1))), FactorModel)


@pytest.mark.parametrize("wrap", [CustomModel, lambda own: FactorModel(2, 3, 2, random=torch.Generator())])
def test_a_model_of_a_smaller_grid_is_refused(wrap):
    check_refusal(lambda: built(wrap(Own(2, 3))), ModelError, "IndexError")


def test_a_module_is_held_to_its_form_after_the_start_too():
    model = CustomModel(of(lambda users, items: torch.zeros(len(users), 2)))
    check_refusal(lambda: model(torch.tensor([0]), torch.tensor([0])), ModelError, "one logit a pair")
