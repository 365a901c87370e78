r"""The likelihood of a log's labels and an audit's, together.

In a stratum with share :math:`\pi` of true positives, a row is truly positive and logged as such with probability
:math:`\pi (1 - \rho_{01})`, and so on; rows without an audit show their label alone, positive with probability
:math:`m = \pi (1 - \rho_{01}) + (1 - \pi) \rho_{10}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.exceptions import NoiseRateWarning, warn_caller
from verirec.nuisance.noise_rates.direct import AT_LEAST, share_variance
from verirec.nuisance.noise_rates.strata import Strata, strata_there, table_of
from verirec.scratch import each

Array = npt.NDArray[np.float64]
Covariance = tuple[tuple[float, float], tuple[float, float]]
Rates = tuple[float, float, Covariance, dict[str, Any]]

_MOST_STEPS: Final = 20_000
_CONVERGED: Final = 1e-10
_INSIDE: Final = 1e-9


@dataclass(frozen=True, eq=False)
class AuditCounts:
    """Rows by stratum.

    Parameters
    ----------
    positive, negative
        Rows without an audit by their label, shape (strata,).
    both
        Audited rows: `both[s, r, t]` have label r and true label t, shape (strata, 2, 2).
    """

    positive: Array
    negative: Array
    both: Array

    @classmethod
    def of(
        cls,
        labels: npt.NDArray[np.int8],
        strata: Strata,
        rows: npt.NDArray[np.int64],
        true_labels: npt.NDArray[np.int8],
        weights: Array | None = None,
        audit_weights: Array | None = None,
    ) -> AuditCounts:
        """Count a log's rows, each as often as its weight says; `rows` are the audited ones, with weights of theirs."""
        if weights is not None:
            weights = each(lambda one, mean: one / mean, weights, weights.mean())
        by_label = table_of(strata, labels, 2, weights)
        own = np.ones(len(rows)) if weights is None else weights[rows]
        both = np.zeros((len(by_label), 2, 2))
        counted = own if audit_weights is None else own * audit_weights
        np.add.at(both, (strata[rows], labels[rows], true_labels), counted)
        np.subtract.at(by_label, (strata[rows], labels[rows]), own)
        used = strata_there(strata)
        by_label, both = np.maximum(by_label, 0.0)[used], both[used]
        return cls(by_label[:, 1], by_label[:, 0], both)

    @property
    def flips(self) -> tuple[float, float, float, float]:
        """Audited rows: positives that were logged wrong, all positives, negatives that were, all negatives."""
        table = self.both.sum(axis=0)
        return float(table[0, 1]), float(table[:, 1].sum()), float(table[1, 0]), float(table[:, 0].sum())


def joint_rates(counts: AuditCounts) -> Rates:
    """Maximise the likelihood by expectation-maximisation, and give the inverse information as covariance.

    Examples
    --------
    >>> both = np.array([[[45.0, 1.0], [5.0, 4.0]], [[5.0, 9.0], [1.0, 36.0]]])
    >>> counts = AuditCounts(np.array([170.0, 730.0]), np.array([830.0, 270.0]), both)
    >>> rho01, rho10, _, _ = joint_rates(counts)
    >>> round(rho01, 3), round(rho10, 3)
    (0.191, 0.107)
    """
    wrong1, positives, wrong0, negatives = counts.flips
    rho01, rho10 = (wrong1 + 0.5) / (positives + 1), (wrong0 + 0.5) / (negatives + 1)
    audited = counts.both.sum(axis=1)
    share = (audited[:, 1] + 1) / (audited.sum(axis=1) + 2)
    size = counts.positive + counts.negative + audited.sum(axis=1)
    for _ in range(_MOST_STEPS):
        before = rho01, rho10
        said = np.clip(share * (1 - rho01) + (1 - share) * rho10, _INSIDE, 1 - _INSIDE)
        # Of the rows without an audit: how many are truly positive, by what they said.
        positive_if_said = counts.positive * share * (1 - rho01) / said
        positive_if_not = counts.negative * share * rho01 / (1 - said)
        share = (positive_if_said + positive_if_not + audited[:, 1]) / size
        all_positive, all_negative = (share * size).sum(), ((1 - share) * size).sum()
        rho01 = min(float(positive_if_not.sum() + wrong1) / max(float(all_positive), _INSIDE), 1 - _INSIDE)
        rho10 = float((counts.positive - positive_if_said).sum() + wrong0) / max(float(all_negative), _INSIDE)
        # Of an audit without a wrong label, rounding can leave a rate below 0.
        rho10 = min(max(rho10, 0.0), 1 - _INSIDE)
        if max(abs(rho01 - before[0]), abs(rho10 - before[1])) < _CONVERGED:
            break
    else:
        warn_caller("the noise rates of this audit have not settled: it says next to nothing", NoiseRateWarning)
    facts = {"positives": positives, "negatives": negatives, "strata": len(share), "shares": share}
    return rho01, rho10, _inverse_information(counts, rho01, rho10, share), facts


def truly_positive(rho01: float, rho10: float, share: Array, strata: Strata, labels: npt.NDArray[np.int8]) -> Array:
    """Return the probability that rows are truly positive, given their label and their stratum's share of positives.

    Examples
    --------
    >>> truly_positive(0.2, 0.1, np.array([0.5]), np.array([0, 0]), np.array([0, 1], np.int8)).round(3).tolist()
    [0.182, 0.889]
    """
    own = share[strata]
    if_positive = own * np.where(labels == 1, 1 - rho01, rho01)
    return np.asarray(
        if_positive / np.maximum(if_positive + (1 - own) * np.where(labels == 1, rho10, 1 - rho10), _INSIDE)
    )


def _inverse_information(counts: AuditCounts, rho01: float, rho10: float, share: Array) -> Covariance:
    """Invert the observed information, the strata's shares eliminated; rates near 0 are moved inside by a few rows."""
    wrong1, positives, wrong0, negatives = counts.flips
    few01, few10 = (min(AT_LEAST / (rows + 1), 0.25) for rows in (positives, negatives))
    at_zero = rho01 < few01, rho10 < few10
    rho01, rho10 = max(rho01, few01), max(rho10, few10)
    share = np.clip(share, _INSIDE, 1 - _INSIDE)
    said = share * (1 - rho01) + (1 - share) * rho10
    curvature = counts.positive / said**2 + counts.negative / (1 - said) ** 2
    slope = counts.positive / said - counts.negative / (1 - said)
    by_rates = np.stack([-share, 1 - share])
    by_share = 1 - rho01 - rho10
    audited = counts.both.sum(axis=1)
    information = (by_rates * curvature) @ by_rates.T
    information[0, 0] += wrong1 / rho01**2 + (positives - wrong1) / (1 - rho01) ** 2
    information[1, 1] += wrong0 / rho10**2 + (negatives - wrong0) / (1 - rho10) ** 2
    # A rate on the boundary has no row to tell its curvature: that of a few stands in.
    information[0, 0] += max(AT_LEAST - wrong1, 0.0) / rho01**2 if at_zero[0] else 0.0
    information[1, 1] += max(AT_LEAST - wrong0, 0.0) / rho10**2 if at_zero[1] else 0.0
    cross = by_rates * curvature * by_share + slope
    of_share = curvature * by_share**2 + audited[:, 1] / share**2 + audited[:, 0] / (1 - share) ** 2
    information -= (cross / np.maximum(of_share, 1e-12)) @ cross.T
    covariance = np.linalg.inv(information) if np.linalg.eigvalsh(information).min() > 0 else _direct(counts)
    (a, b), (_, d) = ((covariance + covariance.T) / 2).tolist()
    return ((a, b), (b, d))


def _direct(counts: AuditCounts) -> Array:
    wrong1, positives, wrong0, negatives = counts.flips
    return np.diag([share_variance(wrong1, positives), share_variance(wrong0, negatives)])
