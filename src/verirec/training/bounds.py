r"""When a loss has no minimum: the penalty that the factors need.

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
from scipy.sparse import coo_array
from scipy.sparse.linalg import svds

from verirec.data.feedback_log import FeedbackLog


def least_factor_penalty(log: FeedbackLog, beyond: npt.NDArray[Any], rows: float) -> float:
    """Return the factor penalty above which cross-entropy is bounded below.

    Parameters
    ----------
    log
        Where targets lie outside of [0, 1]: nowhere else.
    beyond
        R of the rows, shape (n,): by how much.
    rows
        n of the penalty: what it is divided by.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)
    >>> least_factor_penalty(log, np.array([0.5, 0.0]), rows=2)
    0.25
    """
    if not beyond.any():
        return 0.0
    matrix = coo_array((beyond, (log.users, log.items)), shape=(log.n_users, log.n_items)).tocsr()
    if min(matrix.shape) <= 2:
        largest = float(np.linalg.norm(matrix.toarray(), 2))
    else:
        # Random: a smoother start may have nothing of the largest singular vector.
        start = np.random.default_rng(0).normal(size=min(matrix.shape))
        largest = float(svds(matrix, k=1, return_singular_vectors=False, v0=start, tol=1e-4)[0])
    return rows * largest / log.n_cells
