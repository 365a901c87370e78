r"""The part of a loss that is over the whole grid, :math:`\sum_D [\mathrm{softplus}(z) - g z]`, by a sample of it.

Its gradient needs :math:`\sum_i (\sigma(z_{ui}) - g_{ui})\, v_i` of every user. On a small grid all items are looked
at; on a large one some, drawn anew each time, stand for all, and all that is linear in the logits is left out of the
sample: with :math:`\sigma(z) \approx a + b z`,

.. math:: \sum_i \sigma(z_{ui}) v_i = a \sum_i v_i + b \sum_i z_{ui} v_i
   + \sum_i (\sigma(z_{ui}) - a - b z_{ui})\, v_i ,

where the first two sums need but a Gram matrix, exactly and for all users at once, and the last one is small. Whatever
a and b are, the estimate has no bias. What the last one takes off in the sample is linear too: the difference of two
Gram matrices, one of all items and one of the sample, is all that is added to a plain sample.
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
_PART_CELLS: Final = 1 << 16
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
        self.constant, self.products = torch.tensor(self.factors.constant), other.T @ inputs
        if chosen is not None:
            a, b = _line(torch.addmm(self.constant, _spaced(self.own), _spaced(other).T))
            unseen = _Unseen(inputs, chosen)
            self.slopes = b * unseen.products(self.seen, self.products)
            self.level = (a + b * float(self.constant)) * unseen.total

    def logits(self, part: slice) -> Tensor:
        """Return the logits of a part of the side, shape (part, chosen)."""
        logits = torch.addmm(self.constant, self.own[part], self.seen.T)
        if self.factors.covariates is not None:
            logits += torch.einsum("cab,c->ab", self.covariates_at(part), self.factors.covariates.weights)
        return logits

    def at(self, part: slice) -> Tensor:
        """Return the probabilities of a part of the side, shape (part, chosen)."""
        return self.logits(part).sigmoid_()

    def covariates_at(self, part: slice) -> Tensor:
        """Return the covariates of a part of the side, shape (c, part, chosen)."""
        own = torch.arange(len(self.own))[part]
        covariates = self.factors.covariates
        assert covariates is not None  # noqa: S101
        if self.number == 0:
            return covariates.rectangle(own, self.chosen)
        return covariates.rectangle(self.chosen, own).transpose(1, 2)

    def unseen(self, part: slice) -> Tensor:
        """Return what the line adds up to over all of the other side, beyond what the sample says: shape (part, k)."""
        return torch.addmm(self.level, self.own[part], self.slopes)


class OneLabel(Sigmoids):
    """One probability for all pairs."""

    def __init__(self, label: float) -> None:
        self.label = torch.tensor(label)

    def meet(self, number: int, inputs: Tensor, chosen: Tensor | None) -> None:
        """Take note of the inputs."""
        if chosen is not None:
            self.level = self.label * _Unseen(inputs, chosen).total

    def at(self, part: slice) -> Tensor:
        """Return the label."""
        return self.label

    def unseen(self, part: slice) -> Tensor:
        """Return the label's part: it is a line."""
        return self.level


class _Unseen:
    """What sums over all of a side have beyond what a sample of it says, in double precision: they nearly cancel."""

    def __init__(self, inputs: Tensor, chosen: Tensor) -> None:
        self.times, self.seen = len(inputs) / len(chosen), inputs.index_select(0, chosen).double()
        self.total = (inputs.sum(0).double() - self.times * self.seen.sum(0)).float()

    def products(self, seen: Tensor, of_all: Tensor) -> Tensor:
        """Return it of products of another matrix with the inputs, given some rows of it, and the products of all."""
        return (of_all.double() - self.times * (seen.double().T @ self.seen)).float()


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
        given = self.side.inputs if inputs is None else inputs
        self.seen = given if chosen is None else given.index_select(0, chosen)
        for one in (f, g):
            one.meet(number, given, chosen)
        self.gram = f.products[self.side.columns] if inputs is None else given.T @ given
        self.times = len(given) / len(f.seen)

    def parts(self) -> list[slice]:
        """Return parts of the side that are worth doing at once."""
        n, height = len(self.side.own), max(1, _PART_CELLS // len(self.f.seen))
        return [slice(start, min(start + height, n)) for start in range(0, n, height)]

    def of(self, part: slice) -> Tensor:
        """Return the gradient of a part, shape (part, k)."""
        missed = self.f.at(part).sub_(self.g.at(part))
        if self.chosen is None:
            return missed @ self.seen
        return self.f.unseen(part).sub_(self.g.unseen(part)).addmm_(missed, self.seen, alpha=self.times)

    def loss(self) -> Tensor:
        """Estimate the mean loss from some pairs."""
        some = slice(0, None, max(1, len(self.side.own) * len(self.f.seen) // _SOME_CELLS))
        z = self.f.logits(some)
        return (softplus(z) - self.g.at(some) * z).mean()


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
