"""Propensities that somebody knows."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import as_array
from verirec.data.cells import CellValues, Positions
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.frames import is_labelled
from verirec.data.pair_keys import places_in
from verirec.data.predictions import as_predictions
from verirec.exceptions import CountedMessage, PredictionError, PropensityError
from verirec.nuisance.propensities.base import Propensities

SMALLEST: Final = 1e-50
_ANY_SHAPE = (2**31 - 1, 2**31 - 1)
"""A function's grid, until a log says how large it is."""


class GivenPropensity(Propensities):
    """Propensities from a matrix, a function of (users, items), or anything that has a value for every cell.

    Parameters
    ----------
    values
        Shape (n_users, n_items); or a function of two flat arrays of positions; or `CellValues`, such as a simulated
        world's `propensity_values`. All in (0, 1].
    floor
        As in `Propensities`; by default none.
    known
        Whether you vouch for them, as the logging system's own: then they may establish a verdict. A bare matrix or
        function, where propensities are asked for, is used and not vouched for.

    Examples
    --------
    >>> GivenPropensity([[0.1, 0.2], [0.3, 0.4]]).at([0, 1], [1, 1]).tolist()
    [0.2, 0.4]
    >>> GivenPropensity([[0.1, 0.0]])
    Traceback (most recent call last):
    verirec.exceptions.PropensityError: propensities must be above 0 and at most 1; 1 of 2 are not (first: 0)
    """

    def __init__(self, values: Any, *, floor: float = 0.0, known: bool = True) -> None:
        if isinstance(values, CellValues):
            cells = values
        elif callable(values) and not isinstance(values, type):
            cells = as_predictions(values, *_ANY_SHAPE)
        else:
            if is_labelled(values):
                raise PropensityError(
                    f"given propensities are by position; got a {type(values).__name__} with labels: give it in the "
                    "log's order, frame.reindex(index=log.user_ids.ids(), columns=log.item_ids.ids()).to_numpy()"
                )
            matrix = as_array("propensities", values, error=PropensityError)
            if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
                raise PropensityError(
                    "given propensities must be a matrix of numbers or a function of (users, items); got "
                    f"{matrix.dtype} of shape {matrix.shape}"
                )
            cells = as_predictions(checked_values(matrix), *matrix.shape)
        super().__init__(cells.shape, floor)
        self.values, self.parallel = cells, cells.parallel  # type: ignore[misc]
        self._given, self.known = values, known  # type: ignore[misc]

    @cached_property
    def inverse_total(self) -> float:
        """The sum of 1/p over the whole grid."""
        if self.shape == _ANY_SHAPE:
            raise PropensityError(
                "a function's propensities have no grid of their own; use on_grid((n_users, n_items))"
            )
        return super().inverse_total

    def on_grid(self, shape: tuple[int, int]) -> GivenPropensity:
        """Return the same propensities for a grid of this size, which a function does not know by itself."""
        is_function = callable(self._given) and not isinstance(self._given, CellValues)
        if not is_function:
            return self
        return GivenPropensity(as_predictions(self._given, *shape), floor=self.floor, known=self.known)

    def unfloored(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Look the propensities up, and check them."""
        try:
            found = self.values.cells(users, items)
        except PredictionError as error:
            if error.counted is None:
                raise PropensityError(_of_propensities(str(error))) from None
            counted = error.counted._replace(message=_of_propensities(error.counted.message))
            raise PropensityError.counting(counted) from None
        return checked_values(found)


def _of_propensities(message: str) -> str:
    return message.replace("prediction function", "propensity function")


class LoggedPropensity(Propensities):
    """The propensities that the log itself has, on its own pairs.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2, propensities=[0.5, 0.2])
    >>> LoggedPropensity(log).at([1], [1]).tolist()
    [0.2]
    >>> LoggedPropensity(log).at([0], [1])
    Traceback (most recent call last):
    verirec.exceptions.PropensityError: the log has no propensity for 1 of the 1 pairs that are needed
    """

    known, known_everywhere = True, False

    def __init__(self, log: FeedbackLog, *, floor: float = 0.0) -> None:
        if checked_log(log, levels=True).propensities is None:
            raise PropensityError("the log has no column of propensities; name one with propensity=...")
        super().__init__((log.n_users, log.n_items), floor)
        self.log = log

    def unfloored(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Look the propensities up."""
        assert self.log.propensities is not None  # noqa: S101
        return np.asarray(self.log.propensities[observed_rows(self.log, users, items)])


def observed_rows(log: FeedbackLog, users: Positions, items: Positions) -> npt.NDArray[np.int64]:
    """Return the rows of pairs, at positions that broadcast together; a `PropensityError` if some are not observed."""
    who, what = np.broadcast_arrays(users, items)
    rows, there = places_in(who.ravel(), what.ravel(), log.users, log.items)
    if not there.all():
        message = "the log has no propensity for {wrong} of the {of} pairs that are needed"
        raise PropensityError.counting(CountedMessage(message, int((~there).sum()), there.size))
    return rows.reshape(who.shape)


def checked_values(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Accept propensities above 0 and at most 1."""
    wrong = ~((values >= SMALLEST) & (values <= 1))
    if wrong.any() and (values[wrong] > 0).all() and (values[wrong] < SMALLEST).all():
        raise PropensityError(f"propensities must be at least {SMALLEST:g}, or weights leave the range of numbers")
    if wrong.any():
        first = f"(first: {values[wrong].ravel()[0]:g})"
        message = f"propensities must be above 0 and at most 1; {{wrong}} of {{of}} are not {first}"
        raise PropensityError.counting(CountedMessage(message, int(wrong.sum()), values.size))
    return values
