"""A model's predictions as estimators read them: pairs, rectangles, cut-off logits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit, logit
from torch import nn

from refusals import check_refusal
from verirec.exceptions import PositionError
from verirec.models import CustomModel, FactorModel
from verirec.training.model_cells import ModelCells

SHAPE = 4, 5


class Table(nn.Module):
    """Any logits at all."""

    def __init__(self, logits):
        super().__init__()
        self.logits = nn.Parameter(torch.as_tensor(logits))

    def forward(self, users, items):
        return self.logits[users, items]


LOGITS = np.random.default_rng(0).normal(0, 5, SHAPE)


def factors():
    model = FactorModel(*SHAPE, 3, random=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return model, model.grid(torch.arange(4), torch.arange(5)).detach().numpy()


MODELS = {"a table": lambda: (CustomModel(Table(LOGITS)), LOGITS), "factors": factors}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("most", [np.inf, 4.0, 0.5])
def test_pairs_and_rectangles_are_the_models(name, most):
    model, logits = MODELS[name]()
    logits = np.clip(logits, -most, most)
    cells = ModelCells(model, SHAPE, most)
    users, items = np.array([3, 0, 0, 2]), np.array([1, 1, 4, 1])
    np.testing.assert_allclose(cells.at(users, items), expit(logits[users, items]), rtol=1e-12)
    np.testing.assert_allclose(cells.block(users, items), expit(logits[np.ix_(users, items)]), rtol=1e-12)
    np.testing.assert_allclose(cells.cell_logits(users, items), logits[users, items], rtol=1e-12, atol=1e-12)
    rectangle = users[:, None], items[None, :]
    np.testing.assert_allclose(cells.cell_logits(*rectangle), logits[np.ix_(users, items)], rtol=1e-12, atol=1e-12)
    square = users.reshape(2, 2), items.reshape(2, 2)
    np.testing.assert_allclose(cells.cells(*square), expit(logits[square]), rtol=1e-12)
    assert cells.at(users, items).dtype == cells.block(users, items).dtype == np.float64
    assert cells.shape == SHAPE


def test_logits_are_cut_off_and_probabilities_with_them():
    model = CustomModel(Table([[-1e9, -4.5, 0.0, 4.5, 1e9]]))
    found = ModelCells(model, (1, 5), 4.0).block([0], range(5))
    np.testing.assert_allclose(logit(found), [[-4, -4, 0, 4, 4]], atol=1e-9)
    assert ModelCells(model, (1, 5)).block([0], range(5))[0, [0, 4]].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("name", MODELS)
def test_no_cells_have_no_values(name):
    cells = ModelCells(MODELS[name]()[0], SHAPE)
    none = np.zeros(0, np.int64)
    assert cells.at(none, none).shape == (0,)
    assert cells.block(none, [1, 2]).shape == (0, 2)
    assert cells.block([1, 2], none).shape == (2, 0)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64])
def test_positions_of_any_whole_type_will_do(name, dtype):
    model, logits = MODELS[name]()
    cells = ModelCells(model, SHAPE)
    expected = expit(logits[[1, 3], [0, 4]])
    np.testing.assert_allclose(cells.at(np.array([1, 3], dtype), np.array([0, 4], dtype)), expected, rtol=1e-12)


def test_positions_beyond_the_grid_are_refused():
    check_refusal(lambda: ModelCells(factors()[0], SHAPE).at([4], [0]), PositionError, "4")


def test_reading_leaves_no_gradients_and_asks_one_thread_at_a_time():
    model, _ = factors()
    ModelCells(model, SHAPE).block([0, 1], [2])
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not ModelCells.parallel
