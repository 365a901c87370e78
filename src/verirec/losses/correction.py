r"""The noise correction: labels that are right on average, whatever the loss.

With :math:`\tilde r = (r - \rho_{10}) / \kappa` the paper's surrogate error (Section 3.2) is
:math:`\tilde e = \tilde r\, l(f, 1) + (1 - \tilde r)\, l(f, 0)`, and :math:`E[\tilde r \mid r^*] = r^*`. A corrected
label can be below 0 or above 1; cutting it off would make it biased.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.losses.corrected_levels import CorrectedLevels
from verirec.losses.looked_up import along, looked_up
from verirec.losses.noise_rates import GroupedNoiseRates, NoiseRates
from verirec.losses.transitions import TransitionMatrix
from verirec.scratch import each

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CorrectedLabels:
    r"""Labels without bias from noise, and what noise leaves in them.

    Parameters
    ----------
    values
        :math:`\tilde r`, shape (n,).
    variance
        An unbiased estimate of :math:`Var(\tilde r \mid r^*)`, shape (n,); single ones may be negative.
    slopes
        For each noise rate, in the order of its covariance, the derivative of `values` by it, shape (rates, n).
    covariance
        Of all the noise rates, shape (rates, rates), as it adds to that of noise; `None` if they are known.
    """

    values: Array
    variance: Array
    slopes: tuple[Array, ...] = ()
    covariance: Array | None = None

    def extended(self, true_labels: npt.NDArray[Any]) -> CorrectedLabels:
        """Return these labels with true ones after them, which no noise rate changes."""
        more = np.zeros(len(true_labels))
        return CorrectedLabels(
            np.concatenate([self.values, true_labels]),
            np.concatenate([self.variance, more]),
            tuple(np.concatenate([by_rate, more]) for by_rate in self.slopes),
            self.covariance,
        )

    def noise_variance(self, at: slice, slopes: Array) -> Array:
        """Return what noise adds to the variance of each of some rows' label times its slope, shape (m,)."""
        return np.asarray(slopes**2 * self.variance[at])

    def rate_gradient(self, at: slice, slopes: Array) -> Array:
        """Return the derivative by each noise rate of some rows' labels times their slopes, added up."""
        return np.array([by_rate[at] for by_rate in self.slopes]) @ slopes

    def moved(self, step: float) -> Iterator[CorrectedLabels]:
        """Return, for each uncertain noise rate, the labels of a rate larger by a step."""
        for slopes in self.slopes:
            yield replace(self, values=along(lambda label, slope: label + step * slope, self.values, slopes))

    def select(self, rows: npt.NDArray[Any]) -> CorrectedLabels:
        """Return some of the labels, given by a mask or by numbers."""
        slopes = tuple(by_rate[rows] for by_rate in self.slopes)
        return CorrectedLabels(self.values[rows], self.variance[rows], slopes, self.covariance)


Corrected = CorrectedLabels | CorrectedLevels
"""Labels of a log, binary or in levels: what all estimators take."""


def correct_labels(
    labels: npt.NDArray[Any],
    rates: NoiseRates | GroupedNoiseRates | None,
    users: npt.NDArray[Any],
    items: npt.NDArray[Any],
    *,
    log: int | None = None,
    in_parts: bool = False,
) -> CorrectedLabels:
    r"""Correct 0/1 labels for noise, :math:`\tilde r = (r - \rho_{10}) / \kappa`; without rates they stay as they are.

    Parameters
    ----------
    labels
        0/1, shape (n,).
    rates
        One for all, or by group.
    users, items
        Positions, for the groups.
    log
        Fingerprint of the log that these labels are of, to be held against that of an audit.
    in_parts
        Whether they will be asked for part by part: then nothing of the length of a long log is made.

    Examples
    --------
    >>> pairs = np.array([0, 1])
    >>> correct_labels(np.array([1, 0]), NoiseRates(0.2, 0.1), pairs, pairs).values.round(4).tolist()
    [1.2857, -0.1429]
    """
    if not isinstance(rates, GroupedNoiseRates):
        # Of each class all labels are the same.
        of_class = _of_classes(np.array([0.0, 1.0]), rates, log)
        return of_class.select(labels) if not in_parts else _looked_up(of_class, labels)
    covariance, plain = rates.covariance_beside_noise(log), each(lambda one: one, labels)
    return _corrected(plain, *rates.of_pairs(users, items), covariance, rates.group_of(users, items))


def _of_classes(labels: Array, rates: NoiseRates | None, log: int | None) -> CorrectedLabels:
    if rates is None:
        return CorrectedLabels(labels, np.zeros_like(labels))
    return _corrected(labels, rates.rho01, rates.rho10, rates.covariance_beside_noise(log), None)


def _looked_up(of_class: CorrectedLabels, labels: npt.NDArray[Any]) -> CorrectedLabels:
    slopes = tuple(looked_up(by_rate, labels) for by_rate in of_class.slopes)
    values, variance = (looked_up(table, labels) for table in (of_class.values, of_class.variance))
    return CorrectedLabels(values, variance, slopes, of_class.covariance)


def corrected(
    labels: npt.NDArray[Any],
    n_levels: int | None,
    rates: NoiseRates | GroupedNoiseRates | TransitionMatrix | None,
    users: npt.NDArray[Any],
    items: npt.NDArray[Any],
    *,
    log: int | None = None,
    in_parts: bool = False,
) -> Corrected:
    """Correct labels of either kind: places among so many levels or, if these are `None`, binary ones."""
    if n_levels is None:
        assert not isinstance(rates, TransitionMatrix)  # noqa: S101 -- refused where noise rates are checked
        return correct_labels(labels, rates, users, items, log=log, in_parts=in_parts)
    assert rates is None or isinstance(rates, TransitionMatrix)  # noqa: S101 -- likewise
    return CorrectedLevels.of(labels, n_levels, rates, log)


def _corrected(
    labels: Array,
    rho01: Array | float,
    rho10: Array | float,
    covariance: Array | None,
    group: npt.NDArray[np.int64] | None,
) -> CorrectedLabels:
    kappa = 1 - rho01 - rho10
    values = each(lambda label, rate, signal: (label - rate) / signal, labels, rho10, kappa)
    if_negative, if_positive = rho10 * (1 - rho10), rho01 * (1 - rho01)
    variance = each(
        lambda value, low, high, signal: (low + value * (high - low)) / signal**2,
        values,
        if_negative,
        if_positive,
        kappa,
    )
    if covariance is None:
        return CorrectedLabels(values, variance)
    by_rho01 = each(lambda value, signal: value / signal, values, kappa)
    by_rho10 = each(lambda value, signal: (value - 1) / signal, values, kappa)
    if group is None:
        return CorrectedLabels(values, variance, (by_rho01, by_rho10), covariance)
    slopes = tuple(
        each(lambda by, own, one: np.where(own == one, by, 0.0), by, group, one)
        for one in range(len(covariance) // 2)
        for by in (by_rho01, by_rho10)
    )
    return CorrectedLabels(values, variance, slopes, covariance)
