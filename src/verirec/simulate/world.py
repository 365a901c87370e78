"""A world whose truth is known in every cell, and which is never larger in memory than its log and a budget."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.checks import whole_number
from verirec.data.cells import CellValues, Positions, block_positions, cell_keys, pair_positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import Grid
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.exceptions import MemoryBudgetError, PredictionError
from verirec.formatting import bytes_in_words, html_table, share_in_words
from verirec.losses import LossLike, NoiseRates, get_loss
from verirec.randomness import RandomState, as_generator
from verirec.simulate.opinions import BOT, CARELESS, Opinions

MOST_FACTORS: Final = 10_000
"""Length of the vectors that preferences and ratings may have."""
DEFAULT_BUDGET: Final = 1 << 30

_BYTES_PER_CELL: Final = 8 + 8 + 1 + 1 + 1


class WorldCells(NamedTuple):
    """All there is to know of some cells, each an array of one shape."""

    preferences: npt.NDArray[np.float64]
    true_labels: npt.NDArray[np.int8]
    propensities: npt.NDArray[np.float64]
    observed: npt.NDArray[np.bool_]
    noisy_labels: npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False, repr=False)
class World:
    r"""A simulated world: preferences, what people say, what gets logged, and the truth beside it.

    For each pair: preference probability :math:`\gamma`, true label :math:`r^* \sim Bern(\gamma)`, propensity p,
    observation :math:`o \sim Bern(p)`, and the label r that is (or would be) logged, :math:`r^*` flipped with the
    noise rates. Cells are worked out where they are asked for: `at` and `block` serve worlds of any size, and the
    whole matrices (`preferences`, `true_labels`, `propensities`, `observed`, `noisy_labels`) are there as long as
    they fit `memory_budget`.

    Make one with `verirec.simulate.world`, `on_matrix`, `on_levels` or `on_completed`.

    Parameters
    ----------
    log
        What a user of the world would have: the observed pairs with their noisy labels, by user and item.
    opinions
        What people truly prefer and what they say.
    propensity_values
        p of any cells, for worlds too large for the matrix `propensities`.
    levels
        The integer level of each cell, for worlds made of levels.
    memory_budget
        Bytes that the whole matrices may take together.
    """

    log: FeedbackLog
    opinions: Opinions
    propensity_values: CellValues
    levels: npt.NDArray[np.int8] | None = None
    memory_budget: int = DEFAULT_BUDGET

    @property
    def noise_rates(self) -> NoiseRates:
        """The true noise rates."""
        return self.opinions.noise_rates

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.log.n_users

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.log.n_items

    def __repr__(self) -> str:
        size = f"{self.n_users:,} users x {self.n_items:,} items"
        return f"World({size}, {share_in_words(self.log.density)} observed, {self.noise_rates})"

    def _repr_html_(self) -> str:
        facts = {
            "grid": f"{self.n_users:,} users x {self.n_items:,} items",
            "rows of the log": f"{len(self.log):,}, {share_in_words(self.log.density)} of the grid",
            "noise rates": str(self.noise_rates),
        }
        return html_table("A simulated world, whose truth is known", facts)

    def at(self, users: npt.ArrayLike, items: npt.ArrayLike) -> WorldCells:
        """Return the truth of single pairs: positions of shape (n,), fields of shape (n,).

        Examples
        --------
        >>> from verirec import simulate
        >>> world = simulate.world(n_users=40, n_items=60, random_state=0)
        >>> bool((world.at([3, 5], [7, 9]).true_labels == world.true_labels[[3, 5], [7, 9]]).all())
        True
        """
        return self._cells(*pair_positions(users, items, (self.n_users, self.n_items)))

    def block(self, users: npt.ArrayLike, items: npt.ArrayLike) -> WorldCells:
        """Return the truth of a rectangle: `users` (a,), `items` (b,), fields of shape (a, b)."""
        return self._cells(*block_positions(users, items, (self.n_users, self.n_items)))

    def _cells(self, users: Positions, items: Positions) -> WorldCells:
        preferences, true_labels, noisy_labels = self.opinions.all(users, items)
        propensities = self.propensity_values.cells(users, items)
        return WorldCells(preferences, true_labels, propensities, self._is_observed(users, items), noisy_labels)

    def wrong_chances(self, users: npt.ArrayLike, items: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return how likely the labels of single pairs are to be wrong, given what is true of them; shape (n,).

        Examples
        --------
        >>> from verirec import simulate
        >>> world = simulate.world(n_users=40, n_items=60, random_state=0)
        >>> sorted(set(world.wrong_chances([0] * 60, range(60)).tolist()))
        [0.1, 0.2]
        """
        return self.opinions.wrong_chances(*pair_positions(users, items, (self.n_users, self.n_items)))

    @property
    def careless_users(self) -> npt.NDArray[np.bool_]:
        """Which users are careless, shape (n_users,)."""
        return self._of_habit(CARELESS)

    @property
    def bot_users(self) -> npt.NDArray[np.bool_]:
        """Which users are bots, shape (n_users,)."""
        return self._of_habit(BOT)

    def _of_habit(self, habit: int) -> npt.NDArray[np.bool_]:
        habits = self.opinions.habits
        return np.zeros(self.n_users, bool) if habits is None else np.asarray(habits == habit)

    @cached_property
    def _log_keys(self) -> npt.NDArray[np.int64]:
        return cell_keys(self.log.users, self.log.items, self.n_items)

    def _is_observed(self, users: Positions, items: Positions) -> npt.NDArray[np.bool_]:
        keys = cell_keys(users, items, self.n_items)
        found = np.minimum(np.searchsorted(self._log_keys, keys), len(self.log) - 1)
        return np.asarray(self._log_keys[found] == keys)

    @cached_property
    def _whole(self) -> WorldCells:
        size = self.log.n_cells * _BYTES_PER_CELL
        if size > self.memory_budget:
            raise MemoryBudgetError(
                f"the matrices of {self.n_users:,} x {self.n_items:,} cells would take {bytes_in_words(size)}, above "
                f"the memory_budget of {bytes_in_words(self.memory_budget)}; use world.at(users, items) or "
                "world.block(users, items)"
            )
        kinds = (np.float64, np.int8, np.float64, np.bool_, np.int8)
        matrices: list[npt.NDArray[Any]] = [np.empty((self.n_users, self.n_items), kind) for kind in kinds]
        for users, items in Grid(self.log.shape, max_cells=self.log.n_cells).blocks():  # As many as the budget allows.
            place = np.ix_(users, items)
            for matrix, part in zip(matrices, self.block(users, items), strict=True):
                matrix[place] = part
        for matrix in matrices:
            matrix.flags.writeable = False
        return WorldCells(*matrices)

    @property
    def preferences(self) -> npt.NDArray[np.float64]:
        """Gamma of every pair, shape (n_users, n_items)."""
        return self._whole.preferences

    @property
    def true_labels(self) -> npt.NDArray[np.int8]:
        """What every user truly prefers, r*."""
        return self._whole.true_labels

    @property
    def propensities(self) -> npt.NDArray[np.float64]:
        """The true p of every pair."""
        return self._whole.propensities

    @property
    def observed(self) -> npt.NDArray[np.bool_]:
        """Which pairs are in the log, o."""
        return self._whole.observed

    @property
    def noisy_labels(self) -> npt.NDArray[np.int8]:
        """What every user says or would say, r."""
        return self._whole.noisy_labels

    def true_inaccuracy(
        self,
        predictions: PredictionsLike,
        loss: LossLike = "log",
        *,
        sample: int | None = None,
        random_state: RandomState = None,
    ) -> float:
        r"""Return the true prediction inaccuracy, :math:`P^* = |D|^{-1} \sum_D l(f, r^*)` (paper, Section 3.1).

        Parameters
        ----------
        predictions
            A dense array, (users, items, scores) for every pair, a function of (users, items), or factors.
        loss
            "log", "squared", "absolute", or a function of (f, y).
        sample
            Average over this many random cells in place of all. By default all of them, up to 4 billion; ten million
            of larger worlds.
        random_state
            Of the sample.

        Examples
        --------
        >>> from verirec import simulate
        >>> world = simulate.world(n_users=40, n_items=60, random_state=0)
        >>> round(world.true_inaccuracy(lambda users, items: np.full(len(users), 0.5)), 4)
        0.6931
        """
        values = as_predictions(predictions, self.n_users, self.n_items)
        measured = get_loss(loss)
        if sample is not None:
            random = as_generator(random_state)
            pairs = [random.integers(size, size=whole_number("sample", sample)) for size in values.shape]
            return float(measured.of(values.at(*pairs), self.at(*pairs).true_labels).mean())
        grid = Grid(self.log.shape)

        def losses(users: Positions, items: Positions) -> npt.NDArray[np.float64]:
            return measured.of(values.cells(users, items), self.opinions.true_labels(users, items))

        try:
            return grid.mean(losses, parallel=False)
        except PredictionError:
            # Count them all, so that the message speaks of the whole grid and not of one block.
            measured.check(grid.map_cells(values.cells, parallel=False))
            raise
