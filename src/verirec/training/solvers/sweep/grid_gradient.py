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

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import torch
from torch import Tensor
from torch.nn.functional import softplus

from verirec.training.solvers.sweep.arrays import in_parts
from verirec.training.solvers.sweep.factor_blocks import Blocks

CURVATURE: Final = 0.25
"""No logistic loss bends more."""
EXACT_CELLS: Final = 1 << 18
"""Grids of up to so many cells are looked at whole."""
LEAST_SAMPLE: Final = 32
"""Of a larger one, at least so many items of each user, and users of each item."""
_PART_CELLS: Final = 1 << 16
_SOME_CELLS: Final = 1 << 11
_SPACED: Final = 64


@dataclass(frozen=True, eq=False)
class SideSigmoids:
    """The probabilities of a model on all pairs of one side with some of the other.

    Parameters
    ----------
    own, seen
        Rows of the side, and of those of the other that are looked at.
    constant
        Of all logits.
    products
        Of all rows of the other side with the inputs, shape (d, k).
    slopes, level
        Of the line's part that the sample leaves out: see `unseen`.
    pairs
        Covariates of a part of the side with those that are looked at, and their weights, if there are some.
    """

    own: Tensor
    seen: Tensor
    constant: Tensor
    products: Tensor
    slopes: Tensor
    level: Tensor
    pairs: tuple[Callable[[slice], Tensor], Tensor] | None = None

    def logits(self, part: slice) -> Tensor:
        """Return the logits of a part of the side, shape (part, seen)."""
        # A copy: products may differ in the last bit by where in memory rows begin, which is not the same for a shard.
        logits = torch.addmm(self.constant, self.own[part].clone(), self.seen.T)
        if self.pairs is not None:
            logits += torch.einsum("cab,c->ab", self.pairs[0](part), self.pairs[1])
        return logits

    def at(self, part: slice) -> Tensor:
        """Return the probabilities of a part of the side, shape (part, seen)."""
        return self.logits(part).sigmoid_()

    def unseen(self, part: slice) -> Tensor:
        """Return what the line adds up to over all of the other side, beyond what the sample says: shape (part, k)."""
        return torch.addmm(self.level, self.own[part], self.slopes)

    def of(self, own: Tensor) -> SideSigmoids:
        """Return those of other rows of the side."""
        return replace(self, own=own)


@dataclass(frozen=True, eq=False)
class SideLabel:
    """One probability for all pairs.

    Parameters
    ----------
    label
        The probability.
    level
        What it adds up to beyond what the sample says, shape (k,).
    """

    label: Tensor
    level: Tensor

    def at(self, part: slice) -> Tensor:
        """Return the label."""
        return self.label

    def unseen(self, part: slice) -> Tensor:
        """Return the label's part: it is a line."""
        return self.level

    def of(self, own: Tensor) -> SideLabel:
        """Return the same."""
        return self


class Sigmoids:
    """The probabilities of a model.

    Parameters
    ----------
    factors
        The model.
    """

    def __init__(self, factors: Blocks) -> None:
        self.factors = factors

    def meet(self, number: int, inputs: Tensor, chosen: Tensor | None) -> SideSigmoids:
        """Turn to a side, 0 for users and 1 for items, and to those of the other that were chosen."""
        own, other = self.factors.sides[number].own, self.factors.sides[number].other
        constant, products, nothing = torch.tensor(self.factors.constant), other.T @ inputs, torch.empty(0)
        if chosen is None:
            return SideSigmoids(own, other, constant, products, nothing, nothing, self._pairs(number, None))
        seen, unseen = other.index_select(0, chosen), _Unseen(inputs, chosen)
        a, b = _line(torch.addmm(constant, _spaced(own), _spaced(other).T))
        slopes = b * unseen.products(seen, products)
        level = (a + b * float(constant)) * unseen.total
        return SideSigmoids(own, seen, constant, products, slopes, level, self._pairs(number, chosen))

    def _pairs(self, number: int, chosen: Tensor | None) -> tuple[Callable[[slice], Tensor], Tensor] | None:
        """Return what gives the covariates of a part of the side, shape (c, part, chosen), and their weights."""
        covariates = self.factors.covariates
        if covariates is None:
            return None
        sizes = len(self.factors.users), len(self.factors.items)
        other = torch.arange(sizes[1 - number]) if chosen is None else chosen

        def at(part: slice) -> Tensor:
            own = torch.arange(sizes[number])[part]
            if number == 0:
                return covariates.rectangle(own, other)
            return covariates.rectangle(other, own).transpose(1, 2)

        return at, covariates.weights


class OneLabel:
    """One probability for all pairs."""

    def __init__(self, label: float) -> None:
        self.label = torch.tensor(label)

    def meet(self, number: int, inputs: Tensor, chosen: Tensor | None) -> SideLabel:
        """Take note of the inputs."""
        return SideLabel(self.label, torch.empty(0) if chosen is None else self.label * _Unseen(inputs, chosen).total)


Imputed = Sigmoids | OneLabel


class _Unseen:
    """What sums over all of a side have beyond what a sample of it says, in double precision: they nearly cancel."""

    def __init__(self, inputs: Tensor, chosen: Tensor) -> None:
        self.times, self.seen = len(inputs) / len(chosen), inputs.index_select(0, chosen).double()
        self.total = (inputs.sum(0).double() - self.times * self.seen.sum(0)).float()

    def products(self, seen: Tensor, of_all: Tensor) -> Tensor:
        """Return it of products of another matrix with the inputs, given some rows of it, and the products of all."""
        return (of_all.double() - self.times * (seen.double().T @ self.seen)).float()


@dataclass(frozen=True, eq=False)
class GridGradient:
    """The gradient of the grid's part of the loss for one side, a part of that at a time.

    Parameters
    ----------
    f, g
        Predictions, and imputed labels.
    inputs
        What the side's parameters are multiplied by, of those of the other side that are looked at.
    times
        How many each of these stands for.
    sampled
        Whether not all are looked at.
    """

    f: SideSigmoids
    g: SideSigmoids | SideLabel
    inputs: Tensor
    times: float
    sampled: bool
    curvature: ClassVar[float] = CURVATURE

    @property
    def products(self) -> Tensor:
        """Of all rows of the other side with the inputs, shape (d, k)."""
        return self.f.products

    def parts(self, within: Iterable[slice] | None = None) -> list[slice]:
        """Return parts of the side, or of ranges of it, that are worth doing at once."""
        ranges = [slice(0, len(self.f.own))] if within is None else within
        return in_parts(ranges, max(1, _PART_CELLS // len(self.f.seen)))

    def of(self, part: slice) -> Tensor:
        """Return the gradient of a part, shape (part, k)."""
        missed = self.f.at(part).sub_(self.g.at(part))
        if not self.sampled:
            return missed @ self.inputs
        return self.f.unseen(part).sub_(self.g.unseen(part)).addmm_(missed, self.inputs, alpha=self.times)

    def loss(self) -> Tensor:
        """Estimate the mean loss from some pairs."""
        some = slice(0, None, max(1, len(self.f.own) * len(self.f.seen) // _SOME_CELLS))
        z = self.f.logits(some)
        return (softplus(z) - self.g.at(some) * z).mean()

    def on(self, of_f: Tensor, of_g: Tensor) -> GridGradient:
        """Return that of other rows of the side: those of f and of g."""
        return replace(self, f=self.f.of(of_f), g=self.g.of(of_g))


def gradient_of_grid(
    f: Sigmoids, g: Imputed, number: int, chosen: Tensor | None, inputs: Tensor | None = None
) -> GridGradient:
    """Return the gradient of the grid's part of the loss for one side.

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
    given = f.factors.sides[number].inputs if inputs is None else inputs
    seen = given if chosen is None else given.index_select(0, chosen)
    met = f.meet(number, given, chosen), g.meet(number, given, chosen)
    return GridGradient(*met, seen, len(given) / len(seen), chosen is not None)


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
