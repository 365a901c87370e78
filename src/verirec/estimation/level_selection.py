r"""Weighted errors where selection depends on the true level, and the logged level may be wrong.

A row of true level j counts by :math:`(l_j - \hat e)/p_j`. What was logged is k, and :math:`\sum_j (T^{-1})_{kj} m_j`
has the mean :math:`m_j`: so it is the ratio :math:`m_j = (l_j - \hat e)/p_j` that is corrected as one, in place of the
loss alone. Where p is the same for all levels this is w times the corrected error.

With labels :math:`y_c` of the levels reached, :math:`\sum_j (T^{-1})_{kj} m_j = m_0 + \sum_c y_c (m_c - m_{c-1})`:
linear in the labels, as everything here is, so that an audit's true levels correct it too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from verirec.estimation.expansion import Effects, InfluenceExpansion
from verirec.estimation.rows import RowPart, Rows

Array = npt.NDArray[np.float64]


def weighted_errors(part: RowPart, imputed: Array | float = 0.0) -> Array:
    """Return w (e - imputed) of some rows, shape (m,)."""
    if part.by_level is None:
        return np.asarray(part.weights * (part.errors - imputed))
    return _corrected(part, _ratios(part, imputed))


def weighted_slopes(part: RowPart, imputed: Array | float = 0.0) -> Array:
    """Return the derivative of w (e - imputed) by label, shape (m,) or (K - 1, m)."""
    if part.by_level is None:
        return np.asarray(part.weights * part.difference)
    return np.diff(_ratios(part, imputed), axis=0)


def row_weights(part: RowPart) -> Array:
    """Return w, shape (m,): of levels, what has the mean 1/p of the true one."""
    return part.weights if part.by_level is None else _corrected(part, 1 / part.by_level)


def snips_by_level(rows: Rows) -> InfluenceExpansion:
    """Return the self-normalised estimate, the sum of corrected ratios over that of corrected weights."""

    def own(part: RowPart) -> Array | float:
        return 1.0 if part.importance is None else part.importance

    def sums(part: RowPart) -> tuple[float, float]:
        return float((own(part) * weighted_errors(part)).sum()), float((own(part) * row_weights(part)).sum())

    total, mass = rows.sums(sums)
    value = total / mass

    def effects(part: RowPart) -> Effects:
        return Effects(own(part) * weighted_errors(part, value) / mass, own(part) * weighted_slopes(part, value) / mass)

    return InfluenceExpansion(
        value,
        rows,
        effects,
        lambda part: own(part) * weighted_errors(part) / mass,
        lambda part: own(part) * row_weights(part) / mass,
        label_slopes_exact=True,
    )


def variances(part: RowPart, effects: Effects) -> tuple[float, float]:
    r"""Return what who rates what adds to a variance, and what noise adds.

    With A a row's influence and :math:`m_j` what it would be if its true level were j, :math:`\sum o A` has the
    variance :math:`\sum_D p_j E[A^2] - (p_j m_j)^2`, which :math:`\sum_O \sum_j \tilde y_j (1 - p_j) m_j^2` and
    :math:`\sum_O A^2 - \sum_j \tilde y_j m_j^2` add up to on average.
    """
    assert part.by_level is not None  # noqa: S101 -- asked for such rows only
    influence, slopes = effects.influence, effects.label_slopes
    lowest = influence - (slopes * part.labels).sum(axis=0)
    squares = (lowest + np.cumsum(np.concatenate([np.zeros((1, len(lowest))), slopes]), axis=0)) ** 2
    selection = float(_corrected(part, (1 - part.by_level) * squares).sum())
    return selection, float((influence**2 - _corrected(part, squares)).sum())


def _ratios(part: RowPart, imputed: Array | float) -> Array:
    """Return (l - imputed)/p at all levels, shape (K, m)."""
    steps = np.concatenate([np.zeros((1, len(part.if_negative))), part.difference])
    return np.asarray((part.if_negative + np.cumsum(steps, axis=0) - imputed) / part.by_level)


def _corrected(part: RowPart, by_level: Array) -> Array:
    """Return what stands for the true level's of numbers by level, shape (K, m): right on average over noise; (m,)."""
    return np.asarray(by_level[0] + (part.labels * np.diff(by_level, axis=0)).sum(axis=0))
