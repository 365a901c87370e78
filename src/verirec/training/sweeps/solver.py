"""Sweeps over users, items and features: each lowers the loss, given what the others are."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from verirec.models.factors import FactorModel
from verirec.training.learner import Learner
from verirec.training.sweeps.features import improve_features, improve_features_on_grid
from verirec.training.sweeps.grid import EXACT_CELLS, LEAST_SAMPLE, GridPull, Sigmoids
from verirec.training.sweeps.pairing import Pairing
from verirec.training.sweeps.rows import Rows
from verirec.training.task import Batch, Task

_CURVATURE: Final = 0.25
"""No logistic loss bends more."""


class Sweeper:
    """Improves factor models on a task.

    Parameters
    ----------
    task
        Rows and grid.
    threads
        At most.
    """

    def __init__(self, task: Task, threads: int = 1) -> None:
        self.task, self.rows = task, Rows(task.log, threads)
        self.done = 0
        n_users, n_items = task.shape
        self.exact = n_users * n_items <= EXACT_CELLS
        numbers, none = torch.from_numpy(self.rows.sorted.numbers), torch.empty(0)
        self.batch = Batch(numbers, none, none, task.labels[numbers], task.weights[numbers], none, none)
        self.change = float("inf")

    def pairing(self, learner: Learner) -> Pairing:
        """Take a learner's model over."""
        assert isinstance(learner.model, FactorModel)  # noqa: S101
        return Pairing(learner.model, learner.penalties, self.task.log.n_cells / learner.rows)

    def logits(self, pairing: Pairing) -> Tensor:
        """Give the logit of each row."""
        return self.rows.logits(pairing)

    def on_rows(self, pairing: Pairing, level: Tensor, pull: Tensor) -> Tensor:
        r"""Lower :math:`\sum_O [a\,\mathrm{softplus}(z) - b z]` and the penalties; gives the loss as it was."""
        z = self.logits(pairing)
        before = pairing.items.clone()
        self._rows(pairing, level, pull, 0.0)
        self._measure(pairing, before)
        return (level * softplus(z) - pull * z).sum() / self.task.log.n_cells

    def on_squares(self, pairing: Pairing, weights: Tensor, labels: Tensor) -> Tensor:
        r"""Lower :math:`\sum_O a\,(\sigma(z) - y)^2` and the penalties; gives the loss as it was."""
        loss = (weights * (torch.sigmoid(self.logits(pairing)) - labels) ** 2).sum() / self.task.log.n_cells
        self._rows(pairing, weights, labels, largest_bend(float(labels.min()), float(labels.max())))
        return loss

    def _measure(self, pairing: Pairing, before: Tensor) -> None:
        """Take note of how much a sweep changed the items."""
        self.change = float((pairing.items - before).norm() / before.norm())

    def _rows(self, pairing: Pairing, level: Tensor, pull: Tensor, bend: float) -> None:
        for number, side in enumerate(pairing.sides):
            if side.ridge.numel():
                self.rows.descend(side, number, pairing.constant, level, pull, bend)
        if pairing.features is not None:
            improve_features(pairing, self.rows, level, pull, bend)
        pairing.centre()

    def on_grid(self, pairing: Pairing, g: Sigmoids, pull: Tensor) -> Tensor:
        r"""Lower :math:`\sum_D [\mathrm{softplus}(z) - g z] - \sum_O b z` and the penalties.

        Gives the loss as it was, the grid's part of it from some pairs.
        """
        f, loss = Sigmoids(pairing), -(pull @ self.logits(pairing)) / self.task.log.n_cells
        before = pairing.items.clone()
        for number, side in enumerate(pairing.sides):
            if side.ridge.numel() == 0:
                continue
            grid = GridPull(f, g, number, self._chosen(number))
            steps = _inverse(_CURVATURE * grid.gram.double() + torch.diag(side.ridge.double()))
            for part in grid.parts():
                slope = grid.of(part) - self.rows.gather(side, number, pull, part)
                own = side.parameters[part]
                slope.addcmul_(own, side.ridge)
                own.addmm_(slope, steps, alpha=-1)
            if number == 0:
                loss = loss + grid.loss
        if pairing.features is not None:
            improve_features_on_grid(f, g, self.rows, pull, self._chosen(0))
        pairing.centre()
        self._measure(pairing, before)
        return loss

    def _chosen(self, number: int) -> Tensor | None:
        """Draw those of the other side that stand for all of it."""
        if self.exact:
            return None
        n, m = self.task.shape[number], self.task.shape[1 - number]
        size = min(m, max(LEAST_SAMPLE, len(self.rows) // n))
        random = np.random.default_rng([self.task.seed, 7, self.done, number])
        return torch.from_numpy(random.choice(m, size=size, replace=False, shuffle=False))


def _inverse(matrix: Tensor) -> Tensor:
    return torch.cholesky_inverse(torch.linalg.cholesky(matrix)).float()


def largest_bend(least: float, most: float) -> float:
    r"""Give the largest second derivative of :math:`(\sigma(z) - y)^2` for labels between two.

    It is linear in y, so that the largest is at one of the two.

    Examples
    --------
    >>> round(largest_bend(0.0, 1.0), 3)
    0.154
    """
    p = np.linspace(0.0, 1.0, 2_001)
    first = p * (1 - p)
    second = first * (1 - 2 * p)
    return float(max((2 * first**2 - 2 * (y - p) * second).max() for y in (least, most)))
