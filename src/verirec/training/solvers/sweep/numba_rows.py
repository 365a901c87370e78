"""Walks over the log's rows, compiled. `torch_rows` does the same without a compiler.

Users (or items) are independent of each other: each is done by one thread, in the order of its rows, so that results do
not depend on the number of threads.
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
def logits(begin: int, end: int, starts: Any, others: Any, own: Any, other: Any, constant: Any, out: Any) -> None:
    """Write the logit of each row, in the order of users."""
    for one in range(begin, end):
        for row in range(starts[one], starts[one + 1]):
            out[row] = constant + _inner(own[one], other[others[row]])


@kernel(fastmath=_FAST)
def gather(begin: int, end: int, starts: Any, others: Any, places: Any, values: Any, other: Any, out: Any) -> None:
    """Write the sum over each one's rows of values times the other's row."""
    width = other.shape[1]
    for one in range(begin, end):
        total = out[one - begin]
        total[:] = 0
        for row in range(starts[one], starts[one + 1]):
            value = values[places[row]] if len(places) else values[row]
            given = other[others[row]]
            for j in range(width):
                total[j] += value * given[j]


@kernel(fastmath=_FAST)
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
    """Improve each one's parameters by conjugate gradients on a quadratic: see `rows.Rows.descend`."""
    k = last - first
    most = np.diff(starts[begin : end + 1]).max()
    curvatures, work = np.empty(most, np.float32), np.empty((5, k), np.float32)
    slope, diagonal, change, direction, curved = work[0], work[1], work[2], work[3], work[4]
    for one in range(begin, end):
        low, high = starts[one], starts[one + 1]
        for j in range(k):
            slope[j] = ridge[j] * own[one, first + j]
        bound = np.float32(0)
        for row in range(low, high):
            place = places[row] if len(places) else row
            slope_of_row, curvatures[row - low] = slopes[place], curvature * levels[place]
            bound += curvatures[row - low]
            given = other[others[row], first:last]
            for j in range(k):
                slope[j] += slope_of_row * given[j]
        size = np.float32(0)
        for j in range(k):
            change[j] = 0
            # Without rows and without a penalty there is no curvature, and no slope either.
            diagonal[j] = max(ridge[j] + bound * squares[j], _LEAST)
            direction[j] = -slope[j] / diagonal[j]
            size -= slope[j] * direction[j]
        start = size
        for _ in range(steps):
            if not size > np.float32(1e-12) * start:
                break
            for j in range(k):
                curved[j] = ridge[j] * direction[j]
            _curve(others[low:high], other, first, last, curvatures, direction, curved)
            size = _step(size, slope, diagonal, change, direction, curved)
        for j in range(k):
            own[one, first + j] += damping * change[j]


@kernel(fastmath=_FAST)
def _curve(met: Any, other: Any, first: int, last: int, curvatures: Any, direction: Any, curved: Any) -> None:
    """Add what the rows' quadratics curve along a direction."""
    for row in range(len(met)):
        given = other[met[row], first:last]
        along = curvatures[row] * _inner(given, direction)
        for j in range(last - first):
            curved[j] += along * given[j]


@kernel(fastmath=_FAST)
def _step(size: Any, slope: Any, diagonal: Any, change: Any, direction: Any, curved: Any) -> Any:
    """Go down along the direction, find the next one, and give the size of what is left of the slope."""
    length = size / max(_inner(direction, curved), _LEAST)
    left = np.float32(0)
    for j in range(len(slope)):
        change[j] += length * direction[j]
        slope[j] += length * curved[j]
        left += slope[j] * slope[j] / diagonal[j]
    for j in range(len(slope)):
        direction[j] = -slope[j] / diagonal[j] + left / size * direction[j]
    return left
