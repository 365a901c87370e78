r"""When a loss has no minimum: the penalty that the factors need, and noise rates that do not fit.

On a pair whose target T is above 1 or below 0, as corrected and inverse-propensity weighted labels are, cross-entropy
falls without end as the logit grows. With targets :math:`T = S + R`, S the nearest point of [0, 1],

.. math:: \sum_D [\mathrm{softplus}(z) - T z] \ge -\langle R, Z \rangle \ge -\sigma_{\max}(R)\,\lVert Z \rVert_*,

and the factors' penalty :math:`\frac{\lambda}{2n}(\lVert U \rVert^2 + \lVert V \rVert^2)` is at least
:math:`\frac{\lambda}{n} \lVert Z \rVert_*` (Srebro et al. 2005): the mean loss is bounded below, in any dimension,
if :math:`\lambda \ge n\, \sigma_{\max}(R) / |D|`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import coo_array
from scipy.sparse.linalg import svds

from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import NoiseRateError
from verirec.training.correction import NoiseCorrection
from verirec.training.data import TrainingData
from verirec.training.losses import SquaredLoss
from verirec.training.objective import Objective


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
    if min(matrix.shape) <= 2:
        largest = float(np.linalg.norm(matrix.toarray(), 2))
    else:
        # Random: a smoother start may have nothing of the largest singular vector.
        start = np.random.default_rng(0).normal(size=min(matrix.shape))
        largest = float(svds(matrix, k=1, return_singular_vectors=False, v0=start, tol=1e-4)[0])
    return rows * largest / log.n_cells


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
