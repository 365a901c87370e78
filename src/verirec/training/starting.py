r"""Where factors alone start from, and how large a penalty they bear.

Factors without constants, the paper's form, are at a saddle at 0. From there the loss falls along the leading singular
vectors of :math:`E_{ui} = w_{ui} (y_{ui} - 1/2)` on the log's rows. Two things follow.

- With a penalty of :math:`n\,\sigma_{\max}(E)/|D|` or more nothing falls: factors vanish, and all predictions are 1/2.
- Where training goes first decides what it overfits last. Random factors have a part in all directions alike, most of
  them noise; those along the leading vectors begin with what the labels agree on.

Singular vectors of E itself are mostly those of rare items with large weights. They are taken after biwhitening (Landa,
Zhang and Kluger 2022): rows and columns are scaled until all have the same mean square, which is what noise would have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.special import expit
from torch import Tensor

from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import VanishedFactorsWarning, warn_caller
from verirec.models import FactorModel, Model
from verirec.progress import doing
from verirec.training.bounds import least_factor_penalty, penalty_bound, refuse_rates_that_do_not_fit
from verirec.training.data import TrainingData
from verirec.training.heads import Head
from verirec.training.objective import Objective, PseudoLabels
from verirec.training.schedule import RateSchedule
from verirec.training.settings import ALONE, TrainingSettings

Array = npt.NDArray[np.float64]

_ROUNDS: Final = 10
"""Of scaling, and of power iteration: enough to tell the leading vectors from the rest of the random start."""
_FEW: Final = 0.25
"""Of the mean weight, what all have besides their own: means of few rows are shrunk."""
_LARGEST: Final = 4.0
"""Mean size of a logit at the start, at most."""
_SCALES: Final = (1.0, 0.5, 0.25, 0.125)
"""Parts of the size that fits the rows best: that is too large for others, and held-out rows choose."""
_WITHOUT_JUDGE: Final = 0.5
"""The part where there are none."""
_ABOVE: Final = 1.1
"""Times the bound, where that is more: it is found to some digits."""
_BELOW: Final = 0.5
"""Times the penalty that leaves nothing of them, where that is less."""
_NOTHING: Final = 0.01
"""Typical size of a logit below which nothing is left: the log loss is then that of 1/2 to four digits."""


def vanishing_penalty(log: FeedbackLog, weights: Array, labels: Array, rows: float) -> float:
    """Return the factor penalty from which on factors alone come out as 0.

    Parameters
    ----------
    log
        n rows.
    weights, labels
        Of the rows, per pair of the grid: w and y, shape (n,).
    rows
        n of the penalty: what it is divided by.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)
    >>> vanishing_penalty(log, np.full(2, 2.0), log.labels, rows=2)
    0.5
    """
    return least_factor_penalty(log, weights * (labels - 0.5), rows)


def start_factors(
    model: FactorModel,
    log: FeedbackLog,
    weights: Array,
    labels: Array,
    judge: Callable[[Model], float] | None,
    size: float | None = None,
) -> float:
    """Set factors to the leading directions of the labels, at a size that held-out rows agree with.

    Parameters
    ----------
    model
        Of factors alone; random ones to begin with.
    log, weights, labels
        As in `vanishing_penalty`.
    judge
        The error on held-out rows; without it half of the size that fits the rows is taken.
    size
        What part of that size to take, if it is known.

    Returns
    -------
        The part that was taken.
    """
    with doing("Finding where factors start"):
        users, items = _directions(log, weights, labels, model.item_factors.detach().cpu().numpy())
    logits = np.einsum("ij,ij->i", users[log.users], items[log.items])
    typical = float(np.sqrt(np.mean(logits**2)))
    if not typical > 0:
        return _WITHOUT_JUDGE
    fitting = _best_size(logits / typical, weights, labels) / typical

    def use(scale: float) -> None:
        with torch.no_grad():
            for own, values in ((model.user_factors, users), (model.item_factors, items)):
                own.copy_(torch.from_numpy((scale * fitting) ** 0.5 * values).float())

    def error(scale: float) -> float:
        use(scale)
        return judge(model)  # type: ignore[misc]

    if size is None:
        size = _WITHOUT_JUDGE if judge is None else min(_SCALES, key=error)
    use(size)
    return size


def _directions(log: FeedbackLog, weights: Array, labels: Array, items: Array) -> tuple[Array, Array]:
    """Return factors of users and items along the leading singular vectors of the biwhitened labels.

    Scaled back, these are of sums over rows; divided by the weight that rows have in all, of means.
    """
    values = weights * (labels - 0.5)
    matrix = coo_array((values, (log.users, log.items)), shape=(log.n_users, log.n_items)).tocsr()
    of_users, of_items = _whitening(matrix)
    white = (diags_array(of_users) @ matrix @ diags_array(of_items)).tocsr()
    across = white.T.tocsr()
    items = items.astype(np.float64)
    for _ in range(_ROUNDS):
        users = _unit(white @ items)
        items = _unit(across @ users)
    totals = (np.bincount(log.users, weights, log.n_users), np.bincount(log.items, weights, log.n_items))
    by_user, by_item = (one + _FEW * one.mean() for one in totals)
    return _unit(_over(users, of_users * by_user)), _unit(_over(items, of_items * by_item))


def _whitening(matrix: csr_array) -> tuple[Array, Array]:
    """Return what rows and columns are multiplied by to have the same mean square each; 0 where they are empty."""
    squares: Any = matrix.multiply(matrix).tocsr()
    users, items = (np.ones(n) for n in matrix.shape)
    for _ in range(_ROUNDS):
        users = _inverse(squares @ items)
        items = _inverse(squares.T @ users)
    return np.sqrt(users), np.sqrt(items)


def _inverse(values: Array) -> Array:
    return np.divide(values.mean() or 1.0, values, out=np.zeros_like(values), where=values > 0)


def _over(values: Array, divisors: Array) -> Array:
    return np.divide(values, divisors[:, None], out=np.zeros_like(values), where=divisors[:, None] > 0)


def _unit(values: Array) -> Array:
    return values / (float(np.linalg.norm(values)) or 1.0)


def _best_size(logits: Array, weights: Array, labels: Array) -> float:
    """Return what logits are best multiplied by on their own rows, by Newton steps on the log loss."""
    share, size = weights / weights.sum(), 0.0
    for _ in range(20):
        probabilities = expit(size * logits)
        slope = float(np.sum(share * (probabilities - labels) * logits))
        curvature = float(np.sum(share * probabilities * (1 - probabilities) * logits**2))
        size = float(np.clip(size - np.clip(slope / max(curvature, 1e-9), -0.5, 0.5), 0.05, _LARGEST))
    return size


def spread(model: FactorModel) -> float:
    """Return the typical size of a logit of factors alone, over all pairs.

    Examples
    --------
    >>> model = FactorModel(3, 2, 1, constants=False, random=torch.Generator())
    >>> with torch.no_grad():
    ...     _ = model.user_factors.fill_(2.0), model.item_factors.fill_(0.5)
    >>> spread(model)
    1.0
    """
    grams = [one.T @ one / len(one) for one in (part.detach().cpu().double() for part in _factors(model))]
    return float((grams[0] * grams[1]).sum().clamp_min(0).sqrt())


def _factors(model: FactorModel) -> tuple[Tensor, Tensor]:
    return model.user_factors, model.item_factors


class FactorsAlone(NamedTuple):
    """Rows, weights and labels as models in the paper's form meet them first, per pair of the grid."""

    log: FeedbackLog
    weights: Array
    labels: Array

    @classmethod
    def of(cls, settings: TrainingSettings, objective: Objective, data: TrainingData) -> Self | None:
        """Return them where factors are alone."""
        factors = isinstance(settings.model, str) and settings.model == "mf" and settings.dim > 0
        factors = factors and data.log.levels is None
        if not factors or settings.constants or settings.exposure_covariates != "none":
            return None
        if isinstance(objective, PseudoLabels):
            weights = data.of_rows(objective.row_weights)
        else:
            weights = data.weights if settings.uses_propensities else data.weights.new_full((), 1 / data.density)
        labels = data.of_rows(objective.correction.labels).cpu().double()
        return cls(data.log, weights.cpu().double().expand_as(labels).numpy(), labels.numpy())


def factor_bound(
    objective: Objective, settings: TrainingSettings, schedule: RateSchedule, data: TrainingData, rows: float
) -> float:
    """Find the penalty that makes sure of a minimum, at the largest noise rates that there can be."""
    refuse_rates_that_do_not_fit(schedule.correction, data, weighted=settings.uses_propensities)
    if schedule.correction.bounded:
        return 0.0
    with doing("Finding the penalty that makes sure of a minimum"):
        return penalty_bound(objective.corrected(schedule.worst), data, rows)


def factor_penalty(
    given: float | None, bound: float, alone: FactorsAlone | None, rows: float, usual: float = Head.usual_penalty
) -> float:
    """Return the factor penalty as given, or find one.

    Beside constants, the usual one or one that makes sure of a minimum. Alone, one that leaves something of them.
    """
    if given is not None:
        return given
    if alone is None:
        return max(usual, _ABOVE * bound)
    return min(ALONE, _BELOW * vanishing_penalty(*alone, rows))


def warn_if_vanished(name: str, model: Model, penalty: float, limit: float) -> None:
    """Say so where training left nothing of factors alone."""
    assert isinstance(model, FactorModel)  # noqa: S101
    if spread(model) < _NOTHING:
        warn_caller(
            f"the factors of {name} vanished, and all its predictions are 1/2: penalty_factors={penalty:.3g}, and from "
            f"{limit:.3g} on nothing is left of them; take less, or constants=True",
            VanishedFactorsWarning,
        )
