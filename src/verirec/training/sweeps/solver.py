"""Sweeps over users, items and features: each lowers the loss, given what the others are."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import torch
from torch import Tensor

from verirec.models.factors import FactorModel
from verirec.training.learner import Learner
from verirec.training.sweeps.features import improve_features, improve_features_on_grid
from verirec.training.sweeps.grid import CURVATURE, EXACT_CELLS, LEAST_SAMPLE, GridPull, Sigmoids
from verirec.training.sweeps.links import Entropy, RowsLoss
from verirec.training.sweeps.pairing import Pairing
from verirec.training.sweeps.rows import Rows
from verirec.training.task import Batch, Task

_SLIGHT: Final = 1e-6
"""What Gram matrices of float32 know of themselves."""


class Sweeper:
    """Improves factor models on a task.

    Parameters
    ----------
    task
        Rows and grid.
    threads
        At most.
    pace
        How far cross-entropy goes towards a quadratic's minimum at once; at most 1. Any pace lowers an exact loss.
    """

    def __init__(self, task: Task, threads: int = 1, pace: float = 1.0) -> None:
        self.task, self.rows, self.pace = task, Rows(task.sorted_rows, threads), pace
        self.done = 0
        n_users, n_items = task.shape
        self.exact = n_users * n_items <= EXACT_CELLS
        numbers, whole = torch.from_numpy(self.rows.sorted.numbers), task.whole
        if len(numbers):
            whole = whole._replace(rows=numbers, labels=whole.labels[numbers], weights=whole.weights[numbers])
        self.batch: Batch = whole
        """All rows, in the order of users."""
        self.change = float("inf")
        self._warm = torch.ones(n_items, dtype=torch.bool)
        self._warm[task.cold[1]] = False

    def begin(self, sweep: int) -> None:
        """Get ready for a sweep."""
        self.done, self.change = sweep, 0.0

    def pairing(self, learner: Learner) -> Pairing:
        """Take a learner's model over."""
        assert isinstance(learner.model, FactorModel)  # noqa: S101
        return Pairing(learner.model, learner.penalties, self.task.log.n_cells / learner.rows)

    def on_rows(self, pairing: Pairing, loss: RowsLoss, logits: Tensor | None = None) -> Tensor:
        """Lower a loss of the rows and the penalties; gives the loss as it was, per pair of the grid.

        Parameters
        ----------
        pairing
            The model.
        loss
            Of each row's logit.
        logits
            Of the rows as the model is now, if they are known; overwritten.
        """
        sides = [(number, side) for number, side in enumerate(pairing.sides) if side.ridge.numel()]
        blocks = [partial(self.rows.descend, side, number) for number, side in sides]
        if pairing.features is not None:
            blocks.append(partial(improve_features, pairing, self.rows))
        before, values = self._state(pairing), []
        z = self.rows.logits(pairing) if logits is None else logits
        for number, improve in enumerate(blocks):
            above = loss.above(self.rows.logits(pairing, z) if number else z)
            improve(above, self.pace if isinstance(loss, Entropy) else 1.0)
            values.append(above.value)
        pairing.centre()
        self._measure(pairing, before)
        return values[0] / self.task.log.n_cells

    def _state(self, pairing: Pairing) -> Tensor:
        """Return all parameters but the users', which follow from the others: of items that have rows, and of all."""
        warm = pairing.sides[1].parameters[self._warm]
        whole = [] if pairing.features is None else [one.reshape(-1) for one in pairing.features.weights]
        return torch.cat([warm.reshape(-1), torch.tensor([pairing.constant]), *whole])

    def _measure(self, pairing: Pairing, before: Tensor) -> None:
        """Take note of how much a sweep changed them, relative to what they were."""
        change = (self._state(pairing) - before).norm() / before.norm().clamp_min(1e-6)
        self.change = max(self.change, float(change))

    def on_grid(self, pairing: Pairing, g: Sigmoids, pull: Tensor) -> Tensor:
        r"""Lower :math:`\sum_D [\mathrm{softplus}(z) - g z] - \sum_O b z` and the penalties.

        Gives the loss as it was, the grid's part of it from some pairs.
        """
        f, loss, n_cells = Sigmoids(pairing), -pairing.constant * pull.sum(dtype=torch.float64), self.task.log.n_cells
        before = self._state(pairing)
        first = next((side for side in pairing.sides if side.ridge.numel()), None)
        for number, side in enumerate(pairing.sides):
            if side.ridge.numel() == 0:
                continue
            grid = GridPull(f, g, number, self._chosen(number))
            steps = _inverse(CURVATURE * grid.gram.double() + torch.diag(side.ridge.double()))
            for part in grid.parts():
                pulled = self.rows.gather(side.other, number, pull, part)
                if side is first:
                    loss -= pulled.flatten() @ side.own[part].flatten()
                own = side.parameters[part]
                slope = grid.of(part) - pulled[:, side.columns]
                own.addmm_(slope.addcmul_(own, side.ridge), steps, alpha=-self.pace)
            if side is first:
                loss += n_cells * grid.loss()
        if first is None:
            loss -= pull @ self.rows.inner(pairing.users, pairing.items)
        if pairing.features is not None:
            of_grid = improve_features_on_grid(f, g, self.rows, pull, self._chosen(0), self.pace)
            loss += n_cells * of_grid if first is None else 0.0
        pairing.centre()
        self._measure(pairing, before)
        return loss / n_cells

    def _chosen(self, number: int) -> Tensor | None:
        """Draw those of the other side that stand for all of it."""
        if self.exact:
            return None
        n, m = self.task.shape[number], self.task.shape[1 - number]
        size = min(m, max(LEAST_SAMPLE, len(self.rows) // n))
        random = np.random.default_rng([self.task.seed, 7, self.done, number])
        return torch.from_numpy(random.choice(m, size=size, replace=False, shuffle=False))


def _inverse(matrix: Tensor) -> Tensor:
    """Invert a matrix; of one that is singular, as there are without penalties, what can be inverted."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if not bool(torch.isfinite(matrix).all()):
        # Training has run away, and says so.
        return torch.zeros_like(matrix, dtype=torch.float32)
    if failed:
        some: Tensor = torch.linalg.pinv(matrix, rtol=_SLIGHT, hermitian=True)
        return some.float()
    return torch.cholesky_inverse(factor).float()
