"""Walks over the log's rows in the order of users, compiled. `torch_rows` does the same without a compiler.

Each walk is over the users from `begin` to `end`. Those that write to users or rows give the same whoever walks; those
that add to items are given a matrix of their own for each part of the users. Whatever a walk needs of a user's items is
near after the first look at it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from verirec.compiled import kernel

_LEAST = np.float32(1e-30)
_FAST = {"reassoc", "contract", "nsz", "arcp"}
"""Sums in any order, so that they can be vectorised; NaN and infinity stay what they are."""


@kernel(fastmath=_FAST)
def _inner(left: Any, right: Any) -> Any:
    total = np.float32(0)
    for j in range(len(left)):
        total += left[j] * right[j]
    return total


@kernel(fastmath=_FAST)
def inner(
    begin: int, end: int, starts: Any, items: Any, own: Any, first: int, last: int, other: Any, constant: Any, out: Any
) -> None:
    """Write the inner product of each row's user, some columns of it, and item, and a constant."""
    for user in range(begin, end):
        mine = own[user, first:last]
        for row in range(starts[user], starts[user + 1]):
            out[row] = constant + _inner(mine, other[items[row]])


@kernel(fastmath=_FAST)
def gather(begin: int, end: int, starts: Any, items: Any, values: Any, other: Any, out: Any) -> None:
    """Write the sum over each user's rows of values times the item's row; the first user's sum comes first."""
    for user in range(begin, end):
        total = out[user - begin]
        total[:] = 0
        for row in range(starts[user], starts[user + 1]):
            value, given = values[row], other[items[row]]
            for j in range(len(total)):
                total[j] += value * given[j]


@kernel(fastmath=_FAST)
def push(begin: int, end: int, starts: Any, items: Any, values: Any, own: Any, first: int, last: int, out: Any) -> None:
    """Add to each item the sum over its rows of values times some columns of the user's row."""
    for user in range(begin, end):
        mine = own[user, first:last]
        for row in range(starts[user], starts[user + 1]):
            value, total = values[row], out[items[row]]
            for j in range(len(mine)):
                total[j] += value * mine[j]


@kernel(fastmath=_FAST)
def descend(
    begin: int,
    end: int,
    starts: Any,
    items: Any,
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
    logits: Any,
) -> None:
    """Improve each user's parameters by conjugate gradients on a quadratic: see `rows.Rows.descend`."""
    k = last - first
    along = np.empty(np.diff(starts[begin : end + 1]).max(), np.float32)
    work = np.empty((4, k), np.float32)
    slope, diagonal, direction, curved = work[0], work[1], work[2], work[3]
    for user in range(begin, end):
        low, high, mine = starts[user], starts[user + 1], own[user, first:last]
        met, bends = items[low:high], levels[low:high]
        bound = curvature * _slope(met, other, first, last, ridge, mine, slopes[low:high], bends, slope)
        size = np.float32(0)
        for j in range(k):
            # Without rows and without a penalty there is no curvature, and no slope either.
            diagonal[j] = max(ridge[j] + bound * squares[j], _LEAST)
            direction[j] = -slope[j] / diagonal[j]
            size -= slope[j] * direction[j]
        start = size
        for step in range(steps):
            if not size > np.float32(1e-12) * start:
                break
            length = size / max(_resistance(met, other, first, last, ridge, bends, curvature, direction, along), _LEAST)
            for j in range(k):
                mine[j] += damping * length * direction[j]
            for row in range(low, high):
                logits[row] += damping * length * along[row - low]
            if step + 1 < steps:
                _curve(met, other, first, last, ridge, bends, curvature, direction, along, curved)
                size = _turn(size, length, slope, diagonal, direction, curved)


@kernel(fastmath=_FAST)
def _slope(
    met: Any, other: Any, first: int, last: int, ridge: Any, mine: Any, slopes: Any, levels: Any, slope: Any
) -> Any:
    """Write the slope of the quadratic and the penalty, and give the sum of the levels."""
    bound = np.float32(0)
    for j in range(len(slope)):
        slope[j] = ridge[j] * mine[j]
    for row in range(len(met)):
        bound += levels[row]
        value, given = slopes[row], other[met[row], first:last]
        for j in range(len(slope)):
            slope[j] += value * given[j]
    return bound


@kernel(fastmath=_FAST)
def _resistance(
    met: Any,
    other: Any,
    first: int,
    last: int,
    ridge: Any,
    levels: Any,
    curvature: Any,
    direction: Any,
    along: Any,
) -> Any:
    """Give how much the quadratic bends along a direction, and write how far each row's logit goes."""
    of_rows, of_ridge = np.float32(0), np.float32(0)
    for row in range(len(met)):
        along[row] = _inner(other[met[row], first:last], direction)
        of_rows += levels[row] * along[row] * along[row]
    for j in range(len(direction)):
        of_ridge += ridge[j] * direction[j] * direction[j]
    return of_ridge + curvature * of_rows


@kernel(fastmath=_FAST)
def _curve(
    met: Any,
    other: Any,
    first: int,
    last: int,
    ridge: Any,
    levels: Any,
    curvature: Any,
    direction: Any,
    along: Any,
    curved: Any,
) -> None:
    """Write what the slope of the quadratic changes by along a direction."""
    for j in range(len(direction)):
        curved[j] = ridge[j] * direction[j]
    for row in range(len(met)):
        value, given = curvature * levels[row] * along[row], other[met[row], first:last]
        for j in range(len(curved)):
            curved[j] += value * given[j]


@kernel(fastmath=_FAST)
def _turn(size: Any, length: Any, slope: Any, diagonal: Any, direction: Any, curved: Any) -> Any:
    """Find the next direction, and give the size of what is left of the slope."""
    left = np.float32(0)
    for j in range(len(slope)):
        slope[j] += length * curved[j]
        left += slope[j] * slope[j] / diagonal[j]
    for j in range(len(slope)):
        direction[j] = -slope[j] / diagonal[j] + left / size * direction[j]
    return left
