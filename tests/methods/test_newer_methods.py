"""AKB-DR and DCE-DR: what they balance and calibrate, by loops over all pairs; and what methods of one's own may do."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, fields

import numpy as np
import pytest
import torch
from method_worlds import EVERY, RATES, Pieces, fit, matrix, small_world

import verirec as vr
from plain_formulas.methods import log_loss
from verirec.exceptions import ModelError, TrainingError
from verirec.methods import DRJL, catalogue
from verirec.training.correction import Surrogate
from verirec.training.losses import LogLoss
from verirec.training.objective import Objective, PseudoLabels, Step


def pieces(name, seed=0, **parameters):
    world = vr.simulate.world(9, 11, observed=0.5, random_state=seed)
    return Pieces(name, world.log, fit={"propensities": np.clip(world.propensities, 0.1, 0.9)}, **parameters)


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def pairs(made):
    return list(itertools.product(*(range(size) for size in made.data.shape)))


def labels_of(made):
    log = made.data.log
    return {(int(u), int(i)): int(r) for u, i, r in zip(log.users, log.items, log.labels, strict=True)}


def doubly_robust(f, g, weights, labels, cells):
    """The mean over all pairs of e^ + o w (e - e^)."""
    total = 0.0
    for cell in cells:
        imputed = log_loss(f[cell], g[cell])
        total += imputed
        if cell in labels:
            total += weights[cell] * (log_loss(f[cell], labels[cell]) - imputed)
    return total / len(cells)


# AKB-DR


def plain_kernels(made):
    """Each pair's kernels around the first pairs of the log, shape (users, items, candidates)."""
    parts = [
        torch.cat([getattr(made.f, f"{side}_factors"), getattr(made.f, f"{side}_constants")[:, None]], 1)
        for side in ("user", "item")
    ]
    users, items = (one.detach().double().numpy() for one in parts)
    count = made.method.candidates
    centres = [(int(u), int(i)) for u, i in zip(made.data.log.users[:count], made.data.log.items[:count], strict=True)]
    vector = {(u, i): np.concatenate([users[u], items[i]]) for u, i in pairs(made)}
    apart = [np.sum((vector[a] - vector[b]) ** 2) for a in labels_of(made) for b in centres]
    found = np.empty((*made.data.shape, len(centres)))
    for cell in pairs(made):
        for j, centre in enumerate(centres):
            found[cell][j] = math.exp(-np.sum((vector[cell] - vector[centre]) ** 2) / np.mean(apart))
    return found


@pytest.mark.parametrize("seed", [0, 1])
def test_akb_dr_balances_the_kernels_that_errors_load_on_most(seed):
    made = pieces("akb-dr", seed, candidates=7, balanced=3, ridge=0.2, balance_weight=2.5)
    kernels, labels, p = plain_kernels(made), labels_of(made), made.probabilities("propensity")
    p = np.maximum(p, made.objective.floor)
    of_rows, on_grid = made.objective.kernels(made.models, made.batch)
    rows = made.data.log.users, made.data.log.items
    np.testing.assert_allclose(of_rows.numpy(), kernels[rows], rtol=1e-4)
    np.testing.assert_allclose(on_grid.numpy(), kernels.mean((0, 1)), rtol=1e-4)
    f, cells = made.probabilities("prediction"), pairs(made)
    errors = np.array([log_loss(f[cell], labels[cell]) for cell in zip(*rows, strict=True)])
    design = kernels[rows]
    gram = design.T @ design / len(errors)
    gram += 0.2 * np.mean(np.diag(gram)) * np.eye(len(gram))
    loads = np.linalg.solve(gram, design.T @ (errors - errors.mean()) / len(errors))
    chosen = set(np.argsort(-np.abs(loads))[:3].tolist())
    assert set(made.objective.chosen(made.models, made.batch, of_rows).tolist()) == chosen
    balances, entropy = dict.fromkeys(chosen, 0.0), 0.0
    for cell in cells:
        observed = cell in labels
        entropy -= math.log(
            made.probabilities("propensity")[cell] if observed else 1 - made.probabilities("propensity")[cell]
        )
        for j in chosen:
            balances[j] += (observed / p[cell] - 1) * kernels[cell][j] / len(cells)
    expected = entropy / len(cells) + 2.5 * np.mean([b**2 for b in balances.values()])
    assert float(made.loss_of("propensity_loss").detach()) == pytest.approx(expected, rel=1e-4)
    expected = doubly_robust(f, made.probabilities("imputation"), 1 / p, labels, cells)
    assert float(made.loss().detach()) == pytest.approx(expected, rel=1e-5)


def test_akb_dr_takes_the_propensities_embeddings_where_the_model_has_none_and_says_so_where_nothing_has():
    class Sums(torch.nn.Module):
        def __init__(self, n_users, n_items):
            super().__init__()
            self.a, self.b = torch.nn.Parameter(torch.zeros(n_users)), torch.nn.Parameter(torch.zeros(n_items))

        def forward(self, users, items):
            return self.a[users] + self.b[items]

    assert np.isfinite(matrix(fit("akb-dr", model=Sums, epochs=1))).all()
    with pytest.raises(ModelError, match="akb-dr needs embeddings"):
        fit("akb-dr", model=Sums, propensity_model=Sums, epochs=1)


@pytest.mark.parametrize("given", [{"candidates": 1}, {"ridge": 1e-9, "model": "constants"}, {"batch_size": 1}])
def test_akb_dr_works_where_kernels_are_alike(given):
    assert np.isfinite(matrix(fit("akb-dr", epochs=1, **given))).all()


# DCE-DR


def plain_experts(experts, z, logits_of_user):
    slopes, shifts, gate, constants = (
        one.detach().double().numpy() for one in (experts.slopes, experts.shifts, experts.gate, experts.gate_constants)
    )
    seen = np.array([np.mean(logits_of_user), np.std(logits_of_user)])
    scores = np.exp(seen @ gate + constants)
    return float(sum(s / scores.sum() * sigmoid(a * z + b) for s, a, b in zip(scores, slopes, shifts, strict=True)))


@pytest.mark.parametrize("seed", [0, 1])
def test_dce_dr_calibrates_propensities_and_imputed_labels(seed):
    made = pieces("dce-dr", seed, experts=3)
    labels, cells, f = labels_of(made), pairs(made), made.probabilities("prediction")
    items = made.objective.items.tolist()
    given = made.data.propensities.block(*(np.arange(size) for size in made.data.shape))
    z = {
        "propensity": np.log(given / (1 - given)),
        "imputation": np.log(1 / (1 / made.probabilities("imputation") - 1)),
    }
    p, g = (
        {cell: plain_experts(made.models[f"{name}_experts"], z[name][cell], z[name][cell[0], items]) for cell in cells}
        for name in ("propensity", "imputation")
    )
    entropy = sum(-math.log(p[cell] if cell in labels else 1 - p[cell]) for cell in cells) / len(cells)
    assert float(made.loss_of("propensity_loss").detach()) == pytest.approx(entropy, rel=1e-4)
    calibration = sum(log_loss(g[cell], r) / p[cell] for cell, r in labels.items()) / len(cells)
    assert float(made.loss_of("label_loss").detach()) == pytest.approx(calibration, rel=1e-4)
    weights = {cell: 1 / p[cell] for cell in cells}
    assert float(made.loss().detach()) == pytest.approx(doubly_robust(f, g, weights, labels, cells), rel=1e-4)
    missed = {cell: log_loss(f[cell], r) - log_loss(f[cell], g[cell]) for cell, r in labels.items()}
    squares = sum(weights[cell] * one**2 for cell, one in missed.items()) / len(cells)
    assert float(made.loss_of("imputation_loss").detach()) == pytest.approx(squares, rel=1e-4)


def test_dce_dr_starts_next_to_dr_jl():
    """With one expert that leaves logits as they are, both have the same loss."""
    both = {name: pieces(name, spread=0.0, **more) for name, more in (("dce-dr", {"experts": 1}), ("dr-jl", {}))}
    assert float(both["dce-dr"].loss().detach()) == pytest.approx(float(both["dr-jl"].loss().detach()), rel=1e-5)


# Methods of one's own


@pytest.mark.parametrize("name", EVERY)
def test_another_correction_reaches_all_that_an_objective_is_made_of(name):
    made = pieces(name)
    correction = Surrogate(LogLoss(), RATES)

    def corrections(objective):
        yield objective.correction
        for one in fields(objective):
            if isinstance(part := getattr(objective, one.name), Objective):
                yield from corrections(part)

    assert all(one is correction for one in corrections(made.objective.corrected(correction)))


def test_the_constant_label_of_dr_follows_the_correction():
    made = pieces("dr")
    weights, labels = made.data.weights.double().numpy(), made.data.log.labels
    for rates in (RATES, vr.NoiseRates(0.05, 0.3)):
        corrected = (labels - rates.rho10) / (1 - rates.rho01 - rates.rho10)
        found = made.objective.corrected(Surrogate(LogLoss(), rates)).imputed.constant
        assert float(found) == pytest.approx(np.average(corrected, weights=weights), rel=1e-5)


@dataclass(kw_only=True, eq=False, repr=False)
class ByUser(DRJL):
    """Rows weighted by whose they are, and half of the users not at all."""

    name = "by-user"

    def row_weights(self, batch):
        return (batch.users % 2 == 0).float() * 3


@pytest.mark.parametrize("solver", ["gradient", "sweep"])
def test_weights_may_look_at_users_and_items(solver):
    world = small_world()
    order = np.random.default_rng(1).permutation(len(world.log))
    log = vr.FeedbackLog.from_arrays(
        world.log.users[order], world.log.items[order], world.log.labels[order], n_users=30, n_items=40
    )
    by_order = [
        matrix(ByUser(solver=solver, epochs=3, penalty_factors=300.0, validation=0, batch_size=10**6).fit(one))
        for one in (world.log, log)
    ]
    if solver == "sweep":
        np.testing.assert_allclose(by_order[0], by_order[1], atol=1e-4)
    assert np.isfinite(by_order[1]).all()


@dataclass(kw_only=True, eq=False, repr=False)
class NoGrid(catalogue["mf"]):
    """Imputes errors, and forgets to say that it looks at the grid."""

    name = "no-grid"

    def objective(self, data, correction):
        own = DRJL.joint_learning(DRJL(), data, correction)
        return PseudoLabels(correction, own.row_weights, catalogue["dr"]().objective(data, correction).imputed)


def test_a_method_that_forgets_the_grid_is_told_so():
    with pytest.raises(TrainingError, match="sets needs_grid"):
        NoGrid(solver="gradient", epochs=1).fit(small_world().log)


@pytest.mark.parametrize(
    "weights",
    [
        lambda batch: torch.ones(1),
        lambda batch: -batch.weights,
        lambda batch: batch.weights * math.nan,
        lambda batch: 1.0,
        lambda batch: np.ones(3),
    ],
)
@pytest.mark.parametrize("solver", ["gradient", "sweep"])
def test_weights_that_rows_cannot_have_are_refused(weights, solver):
    class Odd(DRJL):
        name = "odd"

        def row_weights(self, batch):
            return weights(batch)

    with pytest.raises(TrainingError, match="row_weights of odd must be a tensor of finite numbers"):
        Odd(solver=solver, epochs=1).fit(small_world().log)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (lambda loss: (Step(("zzz",), loss),), "a step of odd trains 'zzz'; it has prediction"),
        (lambda loss: (Step(("imputation",), loss),), "must have one step that trains 'prediction'"),
        (lambda loss: (Step(("prediction",), loss, "mine"),), "named 'loss'"),
        (lambda loss: (Step(("prediction",), loss, times=0),), "take each step"),
        (lambda loss: (), "must have one step"),
    ],
)
def test_steps_that_cannot_be_taken_are_refused(steps, message):
    class Own(Objective):
        def loss(self, models, batch):
            return batch.on_rows(models["prediction"]).mean()

        @property
        def steps(self):
            return steps(self.loss)

    class Odd(DRJL):
        name = "odd"

        def objective(self, data, correction):
            return Own(correction)

    with pytest.raises(TrainingError, match=message):
        Odd(epochs=1).fit(small_world().log)
