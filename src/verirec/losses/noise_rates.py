"""Class-conditional label noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.checks import as_array, real_number
from verirec.exceptions import NoiseRateError, ParameterError


@dataclass(frozen=True)
class NoiseRates:
    r"""How often a true preference is logged as its opposite.

    :math:`\rho_{01} = P(r=0 \mid r^*=1)` and :math:`\rho_{10} = P(r=1 \mid r^*=0)`, with
    :math:`\kappa = 1 - \rho_{01} - \rho_{10} > 0` (paper, Section 3.1).

    Parameters
    ----------
    rho01
        False negative rate, in [0, 1).
    rho10
        False positive rate, in [0, 1).
    covariance
        2 x 2 covariance of the two rates if they were estimated; `None` if they are known.

    Examples
    --------
    >>> rates = NoiseRates(rho01=0.2, rho10=0.1)
    >>> round(rates.kappa, 2)
    0.7
    >>> NoiseRates(0.6, 0.5)
    Traceback (most recent call last):
    verirec.exceptions.NoiseRateError: rho01 + rho10 must be below 1, or labels carry no signal; got 0.6 + 0.5
    """

    rho01: float
    rho10: float
    covariance: tuple[tuple[float, float], tuple[float, float]] | None = None

    def __post_init__(self) -> None:
        for name in ("rho01", "rho10"):
            object.__setattr__(self, name, _checked_rate(name, getattr(self, name)))
        if self.rho01 + self.rho10 >= 1:
            raise NoiseRateError(
                f"rho01 + rho10 must be below 1, or labels carry no signal; got {self.rho01:g} + {self.rho10:g}"
            )
        if self.covariance is not None:
            object.__setattr__(self, "covariance", _checked_covariance(self.covariance))

    @property
    def kappa(self) -> float:
        """What noise leaves of the signal, 1 - rho01 - rho10."""
        return 1 - self.rho01 - self.rho10

    def observe(self, true_labels: npt.NDArray[Any], uniforms: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
        """Turn true labels into noisy ones; a label flips where its uniform number is below its class's rate.

        Examples
        --------
        >>> NoiseRates(0.2, 0.1).observe(np.array([1, 1, 0, 0]), np.array([0.19, 0.2, 0.09, 0.1])).tolist()
        [0, 1, 1, 0]
        """
        flip_below = np.where(true_labels == 1, self.rho01, self.rho10)
        return np.asarray((true_labels == 1) ^ (uniforms < flip_below), dtype=np.int8)


def _checked_rate(name: str, value: object) -> float:
    try:
        rate = real_number(name, value, above=0, below=1, closed=True)
    except ParameterError:
        rate = 1.0
    if rate == 1:
        raise NoiseRateError(f"{name} must be a number of at least 0 and below 1; got {value!r}")
    return rate


def _checked_covariance(covariance: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    matrix = as_array("covariance", covariance, error=NoiseRateError)
    if matrix.shape != (2, 2) or matrix.dtype.kind not in "fiu" or not np.isfinite(matrix).all():
        raise NoiseRateError(f"covariance must be a finite symmetric 2 x 2 matrix; got {covariance!r}")
    matrix = matrix.astype(np.float64)
    # Variances of rates are small: what counts as equal goes by the matrix's own scale.
    tolerance = 1e-9 * np.abs(matrix).max()
    if abs(matrix[0, 1] - matrix[1, 0]) > tolerance:
        raise NoiseRateError(f"covariance must be a finite symmetric 2 x 2 matrix; got {covariance!r}")
    if np.linalg.eigvalsh(matrix).min() < -tolerance:
        raise NoiseRateError(f"covariance must not have a negative eigenvalue; got {covariance!r}")
    (a, b), (c, d) = matrix.tolist()
    return ((a, b), (c, d))
