"""Sweeps never raise what they lower: by plain NumPy in double precision, from anywhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit
from sweep_worlds import KINDS, PENALTIES, SHAPE, World, a_model

from plain_formulas import sweeps as plain
from verirec.training.learner import Learner
from verirec.training.solvers.sweep import sweeper as sweeper_module
from verirec.training.solvers.sweep.grid_gradient import OneLabel, Sigmoids
from verirec.training.solvers.sweep.majorizers import CrossEntropy, Squares

SLACK = 1e-6
"""Relative, for single precision."""
STARTS = pytest.mark.parametrize(("seed", "spread"), [(0, 0.1), (1, 1.0), (2, 10.0), (3, 10.0)])


def check_never_rises(world, objective, sweep, times=6):
    values = [objective(world.values())]
    size = abs(values[0]) + world.log.n_cells
    with torch.no_grad():
        for number in range(times):
            world.sweeper.begin(number)
            sweep()
            values.append(objective(world.values()))
    assert np.isfinite(values).all()
    assert (np.diff(values) <= SLACK * size).all(), values
    assert values[-1] < values[0] - 100 * SLACK * size


@STARTS
@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_of_cross_entropy_never_raise_it(kind, seed, spread):
    world = World(kind, seed=seed, spread=spread)
    (level, levels), (label, labels) = world.of_rows(0.5, 8), world.of_rows(0, 1, seed=4)
    loss = CrossEntropy(level, level * label)
    check_never_rises(
        world,
        world.objective(plain.entropy(levels, levels * labels)),
        lambda: world.sweeper.on_rows(world.factors, loss),
    )


@STARTS
@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_of_squares_never_raise_them(kind, seed, spread):
    """Labels may lie outside of 0 and 1, as corrected ones do."""
    world = World(kind, seed=seed, spread=spread)
    (level, levels), (label, labels) = world.of_rows(0.5, 8), world.of_rows(-0.5, 1.6, seed=4)
    loss = Squares(level, label)
    check_never_rises(
        world, world.objective(plain.squares(levels, labels)), lambda: world.sweeper.on_rows(world.factors, loss)
    )


@STARTS
@pytest.mark.parametrize("imputed", ["one label", "a model"])
@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_of_the_grid_never_raise_its_loss(kind, imputed, seed, spread):
    world = World(kind, seed=seed, spread=spread)
    pull, pulls = world.of_rows(-1, 2)
    if imputed == "one label":
        g, labels = OneLabel(0.3), np.full(SHAPE, 0.3)
    else:
        other = a_model(seed=9)
        g = Sigmoids(world.sweeper.factors(Learner(other, PENALTIES, 0.1)))
        labels = expit(plain.Objective(None, other, PENALTIES, 1.0).logits(plain.values_of(other)))
    check_never_rises(
        world,
        world.objective(plain.entropy(np.ones(SHAPE), labels + pulls)),
        lambda: world.sweeper.on_grid(world.factors, g, pull.clone()),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_given_is_the_mean_loss_as_it_was(kind):
    world = World(kind)
    (level, levels), (label, labels) = world.of_rows(0.5, 8), world.of_rows(0, 1, seed=4)
    z = world.objective(None).logits(world.values())
    with torch.no_grad():
        found = world.sweeper.on_rows(world.factors, CrossEntropy(level, level * label))
    expected = plain.entropy(levels, levels * labels)(z)[0] / world.log.n_cells
    assert float(found) == pytest.approx(expected, rel=1e-5)
    z = world.objective(None).logits(world.values())
    pull, pulls = world.of_rows(-1, 2)
    with torch.no_grad():
        found = world.sweeper.on_grid(world.factors, OneLabel(0.3), pull)
    if KINDS[kind]["dim"] or KINDS[kind].get("constants", True):
        expected = plain.entropy(np.ones(SHAPE), 0.3 + pulls)(z)[0] / world.log.n_cells
        assert float(found) == pytest.approx(expected, rel=1e-5)


def test_sweeps_go_on_until_nothing_changes():
    world = World()
    (level, levels), (label, labels) = world.of_rows(0.5, 8), world.of_rows(0, 1, seed=4)
    changes = []
    with torch.no_grad():
        for number in range(800):
            world.sweeper.begin(number)
            world.sweeper.on_rows(world.factors, CrossEntropy(level, level * label))
            changes.append(world.sweeper.change)
    assert changes[-1] < 1e-5 < changes[0]
    objective = world.objective(plain.entropy(levels, levels * labels))
    assert objective.size(world.values()) < 1e-3 * objective.size(plain.values_of(a_model()))


def test_gradients_in_plain_numpy_are_those_of_differences():
    world = World("features", spread=0.3)
    objective = world.objective(plain.entropy(np.ones(SHAPE), world.of_rows(-1, 2)[1]))
    values = world.values()
    for name, slope in objective.gradient(values).items():
        place = (0,) * np.ndim(slope)
        ends = []
        for shift in (-1e-5, 1e-5):
            moved = {key: np.array(value) for key, value in values.items()}
            moved[name][place] += shift
            ends.append(objective(moved))
        assert np.asarray(slope)[place] == pytest.approx((ends[1] - ends[0]) / 2e-5, rel=1e-5), name


def test_the_model_is_what_its_blocks_say():
    for kind in KINDS:
        world = World(kind)
        with torch.no_grad():
            expected = world.model.grid(torch.arange(SHAPE[0]), torch.arange(SHAPE[1]))
            found = world.factors.users @ world.factors.items.T + world.factors.constant
            if world.model.covariates is not None:
                found += world.model.of_covariates(torch.arange(SHAPE[0]), torch.arange(SHAPE[1]))
            torch.testing.assert_close(found, expected)
            torch.testing.assert_close(world.model(*rows_of(world)), world.sweeper.rows.logits(world.factors))


def rows_of(world):
    return (torch.tensor(side).long() for side in (world.log.users, world.log.items))


def test_centring_changes_no_logit():
    world = World("features")
    with torch.no_grad():
        sides = torch.arange(SHAPE[0]), torch.arange(SHAPE[1])
        before = world.model.grid(*sides)
        world.factors.centre()
        torch.testing.assert_close(world.model.grid(*sides), before)
        assert abs(float(world.model.user_constants.mean())) < 1e-6
        assert abs(float(world.model.item_constants.mean())) < 1e-6


def test_small_grids_are_looked_at_whole_and_of_large_ones_a_part(monkeypatch):
    assert World().sweeper._chosen(0) is None
    monkeypatch.setattr(sweeper_module, "EXACT_CELLS", 0)
    monkeypatch.setattr(sweeper_module, "LEAST_SAMPLE", 5)
    sweeper = World(rows=30).sweeper
    for number, (size, most) in enumerate([(5, 9), (5, 12)]):
        draws = []
        for sweep in (0, 1, 1):
            sweeper.begin(sweep)
            draws.append(sweeper._chosen(number).tolist())
        assert all(len(set(draw)) == size and max(draw) < most for draw in draws)
        assert draws[0] != draws[1] == draws[2]
    assert len(World(rows=90).sweeper._chosen(0)) == 90 // 12
