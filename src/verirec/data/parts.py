"""Long flat arrays: work part by part, and sums by position."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.threads import mapped
from verirec.progress import working
from verirec.scratch import hold_pages, long_array

_PART: Final = 1 << 20
"""Entries of a part: 8 MB a float64 array, small enough to stay near the processor."""
SHORT: Final = 1 << 16
"""Entries of a short part: a few float64 arrays of it stay in the processor's second cache."""
_TOTALLED: Final = 1 << 18
"""Entries that are added up by position at a time, unless there are nearly as many positions."""
_DEVIATIONS: Final = 8
"""Standard deviations (at most half the root of a number of values) by which a rank among some values may be off."""
_FEW_PARTS: Final = 4
"""Too few to start threads for."""


def parts_of(length: int, *, size: int = _PART) -> Iterator[slice]:
    """Walk over an array in parts, so that what is worked out on the way stays near the processor.

    Examples
    --------
    >>> [(part.start, part.stop) for part in parts_of(5, size=2)]
    [(0, 2), (2, 4), (4, 5)]
    """
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))
        hold_pages()


def over_parts(function: Callable[[slice], Any], length: int, *, size: int = _PART, parallel: bool = True) -> list[Any]:
    """Apply a function to each part of a long array, by threads if it has several and these may ask; results in order.

    By threads, for functions that spend their time inside NumPy (see `mapped`).
    """
    return list(each_part(function, length, size=size, parallel=parallel))


def each_part(
    function: Callable[[slice], Any], length: int, *, size: int = _PART, parallel: bool = True
) -> Iterator[Any]:
    """Do as `over_parts` does, and give results one by one: few of them are there at once."""
    parts = list(parts_of(length, size=size))
    with working("rows", length) as task:

        def visit(part: slice) -> Any:
            found = function(part)
            hold_pages()
            task.advance(part.stop - part.start)
            return found

        if parallel:
            yield from mapped(visit, parts, threads=1 if len(parts) < _FEW_PARTS else None)
        else:
            yield from map(visit, parts)


def filled(
    function: Callable[[slice], npt.NDArray[Any]], length: int, columns: tuple[int, ...] = (), *, parallel: bool = True
) -> npt.NDArray[np.float64]:
    """Make a long array of what a function gives of each short part, by threads if these may ask.

    Of shape (*columns, length).

    Examples
    --------
    >>> filled(lambda part: np.arange(part.start, part.stop) / 2, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    whole = long_array((*columns, length))

    def fill(part: slice) -> None:
        whole[..., part] = function(part)

    over_parts(fill, length, size=SHORT, parallel=parallel)
    return whole


def looked_up(function: Callable[[slice], npt.NDArray[Any]], length: int, *, parallel: bool = True) -> npt.NDArray[Any]:
    """Make a flat array of what a function gives of each part, of the type that it gives; by threads if these may ask.

    Examples
    --------
    >>> looked_up(lambda part: np.arange(part.start, part.stop), 3).tolist()
    [0, 1, 2]
    """
    size = SHORT if parallel else _PART
    first = function(slice(0, min(size, length)))
    if length <= size:
        return first
    whole = long_array(length, first.dtype)
    whole[:size] = first

    def fill(part: slice) -> None:
        part = slice(size + part.start, size + part.stop)
        whole[part] = function(part)

    over_parts(fill, length - size, size=size, parallel=parallel)
    return whole


def totals(positions: npt.NDArray[np.integer[Any]], values: npt.NDArray[Any], size: int) -> npt.NDArray[np.float64]:
    """Add values of shape (n,), or (columns, n), up by position; shape (size,), or (columns, size).

    Examples
    --------
    >>> totals(np.array([0, 2, 0]), np.array([0.5, 1.0, 0.25]), 3).tolist()
    [0.75, 0.0, 1.0]
    """
    if values.ndim > 1:
        return np.array([totals(positions, column, size) for column in values]).reshape(len(values), size)
    return totals_of(positions, lambda part: values[part], size)


def totals_of(
    positions: npt.NDArray[np.integer[Any]], values: Callable[[slice], npt.NDArray[Any]], size: int
) -> npt.NDArray[np.float64]:
    """Add values up by position that are worked out part by part, shape (m,) each; shape (size,).

    Examples
    --------
    >>> totals_of(np.array([0, 2, 0]), lambda part: np.arange(3)[part] / 2, 3).tolist()
    [1.0, 0.0, 0.5]
    """
    sums = np.zeros(size)
    # In parts: positions are made int64 on the way, and a copy of all of them takes longer than the sums.
    for part in parts_of(len(positions), size=max(_TOTALLED, 4 * size)):
        sums += np.bincount(positions[part], weights=values(part), minlength=size)
    return sums


def mean_of(values: npt.NDArray[Any]) -> float:
    """Return the mean of a long array, part by part: one under a map need not all be in memory.

    Examples
    --------
    >>> mean_of(np.array([1.0, 2.0]))
    1.5
    """
    return sum(float(values[part].sum()) for part in parts_of(len(values))) / len(values)


def order_statistics(values: npt.NDArray[np.float64], ranks: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
    """Return the values at some ranks, from 0, as in `np.partition`; of a long array mostly without a copy of it.

    Some of its values tell about where a rank is: only the values there are put in order.

    Examples
    --------
    >>> order_statistics(np.array([0.3, 0.1, 0.2]), np.array([0, 2])).tolist()
    [0.1, 0.3]
    """
    if len(values) <= _PART:
        return np.asarray(np.partition(values, ranks)[ranks])
    some = np.sort(values[:: len(values) // SHORT])
    return np.array([_at_rank(values, some, int(rank)) for rank in ranks])


def _at_rank(values: npt.NDArray[np.float64], some: npt.NDArray[np.float64], rank: int) -> float:
    """Return the value at a rank; `some` of the values are in order."""
    place, reach = rank * len(some) // len(values), _DEVIATIONS * int(np.sqrt(len(some)))
    low = some[place - reach] if place >= reach else -np.inf
    high = some[place + reach] if place + reach < len(some) else np.inf
    parts = [values[at] for at in parts_of(len(values))]

    def count(which: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.bool_]]) -> int:
        return sum(int(np.count_nonzero(which(part))) for part in parts)

    # Of values that are tied with an end, however many they are, none need be put in order.
    first = count(lambda part: part <= low)
    if count(lambda part: part < low) <= rank < first:
        return float(low)
    near = np.concatenate([part[(part > low) & (part < high)] for part in parts])
    if first + len(near) <= rank < count(lambda part: part <= high):
        return float(high)
    if not first <= rank < first + len(near):
        near, first = values, 0
    return float(np.partition(near, rank - first)[rank - first])


def order_of(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the places of values in ascending order, as `np.argsort` does, ties by place; shape (n,).

    A long array's values are sorted into ranges first, and each of these by itself.

    Examples
    --------
    >>> order_of(np.array([0.3, 0.1, 0.3])).tolist()
    [1, 0, 2]
    """
    if len(values) <= _PART:
        return np.argsort(values, kind="stable")
    some = np.sort(values[:: len(values) // SHORT])
    edges = np.unique(some[:: max(len(some) * _PART // len(values), 1)])
    size = np.zeros(len(edges) + 1, np.int64)
    for at in parts_of(len(values)):
        size += np.bincount(np.searchsorted(edges, values[at], side="right"), minlength=len(size))
    return _sorted_in_ranges(values, edges, np.append(0, np.cumsum(size)))


def _sorted_in_ranges(
    values: npt.NDArray[np.float64], edges: npt.NDArray[np.float64], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Put places and values where their range begins, part after part, and then in order within."""
    places, moved = long_array(len(values), np.int64), long_array(len(values))
    filled_to = starts[:-1].copy()
    for at in parts_of(len(values)):
        own = np.searchsorted(edges, values[at], side="right")
        order, count = np.argsort(own, kind="stable"), np.bincount(own, minlength=len(filled_to))
        for one, some in enumerate(np.split(order, np.cumsum(count)[:-1])):
            to = slice(filled_to[one], filled_to[one] + len(some))
            places[to], moved[to] = at.start + some, values[at][some]
        filled_to += count
    for start, stop in pairwise(starts.tolist()):
        places[start:stop] = places[start:stop][np.argsort(moved[start:stop], kind="stable")]
    return places


def shuffled_rows(length: int, random: np.random.Generator) -> npt.NDArray[np.integer[Any]]:
    """Return row numbers in random order, of as few bytes as will do; shape (length,).

    In memory: whoever goes to random places of a file waits for each of them.

    Examples
    --------
    >>> sorted(shuffled_rows(3, np.random.default_rng(0)).tolist())
    [0, 1, 2]
    """
    rows: npt.NDArray[Any] = np.arange(length, dtype=np.int32 if length < 2**31 else np.int64)
    random.shuffle(rows)
    return rows


class PairTotals(NamedTuple):
    """Sums over some pairs, by user and by item.

    Parameters
    ----------
    first
        The first user who has one of the pairs.
    by_user, by_item
        Sums of the users from there on, and of all items, shape (n_items,).
    """

    first: int
    by_user: npt.NDArray[np.float64]
    by_item: npt.NDArray[np.float64]

    @classmethod
    def of(
        cls,
        users: npt.NDArray[np.integer[Any]],
        items: npt.NDArray[np.integer[Any]],
        values: npt.NDArray[np.float64],
        n_items: int,
    ) -> PairTotals:
        """Add values up, shape (m,) of m pairs; where these are in the order of their users, few users have some.

        Examples
        --------
        >>> found = PairTotals.of(np.array([5, 6]), np.array([2, 2]), np.array([1.0, 2.0]), 3)
        >>> found.first, found.by_user.tolist(), found.by_item.tolist()
        (5, [1.0, 2.0], [0.0, 0.0, 3.0])
        """
        first = int(users.min())
        by_user: npt.NDArray[Any] = np.bincount(users - first, weights=values)
        by_item: npt.NDArray[Any] = np.bincount(items, weights=values, minlength=n_items)
        return cls(first, by_user, by_item)

    def add_to(self, by_user: npt.NDArray[np.float64], by_item: npt.NDArray[np.float64]) -> None:
        """Add these sums to those of all users and items, shapes (n_users,) and (n_items,)."""
        by_user[self.first : self.first + len(self.by_user)] += self.by_user
        by_item += self.by_item


def counts(positions: npt.NDArray[np.integer[Any]], size: int) -> npt.NDArray[np.int64]:
    """Count how often each position occurs, shape (size,), without a copy of all positions.

    Examples
    --------
    >>> counts(np.array([0, 2, 0]), 3).tolist()
    [2, 0, 1]
    """
    found = np.zeros(size, np.int64)
    for part in parts_of(len(positions), size=max(_TOTALLED, 4 * size)):
        found += np.bincount(positions[part], minlength=size)
    return found
