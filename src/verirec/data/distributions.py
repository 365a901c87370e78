"""Predicted distributions over the levels of a log, in the forms that people have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.checks import as_array
from verirec.data.cells import CellValues, Positions
from verirec.data.predictions import PairScores, PredictionsLike
from verirec.exceptions import PredictionError
from verirec.losses.levels import checked_distributions

Array = npt.NDArray[np.float64]


class Distributions(CellValues):
    """K probabilities for every cell: `cells` gives them along a first axis, shape (K, ...)."""


class _DenseDistributions(Distributions):
    def __init__(self, tensor: Array) -> None:
        self.tensor = tensor
        self.tensor.flags.writeable = False
        self.shape = (tensor.shape[1], tensor.shape[2])

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return self.tensor[:, users, items]


class _FunctionDistributions(Distributions):
    parallel = False

    def __init__(self, function: Callable[[Any, Any], Any], shape: tuple[int, int], n_levels: int) -> None:
        self.function, self.shape, self.n_levels = function, shape, n_levels

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        all_users, all_items = np.broadcast_arrays(users, items)
        given = self.function(all_users.ravel(), all_items.ravel())
        table = _table("the prediction function's result", given, all_users.size, self.n_levels)
        return table.reshape(self.n_levels, *all_users.shape)


class _ScoredDistributions(Distributions):
    def __init__(self, triples: tuple[Any, Any, Any], shape: tuple[int, int], n_levels: int) -> None:
        count = len(as_array("predictions' users", triples[0], error=PredictionError))
        self.shape = shape
        self.table = _table("predictions' scores", triples[2], count, n_levels)
        # The place of each pair's distribution is found as its score would be.
        self.places = PairScores((triples[0], triples[1], np.arange(count)), *shape)

    @property
    def covered(self) -> npt.NDArray[np.int64] | None:
        return self.places.covered

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return self.table[:, self.places.cells(users, items).astype(np.int64)]


def as_distributions(predictions: PredictionsLike, n_users: int, n_items: int, n_levels: int) -> Distributions:
    """Bring predicted distributions into one form.

    Parameters
    ----------
    predictions
        A dense array (n_users, n_items, K); (users, items, scores) with scores of shape (n, K); or a function of
        (users, items) that gives (n, K). The K probabilities of a pair add up to 1.
    n_users, n_items, n_levels
        The grid's size, and K.

    Examples
    --------
    >>> sure = np.zeros((2, 3, 5))
    >>> sure[..., 4] = 1
    >>> as_distributions(sure, 2, 3, 5).at([1], [2]).ravel().tolist()
    [0.0, 0.0, 0.0, 0.0, 1.0]
    """
    predictions = getattr(predictions, "predictions", predictions)
    shape = (n_users, n_items)
    if isinstance(predictions, Distributions):
        if predictions.shape != shape:
            raise PredictionError(f"predictions must be for a grid of {shape}; got {predictions.shape}")
        return predictions
    if callable(predictions):
        return _FunctionDistributions(predictions, shape, n_levels)
    if isinstance(predictions, tuple) and len(predictions) == 3:
        return _ScoredDistributions(predictions, shape, n_levels)
    wanted = (
        f"this loss judges predicted distributions over {n_levels} levels: a dense array of shape "
        f"{(*shape, n_levels)}, (users, items, scores) with scores of shape (n, {n_levels}), or a function that gives "
        "such"
    )
    if isinstance(predictions, tuple) or not hasattr(predictions, "__len__"):
        raise PredictionError(f"{wanted}; got {type(predictions).__name__}")
    tensor = as_array("predictions", predictions, error=PredictionError)
    if tensor.dtype.kind not in "fiub" or tensor.shape != (*shape, n_levels):
        raise PredictionError(f"{wanted}; got an array of {tensor.dtype}, shape {tensor.shape}")
    by_level = np.moveaxis(tensor, -1, 0).astype(np.float64)
    return _DenseDistributions(checked_distributions("predictions", by_level))


def _table(name: str, given: Any, count: int, n_levels: int) -> Array:
    """Accept a row of probabilities a pair; they are returned along the first axis, shape (K, n)."""
    table = as_array(name, given, error=PredictionError)
    if table.dtype.kind not in "fiub" or table.shape != (count, n_levels):
        raise PredictionError(
            f"{name} must be a probability a level, shape ({count}, {n_levels}), for a loss of distributions; got "
            f"{table.dtype}, shape {table.shape} (stars are judged by rmse, mae, squared or absolute)"
        )
    return checked_distributions(name, table.T.astype(np.float64))
