"""Conjugate gradients of all users, or all items, at once: each on a quadratic of its own."""

from __future__ import annotations

from typing import Final, Protocol

import torch
from torch import Tensor

from verirec.training.solvers.sweep.factor_blocks import Side

_LEAST: Final = 1e-30


class Quadratics(Protocol):
    """Sums over the rows of each user, or each item, of the quadratics above their loss: see `majorizers.Majorizer`.

    The rows may be anywhere: what is asked for has the size of a side.
    """

    curvature: float
    steps: int

    def start(self) -> tuple[Tensor, Tensor]:
        """Add up slopes times what parameters are multiplied by, shape (n, k), and levels, shape (n,)."""

    def along(self, directions: Tensor, *, turning: bool) -> tuple[Tensor, Tensor | None]:
        r"""Return how much they bend along directions, shape (n, k).

        With x the inputs and d the directions, the sums over rows of levels times :math:`(x \cdot d)^2`, shape (n,),
        and, where another direction is to follow, those of levels times :math:`(x \cdot d)\,x`, shape (n, k).
        """


def descend_together(side: Side, damping: float, above: Quadratics) -> Tensor:
    """Improve all parameters of a side: see `rows.Rows.descend`. Gives how they changed, shape (n, k)."""
    ridge, curvature = side.ridge, above.curvature
    slope, levels = above.start()
    slope.addcmul_(side.parameters, ridge)
    bound = curvature * levels
    # Without rows and without a penalty there is no curvature, and no slope either.
    diagonal = (ridge + bound[:, None] * side.mean_squares).clamp_min_(_LEAST)
    change, direction, size = torch.zeros_like(slope), -slope / diagonal, (slope * slope / diagonal).sum(1)
    start = size
    for step in range(above.steps):
        bends, turns = above.along(direction, turning=step + 1 < above.steps)
        resistance = (ridge * direction * direction).sum(1) + curvature * bends
        going = size > 1e-12 * start
        length = torch.where(going, size / resistance.clamp_min_(_LEAST), 0.0)[:, None]
        change.addcmul_(length, direction)
        if turns is not None:
            slope.addcmul_(length, turns.mul_(curvature).addcmul_(direction, ridge))
            before, size = size, (slope * slope / diagonal).sum(1)
            direction = -slope / diagonal + torch.where(going, size / before, 0.0)[:, None] * direction
    side.parameters.add_(change.mul_(damping))
    return change
