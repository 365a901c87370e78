"""The grid of all user-item pairs, and the only walks over it: in blocks, by threads, never over more than its cap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues, Positions
from verirec.data.parts import parts_of
from verirec.data.threads import mapped
from verirec.engine import current_engine
from verirec.engine.worker import usable_cores
from verirec.exceptions import GridSizeError
from verirec.progress import working

Block = tuple[Positions, Positions]
"""Positions of users and of items, both flat: the rectangle of their pairs."""
Result = TypeVar("Result")

BLOCK_CELLS: Final = 1 << 20
"""Cells of one block: 8 MB a float64 array, small enough to stay near the processor."""
MAX_CELLS: Final = 4_000_000_000
"""Grids up to this size are visited cell by cell, at some 10 ns a cell; larger ones by a sample."""
SAMPLE_CELLS: Final = 10_000_000
"""Cells that stand for a larger grid."""
WORTH_SENDING: Final = 1 << 20
"""Fewer cells are visited here, whatever the engine: to send them would take longer."""
_STRIPS: Final = 64
_STRIP_CELLS: Final = 1 << 22
_SIDE: Final = 1_000
"""Users, and items, of a random rectangle."""


@dataclass(frozen=True)
class Grid:
    """All pairs of users and items, as something to walk over.

    Whatever visits the pairs of a grid asks this for them. A walk over all pairs costs time that grows with their
    number; beyond `max_cells` a random sample stands for them or, where it cannot, `GridSizeError` is raised.

    Parameters
    ----------
    shape
        (n_users, n_items).
    block_cells
        Cells visited at a time. Sums over the grid depend on it in their last digits.
    max_cells
        The largest grid of which every cell is visited.
    sample_cells
        Cells that stand for a larger one.
    threads
        Blocks that are worked on at once, where that is safe: by default one a core. The results do not depend on it.

    Examples
    --------
    >>> [(len(users), len(items)) for users, items in Grid((5, 4), block_cells=8).blocks()]
    [(2, 4), (2, 4), (1, 4)]
    >>> [(len(users), len(items)) for users, items in Grid((2, 5), block_cells=3).blocks()]
    [(1, 3), (1, 2), (1, 3), (1, 2)]
    >>> Grid((3, 4)).total(lambda users, items: users * items)
    18.0
    """

    shape: tuple[int, int]
    block_cells: int = BLOCK_CELLS
    max_cells: int = MAX_CELLS
    sample_cells: int = SAMPLE_CELLS
    threads: int = field(default_factory=usable_cores)

    @property
    def n_cells(self) -> int:
        """Number of pairs."""
        return self.shape[0] * self.shape[1]

    @property
    def fits(self) -> bool:
        """Whether every pair may be visited."""
        return self.n_cells <= self.max_cells

    def blocks(self, random: np.random.Generator | None = None) -> Iterator[Block]:
        """Walk over all pairs in rectangles of at most `block_cells` cells, row by row.

        Beyond `max_cells`, over random rectangles of about `sample_cells` cells in all if there is a generator to draw
        them (a user or an item may be drawn twice); without one, `GridSizeError`.
        """
        if self.fits:
            return self._all_blocks()
        if random is None:
            raise GridSizeError(
                f"{self.shape[0]:,} users x {self.shape[1]:,} items are {self.n_cells:,} pairs, above the "
                f"{self.max_cells:,} that may all be visited"
            )
        return self._random_blocks(random)

    def _all_blocks(self) -> Iterator[Block]:
        n_users, n_items = self.shape
        width = min(n_items, self.block_cells)
        height = max(1, self.block_cells // width)
        # One array of items for all blocks that have them all: a list of many blocks stays small.
        all_items = np.arange(width)
        for top in range(0, n_users, height):
            users = np.arange(top, min(top + height, n_users))
            yield users, all_items
            for left in range(width, n_items, width):
                yield users, np.arange(left, min(left + width, n_items))

    def _random_blocks(self, random: np.random.Generator) -> Iterator[Block]:
        height, width = (min(_SIDE, size) for size in self.shape)
        for _ in range(max(1, self.sample_cells // (height * width))):
            yield random.integers(self.shape[0], size=height), random.integers(self.shape[1], size=width)

    def map_blocks(
        self, function: Callable[[Block], Result], *, parallel: bool = True, random: np.random.Generator | None = None
    ) -> Iterator[tuple[Block, Result]]:
        """Apply a function to each of `blocks`, by threads where it is `parallel`; results in the grid's order.

        For functions that spend their time inside NumPy (see `mapped`).
        """
        walk = list(self.blocks(random))
        sizes = [len(users) * len(items) for users, items in walk]
        return zip(walk, self._mapped(function, walk, sizes, parallel), strict=True)

    def _mapped(
        self, function: Callable[[Any], Result], walk: list[Any], sizes: list[int], parallel: bool
    ) -> Iterator[Result]:
        total = sum(sizes)
        engine = current_engine()
        if engine.elsewhere and total >= WORTH_SENDING:
            results = engine.map(function, walk)
        else:
            results = mapped(function, walk, threads=self.threads) if parallel else map(function, walk)
        with working("pairs", total, "pairs") as task:
            for size, result in zip(sizes, results, strict=True):
                yield result
                task.advance(size)

    def map_strips(self, function: Callable[[list[Block]], Result], *, parallel: bool = True) -> Iterator[Result]:
        """Apply a function to runs of blocks, which depend on the grid alone; results in the grid's order.

        For sums by item: those of a strip are added up where it is visited, and are all that comes back of it.
        """
        walk = list(self.blocks())
        count = max(1, min(_STRIP_CELLS, self.n_cells // _STRIPS) // self.block_cells)
        strips = [walk[start : start + count] for start in range(0, len(walk), count)]
        sizes = [sum(len(users) * len(items) for users, items in strip) for strip in strips]
        return self._mapped(function, strips, sizes, parallel)

    def map_cells(
        self, function: Callable[[Positions, Positions], Result], *, parallel: bool = True
    ) -> Iterator[Result]:
        """Apply a function to the positions of all pairs, block by block: (a, 1) users against (1, b) items.

        Beyond `max_cells`, to those of a fixed random sample, (n,) each: both broadcast together.
        """
        if self.fits:
            walk: list[Block] = [(users[:, None], items[None, :]) for users, items in self.blocks()]
        else:
            users, items = self.sample(self.sample_cells, np.random.default_rng(0))
            walk = [(users[part], items[part]) for part in parts_of(self.sample_cells, size=self.block_cells)]
        sizes = [np.broadcast(*pairs).size for pairs in walk]
        return self._mapped(lambda pairs: function(*pairs), walk, sizes, parallel)

    def total(self, function: Callable[[Positions, Positions], npt.NDArray[Any]], *, parallel: bool = True) -> float:
        """Add up a function of the positions over all pairs; beyond `max_cells`, estimate it from `map_cells`."""
        total, count = self._added_up(function, parallel)
        return total if self.fits else total / count * self.n_cells

    def mean(self, function: Callable[[Positions, Positions], npt.NDArray[Any]], *, parallel: bool = True) -> float:
        """Average a function of the positions over all pairs; beyond `max_cells`, over those of `map_cells`."""
        total, count = self._added_up(function, parallel)
        return total / count

    def _added_up(
        self, function: Callable[[Positions, Positions], npt.NDArray[Any]], parallel: bool
    ) -> tuple[float, int]:
        def visit(users: Positions, items: Positions) -> tuple[float, int]:
            part = function(users, items)
            return float(part.sum()), part.size

        total, count = 0.0, 0
        for part, size in self.map_cells(visit, parallel=parallel):
            total, count = total + part, count + size
        return total, count

    def extremes(self, values: CellValues) -> tuple[float, float]:
        """Return the smallest and the largest value; beyond `max_cells`, of those of `map_cells`.

        Examples
        --------
        >>> from verirec.data.cells import DenseCells
        >>> Grid((2, 2)).extremes(DenseCells(np.array([[0.2, 0.9], [0.1, 0.5]])))
        (0.1, 0.9)
        """

        def visit(users: Positions, items: Positions) -> tuple[float, float]:
            part = values.cells(users, items)
            return float(part.min()), float(part.max())

        lows, highs = zip(*self.map_cells(visit, parallel=values.parallel), strict=True)
        return min(lows), max(highs)

    def sample(self, size: int, random: np.random.Generator) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Draw pairs uniformly, with replacement: positions of users and of items, shape (size,) each."""
        return np.divmod(random.integers(self.n_cells, size=size), self.shape[1])
