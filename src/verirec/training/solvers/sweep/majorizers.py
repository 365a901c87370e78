"""The losses of rows that sweeps lower, by quadratics that lie above them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from verirec.training.solvers.sweep.arrays import large_array, row_parts
from verirec.training.threads import Pool


class Majorizer(NamedTuple):
    """The quadratic of each row at its logit, and how many conjugate gradient steps down it are worth their time.

    Parameters
    ----------
    values
        The loss of all rows, a part of them each.
    logits
        Where it touches the loss.
    slopes, levels, curvature
        Slope of each row's quadratic, and its curvature: a level times one number for all.
    steps
        Of conjugate gradients.
    """

    values: Tensor
    logits: Tensor
    slopes: Tensor
    levels: Tensor
    curvature: float
    steps: int

    @property
    def value(self) -> Tensor:
        """The loss of all rows."""
        return self.values.sum(dtype=torch.float64)


class RowsLoss(ABC):
    """A loss of each row's logit.

    Parameters
    ----------
    rows
        How many there are.
    parts
        In which they are worked on; by default so many at a time.
    """

    steps: ClassVar[int]
    """Of conjugate gradients that are worth their time."""

    def __init__(self, rows: int, parts: list[slice] | None = None) -> None:
        self.slopes, self.parts = large_array(rows), row_parts(0, rows) if parts is None else parts

    @abstractmethod
    def above(self, z: Tensor, pool: Pool | None = None) -> Majorizer:
        """Return the quadratic at logits, worked out by some threads."""

    def _each(self, work: Callable[[slice], Tensor], pool: Pool | None) -> Tensor:
        """Work on all rows, some at a time; returns their losses."""
        return torch.stack((pool or Pool()).map(work, self.parts))


class CrossEntropy(RowsLoss):
    r"""Cross-entropy, :math:`a\,\mathrm{softplus}(z) - b z`, a and b of each row.

    The quadratic has the curvature :math:`a\,(\sigma(z) - \tfrac12)/z`, which is the least (Jaakkola and Jordan 2000).
    """

    steps = 2

    def __init__(self, level: Tensor, linear: Tensor, parts: list[slice] | None = None) -> None:
        super().__init__(len(level), parts)
        self.level, self.linear, self.curvatures = level, linear, large_array(len(level))

    def above(self, z: Tensor, pool: Pool | None = None) -> Majorizer:
        """Return the quadratic at logits, worked out by some threads."""

        def work(part: slice) -> Tensor:
            here, level, linear = z[part], self.level[part], self.linear[part]
            p = torch.sigmoid(here)
            curvature = torch.where(here.abs() > 1e-3, (p - 0.5) / here, 0.25)
            torch.mul(level, curvature, out=self.curvatures[part])
            torch.sub(p.mul_(level), linear, out=self.slopes[part])
            # Not inner products: how these are added up depends on where in memory a part begins.
            return softplus(here).mul_(level).addcmul_(linear, here, value=-1).sum()

        return Majorizer(self._each(work, pool), z, self.slopes, self.curvatures, 1.0, self.steps)


class LeastSquares(RowsLoss):
    r"""Squares of a star's distance, :math:`a\,(z^2/2 - y z)`, with b = a y of each row: their own quadratic.

    What is left after so many steps of a sweep, the next ones take up: they end where no user or item can do better.
    """

    steps = 3

    def __init__(self, weights: Tensor, linear: Tensor, parts: list[slice] | None = None) -> None:
        super().__init__(len(weights), parts)
        self.weights, self.linear = weights, linear

    def above(self, z: Tensor, pool: Pool | None = None) -> Majorizer:
        """Return the quadratic at scores, worked out by some threads."""

        def work(part: slice) -> Tensor:
            here, linear = z[part], self.linear[part]
            level = torch.mul(self.weights[part], here, out=self.slopes[part])
            value = level.mul(0.5).sub_(linear).mul_(here).sum()
            level.sub_(linear)
            return value

        return Majorizer(self._each(work, pool), z, self.slopes, self.weights, 1.0, self.steps)


class Squares(RowsLoss):
    r"""Squares of a probability's distance, :math:`a\,(\sigma(z) - y)^2`, a and y of each row.

    The quadratic has the largest curvature that the squares have anywhere: labels lie between two `extremes`, by
    default those of these rows.
    """

    steps = 1

    def __init__(
        self,
        weights: Tensor,
        labels: Tensor,
        parts: list[slice] | None = None,
        extremes: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(len(weights), parts)
        self.weights, self.labels = weights, labels
        least, most = (float(one) for one in labels.aminmax()) if extremes is None else extremes
        self.curvature = largest_curvature(least, most)

    def above(self, z: Tensor, pool: Pool | None = None) -> Majorizer:
        """Return the quadratic at logits, worked out by some threads."""

        def work(part: slice) -> Tensor:
            p = torch.sigmoid(z[part])
            missed = p - self.labels[part]
            weighted = self.weights[part] * missed
            value = weighted @ missed
            torch.mul(p.addcmul_(p, p, value=-1), weighted.mul_(2), out=self.slopes[part])
            return value

        return Majorizer(self._each(work, pool), z, self.slopes, self.weights, self.curvature, self.steps)


def largest_curvature(least: float, most: float) -> float:
    r"""Return the largest second derivative of :math:`(\sigma(z) - y)^2` for labels between two.

    It is linear in y, so that the largest is at one of the two.

    Examples
    --------
    >>> round(largest_curvature(0.0, 1.0), 3)
    0.154
    """
    p = np.linspace(0.0, 1.0, 2_001)
    first = p * (1 - p)
    second = first * (1 - 2 * p)
    return float(max((2 * first**2 - 2 * (y - p) * second).max() for y in (least, most)))
