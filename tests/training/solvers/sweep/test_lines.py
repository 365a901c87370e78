"""The grid's part of a loss of stars: its gradient and its value, by Gram matrices, are those of all pairs."""

from __future__ import annotations

import pytest
import torch
from sweep_worlds import PENALTIES, a_model

from verirec.training.solvers.sweep.factor_blocks import FactorBlocks
from verirec.training.solvers.sweep.grid_gradient import OneLabel, Sigmoids
from verirec.training.solvers.sweep.lines import line_gradient

SHAPE = 70, 90


def blocks(seed):
    found = FactorBlocks(a_model("mf", SHAPE, seed), PENALTIES, 2.0)
    with torch.no_grad():
        found.start_from(0.4 - seed)
    return found


def scores(factors):
    return (factors.users @ factors.items.T + factors.constant).double()


@pytest.fixture(params=["one star", "a model's"])
def imputed(request):
    if request.param == "one star":
        return OneLabel(0.3), torch.full(SHAPE, 0.3, dtype=torch.float64)
    g = blocks(1)
    return Sigmoids(g), scores(g)


@pytest.mark.parametrize("number", [0, 1])
def test_the_gradient_is_that_of_all_pairs(number, imputed):
    f, (g, stars) = blocks(0), imputed
    grid = line_gradient(f, g, number, None)
    found = torch.cat([grid.of(part) for part in grid.parts()])
    missed = scores(f) - stars
    expected = (missed if number == 0 else missed.T) @ f.sides[number].inputs.double()
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-3)


def test_the_loss_is_that_of_all_pairs(imputed):
    f, (g, stars) = blocks(0), imputed
    z = scores(f)
    torch.testing.assert_close(line_gradient(f, g, 0, None).loss(), (0.5 * z**2 - stars * z).mean(), rtol=1e-6, atol=0)
