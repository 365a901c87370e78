"""The pairs that an answer speaks for: a survey's users and all items, without the pairs that were trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.data.cells import Positions, cell_keys, pair_positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import Block, Grid
from verirec.data.pair_keys import NO_PAIRS, among, keys_of, pairs_of, union
from verirec.data.parts import parts_of
from verirec.estimation.unobserved import BLOCK_CELLS
from verirec.exceptions import ParameterError, SurveyError
from verirec.scratch import each, those

Array = npt.NDArray[np.float64]
Moments = Callable[[Positions, Positions], list[Array]]
Sums = Callable[[Positions, Positions], list[float]]


@dataclass(frozen=True, eq=False)
class Target:
    """Pairs of a grid: some users, or all, with all items, less the pairs that are left out.

    Parameters
    ----------
    shape
        The grid's (n_users, n_items).
    frame
        Positions of the users, in ascending order; `None` for all.
    left_out
        Pairs inside the frame that do not count, by `cell_keys`, each once and in ascending order.

    Examples
    --------
    >>> target = Target((3, 4), np.array([0, 2]), np.array([1, 8]))
    >>> len(target), target.holds(np.array([0, 1, 2]), np.array([0, 0, 0])).tolist()
    (6, [True, False, False])
    """

    shape: tuple[int, int]
    frame: npt.NDArray[np.int32] | None = None
    left_out: npt.NDArray[np.int64] = field(default_factory=lambda: NO_PAIRS)

    @classmethod
    def of(cls, shape: tuple[int, int], frame: npt.NDArray[np.int32] | None, exclude: Any = None) -> Target:
        """Leave pairs out of a frame: those of a log, of (users, items), or of several such."""
        keys = excluded_keys(exclude, shape)
        if frame is not None:
            keys = those(keys, each(lambda some: np.isin(some // shape[1], frame), keys, dtype=bool))
        target = cls(shape, frame, keys)
        if len(target) == 0:
            raise SurveyError("exclude leaves no pair to speak of: it has all pairs of the surveyed users")
        return target

    @property
    def users(self) -> npt.NDArray[np.int32]:
        """Positions of its users."""
        return np.arange(self.shape[0], dtype=np.int32) if self.frame is None else self.frame

    @property
    def pairs_left_out(self) -> tuple[Positions, Positions]:
        """Users and items of the pairs that do not count."""
        return pairs_of(self.left_out, self.shape[1])

    def __len__(self) -> int:
        return (self.shape[0] if self.frame is None else len(self.frame)) * self.shape[1] - len(self.left_out)

    def holds(self, users: Positions, items: Positions) -> npt.NDArray[np.bool_]:
        """Tell which pairs are in it; shape (n,)."""
        return each(self._holds, users, items, dtype=bool)

    def _holds(self, users: Positions, items: Positions) -> npt.NDArray[np.bool_]:
        inside = ~among(cell_keys(users, items, self.shape[1]), self.left_out)
        return inside if self.frame is None else inside & np.isin(users, self.frame)

    @cached_property
    def grid(self) -> Grid:
        """Its users and all items, as something to walk over."""
        return Grid((len(self.users), self.shape[1]), BLOCK_CELLS)

    def means(self, moments: Moments, *, parallel: bool = True) -> Array:
        """Average functions of the positions over all its pairs, in one walk.

        Parameters
        ----------
        moments
            Gives, for positions that broadcast together, an array each.
        parallel
            Whether two threads may ask at once.
        """

        def sums(users: Positions, items: Positions) -> list[float]:
            return [float(part.sum(dtype=np.float64)) for part in moments(users, items)]

        return self.means_of_sums(sums, parallel=parallel)

    def means_of_sums(self, sums: Sums, *, parallel: bool = True) -> Array:
        """Average functions of the positions, as `means` does, by what adds each up over a block."""
        own = self.users  # Workers get these, and not the pairs that are left out, which may be as many as a log has.

        def visit(block: Block) -> Array:
            return np.array(sums(own[block[0]][:, None], block[1][None, :]))

        total = sum(part for _, part in self.grid.map_blocks(visit, parallel=parallel))
        for part in parts_of(len(self.left_out)):
            total = total - np.array(sums(*pairs_of(self.left_out[part], self.shape[1])))
        return np.asarray(total / len(self))

    def sample(self, size: int, random: np.random.Generator) -> tuple[Positions, Positions]:
        """Draw pairs uniformly, with replacement; about `size` less those that are left out, and at least 2."""
        while True:
            places, items = self.grid.sample(size, random)
            users = self.users[places]
            inside = self.holds(users, items)
            if inside.sum() >= 2 or len(self) == 0:
                return users[inside], items[inside]
            size = min(2 * size, self.grid.n_cells)


def excluded_keys(exclude: Any, shape: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Return the pairs to leave out: of a log, of (users, items), or of a sequence of such; none for `None`.

    Each once and in ascending order.
    """
    if exclude is None:
        return NO_PAIRS
    if isinstance(exclude, FeedbackLog):
        if exclude.shape != shape:
            raise ParameterError(f"exclude must be of the log's grid, {shape}; got a log of {exclude.shape}")
        return keys_of(exclude.users, exclude.items, shape[1])
    if not isinstance(exclude, Sequence) or isinstance(exclude, str):
        raise ParameterError(f"exclude must be a FeedbackLog or (users, items); got {type(exclude).__name__}")
    if exclude and all(isinstance(part, FeedbackLog | tuple) for part in exclude):
        return union(*(excluded_keys(part, shape) for part in exclude))
    if len(exclude) != 2:
        raise ParameterError(f"exclude must be a FeedbackLog or (users, items); got {len(exclude)} parts")
    return union(keys_of(*pair_positions(exclude[0], exclude[1], shape), shape[1]))


def training_rows(exclude: Any, shape: tuple[int, int]) -> int:
    """Count the pairs of logs among those to leave out: what was trained on, and could have been held out.

    A pair that several logs have counts once.
    """
    if isinstance(exclude, FeedbackLog):
        return len(exclude)
    logs = [part for part in exclude if isinstance(part, FeedbackLog)] if isinstance(exclude, Sequence) else []
    return len(excluded_keys(logs, shape)) if logs else 0
