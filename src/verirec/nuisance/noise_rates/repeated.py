r"""The likelihood of a log's labels and of second answers to some of them, without a true label.

In a stratum with share :math:`\pi` of true positives, both answers are positive with probability
:math:`\pi (1 - \rho_{01})^2 + (1 - \pi) \rho_{10}^2`, and so on: given what people prefer, they err anew each time.
With m the stratum's share of positive labels, the first answer is positive and the second is not with probability
:math:`\rho_{10} (1 - \rho_{01}) + (\rho_{01} - \rho_{10}) m`, as often as the other way round: a straight line in m,
whose level and slope are the two rates. It takes strata that differ in m (Hui and Walter, 1980).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from verirec.nuisance.noise_rates.direct import AT_LEAST
from verirec.nuisance.noise_rates.joint import AuditCounts, Covariance

Array = npt.NDArray[np.float64]

_INSIDE: Final = 1e-9


@dataclass(frozen=True)
class RepeatedRates:
    """Rates by a likelihood, with their covariance and the strata's shares of true positives."""

    rho01: float
    rho10: float
    covariance: Covariance
    shares: Array


def repeated_rates(counts: AuditCounts) -> RepeatedRates:
    """Maximise the likelihood; `counts.both[s, r, t]` has rows with label r and second answer t.

    Examples
    --------
    >>> both = np.array([[[81.0, 9.5], [9.5, 10.0]], [[17.0, 17.0], [17.0, 49.0]]])
    >>> found = repeated_rates(AuditCounts(np.array([195.0, 660.0]), np.array([805.0, 340.0]), both))
    >>> round(found.rho01, 2), round(found.rho10, 2)
    (0.25, 0.08)
    """
    from scipy.optimize import minimize  # Takes long to import, and is not always needed.

    rho01, rho10 = _start(counts)
    said = _said(counts)
    share = np.clip((said - rho10) / (1 - rho01 - rho10), 0.01, 0.99)
    found = minimize(
        _cost,
        np.concatenate([[rho01, rho10], share]),
        args=(counts,),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1 - _INSIDE)] * 2 + [(0.0, 1.0)] * len(share),
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5_000, "maxfun": 10_000},
    )
    rho01, rho10, share = float(found.x[0]), float(found.x[1]), found.x[2:]
    if rho01 + rho10 > 1:
        # The same likelihood with the classes' names exchanged: labels say what people prefer, not the opposite.
        rho01, rho10, share = 1 - rho10, 1 - rho01, 1 - share
    return RepeatedRates(rho01, rho10, _inverse_information(counts, rho01, rho10), share)


def _said(counts: AuditCounts) -> Array:
    """Return each stratum's share of positive labels, with a row more."""
    both = counts.both.sum(axis=2)
    positive, negative = counts.positive + both[:, 1], counts.negative + both[:, 0]
    return np.asarray((positive + 0.5) / (positive + negative + 1))


def _start(counts: AuditCounts) -> tuple[float, float]:
    """Take both rates for the same: of two answers, 2 e (1 - e) then differ."""
    asked = counts.both.sum()
    differ = min(float(counts.both[:, 0, 1].sum() + counts.both[:, 1, 0].sum() + 1) / (asked + 2), 0.45)
    error = (1 - float(np.sqrt(1 - 2 * differ))) / 2
    return error, error


def _cost(at: Array, counts: AuditCounts) -> tuple[float, Array]:
    """Return minus the mean log-likelihood of a row, and its slopes, at (rho01, rho10, shares)."""
    rho01, rho10, share = at[0], at[1], at[2:]
    if_liked, if_not = np.array([rho01, 1 - rho01]), np.array([1 - rho10, rho10])
    total = counts.positive.sum() + counts.negative.sum() + counts.both.sum()
    once = np.stack([counts.negative, counts.positive], axis=1)
    chance1 = np.maximum(np.outer(share, if_liked) + np.outer(1 - share, if_not), _INSIDE)
    pairs = np.multiply.outer(share, np.outer(if_liked, if_liked))
    pairs = np.maximum(pairs + np.multiply.outer(1 - share, np.outer(if_not, if_not)), _INSIDE**2)
    value = (once * np.log(chance1)).sum() + (counts.both * np.log(pairs)).sum()
    rest1, rest2 = once / chance1, counts.both / pairs
    by_share = rest1 @ (if_liked - if_not)
    by_share += (rest2 * (np.outer(if_liked, if_liked) - np.outer(if_not, if_not))).sum(axis=(1, 2))
    sign = np.array([1.0, -1.0])
    slopes = []
    for part, own in ((share, if_liked), (1 - share, if_not)):
        twice = np.outer(sign, own) + np.outer(own, sign)
        slopes.append(part @ (rest1 @ sign) + part @ (rest2 * twice).sum(axis=(1, 2)))
    # A row is negative more often as rho01 rises, and less often as rho10 does.
    gradient = np.concatenate([[slopes[0], -slopes[1]], by_share])
    return -float(value) / total, -gradient / total


def _inverse_information(counts: AuditCounts, rho01: float, rho10: float) -> Covariance:
    r"""Invert the expected information on (rho01, rho10, m of each stratum).

    Of rows with a positive label, c / m answer otherwise when asked again, of the others c / (1 - m), where
    c = rho10 (1 - rho01) + (rho01 - rho10) m. Strata count by m, not by their share of true positives, which may lie on
    the edge of its range and would then tell more than it knows.
    """
    by_label, said = counts.both.sum(axis=2), _said(counts)
    rho01, rho10 = _inside(rho01, by_label[:, 1].sum()), _inside(rho10, by_label[:, 0].sum())
    strata = len(said)
    differ = rho10 * (1 - rho01) + (rho01 - rho10) * said
    by_rates = np.stack([said - rho10, 1 - rho01 - said], axis=1)
    rows = by_label.sum(axis=1) + counts.positive + counts.negative
    information = np.zeros((2 + strata, 2 + strata))
    information[2:, 2:] = np.diag(rows / (said * (1 - said)))
    for label, of_label, sign in ((1, said, 1.0), (0, 1 - said, -1.0)):
        chance = np.clip(differ / of_label, 1e-6, 1 - 1e-6)
        slope = np.zeros((strata, 2 + strata))
        slope[:, :2] = by_rates / of_label[:, None]
        slope[np.arange(strata), 2 + np.arange(strata)] = (rho01 - rho10 - sign * chance) / of_label
        weight = by_label[:, label] / (chance * (1 - chance))
        information += (slope * weight[:, None]).T @ slope
    covariance = np.linalg.pinv(information)[:2, :2]
    (a, b), (_, d) = ((covariance + covariance.T) / 2).tolist()
    return ((a, b), (b, d))


def _inside(rate: float, rows: float) -> float:
    """Add an error to those of so many rows, asked twice; and never so few that a rate of 0 seems sure."""
    return min(max(rate + (1 - rate) / (rows + 1), AT_LEAST / 2 / (rows + 1)), 0.95)
