"""Random numbers without global state: generators made from a `random_state`, and numbers that belong to grid cells."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from verirec.exceptions import ParameterError
from verirec.formatting import short

RandomState = int | np.random.Generator | None

SAMPLE_STREAM: Final = 3
FOLDS_STREAM: Final = 4
SLOPES_STREAM: Final = 5
"""Streams of one seed, `default_rng([seed, stream])`: pairs that stand for a target, folds of a label model, and pairs
from which a range's derivatives are worked out draw numbers of their own."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Make a generator: from a seed, from fresh entropy (`None`), or take the one given.

    Examples
    --------
    >>> int(as_generator(0).integers(100)) == int(as_generator(0).integers(100))
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None or (
        isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0
    ):
        return np.random.default_rng(random_state)
    raise ParameterError(
        f"random_state must be a whole number of at least 0, a numpy Generator or None; got {short(random_state)}"
    )


def same_state(random_state: RandomState) -> int:
    """Return a seed for several parts that are to draw the same numbers; one that is a seed already stays what it is.

    Examples
    --------
    >>> same_state(7)
    7
    """
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    return int(as_generator(random_state).integers(2**32))


def cell_uniforms(key: np.uint64, cells: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Return each grid cell its own uniform number in [0, 1), whatever the order or the block in which it is asked for.

    The number is a hash of the cell's index (SplitMix64's finaliser: Steele, Lea, Flood 2014, "Fast splittable
    pseudorandom number generators") under `key`, so that nothing of the grid's size is ever stored. Keys are drawn from
    64 random bits: then two of them give unrelated numbers.

    Examples
    --------
    >>> cells = np.arange(6, dtype=np.uint64)
    >>> bool((cell_uniforms(np.uint64(7), cells)[2:4] == cell_uniforms(np.uint64(7), cells[2:4])).all())
    True
    """
    mixed = cells * _GOLDEN
    mixed += key
    mixed ^= mixed >> np.uint64(30)
    mixed *= _MIX_1
    mixed ^= mixed >> np.uint64(27)
    mixed *= _MIX_2
    mixed ^= mixed >> np.uint64(31)
    mixed >>= np.uint64(11)
    return np.asarray(mixed * 2.0**-53, dtype=np.float64)
