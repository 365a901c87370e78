"""Sweeps whose rows are on workers: items, and what all have in common, are improved here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch import Tensor

from verirec.exceptions import WorkerEndedError
from verirec.progress import doing
from verirec.scratch import long_array
from verirec.training.solvers.sharded import worker
from verirec.training.solvers.sharded.crew import Crew, Setup
from verirec.training.solvers.sharded.elsewhere import ItemSumsElsewhere, LinearElsewhere
from verirec.training.solvers.sharded.shard import ItemNews
from verirec.training.solvers.sharded.source import ShardSource
from verirec.training.solvers.sweep.descent import descend_together
from verirec.training.solvers.sweep.grid_gradient import OneLabel, Sigmoids
from verirec.training.solvers.sweep.majorizers import CrossEntropy, Squares, largest_curvature
from verirec.training.solvers.sweep.solver import SweepSolver
from verirec.training.solvers.sweep.targets import RowTargets

if TYPE_CHECKING:
    from verirec.engine.base import Engine
    from verirec.training.correction import NoiseCorrection
    from verirec.training.data import Batch, TrainingData
    from verirec.training.learner import Learners
    from verirec.training.objective import ImputedLabels, PseudoLabels
    from verirec.training.solvers import AfterPrediction

_ATTEMPTS: Final = 5
"""Times that a sweep is run in which workers are lost."""


class ShardedSolver(SweepSolver):
    """Lowers an objective of pseudo-labels by sweeps, with the rows at workers.

    Parameters
    ----------
    objective, models, data, damping
        As of `SweepSolver`; models without features and covariates.
    engine
        Where workers are.
    """

    long_epochs: bool = True

    def __init__(
        self, objective: PseudoLabels, models: Learners, data: TrainingData, damping: float, engine: Engine
    ) -> None:
        super().__init__(objective, models, data, 1, damping)
        self.parts = self.sweeper.rows.parts
        self.source = ShardSource(self.sweeper.rows.sorted, self.sweeper.batch, self.parts)
        self.crew = Crew(engine, len(self.parts))
        self._labelled_by: NoiseCorrection | None = None
        self._shifts = dict.fromkeys(self.factors, 0.0)
        self._unheard: set[str] = set()

    def close(self) -> None:
        """Let go of the workers."""
        self.crew.end()

    def train_epoch(self, epoch: int, after_prediction: AfterPrediction) -> Iterator[dict[str, Tensor]]:
        """Sweep once; where a worker is lost, again from where the sweep began, and what it was corrected by."""
        once, objective = _asked_once(after_prediction), self.objective
        kept = {name: (_kept(one.users), _kept(one.items), one.constant) for name, one in self.factors.items()}
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._bring_up_to_date()
                losses = list(super().train_epoch(epoch, once))
                break
            except WorkerEndedError:
                if attempt == _ATTEMPTS:
                    raise
                self.objective = objective
                with torch.no_grad():
                    for name, (users, items, constant) in kept.items():
                        self.factors[name].users.copy_(users)
                        self.factors[name].items.copy_(items)
                        self.factors[name].start_from(constant)
        yield from losses

    def _bring_up_to_date(self) -> None:
        """Have all shards at workers, as the models are here."""
        self._unheard = set(self.factors)
        if not self.crew.complete:
            # Those that still have theirs may be in the middle of a sweep, with labels of before or after it.
            with doing("Giving workers their rows"):
                self.crew.fill(self._rows_of)
                self.crew.tell(lambda number: [*self._labels_of(number), *self._users_of(number)])
            self._shifts = dict.fromkeys(self.factors, 0.0)
            self._labelled_by = self._targets_of

    def _rows_of(self, number: int) -> Setup:
        """Return what gives a worker the rows of a shard."""
        return self.source.contents(number, self.objective, self.factors)

    def _targets(self) -> RowTargets:
        """Return the weights, and the extremes of the labels: workers correct the labels that they have."""
        known = self._targets_of is self.objective.correction
        found = super()._targets()
        if not known:
            self._kept = replace(found, labels=torch.empty(0))
        return found

    def _labels_of(self, number: int) -> Setup:
        return self.source.labels(number, self.objective, self._targets().extremes)

    def _users_of(self, number: int) -> Setup:
        users = {name: factors.users[self.parts[number]].numpy() for name, factors in self.factors.items()}
        return [(worker.place_users, (users,))]

    def _news(self) -> dict[str, ItemNews]:
        """Return what workers have not heard of the models."""
        self._targets()
        if self._labelled_by is not self._targets_of:
            self.crew.tell(self._labels_of)
            self._labelled_by = self._targets_of
        cold, news = self.data.cold[0], {}
        for name in self._unheard:
            factors = self.factors[name]
            rows = factors.users.index_select(0, cold)
            # After a validation they are all the same; before, they are what workers left.
            alike = rows[0].numpy() if len(cold) and bool((rows == rows[0]).all()) else None
            news[name] = ItemNews(factors.items.numpy(), factors.constant, self._shifts[name], alike)
            self._shifts[name] = 0.0
        self._unheard = set()
        return news

    def _improve_prediction(self, imputed: ImputedLabels | None) -> Tensor:
        """Improve f; returns the loss as it was."""
        if imputed is None:
            return self._descend("prediction", self.sweeper.damping, 1.0, CrossEntropy.steps)
        f, label = self.factors["prediction"], None if imputed.constant is None else float(imputed.constant)
        g = Sigmoids(self.factors["imputation"]) if label is None else OneLabel(label)
        before, linear = self.sweeper.state(f), LinearElsewhere(self.crew, self._news(), f, self.parts, label)
        loss = self.sweeper.sides_on_grid(f, g, linear)
        self._settle("prediction", before)
        return loss / self.data.log.n_cells

    def _improve_imputation(self, imputed: ImputedLabels) -> Tensor:
        """Improve g; returns its loss as it was."""
        return self._descend("imputation", 1.0, largest_curvature(*self._targets().extremes), Squares.steps)

    def _descend(self, name: str, damping: float, curvature: float, steps: int) -> Tensor:
        """Improve a model on the loss of its rows; returns the loss as it was, per pair of the grid."""
        factors = self.factors[name]
        before, found = self.sweeper.state(factors), self.crew.ask(worker.descend, self._news(), name, damping)
        found.place(factors, self.parts)
        descend_together(factors.sides[1], damping, ItemSumsElsewhere(self.crew, found.sums, curvature, steps))
        self._settle(name, before)
        return found.values[0].sum(dtype=torch.float64) / self.data.log.n_cells

    def _settle(self, name: str, before: Tensor) -> None:
        self._shifts[name] = self.factors[name].centre()
        self.sweeper.measure(self.factors[name], before)
        self._unheard.add(name)


def _kept(values: Tensor) -> Tensor:
    """Return a copy: in a file, where memory is limited."""
    copy = long_array(tuple(values.shape), np.float32)
    copy[:] = values.numpy()
    return torch.from_numpy(copy)


def _asked_once(after_prediction: AfterPrediction) -> AfterPrediction:
    """Return what asks the first time, and then gives the same answer: a sweep that is run again learns no rates."""
    answers: list[NoiseCorrection] = []

    def ask(make_batch: Callable[[], Batch]) -> NoiseCorrection:
        if not answers:
            answers.append(after_prediction(make_batch))
        return answers[0]

    return ask
