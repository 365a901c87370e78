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
from scipy.sparse import coo_array

from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import NoiseRateError
from verirec.training.correction import NoiseCorrection
from verirec.training.data import TrainingData
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
    matrix = coo_array((excess, (log.users, log.items)), shape=(log.n_users, log.n_items)).tocsr()
    return rows * largest_singular_value(matrix) / log.n_cells


def largest_singular_value(matrix: Any) -> float:
    r"""Return the largest singular value of a sparse matrix A, by Lanczos' method on :math:`A^\top A`.

    Each step multiplies by both and keeps two vectors. The steps' coefficients are a tridiagonal matrix whose largest
    eigenvalue rises towards that of :math:`A^\top A`; it ends when it is one, but for a residual of 1e-3 of it,
    which leaves an error of about the residual's square.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> round(largest_singular_value(csr_array([[3.0, 0.0], [0.0, -2.0]])), 6)
    3.0
    """
    matrix = matrix.astype(np.float64)
    transposed = matrix.T
    # Random: a smoother start may have nothing of the largest singular vector.
    vector = np.random.default_rng(0).normal(size=matrix.shape[1])
    vector /= np.linalg.norm(vector)
    before, beside = np.zeros_like(vector), 0.0
    diagonal: list[float] = []
    besides: list[float] = []
    while True:
        image = matrix @ vector
        following = transposed @ image - beside * before
        diagonal.append(float(vector @ following))
        following -= diagonal[-1] * vector
        beside = float(np.linalg.norm(following))
        values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(besides, -1), UPLO="L")
        if beside * abs(vectors[-1, -1]) <= _RESIDUAL * values[-1] or len(diagonal) >= _MOST_STEPS:
            return float(np.sqrt(values[-1]))
        besides.append(beside)
        before, vector = vector, following / beside


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
    labels = correction.labels(data.all_rows).cpu()
    weights = data.weights.cpu() if weighted else torch.ones(len(labels))
    share = float((weights * labels).sum(dtype=torch.float64) / weights.sum(dtype=torch.float64))
    # Labels of one class alone may come out beyond the last digit of float32.
    if not -1e-6 <= share <= 1 + 1e-6:
        raise NoiseRateError(
            f"with these noise rates a share of {share:.3g} of the pairs would be liked: they do not fit this log"
        )
