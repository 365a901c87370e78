r"""Losses of predictions against K ordered levels, such as stars.

A loss is all its values :math:`l_0, ..., l_{K-1}`, one a level. With the steps :math:`d_c = l_c - l_{c-1}` the loss at
level j is :math:`l_0 + \sum_c d_c\,1[j \ge c]`: linear in the K - 1 labels :math:`y_c = 1[r^* \ge c]`, as that of a
binary label is in one. All that is true of l(f, 0), l(f, 1) - l(f, 0) and a label is true of these, column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.exceptions import CountedMessage, ParameterError, PredictionError
from verirec.formatting import short
from verirec.losses.pointwise import Loss, LossLike, of_custom

Array = npt.NDArray[np.float64]
Steps = tuple[Array, Array]
"""l of the lowest level, and the steps from each to the next; shapes (...) and (K - 1, ...)."""

_LOST: Final = 1e-6
"""What the probabilities of a distribution may miss 1 by."""


def errors_of(lowest: Array, steps: Array, labels: Array) -> Array:
    r"""Return the losses at labels, :math:`l_0 + \sum_c y_c d_c`: of binary ones l(f, 0) + y [l(f, 1) - l(f, 0)].

    Parameters
    ----------
    lowest
        The loss at the lowest level, shape (...).
    steps, labels
        Shape (...) if they are binary, else (K - 1, ...).

    Examples
    --------
    >>> errors_of(np.array([1.0]), np.array([[2.0], [5.0]]), np.array([[1.0], [0.5]])).tolist()
    [5.5]
    """
    return np.asarray(lowest + over_levels(labels * steps, lowest.ndim))


def over_levels(products: Array, ndim: int = 1) -> Array:
    """Add up over levels what has a column a level in front of its `ndim` dimensions; binary ones stay as they are."""
    return products if products.ndim == ndim else np.asarray(products.sum(axis=0))


@dataclass(frozen=True)
class LevelLoss:
    """A loss of predicted stars, or of predicted distributions over levels.

    Parameters
    ----------
    name
        What to call it.
    levels
        Their values, in ascending order.
    of_predictions
        From predictions to `Steps`.
    distributions
        Whether predictions are K probabilities a pair, shape (K, ...), and not a number, shape (...).
    open_unit_interval
        Whether none of these may be 0.
    least
        The smallest value that it can have.

    Examples
    --------
    >>> get_level_loss("squared", (1.0, 2.0, 3.0)).of(np.array([2.5, 2.5]), np.array([0, 2])).tolist()
    [2.25, 0.25]
    """

    name: str
    levels: tuple[float, ...]
    of_predictions: Callable[[Array], Steps]
    distributions: bool = False
    open_unit_interval: bool = False
    least: float = -np.inf
    from_logits: None = None
    halfway_totals: None = None

    def of(self, predictions: Array, places: npt.NDArray[Any]) -> Array:
        """Return the losses at levels given by their places from 0; shape (...)."""
        lowest, steps = self.parts(predictions)
        reached = np.arange(1, len(self.levels)).reshape(-1, *[1] * lowest.ndim) <= places
        return errors_of(lowest, steps, reached.astype(np.float64))

    def parts(self, predictions: Array) -> Steps:
        """Return the loss at the lowest level and the steps to the others, all finite."""
        with np.errstate(all="ignore"):
            lowest, steps = self.of_predictions(predictions)
            finite = bool(np.isfinite(lowest.sum()) and np.isfinite(steps.sum()))
        if not finite:
            self.check([predictions])
            raise PredictionError(f"the {self.name} loss must give a finite number for each prediction and level")
        return lowest, steps

    def check(self, blocks: Iterable[Array]) -> None:
        """Raise `PredictionError` if the loss is not finite on all of these predictions, with how many are wrong."""
        total = count = 0
        for predictions in blocks:
            wrong = ~np.isfinite(predictions) if not self.open_unit_interval else ~(predictions > 0)
            by_pair = wrong.any(axis=0) if self.distributions else wrong
            total, count = total + by_pair.size, count + int(by_pair.sum())
        if count:
            wanted = "probabilities above 0 of all levels" if self.open_unit_interval else "finite numbers"
            raise PredictionError(f"the {self.name} loss needs {wanted}; {count:,} of {total:,} predictions lack them")


def _stars(loss: Callable[[Array, float], Array], levels: tuple[float, ...], predictions: Array) -> Steps:
    values = np.stack([loss(predictions, level) for level in levels])
    return values[0], np.diff(values, axis=0)


def _log(predictions: Array) -> Steps:
    values = -np.log(predictions)
    return values[0], np.diff(values, axis=0)


def _ranked_probability(predictions: Array) -> Steps:
    r"""With :math:`F_c = P(r \ge c)` of the prediction, :math:`\sum_c (F_c - 1[j \ge c])^2`."""
    reached = np.cumsum(predictions[:0:-1], axis=0)[::-1]
    return np.asarray((reached**2).sum(axis=0)), np.asarray(1 - 2 * reached)


_STARS: Final[dict[str, Callable[[Array, float], Array]]] = {
    "squared": lambda f, level: (f - level) ** 2,
    "absolute": lambda f, level: np.abs(f - level),
}
_DISTRIBUTIONS: Final[dict[str, tuple[Callable[[Array], Steps], bool]]] = {
    "log": (_log, True),
    "rps": (_ranked_probability, False),
}
LEVEL_LOSSES: Final = (*_STARS, *_DISTRIBUTIONS)


def get_level_loss(loss: LossLike | LevelLoss, levels: tuple[float, ...]) -> LevelLoss:
    r"""Look up a loss for levels of these values, or wrap a function l(predictions, values) of predicted stars.

    "squared" and "absolute" are of predicted stars against the level's value; "log" and "rps" (the ranked probability
    score, :math:`\sum_c [P_f(r \ge c) - 1(r^* \ge c)]^2`: Epstein 1969) of predicted distributions. With two levels of
    value 0 and 1 they are the binary squared, absolute, log and squared loss.

    Examples
    --------
    >>> thirds = np.full((3, 1), 1 / 3)
    >>> [get_level_loss(name, (1.0, 2.0, 3.0)).of(thirds, np.array([2])).round(4).tolist() for name in ("log", "rps")]
    [[1.0986], [0.5556]]
    """
    if isinstance(loss, LevelLoss):
        if loss.levels != levels:
            raise ParameterError(f"the {loss.name} loss is of other levels than the log's")
        return loss
    if isinstance(loss, str) and loss in _STARS:
        return LevelLoss(loss, levels, partial(_stars, _STARS[loss], levels), least=0.0)
    if isinstance(loss, str) and loss in _DISTRIBUTIONS:
        of_predictions, open_interval = _DISTRIBUTIONS[loss]
        return LevelLoss(loss, levels, of_predictions, True, open_interval, 0.0)
    if not isinstance(loss, str | Loss) and callable(loss):
        name = getattr(loss, "__name__", "custom")
        return LevelLoss(name, levels, partial(_stars, partial(_custom, loss, name), levels))
    raise ParameterError(
        f"loss must be one of {', '.join(sorted(LEVEL_LOSSES))} or a function of (f, level) where a log keeps its "
        f"levels; got {short(loss.name if isinstance(loss, Loss) else loss)}"
    )


def _custom(function: Callable[[Any, Any], Any], name: str, predictions: Array, level: float) -> Array:
    return of_custom(function, name, level, predictions)


def checked_distributions(name: str, given: Array) -> Array:
    """Accept finite probabilities over levels along the first axis, adding up to 1; they are made to do so exactly.

    Examples
    --------
    >>> checked_distributions("predictions", np.array([[0.5], [0.6]]))
    Traceback (most recent call last):
    verirec.exceptions.PredictionError: predictions must be probabilities of the levels that add up to 1; of 1 of 1 \
pairs they do not (first: 0.5, 0.6)
    """
    totals = given.sum(axis=0)
    proper = (np.abs(totals - 1) <= _LOST) & (given >= 0).all(axis=0)
    if not proper.all():
        first = given[:, ~proper][:, 0]
        message = (
            f"{name} must be probabilities of the levels that add up to 1; of {{wrong}} of {{of}} pairs they do not "
            f"(first: {', '.join(format(one, '.4g') for one in first)})"
        )
        raise PredictionError.counting(CountedMessage(message, int((~proper).sum()), proper.size))
    return np.asarray(given / totals)
