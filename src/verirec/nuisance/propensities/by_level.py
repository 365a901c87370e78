"""Propensities that depend on the true level: people rate what they love more readily than what they merely like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.checks import as_array
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.exceptions import ParameterError, PropensityError
from verirec.nuisance.propensities.base import Array, Propensities, checked_others, checked_share
from verirec.nuisance.propensities.given import checked_values, observed_rows
from verirec.scratch import each

OfLevels = Callable[[Positions, Positions], Array]
"""From users and items, shape (n,) each, to p of each level, shape (K, n)."""


@dataclass(frozen=True, eq=False)
class LevelPropensity:
    r"""How likely a pair is to be logged if its true level is j, :math:`p_j`; for logs that keep their levels.

    A logged level may be wrong, so nobody knows which of the :math:`p_j` a row had. Noise-corrected estimators correct
    the ratio of loss and propensity as one: a row logged at k counts by :math:`\sum_j (T^{-1})_{kj}\,l(f, j)/p_j`,
    whose mean over noise is the ratio at the true level. Estimators without noise correction take the logged level for
    the true one.

    Parameters
    ----------
    values
        K numbers, lowest level first; or an array of shape (n_users, n_items, K); or a function of (users, items) that
        gives (n, K). All in (0, 1].

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 3], n_users=2, n_items=2, levels=[1, 2, 3])
    >>> found = LevelPropensity([0.1, 0.2, 0.4]).fit(log)
    >>> found.at([0, 1], [0, 1]).tolist(), found.of_levels(np.array([0]), np.array([1])).ravel().tolist()
    ([0.1, 0.4], [0.1, 0.2, 0.4])
    """

    values: Any

    def fit(self, log: FeedbackLog) -> TrueLevelPropensities:
        """Check the values against a log's grid and levels."""
        levels = checked_log(log, levels=True).levels
        if levels is None:
            raise ParameterError(
                "LevelPropensity is for a log that keeps its levels: read it with levels=[...]; [0, 1] are levels too"
            )
        return TrueLevelPropensities(_by_level(self.values, log.shape, len(levels)), log)


class TrueLevelPropensities(Propensities):
    """Those of a log's grid: of any pair by level, and of the logged pairs by the level that was said.

    Parameters
    ----------
    of_levels
        p of each level.
    log
        The logged pairs.
    """

    known, known_everywhere = True, False
    assumption = "what gets logged depends on the true level as the propensities given say"

    def __init__(self, of_levels: OfLevels, log: FeedbackLog) -> None:
        super().__init__(log.shape)
        self.of_levels, self._log = of_levels, log
        # Part by part: of all levels together it would be as long as several logs.
        self._said = each(
            lambda users, items, level: of_levels(users, items)[level, np.arange(len(level))],
            log.users,
            log.items,
            log.labels,
        )

    def unfloored(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Look up those of the levels that were said."""
        return np.asarray(self._said[observed_rows(self._log, users, items)])

    def thinned(self, share: float) -> TrueLevelPropensities:
        """Return the propensities of a random part of the log."""
        kept = checked_share(share)
        return TrueLevelPropensities(lambda users, items: kept * self.of_levels(users, items), self._log)

    def apart_from(self, others: float) -> TrueLevelPropensities:
        """Return the propensities on the pairs that another part of the log does not have."""
        ratio = checked_others(others)

        def apart(users: Positions, items: Positions) -> Array:
            part = self.of_levels(users, items)
            return np.asarray(part / np.maximum(1 - ratio * part, part))

        return TrueLevelPropensities(apart, self._log)


def _by_level(values: Any, shape: tuple[int, int], n_levels: int) -> OfLevels:
    if callable(values):
        return lambda users, items: _checked(values(users, items), (len(users), n_levels)).T
    given = as_array("propensities by level", values, error=PropensityError)
    if given.ndim == 1:
        constants = _checked(given, (n_levels,))
        return lambda users, items: np.broadcast_to(constants[:, None], (n_levels, len(users)))
    cells = _checked(given, (*shape, n_levels))
    return lambda users, items: cells[users, items].T


def _checked(values: Any, shape: tuple[int, ...]) -> Array:
    found = as_array("propensities by level", values, error=PropensityError)
    if found.shape != shape or found.dtype.kind not in "fiu":
        raise PropensityError(
            f"propensities by level must be {shape[-1]} numbers, one a level, or such numbers for each pair, shape "
            f"{shape}; got {found.dtype} of shape {found.shape}"
        )
    return np.asarray(checked_values(found.astype(np.float64)))
