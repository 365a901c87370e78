r"""The part of a loss that is over the whole grid, :math:`\sum_D [\mathrm{softplus}(z) - g z]`, by a sample of it.

Its gradient needs :math:`\sum_i (\sigma(z_{ui}) - g_{ui})\, v_i` of every user. On a small grid all items are looked
at; on a large one some, drawn anew each time, stand for all, and all that is linear in the logits is left out of the
sample: with :math:`\sigma(z) \approx a + b z`,

.. math:: \sum_i \sigma(z_{ui}) v_i = a \sum_i v_i + b \sum_i z_{ui} v_i
   + \sum_i (\sigma(z_{ui}) - a - b z_{ui})\, v_i ,

where the first two sums need but a Gram matrix, exactly and for all users at once, and the last one is small. Whatever
a and b are, the estimate has no bias.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import softplus

from verirec.training.solvers.sweep.factor_blocks import FactorBlocks, Side

CURVATURE: Final = 0.25
"""No logistic loss bends more."""
EXACT_CELLS: Final = 1 << 18
"""Grids of up to so many cells are looked at whole."""
LEAST_SAMPLE: Final = 32
"""Of a larger one, at least so many items of each user, and users of each item."""
_PART_CELLS: Final = 1 << 17
_SOME_CELLS: Final = 1 << 11
_SPACED: Final = 64


class Sigmoids:
    """The probabilities of a model on all pairs of one side with some of the other.

    Parameters
    ----------
    factors
        The model.
    """

    def __init__(self, factors: FactorBlocks) -> None:
        self.factors = factors

    def meet(self, number: int, inputs: Tensor, chosen: Tensor | None) -> None:
        """Turn to a side, 0 for users and 1 for items, and to those of the other that were chosen."""
        self.own, other = self.factors.sides[number].own, self.factors.sides[number].other
        self.seen = other if chosen is None else other.index_select(0, chosen)
        self.number, self.chosen = number, torch.arange(len(other)) if chosen is None else chosen
        self.constant = torch.tensor(self.factors.constant)
        if chosen is not None:
            self.total, self.products = inputs.sum(0), other.T @ inputs
            self.line = _line(torch.addmm(self.constant, _spaced(self.own), _spaced(other).T))

    def at(self, part: slice) -> Tensor:
        """Return the probabilities of a part of the side, shape (part, chosen)."""
        self.products_of_part = self.logits = torch.addmm(self.constant, self.own[part], self.seen.T)
        if self.factors.covariates is not None:
            pairs = self.covariates_at(part)
            self.logits = self.logits + torch.einsum("cab,c->ab", pairs, self.factors.covariates.weights)
        self.values = torch.sigmoid(self.logits)
        return self.values

    def covariates_at(self, part: slice) -> Tensor:
        """Return the covariates of a part of the side, shape (c, part, chosen)."""
        own = torch.arange(part.start, part.stop)
        covariates = self.factors.covariates
        assert covariates is not None  # noqa: S101
        if self.number == 0:
            return covariates.rectangle(own, self.chosen)
        return covariates.rectangle(self.chosen, own).transpose(1, 2)

    def remainder(self) -> Tensor:
        """Return what the last probabilities have beyond the line, which is one of the products alone."""
        a, b = self.line
        return self.values.sub(self.products_of_part, alpha=b).sub_(a)

    def linear_part(self, part: slice) -> Tensor:
        """Return what the line adds up to over all of the other side, times their inputs: shape (part, k)."""
        a, b = self.line
        return b * (self.own[part] @ self.products) + (a + b * float(self.constant)) * self.total


class OneLabel(Sigmoids):
    """One probability for all pairs."""

    def __init__(self, label: float) -> None:
        self.values = torch.tensor(label)

    def meet(self, number: int, inputs: Tensor, chosen: Tensor | None) -> None:
        """Take note of the inputs."""
        self.total = inputs.sum(0)

    def at(self, part: slice) -> Tensor:
        """Return the label."""
        return self.values

    def remainder(self) -> Tensor:
        """Return 0: it is a line."""
        return torch.zeros(())

    def linear_part(self, part: slice) -> Tensor:
        """Return the label's part."""
        return self.values * self.total


class GridGradient:
    """The gradient of the grid's part of the loss for one side, a part of that at a time.

    Parameters
    ----------
    f, g
        Predictions, and imputed labels.
    number
        0 for users, 1 for items.
    chosen
        Positions on the other side that stand for all of it; `None` for all.
    inputs
        What the side's parameters are multiplied by, shape (m, k); by default their own inputs.
    """

    def __init__(
        self, f: Sigmoids, g: Sigmoids, number: int, chosen: Tensor | None, inputs: Tensor | None = None
    ) -> None:
        self.f, self.g, self.chosen = f, g, chosen
        self.side: Side = f.factors.sides[number]
        inputs = self.side.inputs if inputs is None else inputs
        self.gram, self.seen = inputs.T @ inputs, inputs if chosen is None else inputs.index_select(0, chosen)
        for one in (f, g):
            one.meet(number, inputs, chosen)
        self.times = len(inputs) / len(f.seen)

    def parts(self) -> list[slice]:
        """Return parts of the side that are worth doing at once."""
        n, height = len(self.side.own), max(1, _PART_CELLS // len(self.f.seen))
        return [slice(start, min(start + height, n)) for start in range(0, n, height)]

    def of(self, part: slice) -> Tensor:
        """Return the gradient of a part, shape (part, k)."""
        p, g = self.f.at(part), self.g.at(part)
        if self.chosen is None:
            gradient = (p - g) @ self.seen
        else:
            gradient = self.times * ((self.f.remainder() - self.g.remainder()) @ self.seen)
            gradient += self.f.linear_part(part) - self.g.linear_part(part)
        return gradient

    def loss(self) -> Tensor:
        """Estimate the mean loss from some pairs of the last part."""
        every = -(-self.f.logits.numel() // _SOME_CELLS)
        z, g = (one.reshape(-1)[::every] for one in (self.f.logits, self.g.values.expand_as(self.f.values)))
        return (softplus(z) - g * z).mean()


def _spaced(matrix: Tensor) -> Tensor:
    """Take some rows, evenly spaced: not drawn with those that stand for all, or the estimate would have a bias."""
    return matrix[:: -(-len(matrix) // _SPACED)]


def _line(logits: Tensor) -> tuple[float, float]:
    """Fit a + b z to the sigmoid of some logits, by least squares."""
    z = logits.reshape(-1)
    p, centred = torch.sigmoid(z), z - z.mean()
    spread = float(centred @ centred)
    b = float(centred @ p) / spread if spread > 1e-12 else 0.25
    return float(p.mean()) - b * float(z.mean()), b
