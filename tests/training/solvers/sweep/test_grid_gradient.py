"""A sample of the grid: its gradient has no bias, and far less spread than that of a plain sample."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sweep_worlds import PENALTIES, a_model

from verirec.training.solvers.sweep.factor_blocks import FactorBlocks
from verirec.training.solvers.sweep.grid_gradient import OneLabel, Sigmoids, gradient_of_grid

SHAPE = 70, 90
DRAWS, SAMPLE = 300, 20


def sigmoids(seed, kind="mf"):
    return Sigmoids(FactorBlocks(a_model(kind, SHAPE, seed), PENALTIES, 2.0))


def imputed(what):
    return OneLabel(0.3) if what == "one label" else sigmoids(1)


def gradient(f, g, number, chosen):
    pull = gradient_of_grid(f, g, number, chosen)
    return torch.cat([pull.of(part) for part in pull.parts()])


def plain_sample(f, g, number, chosen):
    """All sums by the sample, with nothing left out of it."""
    pull = gradient_of_grid(f, g, number, chosen)
    seen = pull.f.seen[:, f.factors.sides[number].columns]
    return torch.cat([pull.times * ((pull.f.at(part) - pull.g.at(part)) @ seen) for part in pull.parts()])


def draws(how, f, g, number):
    random = np.random.default_rng(0)
    m = SHAPE[1 - number]
    chosen = [torch.from_numpy(random.choice(m, SAMPLE, replace=False)) for _ in range(DRAWS)]
    with torch.no_grad():
        return torch.stack([how(f, g, number, one) for one in chosen]).double()


@pytest.mark.parametrize("kind", ["mf", "features"])
@pytest.mark.parametrize("number", [0, 1], ids=["users", "items"])
@pytest.mark.parametrize("what", ["one label", "a model"])
def test_the_gradient_of_a_sample_has_no_bias_and_little_spread(what, number, kind):
    f, g = sigmoids(0, kind), imputed(what)
    with torch.no_grad():
        exact = gradient(f, g, number, None).double()
    found = draws(gradient, f, g, number)
    error = found.std(0) / DRAWS**0.5
    # Where there is next to no spread, single precision is all there is.
    z = (found.mean(0) - exact) / (error + 1e-5 * exact.abs().mean())
    assert float(z.abs().max()) < 4
    assert float((z**2).mean()) < 1.3
    of_plain = draws(plain_sample, f, g, number)
    # The mean variance of all entries, over the same draws: a 40th to a 75th of the plain sample's where logits have a
    # standard deviation of 0.8, and a 10th where it is 2.
    assert float(found.var(0).mean()) < {"mf": 0.04, "features": 0.15}[kind] * float(of_plain.var(0).mean())


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("what", ["one label", "a model"])
def test_a_sample_of_all_is_exact(what, number):
    f, g = sigmoids(0), imputed(what)
    with torch.no_grad():
        every = torch.randperm(SHAPE[1 - number], generator=torch.Generator().manual_seed(0))
        found, exact = gradient(f, g, number, every), gradient(f, g, number, None)
    torch.testing.assert_close(found, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("number", [0, 1])
def test_the_whole_gradient_is_that_of_torch(number):
    f, g = sigmoids(0), sigmoids(1)
    with torch.no_grad():
        found = gradient(f, g, number, None)
    users, items = f.factors.users.clone().requires_grad_(), f.factors.items.clone().requires_grad_()
    z = users @ items.T + f.factors.constant
    labels = torch.sigmoid(g.factors.users @ g.factors.items.T + g.factors.constant).detach()
    (torch.nn.functional.softplus(z) - labels * z).sum().backward()
    expected = (users.grad, items.grad)[number][:, f.factors.sides[number].columns]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_parts_are_all_of_a_side_once(monkeypatch):
    from verirec.training.solvers.sweep import grid_gradient

    monkeypatch.setattr(grid_gradient, "_PART_CELLS", 1_000)
    f = sigmoids(0)
    pull = gradient_of_grid(f, OneLabel(0.5), 0, None)
    assert [part.start for part in pull.parts()] == list(range(0, 70, 11))
    with torch.no_grad():
        torch.testing.assert_close(gradient(f, OneLabel(0.5), 0, None), pull.of(slice(0, 70)))


def test_the_loss_is_the_mean_of_some_pairs():
    f, g = sigmoids(0), sigmoids(1)
    with torch.no_grad():
        pull = gradient_of_grid(f, g, 0, None)
        for part in pull.parts():
            pull.of(part)
        z = f.factors.users @ f.factors.items.T + f.factors.constant
        labels = torch.sigmoid(g.factors.users @ g.factors.items.T + g.factors.constant)
        expected = (torch.nn.functional.softplus(z) - labels * z).mean()
        assert float(pull.loss()) == pytest.approx(float(expected), rel=0.05)
