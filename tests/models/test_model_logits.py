"""Models: logits against loops, rectangles against pairs, what is penalised, what is forgotten."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from verirec.data.cells import DenseCells
from verirec.models import CustomModel, FactorModel, Penalties, build_model
from verirec.models.covariates import Covariates
from verirec.models.factors import SideInformation

SHAPE = N_USERS, N_ITEMS = 4, 5
EVERY_USER, EVERY_ITEM = (torch.as_tensor(side) for side in np.divmod(np.arange(N_USERS * N_ITEMS), N_ITEMS))
PARTS = [parts for parts in itertools.product([False, True], repeat=5) if any(parts)]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


COLUMNS = [torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed)).numpy() for seed in (6, 7)]


def some_side(users=True, items=True, covariates=True):
    random = generator(5)
    return SideInformation(
        torch.randn(N_USERS, 2, generator=random) if users else None,
        torch.randn(N_ITEMS, 3, generator=random) if items else None,
        Covariates([DenseCells(column) for column in COLUMNS]) if covariates else None,
    )


class Own(nn.Module):
    """A user's module: a product of embeddings, and a layer."""

    def __init__(self, n_users, n_items):
        super().__init__()
        self.left = nn.Parameter(torch.randn(n_users, 2, generator=generator(1)))
        self.right = nn.Parameter(torch.randn(n_items, 2, generator=generator(2)))

    def forward(self, users, items):
        return (self.left[users] * self.right[items]).sum(1)


def scattered(model, seed=3):
    """Put every parameter somewhere, in double precision."""
    model, random = model.double(), generator(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=random, dtype=torch.float64))
    return model


def made(kind, constants=True):
    return scattered(
        build_model(kind, SHAPE, 3, constants=constants, side=some_side(), random=generator()),
    )


KINDS = ["mf", "constants", "features", "ncf", Own]


def plain_logit(values, user, item):
    """The formula of `verirec.models.factors`, a number at a time; parts that are not there are left out."""
    total = 0.0
    if "constant" in values:
        total += values["constant"] + values["user_constants"][user] + values["item_constants"][item]
    if "user_factors" in values:
        total += sum(a * b for a, b in zip(values["user_factors"][user], values["item_factors"][item], strict=True))
    x = values["user_features"][user] if "user_features" in values else []
    y = values["item_features"][item] if "item_features" in values else []
    total += sum(value * values["user_weights"][k] for k, value in enumerate(x))
    total += sum(value * values["item_weights"][k] for k, value in enumerate(y))
    for (k, a), (m, b) in itertools.product(enumerate(x), enumerate(y)):
        total += a * values["interactions"][k][m] * b
    for weight, column in zip(values.get("covariate_weights", []), COLUMNS, strict=False):
        total += weight * float(column[user, item])
    return total


@pytest.mark.parametrize(("factors", "constants", "users", "items", "covariates"), PARTS)
def test_logits_of_factor_models_are_the_formulas_with_any_part_left_out(factors, constants, users, items, covariates):
    side = some_side(users, items, covariates)
    model = scattered(
        FactorModel(*SHAPE, 3 if factors else 0, constants=constants, side=side, random=generator()),
    )
    named = [*model.named_parameters(), *model.named_buffers()]
    values = {name: value.detach().numpy().tolist() for name, value in named}
    assert ("user_factors" in values, "constant" in values) == (factors, constants)
    assert ("interactions" in values, "covariate_weights" in values) == (users and items, covariates)
    expected = [[plain_logit(values, user, item) for item in range(N_ITEMS)] for user in range(N_USERS)]
    np.testing.assert_allclose(
        model.grid(torch.arange(N_USERS), torch.arange(N_ITEMS)).detach(), expected, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(model(EVERY_USER, EVERY_ITEM).detach(), np.ravel(expected), rtol=1e-12, atol=1e-12)


def test_covariates_alone_will_do():
    side = SideInformation(covariates=some_side().covariates)
    model = scattered(FactorModel(*SHAPE, 0, side=side, random=generator()))
    assert model(EVERY_USER, EVERY_ITEM).shape == (20,)


def test_logits_of_neural_models_are_the_formulas():
    for constants in (False, True):
        model = made("ncf", constants)
        values = {name: value.detach().numpy() for name, value in model.named_parameters()}
        for user, item in itertools.product(range(N_USERS), range(N_ITEMS)):
            both = [*values["user_factors"][user], *values["item_factors"][item]]
            expected = values["constant"] if constants else 0.0
            for k in range(3):
                into = values["hidden_constant"][k] + sum(both[j] * values["hidden"][j, k] for j in range(6))
                expected = expected + max(into, 0) * values["output"][k]
            if constants:
                expected = expected + values["user_constants"][user] + values["item_constants"][item]
            found = model(torch.tensor([user]), torch.tensor([item]))
            assert found.item() == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_rectangles_are_their_pairs(kind):
    model = made(kind)
    users, items = torch.tensor([3, 0, 3]), torch.tensor([4, 4, 1, 2])
    grid = model.grid(users, items)
    assert grid.shape == (3, 4)
    for (row, user), (column, item) in itertools.product(enumerate(users), enumerate(items)):
        pair = model(user.view(1), item.view(1))
        assert pair.shape == (1,)
        assert grid[row, column].item() == pytest.approx(pair.item(), rel=1e-12, abs=1e-12)
    whole = model.grid(torch.arange(N_USERS), torch.arange(N_ITEMS)).reshape(-1)
    torch.testing.assert_close(whole, model(EVERY_USER, EVERY_ITEM), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_no_pairs_have_no_logits(kind):
    none, some = torch.zeros(0, dtype=torch.int64), torch.tensor([1, 2])
    assert made(kind)(none, none).shape == (0,)
    assert made(kind).grid(none, some).shape == (0, 2)
    assert made(kind).grid(some, none).shape == (2, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_by_pairs_and_by_rectangle_are_the_same(kind):
    by_pairs, by_grid = made(kind), made(kind)
    by_pairs(EVERY_USER, EVERY_ITEM).sigmoid().mean().backward()
    by_grid.grid(torch.arange(N_USERS), torch.arange(N_ITEMS)).sigmoid().mean().backward()
    for one, other in zip(by_pairs.parameters(), by_grid.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-10, atol=1e-12)


def test_without_constants_factors_are_the_papers_form():
    model = scattered(FactorModel(*SHAPE, 3, constants=False, random=generator()))
    assert {name for name, _ in model.named_parameters()} == {"user_factors", "item_factors"}
    expected = (model.user_factors @ model.item_factors.T).detach()
    torch.testing.assert_close(model.grid(torch.arange(N_USERS), torch.arange(N_ITEMS)).detach(), expected)


@pytest.mark.parametrize("dim", [1, 8, 200])
def test_inner_products_start_small_whatever_the_dimension(dim):
    model = FactorModel(300, 400, dim, random=generator())
    logits = model.grid(torch.arange(300), torch.arange(400)).detach()
    assert float(logits.std()) == pytest.approx(0.1, rel=0.15)


# What is penalised


def penalties_of(model):
    """Give the kind of every parameter that is penalised, by name."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found = [(names[id(one)], part.kind) for part in model.penalised() for one in part.parameters]
    assert len(found) == len(dict(found))
    return dict(found)


FACTORS = dict.fromkeys(("user_factors", "item_factors"), "factors")
CONSTANTS = {"user_constants": "users", "item_constants": "items"}
FEATURES = dict.fromkeys(("user_weights", "item_weights", "interactions", "covariate_weights"), "features")
COVARIATES = {"covariate_weights": "features"}
LAYERS = dict.fromkeys(("hidden", "output"), "features")


@pytest.mark.parametrize(
    ("kind", "constants", "penalised", "free"),
    [
        ("mf", True, FACTORS | CONSTANTS | COVARIATES, {"constant"}),
        ("mf", False, FACTORS | COVARIATES, set()),
        ("constants", True, CONSTANTS | COVARIATES, {"constant"}),
        ("features", True, FACTORS | CONSTANTS | FEATURES, {"constant"}),
        ("features", False, FACTORS | FEATURES, set()),
        ("ncf", True, FACTORS | CONSTANTS | LAYERS, {"constant", "hidden_constant"}),
        ("ncf", False, FACTORS | LAYERS, {"hidden_constant"}),
        (Own, True, dict.fromkeys(("module.left", "module.right"), "factors"), set()),
    ],
)
def test_each_parameter_has_the_penalty_of_its_kind(kind, constants, penalised, free):
    model = made(kind, constants)
    assert penalties_of(model) == penalised
    assert {name for name, _ in model.named_parameters()} - set(penalised) == free


@pytest.mark.parametrize("one", ["users", "items"])
def test_features_of_one_side_alone_are_penalised(one):
    side = some_side(users=one == "users", items=one == "items", covariates=False)
    model = FactorModel(*SHAPE, 0, constants=False, side=side, random=generator())
    assert penalties_of(model) == {f"{one[:-1]}_weights": "features"}


def test_modules_of_ones_own_have_the_penalty_of_factors_where_they_are_trained():
    model = CustomModel(Own(*SHAPE))
    assert penalties_of(model) == {"module.left": "factors", "module.right": "factors"}
    model.module.left.requires_grad_(False)
    assert penalties_of(model) == {"module.right": "factors"}


def test_penalties_are_looked_up_by_kind():
    penalties = Penalties(constants=1, factors=2, features=3)
    assert [penalties.of(kind) for kind in ("constants", "factors", "features")] == [1.0, 2.0, 3.0]
    assert (penalties.of("users"), penalties.of("items")) == (1.0, 1.0)
    own = Penalties(constants=1, factors=2, features=3, users=0, items=5)
    assert (own.of("users"), own.of("items"), own.least_of_constants_and_features) == (0.0, 5.0, 0.0)


# What is forgotten


@pytest.mark.parametrize("kind", ["mf", "constants", "features"])
def test_cold_users_and_items_keep_nothing_of_their_own(kind):
    model = made(kind)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    cold = {"user": [1, 3], "item": [0]}
    model.forget_cold(torch.tensor(cold["user"]), torch.tensor(cold["item"]))
    for name, value in model.state_dict().items():
        expected = before[name].clone()
        if name.split("_")[-1] in ("factors", "constants"):
            side = cold[name.split("_")[0]]
            expected[side] = before[name][[row for row in range(len(expected)) if row not in side]].mean(0)
        torch.testing.assert_close(value, expected)


def test_cold_users_and_items_of_neural_models_get_the_others_mean():
    model = made("ncf")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.forget_cold(torch.tensor([1, 3]), torch.tensor([], dtype=torch.int64))
    for name, value in model.state_dict().items():
        expected = before[name].clone()
        if name == "user_factors":
            expected[[1, 3]] = (before[name][0] + before[name][2]) / 2
        if name == "user_constants":
            expected[[1, 3]] = (before[name][0] + before[name][2]) / 2
        torch.testing.assert_close(value, expected)


def test_where_all_are_cold_there_is_no_mean_to_take():
    for kind in KINDS:
        model = made(kind)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        model.forget_cold(torch.arange(N_USERS), torch.arange(N_ITEMS))
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_nobody_cold_changes_nothing():
    none = torch.zeros(0, dtype=torch.int64)
    for kind in KINDS:
        model = made(kind)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        model.forget_cold(none, none)
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_side_information_is_not_part_of_the_state():
    """It is in the log, and would be written with every checkpoint."""
    assert not {"user_features", "item_features"} & set(made("features").state_dict())


def test_only_the_factors_start_away_from_zero():
    model = build_model("features", SHAPE, 3, constants=True, side=some_side(), random=generator())
    started = {name for name, value in model.named_parameters() if value.detach().any()}
    assert started == {"user_factors", "item_factors"}
