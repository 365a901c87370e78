r"""An audit's true labels in the estimate itself: two-phase sampling.

First a log is drawn from the grid, then an audit from the log. For any estimate T of the labels, with slope b by the
label of each row,

.. math:: T(\tilde r) + \sum_A \frac{b}{\pi} (r^* - \tilde r)

is what T would be if all logged labels were true, on average over who is audited: whatever the noise is, and whatever
noise rates made :math:`\tilde r`. These are a control variate: the closer they are, the less the sum varies. Of the
doubly robust estimate b is w (l1 - l0) / N, which gives "audited-dr".

A are the audited rows, :math:`\pi` their probabilities, n their number, and M the number of all rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.estimation.expansion import AuditVariance, InfluenceExpansion
from verirec.estimation.rows import Rows
from verirec.losses import CorrectedLabels, CorrectedLevels, over_levels

Array = npt.NDArray[np.float64]

_SUPPOSED: Final = 2.0
"""Audited rows that are supposed to be wrong, besides those that are: few wrong ones do not tell how many there are."""


def with_true_labels(found: InfluenceExpansion, rows: Rows) -> InfluenceExpansion:
    r"""Put an estimate of a log's labels right by the true labels of an audit.

    The sum is that of Hájek, :math:`M \sum_A (z/\pi) / \sum_A (1/\pi)` with :math:`z = b (r^* - \tilde r)`: of a simple
    random audit the mean of z times M. What varies is who rates what, :math:`\sum_O (1 - p) (A + z)^2`, A being a row's
    influence with its corrected label; and who is audited,
    :math:`\frac{n}{n - 1} \sum_A (1 - \pi) [(z - \bar z)/\pi]^2`, with two more wrong rows than there are (Agresti and
    Coull's idea).
    """
    at, true_labels, stands_for = _audit_of(rows)
    total = float(stands_for.sum())
    slopes, influence = found.label_slopes[..., at], found.influence[at]
    off = over_levels(slopes * (true_labels - rows.labels.values[..., at])) / _left_by_others(rows)
    correction = float(stands_for @ off)
    # Rows that stand for themselves alone leave nothing open.
    squares = np.maximum(1 - 1 / stands_for, 0.0) * stands_for**2
    # Of levels, each of the K - 1 steps between neighbours is as likely to be the wrong one.
    supposed = _SUPPOSED * (float(np.atleast_2d(np.abs(slopes)).mean(axis=0) @ stands_for) / total) ** 2
    of_audit = float(squares @ (off - correction / total) ** 2) * len(at) / max(len(at) - 1, 1)
    of_audit += supposed * float(squares.mean())
    kept = (1 - _p_of_truth(rows)) * (influence + off) ** 2 - (1 - rows.p[at]) * influence**2
    more = stands_for @ kept
    (of_rows,) = rows.sums(lambda part: ((1 - part.p) @ found.at(part.at).influence ** 2,))
    added = np.zeros(len(rows.log))
    added[at] = stands_for * off
    return replace(
        found,
        value=found.value + correction,
        terms=lambda part: found.terms(part) + added[part.at],
        audit=AuditVariance(max(of_rows + float(more), 0.0), of_audit),
    )


def with_labels_put_right(rows: Rows) -> Rows:
    r"""Return rows with labels that are right on average over who is audited, :math:`\tilde r + (r^* - \tilde r)/\pi`.

    Ratios, and what is linear in each of two labels, are of these what they would be of the true labels; single ones
    are far off, and nothing should be fitted to them.
    """
    at, true_labels, stands_for = _audit_of(rows)
    assert isinstance(rows.labels, CorrectedLabels)  # noqa: S101 -- metrics refuse levels
    values = rows.labels.values.copy()
    values[at] += stands_for * (true_labels - values[at])
    return rows.with_labels(replace(rows.labels, values=values))


def _left_by_others(rows: Rows) -> Array | float:
    """Return 1 - h, where labels are what is expected by an audit: a row without itself is off by 1 / (1 - h) as much.

    h is by how much what is expected of an audited row rests on its own true label.
    """
    audited, errors = rows.pairs.audited, rows.pairs.errors
    assert audited is not None  # noqa: S101 -- as below
    if errors is None or rows.labels is not rows.pairs.expected:
        return 1.0
    return 1 - errors.leverage(rows.log, audited.rows)


def _p_of_truth(rows: Rows) -> Array:
    """Return the propensities of the audited rows: those of their true levels, where these decide."""
    audited, by_level = rows.pairs.audited, rows.pairs.by_level
    assert audited is not None  # noqa: S101 -- as below
    return rows.p[audited.rows] if by_level is None else by_level[audited.true_labels, audited.rows]


def _audit_of(rows: Rows) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], Array]:
    """Return the audited rows, their true labels, and how many rows each stands for, adding up to all of them."""
    audited = rows.pairs.audited
    assert audited is not None  # noqa: S101 -- estimators that need an audit are refused without one
    stands_for = 1 / audited.probabilities
    levels, labels = rows.log.levels, np.asarray(audited.true_labels)
    if levels is not None:
        labels = np.asarray(CorrectedLevels.of(labels, len(levels), None).values)
    return audited.rows, labels, stands_for * (len(rows.log) / stands_for.sum())
