"""The two losses of rows that sweeps lower, by quadratics that lie above them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

_AT_ONCE: Final = 1 << 16
"""Rows that are worked on at once, so that they stay in the processor's cache."""


class Quadratic(NamedTuple):
    """The loss of all rows, and the slope and curvature of each row's quadratic at its logit, shape (rows, 2)."""

    value: Tensor
    tilts: Tensor


class RowsLoss(ABC):
    """A loss of each row's logit, with two numbers of the row in it."""

    def __init__(self, first: Tensor, second: Tensor) -> None:
        self.first, self.second = first, second

    @abstractmethod
    def _above(self, z: Tensor, first: Tensor, second: Tensor, tilts: Tensor) -> Tensor:
        """Write slopes and curvatures of some rows, and give their loss."""

    def above(self, z: Tensor, tilts: Tensor) -> Quadratic:
        """Give the quadratic at logits; slopes and curvatures are written to an array of shape (rows, 2)."""
        value = torch.zeros((), dtype=torch.float64)
        for start in range(0, len(z), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            value += self._above(z[part], self.first[part], self.second[part], tilts[part])
        return Quadratic(value, tilts)


class Entropy(RowsLoss):
    r"""Cross-entropy, :math:`a\,\mathrm{softplus}(z) - b z`, a and b of each row.

    The quadratic has the curvature :math:`a\,(\sigma(z) - \tfrac12)/z`, which is the least (Jaakkola and Jordan 2000).
    """

    def _above(self, z: Tensor, first: Tensor, second: Tensor, tilts: Tensor) -> Tensor:
        p = torch.sigmoid(z)
        torch.sub(first * p, second, out=tilts[:, 0])
        torch.mul(first, torch.where(z.abs() > 1e-3, (p - 0.5) / z, 0.25), out=tilts[:, 1])
        return first @ softplus(z) - second @ z


class Squares(RowsLoss):
    r"""Squares of a probability's distance, :math:`a\,(\sigma(z) - y)^2`, a and y of each row.

    The quadratic has the largest curvature that the squares have anywhere.
    """

    def __init__(self, weights: Tensor, labels: Tensor) -> None:
        super().__init__(weights, labels)
        self.bend = largest_bend(*(float(one) for one in labels.aminmax()))

    def _above(self, z: Tensor, first: Tensor, second: Tensor, tilts: Tensor) -> Tensor:
        p = torch.sigmoid(z)
        missed = p - second
        pulled = first * missed
        torch.mul(p.sub_(p * p), 2 * pulled, out=tilts[:, 0])
        torch.mul(first, self.bend, out=tilts[:, 1])
        return pulled @ missed


def largest_bend(least: float, most: float) -> float:
    r"""Give the largest second derivative of :math:`(\sigma(z) - y)^2` for labels between two.

    It is linear in y, so that the largest is at one of the two.

    Examples
    --------
    >>> round(largest_bend(0.0, 1.0), 3)
    0.154
    """
    p = np.linspace(0.0, 1.0, 2_001)
    first = p * (1 - p)
    second = first * (1 - 2 * p)
    return float(max((2 * first**2 - 2 * (y - p) * second).max() for y in (least, most)))
