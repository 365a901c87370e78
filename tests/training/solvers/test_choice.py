"""Which solver is taken: by the objective, the models, and whether there is a minimum to go to."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from refusals import check_refusal
from training.tasks import SHAPE, a_task
from verirec import NoiseRates
from verirec.exceptions import ParameterError
from verirec.models import CustomModel, FactorModel, NeuralModel, Penalties
from verirec.training.correction import Forward, NoCorrection, Surrogate
from verirec.training.learner import Learner, Learners
from verirec.training.losses import LogLoss, SquaredLoss
from verirec.training.objective import Objective, PseudoLabels
from verirec.training.solvers.choice import choose_solver, why_no_sweeps

RATES = NoiseRates(0.2, 0.1)


@dataclass(frozen=True, eq=False)
class Other(Objective):
    def loss(self, models, batch):
        return batch.on_rows(models["prediction"]).mean()


def models_of(*kinds):
    made = {
        "factors": lambda: FactorModel(*SHAPE, 2, random=torch.Generator().manual_seed(0)),
        "ncf": lambda: NeuralModel(*SHAPE, 2, constants=True, random=torch.Generator().manual_seed(0)),
        "own": lambda: CustomModel(torch.nn.Linear(1, 1)),
    }
    names = ("prediction", "imputation")
    learners = {name: Learner(made[kind](), Penalties(1, 1, 1), 0.1) for name, kind in zip(names, kinds, strict=False)}
    return Learners(learners, {})


def pseudo_labels(correction=None):
    return PseudoLabels(NoCorrection(LogLoss()) if correction is None else correction, lambda batch: batch.weights)


FIT = [pseudo_labels(), pseudo_labels(Surrogate(LogLoss(), RATES))]
DO_NOT = {
    "an objective of one's own": (Other(NoCorrection(LogLoss())), ("factors",), "its objective is not one of pseudo"),
    "forward correction": (pseudo_labels(Forward(RATES)), ("factors",), "sweeps are for correction='none' and 'surr"),
    "squared errors": (pseudo_labels(NoCorrection(SquaredLoss())), ("factors",), 'sweeps are for loss="log"'),
    "a neural model": (pseudo_labels(), ("ncf",), 'sweeps are for models "mf", "constants" and "features"'),
    "a module": (pseudo_labels(), ("own",), "sweeps are for models"),
    "a second model that is neural": (pseudo_labels(), ("factors", "ncf"), "sweeps are for models"),
}


@pytest.mark.parametrize("objective", FIT, ids=["none", "surrogate"])
@pytest.mark.parametrize(
    ("wanted", "has_minimum", "taken"),
    [
        ("auto", True, "sweep"),
        ("auto", False, "gradient"),
        ("sweep", True, "sweep"),
        ("sweep", False, "sweep"),
        ("gradient", True, "gradient"),
        ("gradient", False, "gradient"),
    ],
)
def test_sweeps_are_taken_where_they_fit(objective, wanted, has_minimum, taken):
    models, data = models_of("factors"), a_task()
    assert why_no_sweeps(objective, models, data) is None
    solver = choose_solver(wanted, objective, models, data, 1, has_minimum=has_minimum)
    assert solver.name == taken
    assert solver.models is models
    assert solver.objective is objective
    if taken == "sweep":
        # Short steps where the best state might be passed by.
        assert (solver.sweeper.damping == 1) == has_minimum


@pytest.mark.parametrize("has_minimum", [True, False])
@pytest.mark.parametrize("what", DO_NOT)
def test_gradients_are_taken_where_sweeps_do_not_fit_and_sweeps_refused(what, has_minimum):
    objective, kinds, message = DO_NOT[what]
    data = a_task()
    for wanted in ("auto", "gradient"):
        solver = choose_solver(wanted, objective, models_of(*kinds), data, 1, has_minimum=has_minimum)
        assert solver.name == "gradient"
    call = lambda: choose_solver("sweep", objective, models_of(*kinds), data, 1, has_minimum=has_minimum)  # noqa: E731
    check_refusal(call, ParameterError, f'^solver="sweep": {message}')
