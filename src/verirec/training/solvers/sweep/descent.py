"""Conjugate gradients of all users, or all items, at once: each on a quadratic of its own."""

from __future__ import annotations

from typing import Final, Protocol

import torch
from torch import Tensor

from verirec.training.solvers.sweep.factor_blocks import Side
from verirec.training.solvers.sweep.majorizers import Majorizer

_LEAST: Final = 1e-30


class Sums(Protocol):
    """Sums over the rows of each user, or each item."""

    def of_inputs(self, values: Tensor) -> Tensor:
        """Add up values times what parameters are multiplied by: shape (n, k)."""

    def of(self, values: Tensor) -> Tensor:
        """Add up values: shape (n,)."""

    def along(self, directions: Tensor) -> Tensor:
        """Return how far each row's logit goes along directions, shape (n, k): shape (rows,)."""


def descend_together(side: Side, above: Majorizer, damping: float, sums: Sums) -> Tensor:
    """Improve all parameters of a side: see `rows.Rows.descend`. Gives how they changed, shape (n, k)."""
    ridge, curvature = side.ridge, above.curvature
    slope = sums.of_inputs(above.slopes).addcmul_(side.parameters, ridge)
    bound = curvature * sums.of(above.levels)
    # Without rows and without a penalty there is no curvature, and no slope either.
    diagonal = (ridge + bound[:, None] * side.mean_squares).clamp_min_(_LEAST)
    change, direction, size = torch.zeros_like(slope), -slope / diagonal, (slope * slope / diagonal).sum(1)
    start = size
    for step in range(above.steps):
        along = sums.along(direction)
        bent = along * above.levels
        resistance = (ridge * direction * direction).sum(1) + curvature * sums.of(along.mul_(bent))
        going = size > 1e-12 * start
        length = torch.where(going, size / resistance.clamp_min_(_LEAST), 0.0)[:, None]
        change.addcmul_(length, direction)
        if step + 1 < above.steps:
            slope.addcmul_(length, sums.of_inputs(bent).mul_(curvature).addcmul_(direction, ridge))
            before, size = size, (slope * slope / diagonal).sum(1)
            direction = -slope / diagonal + torch.where(going, size / before, 0.0)[:, None] * direction
    side.parameters.add_(change.mul_(damping))
    return change
