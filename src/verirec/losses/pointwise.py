"""Losses of one prediction against one binary label."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import as_array
from verirec.exceptions import ParameterError, PredictionError
from verirec.formatting import short

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """A pointwise loss as its two halves, l(f, 1) and l(f, 0): all that estimators and noise corrections need.

    Parameters
    ----------
    name
        What to call it.
    if_positive, if_negative
        l(f, 1) and l(f, 0) as functions of an array of predictions.
    open_unit_interval
        Whether predictions must be strictly between 0 and 1 for the loss to be finite.
    least
        The smallest value that it can have.
    from_logits
        l(f, 0) and l(f, 1) - l(f, 0) as a function of the logit of f, where that is finite for every logit.
    halfway_totals
        Sums of [l(f, 0) + l(f, 1)] / 2 by row of a rectangle of logits, where l(f, 1) - l(f, 0) is minus the logit: the
        sums of both losses follow.

    Examples
    --------
    >>> get_loss("squared").of(np.array([0.25, 0.25]), np.array([1, 0])).tolist()
    [0.5625, 0.0625]
    """

    name: str
    if_positive: Callable[[Array], Array]
    if_negative: Callable[[Array], Array]
    open_unit_interval: bool = False
    least: float = -np.inf
    from_logits: Callable[[Array], tuple[Array, Array]] | None = None
    halfway_totals: Callable[[npt.NDArray[Any]], Array] | None = None

    def of(self, predictions: Array, labels: npt.NDArray[Any]) -> Array:
        """Return l(f, y) elementwise; `predictions` and `labels` (0/1) have one shape."""
        return np.where(labels == 1, *self.halves(predictions))

    def halves(self, predictions: Array) -> tuple[Array, Array]:
        """Return l(f, 1) and l(f, 0) elementwise, all finite."""
        with np.errstate(all="ignore"):
            halves = self.if_positive(predictions), self.if_negative(predictions)
            # The sum of a half tells at once whether all of it is finite; only a wrong one is looked at more closely.
            doubtful = any(half.shape != predictions.shape or not np.isfinite(half.sum()) for half in halves)
        if doubtful:
            self.check([predictions])
            for half in halves:
                if half.shape != predictions.shape or not np.isfinite(half).all():
                    raise PredictionError(
                        f"the {self.name} loss must give a finite number for each prediction, shape "
                        f"{predictions.shape}; got shape {half.shape} with {int((~np.isfinite(half)).sum()):,} not "
                        "finite"
                    )
        return halves

    def parts(self, predictions: Array) -> tuple[Array, Array]:
        """Return l(f, 0) and l(f, 1) - l(f, 0) elementwise, all finite."""
        positive, negative = self.halves(predictions)
        return negative, positive - negative

    def check(self, blocks: Iterable[Array]) -> None:
        """Raise `PredictionError` if the loss is not finite on all of these predictions, with how many are wrong."""
        total = count = 0
        first: list[float] = []
        for predictions in blocks:
            outside = ~((predictions > 0) & (predictions < 1)) if self.open_unit_interval else ~np.isfinite(predictions)
            total, count = total + predictions.size, count + int(outside.sum())
            first += predictions[outside][: 3 - len(first)].tolist()
        if count:
            wanted = "probabilities strictly between 0 and 1" if self.open_unit_interval else "finite numbers"
            raise PredictionError(
                f"the {self.name} loss needs {wanted}; {count:,} of {total:,} predictions are not (first: "
                f"{', '.join(format(value, 'g') for value in first)})"
            )


LossLike = str | Loss | Callable[[Any, Any], Any]


def _log_if_positive(predictions: Array) -> Array:
    return -np.log(predictions)


def _log_if_negative(predictions: Array) -> Array:
    # Not log1p, which takes several times as long: the difference is below 1e-16, and losses are added up.
    return -np.log(1 - predictions)


def _finite_sum(*arrays: Array) -> bool:
    """Tell whether numbers and their sum are finite: in their own precision at first, which is quicker."""
    return any(np.isfinite(sum(one.sum(dtype=dtype) for one in arrays)) for dtype in (arrays[0].dtype, np.float64))


_TOO_LARGE: Final = "the logits of predictions must be finite, and so must their sum; factors are too large"


def _log_from_logits(logits: Array) -> tuple[Array, Array]:
    # softplus(z) = max(z, 0) + log(1 + exp(-|z|)), in place; log1p would take several times as long for 1e-16.
    # In the precision of the logits.
    with np.errstate(all="ignore"):
        negative = np.abs(logits)
        np.negative(negative, out=negative)
        np.exp(negative, out=negative)
        negative += 1
        np.log(negative, out=negative)
        negative += np.maximum(logits, 0)
        if not _finite_sum(negative, logits):
            raise PredictionError(_TOO_LARGE)
    return negative, -logits


_FOLDED: Final = 16
"""Factors between 1 and 2 that are multiplied before a logarithm is taken: their product is below 2^16."""


def _log_halfway_totals(logits: npt.NDArray[Any]) -> Array:
    # log(2 cosh(z/2)) = |z|/2 + log(1 + exp(-|z|)), with one logarithm for many cells; in the precision of the logits,
    # and added up in double.
    with np.errstate(all="ignore"):
        folded = np.abs(logits)
        totals: Array = folded.sum(axis=1, dtype=np.float64) / 2
        np.negative(folded, out=folded)
        np.exp(folded, out=folded)
        folded += 1
        width = logits.shape[1] // _FOLDED
        whole, rest = folded[:, : width * _FOLDED], folded[:, width * _FOLDED :]
        products = np.multiply.reduce(whole.reshape(len(logits), _FOLDED, width), axis=1)
        for part in (products, rest):
            totals += np.log(part).sum(axis=1, dtype=np.float64)
    if not np.isfinite(totals).all():
        raise PredictionError(_TOO_LARGE)
    return totals


LOSSES: Final[dict[str, Loss]] = {
    "log": Loss("log", _log_if_positive, _log_if_negative, True, 0.0, _log_from_logits, _log_halfway_totals),
    "squared": Loss("squared", lambda f: (1 - f) ** 2, lambda f: f**2, least=0.0),
    "absolute": Loss("absolute", lambda f: np.abs(1 - f), lambda f: np.abs(f), least=0.0),
}


def of_custom(function: Callable[[Any, Any], Any], name: str, label: float, predictions: Array) -> Array:
    """Return what a user's loss gives of predictions, all at one label."""
    # A copy, lest a function that works in place spoils what it is given for the other label.
    given = as_array(
        f"the {name} loss", function(predictions.copy(), np.full_like(predictions, label)), error=PredictionError
    )
    if given.dtype.kind not in "fiub":
        raise PredictionError(f"the {name} loss must give numbers; got {given.dtype}")
    if given.shape != predictions.shape:
        raise PredictionError(
            f"the {name} loss must give a finite number for each prediction, shape {predictions.shape}; got "
            f"shape {given.shape}"
        )
    return given.astype(np.float64)


def get_loss(loss: LossLike) -> Loss:
    """Look a loss up by name ("log", "squared", "absolute"), or wrap a function l(predictions, labels).

    Examples
    --------
    >>> get_loss("log").name
    'log'
    >>> hinge = get_loss(lambda f, y: np.maximum(0, 1 - (2 * y - 1) * f))
    >>> hinge.of(np.array([0.5]), np.array([1])).tolist()
    [0.5]
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        if loss in LOSSES:
            return LOSSES[loss]
    elif callable(loss):
        name = getattr(loss, "__name__", "custom")
        return Loss(name, partial(of_custom, loss, name, 1.0), partial(of_custom, loss, name, 0.0))
    raise ParameterError(f"loss must be one of {', '.join(sorted(LOSSES))} or a function of (f, y); got {short(loss)}")
