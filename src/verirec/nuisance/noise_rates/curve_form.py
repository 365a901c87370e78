r"""Whether labels are wrong along a score as a fitted curve says: residuals, added up from the lowest score.

With :math:`e_i = w_i (y_i - p_i)` the residuals of all rows in the order of their scores, the statistic is the mean of
:math:`(\sum_{j \le i} e_j)^2` (Lin, Wei and Ying 2002). Where a curve cannot bend as rates do, residuals of one sign
come together. What chance does is seen from labels that are drawn by the curve itself: a fit to them would take up
:math:`W V X (X^\top W V X + \Lambda)^{-1} X^\top e` of their residuals, V being p (1 - p), which is taken off. So the
test has its size where wrong labels are few, too.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.parts import parts_of

Array = npt.NDArray[np.float64]

_DRAWS: Final = 999
_CELLS: Final = 1 << 21
"""Of drawn labels that are looked at together."""


class FittedRows(NamedTuple):
    """Rows, and what was fitted to them.

    Parameters
    ----------
    scores, labels, weights, chances
        Shape (n,) each: what rows are sorted by, 0 or 1, weights in the fit, and chances of a 1 by the fit.
    features
        Shape (n, k).
    covariance
        The inverse of the penalised information, (k, k).
    """

    scores: Array
    labels: Array
    weights: Array
    chances: Array
    features: Array
    covariance: Array


def form_p_value(rows: FittedRows) -> float:
    """Return how often labels drawn by a curve lie as far from it as those that it was fitted to.

    Examples
    --------
    >>> scores = np.linspace(0, 1, 200)
    >>> chances, features, covariance = np.full(200, 0.25), np.ones((200, 1)), np.array([[1 / 37.5]])
    >>> spread, together = (np.arange(200) % 4 == 0), (scores < 0.25)
    >>> parts = scores, np.ones(200), chances, features, covariance
    >>> [form_p_value(FittedRows(scores, labels * 1.0, *parts[1:])) < 0.01 for labels in (spread, together)]
    [False, True]
    """
    order = np.lexsort((rows.labels, rows.weights, rows.chances, rows.scores))
    _, labels, weights, chances, features = (part[order] for part in rows[:5])
    # Rows of one score come together, in whichever order they are.
    last = np.append(np.diff(rows.scores[order]) > 0, True)
    taken_up = features * (weights * chances * (1 - chances))[:, None] @ rows.covariance

    def statistic(residuals: Array) -> Array:
        return np.asarray((np.cumsum(residuals, axis=1)[:, last] ** 2).mean(axis=1))

    observed = statistic((weights * (labels - chances))[None])[0]
    random, reached = np.random.default_rng(len(labels)), 0
    for part in parts_of(_DRAWS, size=max(_CELLS // len(labels), 1)):
        drawn = random.random((part.stop - part.start, len(labels))) < chances
        residuals = weights * (drawn - chances)
        residuals -= (residuals @ features) @ taken_up.T
        reached += int((statistic(residuals) >= observed * (1 - 1e-9)).sum())
    return (1 + reached) / (1 + _DRAWS)
