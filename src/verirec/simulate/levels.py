"""Preferences in five integer levels, as in the paper's semi-synthetic study (Section 4)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import number_array, real_number
from verirec.data.cells import CellValues, Positions
from verirec.exceptions import ParameterError
from verirec.formatting import short

LEVEL_PROBABILITIES: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Gamma of levels 1 to 5."""

LEVEL_PROPORTIONS: Final = (0.53, 0.24, 0.14, 0.07, 0.02)
"""Shares of the five levels that reproduce the paper's Table 1; its text does not state them."""

Levels = npt.NDArray[np.int8]


class LevelCells(CellValues):
    """A number for each of the five levels, looked up by the integer level and never by comparing floats."""

    def __init__(self, levels: Levels, values: tuple[float, ...]) -> None:
        self.levels = levels
        self.shape = (levels.shape[0], levels.shape[1])
        self.values = np.array((np.nan, *values))

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Look the cells up."""
        return np.asarray(self.values[self.levels[users, items]])


def level_propensities(alpha: float = 0.5, p: float = 1.0) -> tuple[float, ...]:
    r"""Return the propensity of each level r = 1..5, :math:`p\,\alpha^{\min(4, 6-r)}` (paper, Section 4).

    Examples
    --------
    >>> level_propensities()
    (0.0625, 0.0625, 0.125, 0.25, 0.5)
    """
    base = real_number("alpha", alpha, above=0, below=1, closed=True)
    scale = real_number("p", p, above=0, below=1, closed=True)
    if base == 0 or scale == 0:
        raise ParameterError(f"alpha and p must be above 0, or nothing is observed; got {alpha} and {p}")
    return tuple(scale * base ** min(4, 6 - level) for level in range(1, 6))


def checked_levels(levels: npt.ArrayLike) -> Levels:
    """Accept a matrix of integer levels 1 to 5."""
    matrix = number_array("levels", levels, ndim=2)
    if matrix.size == 0:
        raise ParameterError(f"levels must have users in rows and items in columns; got shape {matrix.shape}")
    if matrix.dtype.kind not in "iu" or matrix.min() < 1 or matrix.max() > 5:
        raise ParameterError(
            f"levels must be integers from 1 to 5; got {matrix.dtype} from {matrix.min()} to {matrix.max()}"
        )
    checked = matrix.astype(np.int8)
    checked.flags.writeable = False
    return checked


def levels_by_rank(scores: npt.ArrayLike, proportions: tuple[float, ...] = LEVEL_PROPORTIONS) -> Levels:
    """Sort all cells by score and make the lowest share level 1, the next level 2, and so on up to 5.

    Ties go by the cell's place in the matrix, so that the shares are exact to one cell.

    Parameters
    ----------
    scores
        Shape (n_users, n_items).
    proportions
        Five shares that add up to 1.

    Examples
    --------
    >>> levels_by_rank(np.arange(10).reshape(2, 5), (0.2, 0.2, 0.2, 0.2, 0.2)).tolist()
    [[1, 1, 2, 2, 3], [3, 4, 4, 5, 5]]
    """
    matrix = number_array("scores", scores, ndim=2).astype(np.float64)
    shares = number_array("proportions (5 shares)", proportions, ndim=1)
    if matrix.size == 0 or not np.isfinite(matrix).all():
        raise ParameterError(f"scores must be finite, and not empty; got shape {matrix.shape}")
    if shares.shape != (5,) or (shares < 0).any() or not np.isclose(shares.sum(), 1):
        raise ParameterError(f"proportions must be 5 shares that add up to 1; got {short(proportions)}")
    borders = np.round(np.cumsum(shares)[:-1] * matrix.size).astype(np.int64)
    levels = np.empty(matrix.size, np.int8)
    levels[np.argsort(matrix, axis=None, kind="stable")] = 1 + np.searchsorted(
        borders, np.arange(matrix.size), side="right"
    )
    return levels.reshape(matrix.shape)
