r"""The part of a loss of stars that is over the whole grid, :math:`\sum_D [z^2/2 - g z]`: exact, by Gram matrices.

Its gradient for a user is :math:`\sum_i (z_{ui} - g_{ui})\, v_i`. Scores, and imputed stars, are inner products of rows
of users and items, so that the products of all items with each other are all that is needed of them: no pair of the
grid is visited. All users have the same curvature, and one matrix takes each to its least squares (Hu et al. 2008 for
the same of implicit feedback).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import torch
from torch import Tensor

from verirec.training.solvers.sweep.arrays import in_parts
from verirec.training.solvers.sweep.factor_blocks import Blocks
from verirec.training.solvers.sweep.grid_gradient import GridGradient, Imputed, OneLabel, Sigmoids, gradient_of_grid

_PART: Final = 1 << 12
"""Users, or items, that are worked on at once."""


@dataclass(frozen=True, eq=False)
class LineGradient:
    """The gradient of the grid's part of a loss of stars for one side, a part of that at a time.

    Parameters
    ----------
    own, products
        Rows of the side, and products of all rows of the other with the inputs, shapes (n, d) and (d, k).
    level
        What the constants of scores and of imputed stars add up to, shape (k,).
    imputed
        Rows and products of imputed stars; `None` where there is one for all.
    mean_loss
        Of all pairs, as it was.
    """

    own: Tensor
    products: Tensor
    level: Tensor
    imputed: tuple[Tensor, Tensor] | None
    mean_loss: Tensor
    curvature: ClassVar[float] = 1.0

    def parts(self, within: Iterable[slice] | None = None) -> list[slice]:
        """Return parts of the side, or of ranges of it, that are worth doing at once."""
        return in_parts([slice(0, len(self.own))] if within is None else within, _PART)

    def of(self, part: slice) -> Tensor:
        """Return the gradient of a part, shape (part, k)."""
        found = torch.addmm(self.level, self.own[part], self.products)
        if self.imputed is not None:
            found.addmm_(self.imputed[0][part], self.imputed[1], alpha=-1)
        return found

    def loss(self) -> Tensor:
        """Return the mean loss."""
        return self.mean_loss

    def on(self, of_f: Tensor, of_g: Tensor) -> LineGradient:
        """Return that of other rows of the side: those of f and of g."""
        return replace(self, own=of_f, imputed=None if self.imputed is None else (of_g, self.imputed[1]))


AnyGradient = GridGradient | LineGradient
MakeGradient = Callable[[Blocks, Imputed, int, Tensor | None], AnyGradient]
"""Makes the gradient for one side, 0 for users and 1 for items, of a model and imputed labels; given who stands for the
other side, if not all do."""


def sigmoid_gradient(factors: Blocks, g: Imputed, number: int, chosen: Tensor | None) -> GridGradient:
    """Return the gradient of cross-entropy's."""
    return gradient_of_grid(Sigmoids(factors), g, number, chosen)


def line_gradient(factors: Blocks, g: Imputed, number: int, chosen: Tensor | None) -> LineGradient:
    """Return the gradient of stars': all of the other side is looked at, whoever was chosen."""
    side, total = factors.sides[number], factors.sides[number].inputs.sum(0)
    mean = 0.5 * _mean_product(factors, factors)
    if isinstance(g, OneLabel):
        level, mean = (factors.constant - g.label) * total, mean - g.label * _mean(factors)
        return LineGradient(side.own, side.other.T @ side.inputs, level, None, mean)
    of_g = g.factors.sides[number]
    return LineGradient(
        side.own,
        side.other.T @ side.inputs,
        (factors.constant - g.factors.constant) * total,
        (of_g.own, of_g.other.T @ side.inputs),
        mean - _mean_product(factors, g.factors),
    )


def _mean_product(one: Blocks, two: Blocks) -> Tensor:
    """Return the mean over all pairs of the product of two models' scores."""
    users, items = one.users.double().T @ two.users.double(), one.items.double().T @ two.items.double()
    cells = len(one.users) * len(one.items)
    together = (users * items).sum() / cells
    return together + one.constant * _mean(two) + two.constant * _mean(one) - one.constant * two.constant


def _mean(of: Blocks) -> Tensor:
    """Return the mean score of all pairs."""
    return of.users.double().mean(0) @ of.items.double().mean(0) + of.constant
