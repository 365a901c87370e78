"""Where large arrays are, and how they are walked."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from torch import Tensor

_AT_ONCE: Final = 1 << 16
"""Rows that are worked on at once, so that they stay in the processor's cache."""


def large_array(*shape: int) -> Tensor:
    """Return room for numbers, not set to anything.

    By NumPy, which asks for large pages where torch does not: what is looked up at random is then found twice as fast.
    """
    return torch.from_numpy(np.empty(shape, np.float32))


def row_parts(n: int) -> list[slice]:
    """Return rows in parts that are worked on at once."""
    return [slice(start, min(start + _AT_ONCE, n)) for start in range(0, n, _AT_ONCE)]
