"""Values defined on the cells of the grid of all user-item pairs, and positions of cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import as_array
from verirec.data.parts import looked_up, parts_of
from verirec.exceptions import ParameterError, PositionError, VerirecError
from verirec.scratch import those

Positions = npt.NDArray[np.integer[Any]]

_GATHERED: Final = 1 << 16
"""Pairs whose vectors are looked up at a time."""


class CellValues(ABC):
    """A number for every cell of the grid, worked out where it is asked for and never stored whole.

    A subclass sets `shape`, the grid's (n_users, n_items), and writes `cells`, which takes positions that broadcast
    against each other and trusts them; pairs (`at`) and rectangles (`block`) follow, and check theirs.
    """

    shape: tuple[int, int]
    parallel: ClassVar[bool] = True
    """Whether two threads may ask at once; False where a user's own code gives the values."""
    ranks_only: ClassVar[bool] = False
    """Whether the values say an order and nothing else: then they have no loss, and cannot be calibrated."""
    unranked: ClassVar[float] = -np.inf
    """Value of cells that have no place in a ranking; all above it have one."""

    trained_on: Any = None
    """A `PairSketch` of the pairs that made them, where these are known: rows among them judge them too well."""

    means: CellValues | None = None
    """The means of values that are distributions over levels, if it is known what these are worth."""

    def cell_logits(self, users: Positions, items: Positions) -> npt.NDArray[Any] | None:
        """Return the logits of probabilities that are made of logits, at positions as in `cells`; `None` for others."""
        return None

    @property
    def covered(self) -> npt.NDArray[np.int64] | None:
        """The cells that have a value, by `cell_keys` in ascending order, where not all have one; else `None`."""
        return None

    @abstractmethod
    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the values at positions that broadcast together: (n,) with (n,), or (a, 1) with (1, b)."""

    def at(self, users: npt.ArrayLike, items: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the values of single pairs: `users` and `items` of shape (n,), result (n,).

        Part by part: what is worked out on the way takes many times the room of the result.
        """
        rows, columns = pair_positions(users, items, self.shape)
        try:
            return looked_up(lambda at: self.cells(rows[at], columns[at]), len(rows), parallel=self.parallel)
        except VerirecError:
            recount(lambda at: self.cells(rows[at], columns[at]), len(rows))
            raise

    def block(self, users: npt.ArrayLike, items: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the values of a rectangle: `users` (a,), `items` (b,), result (a, b)."""
        return self.cells(*block_positions(users, items, self.shape))


class DenseCells(CellValues):
    """Values held in a matrix of shape (n_users, n_items)."""

    def __init__(self, matrix: npt.NDArray[Any]) -> None:
        self.matrix = matrix.view()
        self.matrix.flags.writeable = False
        self.shape = (matrix.shape[0], matrix.shape[1])

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Look the cells up."""
        if _is_rectangle(users, items) and _is_run(users[:, 0]) and _is_run(items[0]):
            return self.matrix[_run(users[:, 0]), _run(items[0])]
        return self.matrix[users, items]


class FactorCells(CellValues):
    r"""Inner products of user and item vectors plus constants, :math:`u_a \cdot v_b + c_a + d_b + g`."""

    def __init__(
        self,
        user_factors: npt.NDArray[Any],
        item_factors: npt.NDArray[Any],
        user_constants: npt.NDArray[Any],
        item_constants: npt.NDArray[Any],
        constant: float = 0.0,
    ) -> None:
        self.shape = (len(user_factors), len(item_factors))
        self.user_factors, self.item_factors = user_factors, item_factors
        self.user_constants, self.item_constants = user_constants, item_constants
        self.constant = constant

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Multiply; a rectangle is one matrix product."""
        if _is_rectangle(users, items):
            products = self.products(users, items)
        elif users.ndim == 1 and users.shape == items.shape:
            # In parts: the vectors of all pairs together would take many times the room of the result.
            products = np.empty(len(users), np.result_type(self.user_factors, self.item_factors))
            for part in parts_of(len(users), size=_GATHERED):
                products[part] = np.einsum("nk,nk->n", self.user_factors[users[part]], self.item_factors[items[part]])
        else:
            products = np.einsum("...k,...k->...", self.user_factors[users], self.item_factors[items])
        return np.asarray(products + self.user_constants[users] + (self.item_constants[items] + self.constant))

    def side_totals(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Add the values up by user and by item, over all cells, without visiting them."""
        # Sums in double precision, and vectors of no more than a part at a time: all of them take twice their own room.
        user_sum, item_sum = (side.sum(axis=0, dtype=np.float64) for side in (self.user_factors, self.item_factors))
        user_constants, item_constants = (
            side.astype(np.float64) for side in (self.user_constants, self.item_constants)
        )
        user_constants = user_constants + float(self.constant)
        n_users, n_items = self.shape
        by_user = _products(self.user_factors, item_sum) + n_items * user_constants + item_constants.sum()
        by_item = _products(self.item_factors, user_sum) + n_users * item_constants + user_constants.sum()
        return by_user, by_item

    def products(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the inner products of a rectangle, in the precision of the vectors."""
        return np.asarray(self.user_factors[_run(users[:, 0])] @ self.item_factors[_run(items[0])].T)


def _products(vectors: npt.NDArray[Any], other: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Multiply each vector by another, in double precision."""
    found = np.empty(len(vectors))
    for part in parts_of(len(vectors), size=_GATHERED):
        found[part] = vectors[part].astype(np.float64) @ other
    return found


def recount(function: Callable[[slice], Any], length: int) -> None:
    """Raise what a function raises of parts of some pairs, with how many are wrong of all rather than of one part.

    Part by part, as nothing of the pairs' length need fit in memory.
    """
    kind, told, wrong = VerirecError, None, 0
    for at in parts_of(length, size=_GATHERED):
        try:
            function(at)
        except VerirecError as error:
            counted = error.counted
            if counted is None:
                raise
            if told is None:
                # There may be several values a pair.
                of = counted.of * length // (at.stop - at.start)
                kind, told = type(error), counted._replace(of=of, place=at.start + counted.place)
            wrong += counted.wrong
    if told is not None:
        raise kind.counting(told._replace(wrong=wrong)) from None


IDS_HINT: Final = (
    ": log.user_ids.positions(ids) and log.item_ids.positions(ids) make them of ids, and so does from_frame"
)
"""For those who give ids where positions are wanted, and have a frame of them."""


def checked_positions(name: str, positions: npt.ArrayLike, size: int, hint: str = "") -> npt.NDArray[np.int32]:
    """Accept flat integer positions in [0, size) and give them as int32; `hint` ends what is said of other kinds.

    Examples
    --------
    >>> checked_positions("users", [0, 3], 3)
    Traceback (most recent call last):
    verirec.exceptions.PositionError: users must be positions from 0 to 2; 1 of 2 is not (row 1 has 3)
    """
    array = as_array(name, positions, error=PositionError)
    if array.ndim != 1:
        raise PositionError(f"{name} must be a flat array of positions; got shape {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise PositionError(f"{name} must be integers (positions); got {array.dtype}{hint}")
    if array.size and (int(array.min()) < 0 or int(array.max()) >= size):
        wrong = np.flatnonzero((array < 0) | (array >= size))
        verb = "is" if wrong.size == 1 else "are"
        raise PositionError(
            f"{name} must be positions from 0 to {size - 1:,}; {wrong.size:,} of {array.size:,} {verb} not "
            f"(row {wrong[0]} has {array[wrong[0]]})"
        )
    return array.astype(np.int32, copy=False)


def checked_rows(rows: npt.ArrayLike, size: int) -> npt.NDArray[Any]:
    """Accept some of so many rows: a mask, or their numbers.

    Examples
    --------
    >>> checked_rows([2, 0], 3).tolist(), checked_rows([True, False, False], 3).tolist()
    ([2, 0], [True, False, False])
    """
    index = as_array("rows", rows)
    if index.dtype != bool:
        return checked_positions("rows", index, size)
    if index.shape != (size,):
        raise ParameterError(f"a mask of rows must have shape ({size},); got {index.shape}")
    return index


def taken(values: npt.NDArray[Any], rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return what an array has at rows that `checked_rows` accepted.

    Examples
    --------
    >>> taken(np.array([3, 4, 5]), np.array([True, False, True])).tolist()
    [3, 5]
    """
    return those(values, rows) if rows.dtype == bool else np.asarray(values[rows])


def pair_positions(users: npt.ArrayLike, items: npt.ArrayLike, shape: tuple[int, int]) -> tuple[Positions, Positions]:
    """Check the positions of single pairs: two flat arrays of one length, inside the grid."""
    user_positions, item_positions = _both_checked(users, items, shape)
    if len(user_positions) != len(item_positions):
        raise ParameterError(
            f"users and items must be of one length; got {len(user_positions):,} and {len(item_positions):,}"
        )
    return user_positions, item_positions


def block_positions(users: npt.ArrayLike, items: npt.ArrayLike, shape: tuple[int, int]) -> tuple[Positions, Positions]:
    """Check the positions of a rectangle, and shape them to broadcast: (a, 1) and (1, b)."""
    user_positions, item_positions = _both_checked(users, items, shape)
    return user_positions[:, None], item_positions[None, :]


def _both_checked(users: npt.ArrayLike, items: npt.ArrayLike, shape: tuple[int, int]) -> tuple[Positions, Positions]:
    return checked_positions("users", users, shape[0]), checked_positions("items", items, shape[1])


def cell_keys(users: Positions, items: Positions, n_items: int) -> npt.NDArray[np.int64]:
    """Number the grid's cells row by row, one int64 a cell; positions broadcast.

    Examples
    --------
    >>> cell_keys(np.array([0, 2]), np.array([5, 1]), 10).tolist()
    [5, 21]
    """
    return np.asarray(users.astype(np.int64) * n_items + items)


def _is_rectangle(users: Positions, items: Positions) -> bool:
    return users.ndim == 2 and users.shape[1] == 1 and items.ndim == 2 and items.shape[0] == 1


def _run(positions: Positions) -> slice | Positions:
    """Return consecutive positions as a slice, which gives a view, many times faster than a gather."""
    return slice(positions[0], positions[-1] + 1) if _is_run(positions) else positions


def _is_run(positions: Positions) -> bool:
    return len(positions) > 0 and bool((positions[1:] - positions[:-1] == 1).all())
