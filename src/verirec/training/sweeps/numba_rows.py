"""Walks over the log's rows, compiled. `torch_rows` does the same without a compiler.

Users (or items) are independent of each other: each is done by one thread, in the order of its rows, so that results do
not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}
"""Sums in any order, so that they can be vectorised; NaN and infinity stay what they are."""


@njit(nogil=True, fastmath=_FAST, cache=True)  # type: ignore[untyped-decorator]
def _inner(left: Any, right: Any) -> Any:
    total = np.float32(0)
    for j in range(len(left)):
        total += left[j] * right[j]
    return total


@njit(nogil=True, fastmath=_FAST, cache=True)  # type: ignore[untyped-decorator]
def logits(begin: int, end: int, starts: Any, others: Any, own: Any, other: Any, constant: Any, out: Any) -> None:
    """Write the logit of each row, in the order of users."""
    for one in range(begin, end):
        for row in range(starts[one], starts[one + 1]):
            out[row] = constant + _inner(own[one], other[others[row]])


@njit(nogil=True, fastmath=_FAST, cache=True)  # type: ignore[untyped-decorator]
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
    for one in range(begin, end):
        total = out[one - begin]
        total[:] = 0
        for row in range(starts[one], starts[one + 1]):
            value = values[places[row]] if len(places) else values[row]
            given = other[others[row], first:last]
            for j in range(last - first):
                total[j] += value * given[j]


@njit(nogil=True, fastmath=_FAST, cache=True)  # type: ignore[untyped-decorator]
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
    """Improve each one's parameters by conjugate gradients on the quadratic above its loss: see `rows.Rows.descend`."""
    k = last - first
    most = 0
    for one in range(begin, end):
        most = max(most, starts[one + 1] - starts[one])
    curvature = np.empty(most, np.float32)
    work = np.empty((5, k), np.float32)
    slope, change, direction, bent, diagonal = work[0], work[1], work[2], work[3], work[4]
    for one in range(begin, end):
        low, high = starts[one], starts[one + 1]
        for j in range(k):
            slope[j] = ridge[j] * own[one, first + j]
            diagonal[j] = ridge[j]
            change[j] = 0
        for row in range(low, high):
            place = places[row] if len(places) else row
            z = constant + _inner(own[one], other[others[row]])
            p = np.float32(1) / (np.float32(1) + np.exp(-z))
            if bend > 0:
                left = np.float32(2) * first_term[place] * (p - second_term[place]) * p * (np.float32(1) - p)
                bound = first_term[place] * bend
            else:
                left = first_term[place] * p - second_term[place]
                half = p - np.float32(0.5)
                bound = first_term[place] * (half / z if abs(z) > np.float32(1e-3) else np.float32(0.25))
            curvature[row - low] = bound
            given = other[others[row], first:last]
            for j in range(k):
                slope[j] += left * given[j]
                diagonal[j] += bound * given[j] * given[j]
        _conjugate(
            low, high, others, other, first, last, ridge, curvature, slope, diagonal, change, direction, bent, steps
        )
        for j in range(k):
            own[one, first + j] += change[j]


@njit(nogil=True, fastmath=_FAST, cache=True)  # type: ignore[untyped-decorator]
def _conjugate(
    low: int,
    high: int,
    others: Any,
    other: Any,
    first: int,
    last: int,
    ridge: Any,
    curvature: Any,
    slope: Any,
    diagonal: Any,
    change: Any,
    direction: Any,
    bent: Any,
    steps: int,
) -> None:
    """Take preconditioned steps down from no change; `slope` ends as what is left of it."""
    k = last - first
    size = np.float32(0)
    for j in range(k):
        direction[j] = -slope[j] / diagonal[j]
        size -= slope[j] * direction[j]
    start = size
    for _ in range(steps):
        if not size > np.float32(1e-12) * start:
            return
        for j in range(k):
            bent[j] = ridge[j] * direction[j]
        for row in range(low, high):
            given = other[others[row], first:last]
            along = curvature[row - low] * _inner(given, direction)
            for j in range(k):
                bent[j] += along * given[j]
        resistance = np.float32(0)
        for j in range(k):
            resistance += direction[j] * bent[j]
        if not resistance > 0:
            return
        length = size / resistance
        size, before = np.float32(0), size
        for j in range(k):
            change[j] += length * direction[j]
            slope[j] += length * bent[j]
            size += slope[j] * slope[j] / diagonal[j]
        for j in range(k):
            direction[j] = -slope[j] / diagonal[j] + size / before * direction[j]
