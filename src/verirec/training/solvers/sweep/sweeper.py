"""Sweeps over users, items and features: each lowers the loss, given what the others are."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import torch
from torch import Tensor

from verirec.models import FactorModel
from verirec.training.data import Batch, TrainingData
from verirec.training.learner import Learner
from verirec.training.solvers.sweep.covariates import improve_covariates, improve_covariates_on_grid
from verirec.training.solvers.sweep.factor_blocks import FactorBlocks
from verirec.training.solvers.sweep.features import improve_features, improve_features_on_grid
from verirec.training.solvers.sweep.grid_gradient import CURVATURE, EXACT_CELLS, LEAST_SAMPLE, GridGradient, Sigmoids
from verirec.training.solvers.sweep.majorizers import CrossEntropy, RowsLoss
from verirec.training.solvers.sweep.rows import Rows

_SLIGHT: Final = 1e-6
"""What Gram matrices of float32 know of themselves."""


class Sweeper:
    """Improves factor models, each on one loss.

    Parameters
    ----------
    data
        Rows and grid.
    threads
        At most.
    damping
        How far cross-entropy goes towards a quadratic's minimum at once; at most 1. Any damping lowers an exact loss.
    """

    def __init__(self, data: TrainingData, threads: int = 1, damping: float = 1.0) -> None:
        self.data, self.rows, self.damping = data, Rows(data.sorted_rows, threads), damping
        self.done = 0
        n_users, n_items = data.shape
        self.exact = n_users * n_items <= EXACT_CELLS
        self.batch: Batch = data.all_rows
        """All rows, in the order of users."""
        self.change = float("inf")
        warm = torch.ones(n_items, dtype=torch.bool)
        warm[data.cold[1]] = False
        self._warm = warm.nonzero().squeeze(1)

    def begin(self, sweep: int) -> None:
        """Get ready for a sweep."""
        self.done, self.change = sweep, 0.0

    def factors(self, learner: Learner) -> FactorBlocks:
        """Take a learner's model over."""
        assert isinstance(learner.model, FactorModel)  # noqa: S101
        covariates, scale = learner.model.covariates, self.data.log.n_cells / learner.rows
        on_rows = None if covariates is None else covariates.pairs(self.batch.users, self.batch.items)
        return FactorBlocks(learner.model, learner.penalties, scale, on_rows)

    def on_rows(self, factors: FactorBlocks, loss: RowsLoss, logits: Tensor | None = None) -> Tensor:
        """Lower a loss of the rows and the penalties; gives the loss as it was, per pair of the grid.

        Parameters
        ----------
        factors
            The model.
        loss
            Of each row's logit.
        logits
            Of the rows as the model is now, if they are known; overwritten.
        """
        improvements = [
            (partial(self.rows.descend, side, number), number == 0)
            for number, side in enumerate(factors.sides)
            if side.ridge.numel()
        ]
        if factors.features is not None:
            improvements.append((partial(improve_features, factors, self.rows), False))
        if factors.covariates is not None:
            improvements.append((partial(improve_covariates, factors.covariates), False))
        before, values = self._state(factors), []
        z, known = logits, logits is not None
        for improve, logits_follow in improvements:
            z = z if known and z is not None else self.rows.logits(factors, z)
            above = loss.above(z, self.rows.pool)
            improve(above, self.damping if isinstance(loss, CrossEntropy) else 1.0)
            known = logits_follow
            values.append(above.value)
        factors.centre()
        self._measure(factors, before)
        return values[0] / self.data.log.n_cells

    def _state(self, factors: FactorBlocks) -> Tensor:
        """Return all parameters but the users', which follow from the others: of items that have rows, and of all."""
        warm = factors.sides[1].parameters.index_select(0, self._warm)
        whole = [] if factors.features is None else [one.reshape(-1) for one in factors.features.weights]
        whole += [] if factors.covariates is None else [factors.covariates.weights]
        return torch.cat([warm.reshape(-1), torch.tensor([factors.constant]), *whole])

    def _measure(self, factors: FactorBlocks, before: Tensor) -> None:
        """Take note of how much a sweep changed them, relative to what they were."""
        change = (self._state(factors) - before).norm() / before.norm().clamp_min(1e-6)
        self.change = max(self.change, float(change))

    def on_grid(self, factors: FactorBlocks, g: Sigmoids, linear: Tensor) -> Tensor:
        r"""Lower :math:`\sum_D [\mathrm{softplus}(z) - g z] - \sum_O b z` and the penalties.

        Gives the loss as it was, the grid's part of it from some pairs.
        """
        f, loss, n_cells = Sigmoids(factors), -factors.constant * linear.sum(dtype=torch.float64), self.data.log.n_cells
        before = self._state(factors)
        if factors.covariates is not None:
            loss -= linear @ factors.covariates.added_to(torch.zeros_like(linear))
        first = next((side for side in factors.sides if side.ridge.numel()), None)
        for number, side in enumerate(factors.sides):
            if side.ridge.numel() == 0:
                continue
            grid = GridGradient(f, g, number, self._chosen(number))
            loss += n_cells * grid.loss() if side is first else 0.0
            of_rows = self._side_on_grid(grid, number, linear)
            loss -= of_rows if side is first else 0.0
        if first is None:
            loss -= linear @ self.rows.inner(factors.users, factors.items)
        if factors.features is not None:
            of_grid = improve_features_on_grid(f, g, self.rows, linear, self._chosen(0), self.damping)
            loss += n_cells * of_grid if first is None else 0.0
        if factors.covariates is not None:
            improve_covariates_on_grid(f, g, linear, self._chosen(0), self.damping)
        factors.centre()
        self._measure(factors, before)
        return loss / n_cells

    def _side_on_grid(self, grid: GridGradient, number: int, linear: Tensor) -> Tensor:
        """Improve a side, given the grid's gradient; gives the sum over rows of b z as it was, without the constant."""
        side = grid.side
        steps = _inverse(CURVATURE * grid.gram.double() + torch.diag(side.ridge.double()))
        pushed = self.rows.push(side.other, linear) if number else None

        def improve(part: slice) -> Tensor:
            of_rows = self.rows.gather(side.other, linear, part) if pushed is None else pushed[part]
            was = of_rows.reshape(-1) @ side.own[part].reshape(-1)
            own = side.parameters[part]
            slope = grid.of(part).sub_(of_rows[:, side.columns]).addcmul_(own, side.ridge)
            own.addmm_(slope, steps, alpha=-self.damping)
            return was

        return torch.stack(self.rows.pool.map(improve, grid.parts())).sum(dtype=torch.float64)

    def _chosen(self, number: int) -> Tensor | None:
        """Draw those of the other side that stand for all of it."""
        if self.exact:
            return None
        n, m = self.data.shape[number], self.data.shape[1 - number]
        size = min(m, max(LEAST_SAMPLE, len(self.rows) // n))
        random = np.random.default_rng([self.data.seed, 7, self.done, number])
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
