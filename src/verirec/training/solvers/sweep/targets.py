"""What sweeps lower on the rows at hand, all of a log or some of its users': weighted corrected labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from verirec.training.losses import LogitLoss
from verirec.training.solvers.sweep.arrays import large_array
from verirec.training.solvers.sweep.factor_blocks import Blocks
from verirec.training.solvers.sweep.majorizers import CrossEntropy, LeastSquares, Squares
from verirec.training.solvers.sweep.rows import Rows


@dataclass(frozen=True, eq=False)
class RowTargets:
    """Labels and weights of rows.

    Parameters
    ----------
    rows
        The rows.
    labels
        Corrected for noise.
    weights
        w: one a row, or one for all.
    extremes
        The smallest and the largest label, of all rows of the log.
    """

    rows: Rows
    labels: Tensor
    weights: Tensor
    extremes: tuple[float, float]

    def cross_entropy(self) -> CrossEntropy:
        """Return the loss of rows where no error is imputed."""
        return CrossEntropy(*self._weighted(self.weights), self.rows.row_parts)

    def least_squares(self, weights: Tensor | None = None) -> LeastSquares:
        """Return the squared loss of stars, with weights of their own if they are given."""
        return LeastSquares(*self._weighted(self.weights if weights is None else weights), self.rows.row_parts)

    def _weighted(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return weights of all rows, and these times labels."""
        given, linear = weights.expand_as(self.labels), large_array(len(self.labels))
        if not weights.ndim:
            given = large_array(len(self.labels)).copy_(given)
        return given, torch.mul(given, self.labels, out=linear)

    def linear(self, g: Callable[[slice], Tensor]) -> Tensor:
        """Return b, the slope of the rows' part of a loss with imputed labels: w times label less g of some rows."""
        weights, linear = self.weights.expand_as(self.labels), large_array(len(self.labels))

        def work(part: slice) -> None:
            torch.mul(self.labels[part] - g(part), weights[part], out=linear[part])

        self.rows.pool.map(work, self.rows.row_parts)
        return linear

    def squares(self, f: Blocks, loss: LogitLoss, weights: Callable[[slice], Tensor]) -> Squares:
        """Return the loss of the imputed labels: squares of the errors that they miss, with weights of some rows."""
        of_f = self.rows.logits(f)

        def work(part: slice) -> None:
            torch.mul(loss.label_effect(of_f[part]).square_(), weights(part), out=of_f[part])

        self.rows.pool.map(work, self.rows.row_parts)
        return Squares(of_f, self.labels, self.rows.row_parts, self.extremes)
