"""The two losses of rows that sweeps lower, by quadratics that lie above them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

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
    value
        The loss of all rows.
    logits
        Where it touches the loss.
    slopes, levels, curvature
        Slope of each row's quadratic, and its curvature: a level times one number for all.
    steps
        Of conjugate gradients.
    """

    value: Tensor
    logits: Tensor
    slopes: Tensor
    levels: Tensor
    curvature: float
    steps: int


class RowsLoss(ABC):
    """A loss of each row's logit.

    Parameters
    ----------
    rows
        How many there are.
    """

    def __init__(self, rows: int) -> None:
        self.slopes = large_array(rows)

    @abstractmethod
    def above(self, z: Tensor, pool: Pool | None = None) -> Majorizer:
        """Return the quadratic at logits, worked out by some threads."""

    def _each(self, work: Callable[[slice], Tensor], pool: Pool | None) -> Tensor:
        """Work on all rows, some at a time, and add up the loss."""
        values = (pool or Pool()).map(work, row_parts(len(self.slopes)))
        return torch.stack(values).sum(dtype=torch.float64)


class CrossEntropy(RowsLoss):
    r"""Cross-entropy, :math:`a\,\mathrm{softplus}(z) - b z`, a and b of each row.

    The quadratic has the curvature :math:`a\,(\sigma(z) - \tfrac12)/z`, which is the least (Jaakkola and Jordan 2000).
    """

    def __init__(self, level: Tensor, linear: Tensor) -> None:
        super().__init__(len(level))
        self.level, self.linear, self.curvatures = level, linear, large_array(len(level))

    def above(self, z: Tensor, pool: Pool | None = None) -> Majorizer:
        """Return the quadratic at logits, worked out by some threads."""

        def work(part: slice) -> Tensor:
            here, level, linear = z[part], self.level[part], self.linear[part]
            p = torch.sigmoid(here)
            curvature = torch.where(here.abs() > 1e-3, (p - 0.5) / here, 0.25)
            torch.mul(level, curvature, out=self.curvatures[part])
            torch.sub(p.mul_(level), linear, out=self.slopes[part])
            return level @ softplus(here) - linear @ here

        return Majorizer(self._each(work, pool), z, self.slopes, self.curvatures, 1.0, steps=2)


class Squares(RowsLoss):
    r"""Squares of a probability's distance, :math:`a\,(\sigma(z) - y)^2`, a and y of each row.

    The quadratic has the largest curvature that the squares have anywhere.
    """

    def __init__(self, weights: Tensor, labels: Tensor) -> None:
        super().__init__(len(weights))
        self.weights, self.labels = weights, labels
        self.curvature = largest_curvature(*(float(one) for one in labels.aminmax()))

    def above(self, z: Tensor, pool: Pool | None = None) -> Majorizer:
        """Return the quadratic at logits, worked out by some threads."""

        def work(part: slice) -> Tensor:
            p = torch.sigmoid(z[part])
            missed = p - self.labels[part]
            weighted = self.weights[part] * missed
            value = weighted @ missed
            torch.mul(p.addcmul_(p, p, value=-1), weighted.mul_(2), out=self.slopes[part])
            return value

        return Majorizer(self._each(work, pool), z, self.slopes, self.weights, self.curvature, steps=1)


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
