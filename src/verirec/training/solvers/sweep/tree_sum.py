"""A sum of tensors in an order of its own, so that parts of it can be added up anywhere."""

from __future__ import annotations

from torch import Tensor

Place = tuple[int, int]
"""A level, 0 for what is added up, and a number on it."""


class TreeSum:
    """Adds tensors up two by two, then the sums two by two, and so on: the same bits whoever adds up which ones.

    Who has some of the tensors adds up what belongs together, and hands over what is left.

    Parameters
    ----------
    count
        How many tensors there are in all.

    Examples
    --------
    >>> import torch
    >>> here, there, all = TreeSum(3), TreeSum(3), TreeSum(3)
    >>> for number in (0, 1):
    ...     here.add((0, number), torch.tensor([1.0 + number]))
    >>> there.add((0, 2), torch.tensor([4.0]))
    >>> here.left, there.left
    ({(1, 0): tensor([3.])}, {(1, 1): tensor([4.])})
    >>> for place, value in (there.left | here.left).items():
    ...     all.add(place, value)
    >>> all.total
    tensor([7.])
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.left: dict[Place, Tensor] = {}

    def add(self, place: Place, value: Tensor) -> None:
        """Take a tensor, or the sum of some; it is overwritten."""
        level, number = place
        width = -(-self.count >> level)
        while width > 1:
            other = (level, number ^ 1)
            if other[1] < width:
                if other not in self.left:
                    break
                found = self.left.pop(other)
                value = value.add_(found) if number % 2 == 0 else found.add_(value)
            level, number, width = level + 1, number // 2, -(-width // 2)
        self.left[level, number] = value

    @property
    def total(self) -> Tensor:
        """The sum of all, when all are there."""
        (found,) = self.left.values()
        return found
