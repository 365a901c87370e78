"""Worlds of K levels: stars that people mean, what they say of them, and a log that depends on what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import number_array, real_number, whole_number
from verirec.data.distributions import as_distributions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.gate import grid_size
from verirec.data.grid import Grid
from verirec.data.levels import Levels, checked_levels, level_indices
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.exceptions import EmptyLogError, ParameterError
from verirec.losses import LossLike, TransitionMatrix, get_level_loss
from verirec.randomness import RandomState, as_generator
from verirec.simulate.levels import LEVEL_PROPORTIONS, LevelCells, level_propensities, levels_by_rank
from verirec.simulate.preferences import LowRankPreferences
from verirec.simulate.selection import draw_by_cell

STARS: Final = (1.0, 2.0, 3.0, 4.0, 5.0)
_NOISE: Final = 0.3
"""How often, by default, stars are taken for one of their neighbours."""


@dataclass(frozen=True, eq=False, repr=False)
class GradedWorld:
    """A world whose true level is known in every cell.

    Parameters
    ----------
    log
        The observed pairs with the levels that were said.
    places
        The true level of each cell, by its place from 0, shape (n_users, n_items).
    noise
        From true levels to said ones.
    propensity_values
        p of any cells, by their true levels.
    """

    log: FeedbackLog
    places: npt.NDArray[np.int8]
    noise: TransitionMatrix
    propensity_values: LevelCells

    @property
    def levels(self) -> Levels:
        """The levels' values."""
        return self.log.levels or ()

    @property
    def true_values(self) -> npt.NDArray[np.float64]:
        """What every user truly thinks of every item, in stars; shape (n_users, n_items)."""
        return np.asarray(np.array(self.levels)[self.places])

    @property
    def propensities(self) -> npt.NDArray[np.float64]:
        """The true p of every pair."""
        return np.asarray(self.propensity_values.values[1:][self.places])

    def __repr__(self) -> str:
        return f"GradedWorld({self.log!r}, {self.noise!r})"

    def survey(self, size: int, random_state: RandomState = None) -> tuple[npt.NDArray[Any], ...]:
        """Draw random pairs, with replacement: users, items and true levels, as `SurveySample` takes them."""
        pairs = Grid(self.places.shape).sample(whole_number("size", size), as_generator(random_state))
        return *pairs, self.true_values[pairs]

    def audit(self, size: int, random_state: RandomState = None) -> tuple[npt.NDArray[Any], ...]:
        """Draw logged pairs, without replacement: users, items and true levels, as `AuditSample` takes them."""
        count = whole_number("size", size, max=len(self.log))
        rows = np.sort(as_generator(random_state).choice(len(self.log), count, replace=False))
        pairs = self.log.users[rows], self.log.items[rows]
        return *pairs, self.true_values[pairs]

    def true_inaccuracy(self, predictions: PredictionsLike, loss: LossLike = "squared") -> float:
        """Return the mean loss over all pairs, against the true levels.

        Examples
        --------
        >>> world = stars(40, 60, random_state=0)
        >>> world.true_inaccuracy(world.true_values), world.true_inaccuracy(world.true_values + 0.5, "absolute")
        (0.0, 0.5)
        """
        judged, (n_users, n_items) = get_level_loss(loss, self.levels), self.places.shape
        if judged.distributions:
            values: Any = as_distributions(predictions, n_users, n_items, len(self.levels))
        else:
            values = as_predictions(predictions, n_users, n_items)
        return Grid(self.places.shape).mean(
            lambda users, items: judged.of(values.cells(users, items), self.places[users, items]), parallel=False
        )


def on_stars(
    true_values: npt.ArrayLike,
    *,
    levels: Any = STARS,
    noise: TransitionMatrix | None = None,
    propensities: tuple[float, ...] | None = None,
    random_state: RandomState = None,
) -> GradedWorld:
    """Make a world of a complete matrix of true stars: what is said of them, and which are logged, are simulated.

    Parameters
    ----------
    true_values
        Values among the levels, shape (n_users, n_items).
    levels
        Their values, in ascending order.
    noise
        By default 30% are taken for a neighbouring level (`TransitionMatrix.band`).
    propensities
        p of each level, lowest first; by default the paper's formula for five levels, and .1 for other numbers.
    random_state
        Seed or generator.

    Examples
    --------
    >>> world = on_stars(np.random.default_rng(0).integers(1, 6, (30, 40)), random_state=0)
    >>> world.log
    FeedbackLog(235 rows, 30 users x 40 items, 19.58% of the grid, 5 levels with a mean of 4.09)
    """
    scale = checked_levels(levels)
    matrix = number_array("true_values", true_values, ndim=2)
    places = level_indices(matrix, scale, "true_values")
    if noise is None:
        noise = TransitionMatrix.band(len(scale), _NOISE)
    if not isinstance(noise, TransitionMatrix) or noise.n_levels != len(scale):
        raise ParameterError(f"noise must be a TransitionMatrix of {len(scale)} levels")
    chances = level_propensities() if propensities is None and len(scale) == 5 else propensities
    chances = (0.1,) * len(scale) if chances is None else tuple(chances)
    if len(chances) != len(scale):
        raise ParameterError(f"propensities must be {len(scale)} numbers, one a level; got {len(chances)}")
    checked = tuple(real_number("propensities", one, above=0, below=1, closed=True) for one in chances)
    random = as_generator(random_state)
    selection = LevelCells(places + 1, checked)
    users, items = draw_by_cell(selection, places.shape[0], places.shape[1], random)
    if len(users) == 0:
        raise EmptyLogError("no pair was observed; raise the propensities")
    said = noise.observe(places[users, items], random.random(len(users)))
    size = {"n_users": places.shape[0], "n_items": places.shape[1], "levels": scale}
    log = FeedbackLog.from_arrays(users, items, np.array(scale)[said], **size)
    return GradedWorld(log, places, noise, selection)


def stars(
    n_users: int = 200,
    n_items: int = 300,
    *,
    noise: TransitionMatrix | None = None,
    proportions: tuple[float, ...] = LEVEL_PROPORTIONS,
    propensities: tuple[float, ...] | None = None,
    rank: int = 8,
    random_state: RandomState = None,
) -> GradedWorld:
    """Make a world of five levels from parameters: low-rank tastes, sorted into levels with some of chance.

    Parameters
    ----------
    n_users, n_items
        The grid's size.
    noise, propensities
        As in `on_stars`.
    proportions
        Shares of the levels, lowest first.
    rank
        Length of the vectors that tastes are made of.
    random_state
        Seed or generator; the same seed gives the same world.

    Examples
    --------
    >>> stars(40, 60, random_state=0).log
    FeedbackLog(230 rows, 40 users x 60 items, 9.58% of the grid, 5 levels with a mean of 2.49)
    """
    random = as_generator(random_state)
    shape = grid_size("n_users", n_users), grid_size("n_items", n_items)
    tastes = LowRankPreferences(*shape, whole_number("rank", rank), False, random)
    scores = tastes.block(np.arange(shape[0]), np.arange(shape[1])) + random.normal(0, 0.15, shape)
    true_values = levels_by_rank(scores, proportions)
    return on_stars(true_values, noise=noise, propensities=propensities, random_state=random)
