r"""When a loss has no minimum: the penalty that the factors need, and noise rates that do not fit.

On a pair whose target T is above 1 or below 0, as corrected and inverse-propensity weighted labels are, cross-entropy
falls without end as the logit grows. With targets :math:`T = S + R`, S the nearest point of [0, 1],

.. math:: \sum_D [\mathrm{softplus}(z) - T z] \ge -\langle R, Z \rangle \ge -\sigma_{\max}(R)\,\lVert Z \rVert_*,

and the factors' penalty :math:`\frac{\lambda}{2n}(\lVert U \rVert^2 + \lVert V \rVert^2)` is at least
:math:`\frac{\lambda}{n} \lVert Z \rVert_*` (Srebro et al. 2005): the mean loss is bounded below, in any dimension,
if :math:`\lambda \ge n\, \sigma_{\max}(R) / |D|`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import totals_of
from verirec.exceptions import NoiseRateError
from verirec.training.correction import NoiseCorrection
from verirec.training.data import TrainingData, multiplied
from verirec.training.losses import SquaredLoss
from verirec.training.objective import Objective

_RESIDUAL: Final = 1e-3
_MOST_STEPS: Final = 300
"""Many more than are needed to tell the largest value from others as large, which come to the same."""


def least_factor_penalty(log: FeedbackLog, excess: npt.NDArray[Any], rows: float) -> float:
    """Return the factor penalty above which cross-entropy is bounded below.

    Parameters
    ----------
    log
        Where targets lie outside of [0, 1]: nowhere else.
    excess
        R of the rows, shape (n,): by how much.
    rows
        n of the penalty: what it is divided by.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)
    >>> least_factor_penalty(log, np.array([0.5, 0.0]), rows=2)
    0.25
    """
    if not excess.any():
        return 0.0
    return rows * largest_singular_value(log.users, log.items, excess, log.shape) / log.n_cells


def largest_singular_value(
    users: Positions, items: Positions, values: npt.NDArray[Any], shape: tuple[int, int]
) -> float:
    r"""Return the largest singular value of a sparse matrix A, by Lanczos' method on :math:`A^\top A`.

    Each step multiplies by both and keeps two vectors. The steps' coefficients are a tridiagonal matrix whose largest
    eigenvalue rises towards that of :math:`A^\top A`; it ends when it is one, but for a residual of 1e-3 of it,
    which leaves an error of about the residual's square.

    Parameters
    ----------
    users, items, values
        Rows and columns of what is not 0, and what is there; shape (n,).
    shape
        Of A.

    Examples
    --------
    >>> round(largest_singular_value(np.array([0, 1]), np.array([0, 1]), np.array([3.0, -2.0]), (2, 2)), 6)
    3.0
    """
    # Random: a smoother start may have nothing of the largest singular vector.
    vector = np.random.default_rng(0).normal(size=shape[1])
    vector /= np.linalg.norm(vector)
    before, beside = np.zeros_like(vector), 0.0
    diagonal: list[float] = []
    besides: list[float] = []
    while True:
        image = _product(values, (items, vector), (users, shape[0]))
        following = _product(values, (users, image), (items, shape[1])) - beside * before
        diagonal.append(float(vector @ following))
        following -= diagonal[-1] * vector
        beside = float(np.linalg.norm(following))
        found, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(besides, -1), UPLO="L")
        if beside * abs(vectors[-1, -1]) <= _RESIDUAL * found[-1] or len(diagonal) >= _MOST_STEPS:
            return float(np.sqrt(found[-1]))
        besides.append(beside)
        before, vector = vector, following / beside


def _product(
    values: npt.NDArray[Any], given: tuple[Positions, npt.NDArray[Any]], to: tuple[Positions, int]
) -> npt.NDArray[np.float64]:
    """Multiply a vector by a sparse matrix, part by part: nothing as long as its entries is made of them."""
    places, vector = given
    return totals_of(to[0], lambda at: values[at] * vector[places[at]], to[1])


def penalty_bound(objective: Objective, data: TrainingData, rows: float) -> float:
    """Return the factor penalty that makes sure that an objective has a minimum; 0 where none is needed.

    Parameters
    ----------
    objective
        At the largest noise rates that there can be.
    data
        Rows that are trained on.
    rows
        n of the penalty: what it is divided by.
    """
    if isinstance(objective.correction.loss, SquaredLoss):
        return 0.0
    excess = objective.target_excess(data)
    return 0.0 if excess is None else least_factor_penalty(data.log, excess.cpu().numpy(), rows)


def refuse_rates_that_do_not_fit(correction: NoiseCorrection, data: TrainingData, *, weighted: bool) -> None:
    """Raise where corrected labels are above 1 or below 0 on average: the loss then falls without end.

    Of levels either the loss is bounded, or labels are not corrected.
    """
    if correction.bounded or data.log.levels is not None:
        return
    labels = data.of_rows(correction.labels).cpu()
    weights = data.weights.cpu() if weighted else torch.ones(())
    total = weights.sum(dtype=torch.float64) if weighted else len(labels)
    share = float(multiplied(weights, labels).sum(dtype=torch.float64) / total)
    # Labels of one class alone may come out beyond the last digit of float32.
    if not -1e-6 <= share <= 1 + 1e-6:
        raise NoiseRateError(
            f"with these noise rates a share of {share:.3g} of the pairs would be liked: they do not fit this log"
        )
