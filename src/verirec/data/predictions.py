"""What a recommender predicts, in any of the forms people have it: one shape for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from verirec.checks import as_array, number_array, one_of, real_number
from verirec.data.cells import CellValues, DenseCells, FactorCells, Positions, cell_keys, checked_positions
from verirec.data.frames import is_labelled
from verirec.data.pair_sketch import PairSketch
from verirec.exceptions import CountedMessage, ParameterError, PredictionError

PredictionsLike = Any
"""A dense array, (users, items, scores), a function of (users, items), `Factors`, or any `CellValues`."""

_SIDES: Final = ("user_factors", "item_factors", "user_constants", "item_constants")


@dataclass(frozen=True, eq=False, repr=False)
class Factors:
    r"""A factor model's predictions, :math:`\mathrm{link}(u \cdot v + b_u + b_i + b)`, without the matrix.

    Parameters
    ----------
    user_factors, item_factors
        Arrays of shape (n_users, k) and (n_items, k).
    user_constants, item_constants
        Arrays of shape (n_users,) and (n_items,), or `None` for zeros.
    constant
        Added everywhere.
    link
        "logistic" turns the sum into a probability, "identity" leaves it. `None` says that nobody knows: they are taken
        for logistic, with a warning where a loss is estimated, and calibrated where that is asked for.
    trained_on
        The pairs that made them, where a recommender of verirec's knows: rows among them are warned of.

    Examples
    --------
    >>> half = Factors(np.zeros((2, 3)), np.zeros((4, 3)))
    >>> as_predictions(half, 2, 4).at([0, 1], [3, 3]).tolist()
    [0.5, 0.5]
    """

    user_factors: npt.NDArray[Any]
    item_factors: npt.NDArray[Any]
    user_constants: npt.NDArray[Any] | None = None
    item_constants: npt.NDArray[Any] | None = None
    constant: float = 0.0
    link: Literal["logistic", "identity"] | None = "logistic"
    trained_on: PairSketch | None = None

    def __post_init__(self) -> None:
        rank = number_array("user_factors", self.user_factors, ndim=2, error=PredictionError).shape[1]
        for side in ("user", "item"):
            name = f"{side}_factors"
            factors = _as_floats(number_array(name, getattr(self, name), ndim=2, error=PredictionError))
            _expect_shape(name, factors, (len(factors), rank))
            _expect_finite(name, factors)
            constants = _constants(f"{side}_constants", getattr(self, f"{side}_constants"), len(factors))
            object.__setattr__(self, name, factors)
            object.__setattr__(self, f"{side}_constants", constants)
        object.__setattr__(self, "constant", _constant(self.constant))
        if self.link is not None:
            one_of("link", self.link, ("logistic", "identity"))

    def __repr__(self) -> str:
        (n_users, rank), n_items = self.user_factors.shape, len(self.item_factors)
        return f"Factors({n_users:,} users x {n_items:,} items, {rank} factors, {self.link or 'no'} link)"


class LinkedFactors(FactorCells):
    """`Factors` on a grid."""

    def __init__(self, factors: Factors, n_users: int, n_items: int) -> None:
        _expect_shape("user_factors", factors.user_factors, (n_users, factors.user_factors.shape[1]))
        _expect_shape("item_factors", factors.item_factors, (n_items, factors.user_factors.shape[1]))
        super().__init__(
            factors.user_factors,
            factors.item_factors,
            np.asarray(factors.user_constants),
            np.asarray(factors.item_constants),
            factors.constant,
        )
        self.link = factors.link or "logistic"
        self.link_is_assumed = factors.link is None
        self.trained_on = factors.trained_on

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the probabilities, or the sums where there is no link."""
        sums = super().cells(users, items).astype(np.float64, copy=False)
        return np.asarray(expit(sums)) if self.link == "logistic" else sums

    def cell_logits(self, users: Positions, items: Positions) -> npt.NDArray[Any] | None:
        """Return the sums, if there is a link."""
        if self.link == "identity":
            return None
        return super().cells(users, items).astype(np.float64, copy=False)

    def walked_logits(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the sums of a rectangle in the precision of the factors: for sums over many cells."""
        sums = self.products(users, items)
        sums += self.user_constants[users].astype(sums.dtype, copy=False)
        sums += (self.item_constants[items] + self.constant).astype(sums.dtype, copy=False)
        return sums


class _FunctionCells(CellValues):
    parallel = False

    def __init__(self, function: Callable[[Any, Any], Any], shape: tuple[int, int]) -> None:
        self.function = function
        self.shape = shape

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        all_users, all_items = np.broadcast_arrays(users, items)
        given = self.function(all_users.ravel(), all_items.ravel())
        scores = as_array("the prediction function's result", given, error=PredictionError)
        if scores.shape != (all_users.size,):
            raise PredictionError(
                f"the prediction function must give one number a pair, shape ({all_users.size},); got {scores.shape}"
            )
        _expect_finite("the prediction function's result", scores)
        return scores.reshape(all_users.shape).astype(np.float64, copy=False)


class PairScores(CellValues):
    """Scores of some pairs only: asking for another pair is an error that says how many are missing."""

    def __init__(self, triples: tuple[Any, Any, Any], n_users: int, n_items: int) -> None:
        users = checked_positions("predictions' users", triples[0], n_users)
        items = checked_positions("predictions' items", triples[1], n_items)
        scores = number_array("predictions' scores", triples[2], ndim=1, error=PredictionError).astype(np.float64)
        if not users.shape == items.shape == scores.shape:
            raise PredictionError(
                f"(users, items, scores) must have one length; got {len(users)}, {len(items)} and {scores.shape}"
            )
        _expect_finite("predictions' scores", scores)
        self.shape = (n_users, n_items)
        keys = cell_keys(users, items, n_items)
        order = np.argsort(keys, kind="stable")
        self.keys, self.scores = keys[order], scores[order]
        repeated = np.flatnonzero(self.keys[1:] == self.keys[:-1])
        if repeated.size:
            raise PredictionError(
                f"predictions score {len(np.unique(self.keys[repeated])):,} pairs more than once "
                f"(first: user {self.keys[repeated[0]] // n_items}, item {self.keys[repeated[0]] % n_items})"
            )

    @property
    def covered(self) -> npt.NDArray[np.int64] | None:
        """The pairs that have a score, unless all have one."""
        return self.keys if len(self.keys) < self.shape[0] * self.shape[1] else None

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Look the scores up."""
        wanted = cell_keys(users, items, self.shape[1])
        found = np.minimum(np.searchsorted(self.keys, wanted), max(len(self.keys) - 1, 0))
        missing = self.keys[found] != wanted if len(self.keys) else np.ones(wanted.shape, bool)
        if missing.any():
            first = int(wanted[missing].ravel()[0])
            message = (
                "predictions do not cover {wrong} of the {of} pairs that are needed "
                f"(first: user {first // self.shape[1]}, item {first % self.shape[1]})"
            )
            raise PredictionError.counting(CountedMessage(message, int(missing.sum()), wanted.size))
        return np.asarray(self.scores[found])


def as_predictions(predictions: PredictionsLike, n_users: int, n_items: int) -> CellValues:
    """Bring predictions of any form into one: something with `at(users, items)` and `block(users, items)`.

    Parameters
    ----------
    predictions
        A dense array (n_users, n_items); a tuple (users, items, scores) of flat arrays, by position; a function of
        two flat arrays (users, items); `Factors`, or a tuple (U, V) or (U, V, b_u, b_i), which means those of link
        `None`; or what has such as its `predictions`, as recommenders that verirec trained do.
    n_users, n_items
        The grid's size.

    Examples
    --------
    >>> as_predictions(np.full((2, 3), 0.5), 2, 3).block([0, 1], [2]).tolist()
    [[0.5], [0.5]]
    >>> as_predictions(lambda users, items: users / 10, 2, 3).at([1], [2]).tolist()
    [0.1]
    >>> as_predictions(([0, 1], [2, 2], [0.3, 0.4]), 2, 3).at([1], [2]).tolist()
    [0.4]
    """
    predictions = getattr(predictions, "predictions", predictions)
    if isinstance(predictions, CellValues):
        values: CellValues = predictions if predictions.means is None else predictions.means
        if values.shape != (n_users, n_items):
            raise PredictionError(f"predictions must be for a grid of {(n_users, n_items)}; got {values.shape}")
        return values
    if isinstance(predictions, Factors):
        return LinkedFactors(predictions, n_users, n_items)
    if callable(predictions):
        return _FunctionCells(predictions, (n_users, n_items))
    if isinstance(predictions, tuple):
        if len(predictions) == 3:
            return PairScores(predictions, n_users, n_items)
        if len(predictions) in (2, 4):
            sides = dict(zip(_SIDES, predictions, strict=False))
            return LinkedFactors(Factors(**sides, link=None), n_users, n_items)
        raise PredictionError(
            "a tuple of predictions must be (users, items, scores), (U, V) or (U, V, b_u, b_i); "
            f"got {len(predictions)} parts"
        )
    return _dense(predictions, n_users, n_items)


def _dense(predictions: Any, n_users: int, n_items: int) -> DenseCells:
    """Accept a matrix of finite numbers; labels cannot be held against a grid of which only the size is known."""
    matrix = as_array("predictions", predictions, error=PredictionError)
    if matrix.dtype.kind not in "fiub":
        raise PredictionError(
            "predictions must be a dense array of numbers, (users, items, scores), a function of (users, items) or "
            f"Factors, all by position; got {type(predictions).__name__}{_frame_hint(predictions)}"
        )
    if matrix.ndim == 1:
        raise PredictionError(
            f"a dense array of predictions must have shape {(n_users, n_items)}; got {matrix.shape}: scores of some "
            "pairs must come with these, (users, items, scores)"
        )
    if matrix.shape != (n_users, n_items):
        raise PredictionError(
            f"a dense array of predictions must have shape {(n_users, n_items)}; got {matrix.shape}"
            f"{_frame_hint(predictions)}"
        )
    _refuse_labels(predictions)
    _expect_finite("the predictions", matrix)
    return DenseCells(matrix.astype(np.float64, copy=False))


def _refuse_labels(given: Any) -> None:
    if hasattr(given, "index") and is_labelled(given):
        raise PredictionError(
            f"the {type(given).__name__}'s index and columns are lined up with a log's ids by vr.adapt(frame, log): "
            "give that, or frame.to_numpy() if its order is the log's"
        )


def _frame_hint(given: Any) -> str:
    """Say what a frame's columns must be called, if it is one."""
    if not hasattr(given, "columns"):
        return ""
    return (
        ": a frame of pairs must have columns user, item and score (or rank); one with a row a user is lined up with a "
        "log by vr.adapt(frame, log)"
    )


def _as_floats(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Keep single and double precision; sums of anything narrower would overflow or wrap."""
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _constant(given: Any) -> float:
    try:
        return real_number("constant", given)
    except ParameterError as error:
        raise PredictionError(str(error)) from None


def _constants(name: str, given: npt.NDArray[Any] | None, size: int) -> npt.NDArray[Any]:
    constants = (
        np.zeros(size) if given is None else _as_floats(number_array(name, given, ndim=1, error=PredictionError))
    )
    _expect_shape(name, constants, (size,))
    _expect_finite(name, constants)
    return constants


def _expect_shape(name: str, array: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise PredictionError(f"{name} must have shape {shape}; got {array.shape}")


def _expect_finite(name: str, array: npt.NDArray[Any]) -> None:
    if array.dtype.kind not in "fiub":
        raise PredictionError(f"{name} must be numbers; got {array.dtype}")
    finite = np.isfinite(array)
    if not finite.all():
        count, first = array.size - int(finite.sum()), np.argwhere(~finite)[0].tolist()
        place = "[{place}]" if array.ndim == 1 else first
        message = f"{name} must be finite; {{wrong}} of {{of}} are not (first: the one at {place})"
        raise PredictionError.counting(CountedMessage(message, count, array.size, first[0]))
