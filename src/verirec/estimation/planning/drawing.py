"""Pairs drawn with unequal probabilities, a given number of them, none twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.data.parts import parts_of, totals
from verirec.scratch import each, long_array, those

Array = npt.NDArray[np.float64]


def inclusion_probabilities(sizes: Array, count: float) -> Array:
    """Return probabilities in proportion to sizes that add up to `count`; those that would be above 1 are 1.

    Parameters
    ----------
    sizes
        Above 0, shape (m,).
    count
        At most m.

    Examples
    --------
    >>> inclusion_probabilities(np.array([1.0, 1.0, 2.0]), 2).tolist()
    [0.5, 0.5, 1.0]
    """
    certain = each(np.zeros_like, sizes, dtype=bool)
    while True:
        rest = float(those(sizes, each(np.logical_not, certain, dtype=bool)).sum())
        factor = (count - np.count_nonzero(certain)) / rest if rest > 0 else 0.0
        found = each(lambda size, sure, by: np.where(sure, 1.0, size * by), sizes, certain, factor)
        above = each(lambda chance, sure: (chance > 1) & ~sure, found, certain, dtype=bool)
        if not above.any():
            return found
        certain |= above


def draw(probabilities: Array, count: int, random: np.random.Generator) -> npt.NDArray[np.integer[Any]]:
    r"""Draw `count` places with inclusion probabilities that add up to it (Pareto sampling: Rosén 1997).

    Each place has a uniform number u and the rank :math:`\frac{u}{1 - u} \cdot \frac{1 - \pi}{\pi}`; the smallest
    ranks are drawn. Their inclusion probabilities are :math:`\pi` but for terms that vanish as the sum of
    :math:`\pi (1 - \pi)` grows, below a thousandth at a few dozen.

    Parameters
    ----------
    probabilities
        Above 0, shape (m,).

    Returns
    -------
    Places, in random order, shape (count,).

    Examples
    --------
    >>> drawn = draw(np.array([0.5, 1.0, 0.5]), 2, np.random.default_rng(0))
    >>> len(drawn), 1 in drawn
    (2, True)
    """
    if count == 0:
        return np.empty(0, np.int64)
    ranks = random.random(out=long_array(len(probabilities)))
    ranks = each(lambda uniform, p: uniform / (1 - uniform) * (1 - p) / p, ranks, probabilities)
    return random.permutation(_smallest(ranks, count))


def _smallest(values: Array, count: int) -> npt.NDArray[np.integer[Any]]:
    """Return the places of the smallest values, so many; part by part, as there may be as many as a log has rows."""
    places: npt.NDArray[np.integer[Any]] = np.empty(0, np.int64)
    for part in parts_of(len(values)):
        # Of a single part, as NumPy has them.
        places = np.concatenate([places, np.arange(part.start, part.stop)])
        if len(places) >= count:
            places = places[np.argpartition(values[places], count - 1)[:count]]
    return places


def draw_one_each(
    sizes: Array, owners: npt.NDArray[np.integer[Any]], count: int, random: np.random.Generator
) -> tuple[npt.NDArray[np.integer[Any]], Array]:
    r"""Draw `count` places in proportion to their sizes, at most one of each owner.

    Owners are drawn in proportion to all that is theirs, and then one of their places in proportion to its size: each
    place has the probability that it would have by itself, :math:`n s / \sum s`, unless an owner is certain.

    Parameters
    ----------
    sizes, owners
        Above 0, and whose each place is; shape (m,).
    count
        At most as many as there are owners.

    Returns
    -------
    Places, in random order, and the probability of each; shape (count,).

    Examples
    --------
    >>> drawn, chances = draw_one_each(np.ones(4), np.array([7, 7, 8, 9]), 2, np.random.default_rng(0))
    >>> len({[7, 7, 8, 9][place] for place in drawn})
    2
    """
    each, owner = np.unique(owners, return_inverse=True)
    of_owner = totals(owner, sizes, len(each))
    chances = inclusion_probabilities(of_owner, count)
    some = draw(chances, count, random)
    order = np.argsort(owner, kind="stable")
    so_far = np.cumsum(sizes[order])
    starts = np.searchsorted(owner[order], some)
    before = np.where(starts > 0, so_far[starts - 1], 0.0)
    at = np.searchsorted(so_far, before + random.random(count) * of_owner[some], side="right")
    drawn = order[np.clip(at, starts, np.searchsorted(owner[order], some, side="right") - 1)]
    return drawn, chances[some] * sizes[drawn] / of_owner[some]
