"""The gradient solver takes an objective's steps in order, as often and in the direction that they say."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from training.tasks import SHAPE, a_task
from verirec import NoiseRates
from verirec.models import CustomModel, FactorModel, Penalties
from verirec.training.correction import NoCorrection, Surrogate
from verirec.training.learner import Learner, Learners
from verirec.training.losses import LogLoss
from verirec.training.objective import Objective, Step
from verirec.training.solvers.gradient import GradientSolver


@dataclass(frozen=True, eq=False)
class Told(Objective):
    """Three steps, one of them up and thrice, that tell what they were asked with."""

    told: list = field(default_factory=list)

    def of(self, name):
        def loss(models, batch):
            self.told.append((name, self.correction, batch))
            return models[name](batch.users, batch.items).mean()

        return loss

    def loss(self, models, batch):
        return self.of("prediction")(models, batch)

    @property
    def steps(self):
        return (
            Step(("first",), self.of("first"), "climbed", maximise=True, times=3),
            Step(("prediction",), self.loss),
            Step(("last",), self.of("last"), "last_loss"),
        )


def a_solver(**options):
    random = torch.Generator().manual_seed(0)
    learners = {
        name: Learner(FactorModel(*SHAPE, 2, random=random), Penalties(0, 0, 0), 0.1)
        for name in ("prediction", "first", "last")
    }
    return GradientSolver(Told(NoCorrection(LogLoss())), Learners(learners, {}), a_task(**options))


def test_every_batch_is_stepped_on_in_order():
    solver, asked = a_solver(), []

    def after(make_batch):
        asked.append(make_batch())
        return solver.objective.correction

    batches = list(solver.data.batches(2))
    losses = list(solver.train_epoch(2, after))
    told = solver.objective.told
    assert [name for name, *_ in told] == ["first"] * 3 + ["prediction", "last"] + told_again(len(batches) - 1)
    assert len(losses) == len(asked) == len(batches) == solver.data.steps
    for number, batch in enumerate(batches):
        assert all(torch.equal(one[2].rows, batch.rows) for one in told[5 * number : 5 * number + 5])
        assert torch.equal(asked[number].rows, batch.rows)
    assert all(list(one) == ["climbed", "loss", "last_loss"] for one in losses)
    assert not any(value.requires_grad for one in losses for value in one.values())


def told_again(times):
    return ["first", "first", "first", "prediction", "last"] * times


def test_steps_go_down_or_up_and_tell_the_loss_as_it_was():
    solver = a_solver(batch_size=25)
    batch = next(solver.data.batches(0))

    def means():
        with torch.no_grad():
            return {name: float(batch.on_rows(solver.models[name]).mean()) for name in solver.models.by_name}

    before = means()
    (losses,) = solver.train_epoch(0, lambda make_batch: solver.objective.correction)
    after = means()
    assert after["first"] > before["first"]
    assert after["prediction"] < before["prediction"]
    assert after["last"] < before["last"]
    assert float(losses["loss"]) == before["prediction"]
    assert float(losses["last_loss"]) == before["last"]
    # Of the last of three steps up.
    assert before["first"] < float(losses["climbed"]) < after["first"]


def test_a_correction_learnt_after_the_prediction_is_for_what_comes_after_it():
    solver = a_solver(batch_size=25)
    first, other = solver.objective.correction, Surrogate(LogLoss(), NoiseRates(0.2, 0.1))
    list(solver.train_epoch(0, lambda make_batch: other))
    corrections = {name: correction for name, correction, _ in solver.objective.told}
    assert corrections == {"first": first, "prediction": first, "last": other}
    assert solver.objective.correction is other


def test_the_same_correction_is_the_same_objective():
    solver = a_solver()
    objective = solver.objective
    solver.correct(objective.correction)
    assert solver.objective is objective


class Dropout(torch.nn.Module):
    """Draws from torch's global numbers."""

    def __init__(self):
        super().__init__()
        self.one = torch.nn.Parameter(torch.zeros(()))

    def forward(self, users, items):
        return self.one + torch.rand(len(users))


def test_modules_that_draw_global_numbers_draw_the_same_ones_each_time_and_leave_them_alone():
    found, state = [], torch.get_rng_state()
    for epoch in (0, 0, 1):
        solver = a_solver()
        correction = solver.objective.correction
        solver.models.by_name["prediction"].model = CustomModel(Dropout())
        losses = solver.train_epoch(epoch, lambda make_batch, same=correction: same)
        found.append([float(one["loss"]) for one in losses])
        torch.rand(3)
    assert found[0] == found[1] != found[2]
    torch.set_rng_state(state)
    list(a_solver().train_epoch(0, lambda make: NoCorrection(LogLoss())))
    assert torch.equal(torch.get_rng_state(), state)
