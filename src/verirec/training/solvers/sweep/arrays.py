"""Where large arrays are."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def large_array(*shape: int) -> Tensor:
    """Return room for numbers, not set to anything.

    By NumPy, which asks for large pages where torch does not: what is looked up at random is then found twice as fast.
    """
    return torch.from_numpy(np.empty(shape, np.float32))
