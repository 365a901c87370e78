"""Sweeps over users, items and features: each lowers the loss, given what the others are."""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

import numpy as np
import torch
from torch import Tensor

from verirec.models import FactorModel
from verirec.training.data import Batch, TrainingData
from verirec.training.learner import Learner
from verirec.training.solvers.sweep.covariates import improve_covariates, improve_covariates_on_grid
from verirec.training.solvers.sweep.factor_blocks import FactorBlocks, Side
from verirec.training.solvers.sweep.features import improve_features, improve_features_on_grid
from verirec.training.solvers.sweep.grid_gradient import (
    EXACT_CELLS,
    LEAST_SAMPLE,
    Imputed,
)
from verirec.training.solvers.sweep.lines import AnyGradient, MakeGradient, sigmoid_gradient
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
    gradient
        What makes that of the grid's part, of a model and imputed labels; by default of cross-entropy's.
    """

    def __init__(
        self, data: TrainingData, threads: int = 1, damping: float = 1.0, gradient: MakeGradient = sigmoid_gradient
    ) -> None:
        self.data, self.rows, self.damping = data, Rows(data.sorted_rows, threads), damping
        self.gradient = gradient
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
        before, values = self.state(factors), []
        z, known = logits, logits is not None
        for improve, logits_follow in improvements:
            z = z if known and z is not None else self.rows.logits(factors, z)
            above = loss.above(z, self.rows.pool)
            improve(above, self.damping if isinstance(loss, CrossEntropy) else 1.0)
            known = logits_follow
            values.append(above.value)
        factors.centre()
        self.measure(factors, before)
        return values[0] / self.data.log.n_cells

    def state(self, factors: FactorBlocks) -> Tensor:
        """Return all parameters but the users', which follow from the others: of items that have rows, and of all."""
        warm = factors.sides[1].parameters.index_select(0, self._warm)
        whole = [] if factors.features is None else [one.reshape(-1) for one in factors.features.weights]
        whole += [] if factors.covariates is None else [factors.covariates.weights]
        return torch.cat([warm.reshape(-1), torch.tensor([factors.constant]), *whole])

    def measure(self, factors: FactorBlocks, before: Tensor) -> None:
        """Take note of how much a sweep changed them, relative to what they were."""
        change = (self.state(factors) - before).norm() / before.norm().clamp_min(1e-6)
        self.change = max(self.change, float(change))

    def on_grid(self, factors: FactorBlocks, g: Imputed, linear: Tensor) -> Tensor:
        r"""Lower :math:`\sum_D [\mathrm{softplus}(z) - g z] - \sum_O b z` and the penalties.

        Gives the loss as it was, the grid's part of it from some pairs.
        """
        before, of_grid = self.state(factors), torch.zeros((), dtype=torch.float64)
        if factors.covariates is not None:
            of_grid -= linear @ factors.covariates.added_to(torch.zeros_like(linear))
        has_sides = bool(factors.sides[0].ridge.numel())
        if has_sides:
            of_grid += self.sides_on_grid(factors, g, LinearHere(self.rows, linear))
        else:
            of_grid -= linear @ self.rows.inner(factors.users, factors.items, factors.constant)
        if factors.features is not None:
            mean = improve_features_on_grid(factors, g, self.rows, linear, self._chosen(0), self.damping)
            of_grid += 0.0 if has_sides else self.data.log.n_cells * mean
        if factors.covariates is not None:
            improve_covariates_on_grid(factors, g, linear, self._chosen(0), self.damping)
        factors.centre()
        self.measure(factors, before)
        return of_grid / self.data.log.n_cells

    def sides_on_grid(self, factors: FactorBlocks, g: Imputed, linear: LinearTerm) -> Tensor:
        """Improve users, then items; gives the loss of the grid as it was: see `on_grid`."""
        constant, loss = factors.constant, torch.zeros((), dtype=torch.float64)
        for number, side in enumerate(factors.sides):
            grid = self.gradient(factors, g, number, self._chosen(number))
            if number == 0:
                loss += self.data.log.n_cells * grid.loss()
            was = linear.improve(grid, side, number, self.damping)
            if number == 0:
                loss -= was
        return loss - constant * linear.total()

    def _chosen(self, number: int) -> Tensor | None:
        """Draw those of the other side that stand for all of it."""
        if self.exact:
            return None
        n, m = self.data.shape[number], self.data.shape[1 - number]
        size = min(m, max(LEAST_SAMPLE, len(self.rows) // n))
        random = np.random.default_rng([self.data.seed, 7, self.done, number])
        return torch.from_numpy(random.choice(m, size=size, replace=False, shuffle=False))


class LinearTerm(Protocol):
    """The rows' part of a loss on the grid, the sum of b z, wherever the rows are."""

    def improve(self, grid: AnyGradient, side: Side, number: int, damping: float) -> Tensor:
        """Improve a side, given the grid's gradient; gives the sum over rows of b z as it was, without the constant."""

    def total(self) -> Tensor:
        """Return the sum of b, when users have been improved."""


class LinearHere:
    """The rows' part of a loss on the grid, of rows that are here.

    Parameters
    ----------
    rows
        All rows.
    linear
        b of each.
    """

    def __init__(self, rows: Rows, linear: Tensor) -> None:
        self.rows, self.linear = rows, linear

    def improve(self, grid: AnyGradient, side: Side, number: int, damping: float) -> Tensor:
        """Improve a side, a part at a time."""
        steps = grid_steps(grid, side)
        pushed = self.rows.push(side.other, self.linear) if number else None

        def improved(part: slice) -> Tensor:
            of_rows = self.rows.gather(side.other, self.linear, part) if pushed is None else pushed[part]
            return step_on_grid(side, part, grid.of(part), of_rows, steps, damping)

        parts = grid.parts(None if number else self.rows.parts)
        return torch.stack(self.rows.pool.map(improved, parts)).sum(dtype=torch.float64)

    def total(self) -> Tensor:
        """Add up b, a part at a time."""
        return self.rows.totals(self.linear).sum(dtype=torch.float64)


def grid_steps(grid: AnyGradient, side: Side) -> Tensor:
    """Return what slopes of a side are multiplied by to get to the minimum of the quadratic above the grid's part."""
    gram = grid.products[side.columns]
    return _inverse(grid.curvature * gram.double() + torch.diag(side.ridge.double()))


def step_on_grid(side: Side, part: slice, of_grid: Tensor, of_rows: Tensor, steps: Tensor, damping: float) -> Tensor:
    """Improve a part of a side, given the gradients of the grid and of the rows: shapes (part, k) and (part, d).

    Gives the sum over its rows of b z as it was, without the constant.
    """
    was = (of_rows * side.own[part]).sum()
    own = side.parameters[part]
    slope = of_grid.sub_(of_rows[:, side.columns]).addcmul_(own, side.ridge)
    # Not in place: where in memory the rows begin may change the last bit, and shards have theirs elsewhere.
    own.copy_(torch.addmm(own, slope, steps, alpha=-damping))
    return was


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
