"""Small factor models on small tasks, put anywhere, and their objectives in plain NumPy."""

from __future__ import annotations

import numpy as np
import torch

from plain_formulas import sweeps as plain
from training.tasks import a_log, a_task
from verirec.data.cells import DenseCells
from verirec.models import FactorModel, Penalties
from verirec.models.covariates import Covariates
from verirec.models.factors import SideInformation
from verirec.training.learner import Learner
from verirec.training.solvers.sweep.sweeper import Sweeper

SHAPE = 12, 9
PENALTIES = Penalties(constants=4.0, factors=2.0, features=3.0)
KINDS = {
    "mf": {"dim": 3},
    "without constants": {"dim": 3, "constants": False},
    "constants": {"dim": 0},
    "features": {"dim": 2, "side": True},
    "features alone": {"dim": 0, "constants": False, "side": True},
    "features without constants": {"dim": 2, "constants": False, "side": True},
    "covariates": {"dim": 0, "side": {"features": False}},
}


def some_side(shape=SHAPE, *, features=True, covariates=2):
    random = torch.Generator().manual_seed(5)
    sides = [torch.randn(shape[0], 2, generator=random), torch.randn(shape[1], 3, generator=random)]
    columns = [DenseCells(torch.randn(shape, generator=random).numpy()) for _ in range(covariates)]
    pairs = Covariates(columns) if columns else None
    return SideInformation(*(sides if features else (None, None)), pairs)


def a_model(kind="mf", shape=SHAPE, seed=0, spread=0.5):
    """A model with every parameter somewhere."""
    options = dict(KINDS[kind])
    if "side" in options:
        options["side"] = some_side(shape, **({} if options["side"] is True else options["side"]))
    random = torch.Generator().manual_seed(seed)
    model = FactorModel(*shape, random=random, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(spread * torch.randn(parameter.shape, generator=random))
    return model


class World:
    """A sweeper, a model in blocks, and what is known of the rows."""

    def __init__(self, kind="mf", *, rows=60, shape=SHAPE, seed=0, spread=0.5, log=None):
        self.log = a_log(rows, shape, seed) if log is None else log
        self.task = a_task(self.log)
        self.sweeper = Sweeper(self.task)
        self.sweeper.begin(0)
        self.model = a_model(kind, shape, seed, spread)
        learner = Learner(self.model, PENALTIES, 0.1, rows=len(self.log))
        self.scale = self.log.n_cells / len(self.log)
        self.factors = self.sweeper.factors(learner)

    def of_rows(self, low, high, seed=3):
        """Some number for each row, in the order of users, and as a matrix."""
        values = np.random.default_rng(seed).uniform(low, high, len(self.log)).astype(np.float32)
        on_grid = plain.on_grid(self.task.shape, self.log.users, self.log.items, values.astype(np.float64))
        return torch.from_numpy(values), on_grid

    def objective(self, loss):
        return plain.Objective(loss, self.model, PENALTIES, self.scale)

    def values(self):
        return plain.values_of(self.model)
