"""Walks over the log's rows in plain torch: the same as `numba_rows`, a few times slower."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

_LEAST = 1e-30
_AT_ONCE = 1 << 18
"""Rows whose factors are looked up at once."""


def _parts(begin: int, end: int, starts: Any, others: Any) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Return rows of some users a part at a time, with whom they are of and whom they meet."""
    for low in range(int(starts[begin]), int(starts[end]), _AT_ONCE):
        rows = slice(low, min(low + _AT_ONCE, int(starts[end])))
        whose = np.searchsorted(starts, np.arange(rows.start, rows.stop), side="right") - 1
        yield rows, torch.from_numpy(whose), torch.tensor(others[rows])


def _of(values: Any, places: Any, rows: slice) -> Tensor:
    return torch.from_numpy(values[places[rows]] if len(places) else values[rows])


def logits(begin: int, end: int, starts: Any, others: Any, own: Any, other: Any, constant: Any, out: Any) -> None:
    """Write the logit of each row, in the order of users."""
    left, right = torch.from_numpy(own), torch.from_numpy(other)
    for rows, whose, met in _parts(begin, end, starts, others):
        out[rows] = (constant + torch.linalg.vecdot(left[whose], right[met])).numpy()


def gather(begin: int, end: int, starts: Any, others: Any, places: Any, values: Any, other: Any, out: Any) -> None:
    """Write the sum over each one's rows of values times the other's row."""
    total, given = torch.from_numpy(out).zero_(), torch.from_numpy(other)
    for rows, whose, met in _parts(begin, end, starts, others):
        total.index_add_(0, whose - begin, _of(values, places, rows)[:, None] * given[met])


def descend(
    begin: int,
    end: int,
    starts: Any,
    others: Any,
    places: Any,
    own: Any,
    other: Any,
    first: int,
    last: int,
    ridge: Any,
    squares: Any,
    slopes: Any,
    levels: Any,
    curvature: Any,
    steps: int,
    damping: Any,
) -> None:
    """Improve all parameters at once by conjugate gradients, each on a quadratic of its own."""
    parameters, inputs = torch.from_numpy(own)[begin:end, first:last], torch.from_numpy(other)[:, first:last]
    penalty = torch.from_numpy(ridge)
    slope, bound = penalty * parameters, torch.zeros(end - begin)
    for rows, whose, met in _parts(begin, end, starts, others):
        slope.index_add_(0, whose - begin, _of(slopes, places, rows)[:, None] * inputs[met])
        bound.index_add_(0, whose - begin, curvature * _of(levels, places, rows))
    # Without rows and without a penalty there is no curvature, and no slope either.
    diagonal = (penalty + bound[:, None] * torch.from_numpy(squares)).clamp_min(_LEAST)
    change, direction, size = torch.zeros_like(slope), -slope / diagonal, (slope * slope / diagonal).sum(1)
    going = size > 0
    start = size
    for _ in range(steps):
        curved = penalty * direction
        for rows, whose, met in _parts(begin, end, starts, others):
            given = inputs[met]
            along = curvature * _of(levels, places, rows) * torch.linalg.vecdot(given, direction[whose - begin])
            curved.index_add_(0, whose - begin, along[:, None] * given)
        going &= size > 1e-12 * start
        length = torch.where(going, size / (direction * curved).sum(1).clamp_min(_LEAST), 0.0)[:, None]
        change += length * direction
        slope += length * curved
        before, size = size, (slope * slope / diagonal).sum(1)
        direction = -slope / diagonal + torch.where(going, size / before, 0.0)[:, None] * direction
    parameters += float(damping) * change
