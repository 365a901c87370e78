"""The paper's six prediction matrices (Section 4), made from integer levels."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.exceptions import ParameterError
from verirec.randomness import RandomState, as_generator
from verirec.simulate.levels import LEVEL_PROBABILITIES, Levels, checked_levels

_GAMMA: Final = np.array((np.nan, *LEVEL_PROBABILITIES))
_ROTATED: Final = np.array((np.nan, 0.9, 0.1, 0.3, 0.5, 0.7))
_COARSE: Final = np.array((np.nan, 0.2, 0.2, 0.2, 0.6, 0.6))
_FLIPPED_LEVEL: Final = {"ONE": 1, "THREE": 2, "FIVE": 3}

PredictionMatrix = npt.NDArray[np.float64]


def prediction_matrices(levels: npt.ArrayLike, *, random_state: RandomState = None) -> dict[str, PredictionMatrix]:
    """Return six recommenders of known faults for a world made of levels.

    With gamma the preference probability of a cell's level: ROTATE predicts gamma - .2, and .9 where gamma is .1. SKEW
    draws from N(gamma, (1 - gamma)/2) and cuts to [.1, .9]. CRS predicts .2 up to gamma = .6 and .6 above. ONE, THREE
    and FIVE predict gamma, except that as many cells as there are at gamma = .9, chosen at random among those at
    gamma = .1, .3 and .5, are predicted .9.

    Parameters
    ----------
    levels
        Integers 1 to 5, shape (n_users, n_items): `World.levels`.

    Examples
    --------
    >>> matrices = prediction_matrices([[1, 2, 3, 4, 5]], random_state=0)
    >>> list(matrices)
    ['ROTATE', 'SKEW', 'CRS', 'ONE', 'THREE', 'FIVE']
    >>> matrices["ROTATE"].tolist(), matrices["CRS"].tolist(), matrices["ONE"].tolist()
    ([[0.9, 0.1, 0.3, 0.5, 0.7]], [[0.2, 0.2, 0.2, 0.6, 0.6]], [[0.9, 0.3, 0.5, 0.7, 0.9]])
    """
    cells = checked_levels(levels)
    random = as_generator(random_state)
    gamma = _GAMMA[cells]
    skewed = np.clip(random.normal(gamma, (1 - gamma) / 2), 0.1, 0.9)
    flipped = {name: _with_flips(cells, gamma, level, random) for name, level in _FLIPPED_LEVEL.items()}
    return {"ROTATE": _ROTATED[cells], "SKEW": skewed, "CRS": _COARSE[cells]} | flipped


def _with_flips(cells: Levels, gamma: PredictionMatrix, level: int, random: np.random.Generator) -> npt.NDArray[Any]:
    candidates = np.flatnonzero(cells == level)
    count = int((cells == 5).sum())
    if count > len(candidates):
        raise ParameterError(
            f"level {level} must have at least as many cells as level 5 ({count:,}) to flip; it has {len(candidates):,}"
        )
    flipped = gamma.copy()
    flipped.flat[random.choice(candidates, count, replace=False)] = LEVEL_PROBABILITIES[-1]
    return flipped
