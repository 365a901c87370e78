"""Rows in classes of about the same chance to be asked about: what each number of questions leaves open, at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from verirec.data.parts import SHORT, each_part, totals

Array = npt.NDArray[np.float64]

_CLASSES: Final = 1 << 13
"""By the logarithm of sizes: those of a class differ by a few thousandths, whatever the largest is."""


@dataclass(frozen=True, eq=False)
class SizeClasses:
    r"""Sums over all rows up to the end of each class, sizes ascending; the first of each is 0.

    With chances :math:`\pi = c\,s` of sizes s, and 1 for the largest, :math:`\sum e (1/\pi - 1)` is
    :math:`\sum e / s / c - \sum e` over the rows that are not certain. Only the one class in which c s passes 1 is
    taken for certain or not as a whole, where 1/pi - 1 is next to nothing.

    Parameters
    ----------
    mean
        Size of each class, shape (classes,).
    rows, size
        How many, and their sizes, shape (classes + 1,).
    errors, per_size
        Of e and of e / s by number, shape (numbers, classes + 1).
    """

    mean: Array
    rows: Array
    size: Array
    errors: Array
    per_size: Array

    @classmethod
    def of(cls, sizes: Array, errors: Callable[[slice], Array]) -> Self:
        """Sort rows into classes.

        Parameters
        ----------
        sizes
            Above 0, shape (n,).
        errors
            Gives e of some rows by number, shape (numbers, m).
        """
        low, high = np.log(float(sizes.min())), np.log(float(sizes.max()))
        per_class = (_CLASSES - 1) / max(high - low, 1e-9)

        def sums(at: slice) -> Array:
            own, of_numbers = sizes[at], errors(at)
            code = np.clip((np.log(own) - low) * per_class, 0, _CLASSES - 1).astype(np.int64)
            return totals(code, np.stack([np.ones(len(own)), own, *of_numbers, *(of_numbers / own)]), _CLASSES)

        table = sum(each_part(sums, len(sizes), size=SHORT), np.zeros(1))
        table = table[:, table[0] > 0]
        up_to = np.concatenate([np.zeros((len(table), 1)), np.cumsum(table, axis=1)], axis=1)
        numbers = (len(table) - 2) // 2
        return cls(table[1] / table[0], up_to[0], up_to[1], up_to[2 : 2 + numbers], up_to[2 + numbers :])

    def unasked(self, count: float) -> Array:
        r"""Return :math:`\sum e (1/\pi - 1)` where so many rows are asked about, shape (numbers,).

        Examples
        --------
        >>> classes = SizeClasses.of(np.array([1.0, 3.0]), lambda at: np.array([[1.0, 9.0]])[:, at])
        >>> classes.unasked(1).round(9).tolist()  # chances of a quarter and three quarters
        [6.0]
        """
        certain = len(self.mean)
        while certain > 0:
            factor = max(count - (self.rows[-1] - self.rows[certain]), 0.0) / self.size[certain]
            inside = int(np.searchsorted(self.mean[:certain] * factor, 1.0, side="right"))
            if inside == certain:
                left = self.per_size[:, certain] / max(factor, 1e-300) - self.errors[:, certain]
                return np.asarray(np.maximum(left, 0.0))
            certain = inside
        return np.zeros(len(self.errors))
