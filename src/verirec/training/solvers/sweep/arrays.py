"""Where large arrays are, and how they are walked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import torch
from torch import Tensor

from verirec.scratch import long_array

_AT_ONCE: Final = 1 << 16
"""Rows that are worked on at once, so that they stay in the processor's cache."""


def large_array(*shape: int) -> Tensor:
    """Return room for numbers, not set to anything.

    By NumPy, which asks for large pages where torch does not: what is looked up at random is then found twice as fast.
    Where memory is limited, in a file.
    """
    return torch.from_numpy(long_array(shape, np.float32))


def row_parts(begin: int, end: int) -> list[slice]:
    """Return some rows in parts that are worked on at once."""
    return in_parts([slice(begin, end)], _AT_ONCE)


def in_parts(ranges: Iterable[slice], most: int) -> list[slice]:
    """Cut ranges into parts of at most so many.

    Examples
    --------
    >>> in_parts([slice(0, 3), slice(3, 8)], 4)
    [slice(0, 3, None), slice(3, 7, None), slice(7, 8, None)]
    """
    return [slice(start, min(start + most, one.stop)) for one in ranges for start in range(one.start, one.stop, most)]
