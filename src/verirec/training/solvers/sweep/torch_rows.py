"""Walks over the log's rows in plain torch: the same as `numba_rows`, a few times slower."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

_AT_ONCE = 1 << 18
"""Rows whose factors are looked up at once."""


def _parts(begin: int, end: int, starts: Any, items: Any) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Return rows of some users a part at a time, with whom they are of and what they meet."""
    for low in range(int(starts[begin]), int(starts[end]), _AT_ONCE):
        rows = slice(low, min(low + _AT_ONCE, int(starts[end])))
        whose = np.searchsorted(starts, np.arange(rows.start, rows.stop), side="right") - 1
        yield rows, torch.from_numpy(whose), torch.tensor(items[rows])


def inner(
    begin: int, end: int, starts: Any, items: Any, own: Any, first: int, last: int, other: Any, constant: Any, out: Any
) -> None:
    """Write the inner product of each row's user, some columns of it, and item, and a constant."""
    left, right = torch.from_numpy(own)[:, first:last], torch.from_numpy(other)
    for rows, whose, met in _parts(begin, end, starts, items):
        out[rows] = (constant + torch.linalg.vecdot(left[whose], right[met])).numpy()


def gather(begin: int, end: int, starts: Any, items: Any, values: Any, other: Any, out: Any) -> None:
    """Write the sum over each user's rows of values times the item's row; the first user's sum comes first."""
    total, given, times = torch.from_numpy(out).zero_(), torch.from_numpy(other), torch.from_numpy(values)
    for rows, whose, met in _parts(begin, end, starts, items):
        total.index_add_(0, whose - begin, times[rows, None] * given[met])


def push(begin: int, end: int, starts: Any, items: Any, values: Any, own: Any, first: int, last: int, out: Any) -> None:
    """Add to each item the sum over its rows of values times some columns of the user's row."""
    total, given, times = torch.from_numpy(out), torch.from_numpy(own)[:, first:last], torch.from_numpy(values)
    for rows, whose, met in _parts(begin, end, starts, items):
        total.index_add_(0, met, times[rows, None] * given[whose])
