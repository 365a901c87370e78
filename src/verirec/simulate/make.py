"""Making worlds: from parameters, on a real complete matrix, or on a completed one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.checks import number_array, real_number, truth_value, whole_number
from verirec.data.cells import CellValues, DenseCells
from verirec.data.feedback_log import FeedbackLog
from verirec.data.gate import grid_size
from verirec.data.parts import parts_of
from verirec.exceptions import EmptyLogError, ParameterError
from verirec.formatting import short
from verirec.losses import NoiseRates
from verirec.randomness import RandomState, as_generator
from verirec.simulate.completion import complete_ratings
from verirec.simulate.levels import (
    LEVEL_PROBABILITIES,
    LEVEL_PROPORTIONS,
    LevelCells,
    checked_levels,
    level_propensities,
    levels_by_rank,
)
from verirec.simulate.opinions import Opinions
from verirec.simulate.preferences import LowRankPreferences
from verirec.simulate.selection import LogisticSelection, Pairs, draw_by_cell
from verirec.simulate.world import DEFAULT_BUDGET, MOST_FACTORS, World

PAPER_RATES = NoiseRates(rho01=0.2, rho10=0.1)
"""The rates of the paper's studies."""


def world(
    n_users: int = 400,
    n_items: int = 600,
    *,
    noise_rates: NoiseRates = PAPER_RATES,
    near_threshold: bool = False,
    careless: float = 0.0,
    bots: float = 0.0,
    observed: float = 0.08,
    selectivity: float = 2.0,
    weak_separability: bool = True,
    rank: int = 8,
    random_state: RandomState = None,
    memory_budget: int = DEFAULT_BUDGET,
) -> World:
    r"""Make a world from parameters: low-rank preferences, logistic selection, class-conditional noise.

    Preferences: :math:`\gamma` from a factor model with user and item constants. Selection:
    :math:`p = \sigma(b + a_u + c_i + s\,\gamma)`. Time and memory grow with the log and with n_users + n_items, not
    with the grid, so that a million users and a hundred thousand items are no trouble.

    Parameters
    ----------
    n_users, n_items
        The grid's size.
    noise_rates
        How often a true preference is logged as its opposite.
    near_threshold
        True: people err where they are undecided. The rates are then those of pairs with a gamma of one half; others
        have :math:`4 \gamma (1 - \gamma)` of them.
    careless
        Share of users of whose answers every second is a coin's: rates of r become r/2 + 1/4. The world's
        `careless_users` says who they are.
    bots
        Share of users who like nine in ten of what they rate, whatever it is (`bot_users`).
    observed
        Expected share of the grid that is logged.
    selectivity
        s: how much the log-odds of being logged rise from what a user surely dislikes to what they surely like. 0:
        missing at random given user and item; negative: complaints only.
    weak_separability
        True: some pairs are surely liked and some surely not (gamma is 1 and 0), as the paper's anchor rule assumes.
        False: gamma stays within .1 and .9, as in the paper's own study.
    rank
        Length of the factor model's vectors.
    random_state
        Seed or generator; the same seed gives the same world.
    memory_budget
        Bytes that the world's whole matrices may take; larger worlds are read by `at` and `block`.

    Examples
    --------
    >>> world(n_users=40, n_items=60, observed=0.1, random_state=0).log
    FeedbackLog(261 rows, 40 users x 60 items, 10.88% of the grid, 47.5% positive)
    """
    _check_options(noise_rates, memory_budget)
    random = as_generator(random_state)
    n_users, n_items = grid_size("n_users", n_users), grid_size("n_items", n_items)
    for name, value in (("weak_separability", weak_separability), ("near_threshold", near_threshold)):
        truth_value(name, value)
    others = (
        real_number("careless", careless, above=0, below=1, closed=True),
        real_number("bots", bots, above=0, below=1, closed=True),
    )
    if sum(others) > 1:
        raise ParameterError(f"careless and bots are shares of the users, at most 1 together; got {sum(others):g}")
    preferences = LowRankPreferences(
        n_users, n_items, whole_number("rank", rank, max=MOST_FACTORS), bool(weak_separability), random
    )
    selection = LogisticSelection(preferences, (n_users, n_items), observed, selectivity, random)
    return _observe(
        preferences,
        selection,
        selection.draw(random),
        (n_users, n_items),
        noise_rates,
        random,
        memory_budget,
        near_threshold=bool(near_threshold),
        careless=others[0],
        bots=others[1],
    )


def on_matrix(
    preferences: npt.ArrayLike,
    *,
    noise_rates: NoiseRates = PAPER_RATES,
    observed: float = 0.08,
    selectivity: float = 2.0,
    random_state: RandomState = None,
    memory_budget: int = DEFAULT_BUDGET,
) -> World:
    """Make a world on top of known preferences, such as KuaiRec's complete block: selection and noise are simulated.

    Parameters
    ----------
    preferences
        Shape (n_users, n_items): true labels (0/1), or probabilities that labels are drawn from.
    noise_rates, observed, selectivity, random_state, memory_budget
        As in `world`.

    Examples
    --------
    >>> truth = np.random.default_rng(0).integers(2, size=(30, 40))
    >>> bool((on_matrix(truth, random_state=0).true_labels == truth).all())
    True
    """
    _check_options(noise_rates, memory_budget)
    matrix = number_array("preferences", preferences, ndim=2)
    if matrix.size == 0:
        raise ParameterError(f"preferences must have users in rows and items in columns; got shape {matrix.shape}")
    if not ((matrix >= 0) & (matrix <= 1)).all():
        wrong = int((~((matrix >= 0) & (matrix <= 1))).sum())
        raise ParameterError(f"preferences must be within 0 and 1; {wrong:,} of {matrix.size:,} cells are not")
    random = as_generator(random_state)
    cells = DenseCells(matrix.astype(np.float64))
    shape = (matrix.shape[0], matrix.shape[1])
    selection = LogisticSelection(cells, shape, observed, selectivity, random)
    return _observe(cells, selection, selection.draw(random), shape, noise_rates, random, memory_budget)


def on_levels(
    levels: npt.ArrayLike,
    *,
    noise_rates: NoiseRates = PAPER_RATES,
    probabilities: tuple[float, ...] = LEVEL_PROBABILITIES,
    propensities: tuple[float, ...] | None = None,
    random_state: RandomState = None,
    memory_budget: int = DEFAULT_BUDGET,
) -> World:
    """Make a world of five integer levels, each with its preference probability and its propensity (paper, Section 4).

    Parameters
    ----------
    levels
        Integers 1 to 5, shape (n_users, n_items).
    probabilities
        Gamma of levels 1 to 5.
    propensities
        p of levels 1 to 5; by default `level_propensities()`, the paper's formula.
    noise_rates, random_state, memory_budget
        As in `world`.

    Examples
    --------
    >>> world = on_levels(np.full((20, 30), 5), random_state=0)
    >>> float(world.propensities[0, 0]), float(world.preferences[0, 0])
    (0.5, 0.9)
    """
    _check_options(noise_rates, memory_budget)
    matrix = checked_levels(levels)
    by_level = level_propensities() if propensities is None else propensities
    for name, values in (("probabilities", probabilities), ("propensities", by_level)):
        if len(number_array(name, values, ndim=1)) != 5:
            raise ParameterError(f"{name} must be 5 numbers, one a level; got {len(values)}")
        for value in values:
            real_number(name, value, above=0, below=1, closed=True)
    random = as_generator(random_state)
    selection = LevelCells(matrix, tuple(by_level))
    shape = (matrix.shape[0], matrix.shape[1])
    drawn = draw_by_cell(selection, *shape, random)
    gamma = LevelCells(matrix, tuple(probabilities))
    return _observe(gamma, selection, drawn, shape, noise_rates, random, memory_budget, matrix)


def on_completed(
    log: FeedbackLog,
    *,
    noise_rates: NoiseRates = PAPER_RATES,
    proportions: tuple[float, ...] = LEVEL_PROPORTIONS,
    propensities: tuple[float, ...] | None = None,
    random_state: RandomState = None,
    memory_budget: int = DEFAULT_BUDGET,
) -> World:
    """Make the paper's semi-synthetic world: ratings completed by matrix factorisation, sorted into five levels.

    Parameters
    ----------
    log
        With ratings, such as `load_dataset("movielens-100k").train`.
    proportions
        Shares of the five levels, lowest first.
    propensities, noise_rates, random_state, memory_budget
        As in `on_levels`.

    Examples
    --------
    >>> ratings = np.random.default_rng(0).integers(1, 6, 200)
    >>> users, items = np.divmod(np.random.default_rng(1).choice(600, 200, replace=False), 30)
    >>> log = FeedbackLog.from_arrays(users, items, ratings, n_users=20, n_items=30, positive_from=3)
    >>> np.bincount(on_completed(log, random_state=0).levels.ravel())[1:].tolist()
    [318, 144, 84, 42, 12]
    """
    _check_options(noise_rates, memory_budget)
    levels = levels_by_rank(complete_ratings(log, memory_budget=memory_budget), proportions)
    return on_levels(
        levels,
        noise_rates=noise_rates,
        propensities=propensities,
        random_state=random_state,
        memory_budget=memory_budget,
    )


def _check_options(noise_rates: NoiseRates, memory_budget: int) -> None:
    """Refuse what would otherwise fail only after the world has been drawn."""
    if not isinstance(noise_rates, NoiseRates):
        raise ParameterError(f"noise_rates must be a NoiseRates; got {short(noise_rates)}")
    whole_number("memory_budget", memory_budget)


def _observe(
    preferences: CellValues,
    selection: CellValues,
    drawn: Pairs,
    shape: tuple[int, int],
    noise_rates: NoiseRates,
    random: np.random.Generator,
    memory_budget: int,
    levels: npt.NDArray[np.int8] | None = None,
    **habits: Any,
) -> World:
    """Give the drawn pairs their true and noisy labels, and the world its keys; `habits` as of `Opinions.drawn`."""
    users, items = drawn
    if len(users) == 0:
        raise EmptyLogError(f"no pair of the {shape[0]:,} x {shape[1]:,} grid was observed; raise the observed share")
    opinions = Opinions.drawn(preferences, noise_rates, random, **habits)
    labels = np.empty(len(users), np.int8)
    for part in parts_of(len(users)):
        labels[part] = opinions.all(users[part], items[part])[2]
    log = FeedbackLog.from_arrays(users, items, labels, n_users=shape[0], n_items=shape[1])
    return World(log, opinions, selection, levels, memory_budget)
