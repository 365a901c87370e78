"""Walks over the log's rows in plain torch: the same as `numba_rows`, a few times slower."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

_AT_ONCE = 1 << 18
"""Rows whose factors are looked up at once."""


def _parts(begin: int, end: int, starts: Any, others: Any) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Give rows of some users a part at a time, with whom they are of and whom they meet."""
    for low in range(int(starts[begin]), int(starts[end]), _AT_ONCE):
        rows = slice(low, min(low + _AT_ONCE, int(starts[end])))
        whose = np.searchsorted(starts, np.arange(rows.start, rows.stop), side="right") - 1
        yield rows, torch.from_numpy(whose), torch.from_numpy(others[rows])


def _of(values: Any, places: Any, rows: slice) -> Tensor:
    return torch.from_numpy(values[places[rows]] if len(places) else values[rows])


def logits(begin: int, end: int, starts: Any, others: Any, own: Any, other: Any, constant: Any, out: Any) -> None:
    """Write the logit of each row, in the order of users."""
    left, right = torch.from_numpy(own), torch.from_numpy(other)
    for rows, whose, met in _parts(begin, end, starts, others):
        out[rows] = (constant + torch.linalg.vecdot(left[whose], right[met])).numpy()


def gather(
    begin: int,
    end: int,
    starts: Any,
    others: Any,
    places: Any,
    values: Any,
    other: Any,
    first: int,
    last: int,
    out: Any,
) -> None:
    """Write the sum of each one's inputs, times values of its rows."""
    total, given = torch.from_numpy(out).zero_(), torch.from_numpy(other)[:, first:last]
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
    constant: Any,
    ridge: Any,
    first_term: Any,
    second_term: Any,
    bend: Any,
    steps: int,
) -> None:
    """Improve all parameters at once by conjugate gradients, each on a quadratic of its own."""
    left, right, penalty = torch.from_numpy(own), torch.from_numpy(other), torch.from_numpy(ridge)
    parameters, inputs = left[begin:end, first:last], right[:, first:last]
    slope, diagonal = penalty * parameters, penalty.repeat(end - begin, 1)
    curvature = torch.empty(int(starts[end] - starts[begin]))
    offset = int(starts[begin])
    for rows, whose, met in _parts(begin, end, starts, others):
        z = constant + torch.linalg.vecdot(left[whose], right[met])
        one, two = _of(first_term, places, rows), _of(second_term, places, rows)
        p = torch.sigmoid(z)
        if bend > 0:
            pull, bound = 2 * one * (p - two) * p * (1 - p), one * bend
        else:
            pull, bound = one * p - two, one * torch.where(z.abs() > 1e-3, (p - 0.5) / z, 0.25)
        curvature[rows.start - offset : rows.stop - offset] = bound
        given = inputs[met]
        slope.index_add_(0, whose - begin, pull[:, None] * given)
        diagonal.index_add_(0, whose - begin, bound[:, None] * given * given)

    def bent(direction: Tensor) -> Tensor:
        total = penalty * direction
        for rows, whose, met in _parts(begin, end, starts, others):
            given = inputs[met]
            along = curvature[rows.start - offset : rows.stop - offset] * torch.linalg.vecdot(
                given, direction[whose - begin]
            )
            total.index_add_(0, whose - begin, along[:, None] * given)
        return total

    direction = -slope / diagonal
    size = (slope * slope / diagonal).sum(1)
    going, change, start = torch.ones(end - begin, dtype=torch.bool), torch.zeros_like(slope), size.clone()
    for _ in range(steps):
        curved = bent(direction)
        resistance = (direction * curved).sum(1)
        going &= (size > 1e-12 * start) & (resistance > 0)
        length = torch.where(going, size / resistance.clamp_min(1e-38), 0.0)
        change += length[:, None] * direction
        slope += length[:, None] * curved
        before, size = size, (slope * slope / diagonal).sum(1)
        direction = -slope / diagonal + (size / before.clamp_min(1e-38))[:, None] * direction
    parameters += change
