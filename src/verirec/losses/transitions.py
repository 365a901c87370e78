"""Noise between K levels: how often each true level is logged as each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import number_array, real_number, whole_number
from verirec.exceptions import NoiseRateError, NoiseRateWarning, warn_caller
from verirec.formatting import html_table, short
from verirec.losses.noise_rates import WEAK_SIGNAL, AuditOrigin, NoiseRates, checked_covariance, covariance_beside_noise

Array = npt.NDArray[np.float64]

MOST_CONDITION: Final = 1e6
"""From this condition number on a matrix is as good as singular: six digits of the labels are lost."""
_LOST: Final = 1e-6
"""What the entries of a row may miss 1 by."""


@dataclass(frozen=True, eq=False)
class TransitionMatrix:
    r"""How often each true level is logged as each other, :math:`T_{jk} = P(r = k \mid r^* = j)`.

    The corrected loss of a row that was logged at level k is :math:`\tilde e = \sum_j (T^{-1})_{kj}\,l(f, j)`:
    :math:`E[\tilde e \mid r^*] = l(f, r^*)` (the backward correction of Patrini et al. 2017; with two levels the
    paper's surrogate error).

    Parameters
    ----------
    matrix
        Shape (K, K), true levels in rows, lowest first; each row adds up to 1.
    covariance
        Of all entries, row by row, shape (K * K, K * K), if they were estimated; `None` if they are known.
    audit
        The log whose own rows were audited, if they were.
    diagnostics
        How it was estimated, if it was: for people to read.

    Examples
    --------
    >>> noise = TransitionMatrix([[0.9, 0.1, 0], [0.1, 0.8, 0.1], [0, 0.1, 0.9]])
    >>> noise.inverse.round(3).tolist()
    [[1.127, -0.143, 0.016], [-0.143, 1.286, -0.143], [0.016, -0.143, 1.127]]
    >>> TransitionMatrix([[0.5, 0.5], [0.5, 0.5]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    verirec.exceptions.NoiseRateError: a transition matrix must have an inverse...has a condition number of inf
    """

    matrix: Array
    covariance: Array | None = None
    audit: AuditOrigin | None = None
    diagnostics: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        matrix = _checked_matrix(self.matrix)
        object.__setattr__(self, "matrix", matrix)
        if not self.condition < MOST_CONDITION:
            raise NoiseRateError(
                "a transition matrix must have an inverse, or labels carry no signal; this one has a condition number "
                f"of {self.condition:.3g}"
            )
        if self.covariance is not None:
            object.__setattr__(self, "covariance", checked_covariance(self.covariance, matrix.size))
        if self.audit is not None and not isinstance(self.audit, AuditOrigin):
            raise NoiseRateError(f"audit must be an AuditOrigin; got {type(self.audit).__name__}")
        if not isinstance(self.diagnostics, Mapping):
            raise NoiseRateError(f"diagnostics must be a mapping of names; got {short(self.diagnostics)}")
        if self.norm > 1 / WEAK_SIGNAL:
            warn_caller(
                f"the transition matrix has a condition number of {self.condition:.3g}, and its inverse a norm of "
                f"{self.norm:.3g}: labels carry so little signal that corrected estimates will be very uncertain",
                NoiseRateWarning,
            )

    @classmethod
    def of_rates(cls, rates: NoiseRates) -> TransitionMatrix:
        """Return two noise rates as a matrix of two levels.

        Examples
        --------
        >>> TransitionMatrix.of_rates(NoiseRates(rho01=0.2, rho10=0.1)).matrix.tolist()
        [[0.9, 0.1], [0.2, 0.8]]
        """
        by_rates = np.array([[0.0, 0, 1, -1], [-1, 1, 0, 0]])
        covariance = None if rates.covariance is None else by_rates.T @ np.array(rates.covariance) @ by_rates
        matrix = np.array([[1 - rates.rho10, rates.rho10], [rates.rho01, 1 - rates.rho01]])
        return cls(matrix, covariance, rates.audit, rates.diagnostics)

    @classmethod
    def band(cls, n_levels: int, rate: float) -> TransitionMatrix:
        """Return noise between neighbours: each level is taken for the next with half the rate, and for the one before.

        Examples
        --------
        >>> TransitionMatrix.band(3, 0.2).matrix.tolist()
        [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]
        """
        size = whole_number("n_levels", n_levels, min=2, max=100)
        half = real_number("rate", rate, above=0, below=1, closed=True) / 2
        beside = half * (np.eye(size, k=1) + np.eye(size, k=-1))
        return cls(beside + np.diag(1 - beside.sum(axis=1)))

    @property
    def n_levels(self) -> int:
        """K."""
        return len(self.matrix)

    @cached_property
    def condition(self) -> float:
        """The largest singular value over the smallest; infinite if there is no inverse."""
        values = np.linalg.svd(self.matrix, compute_uv=False)
        return float(values[0] / values[-1]) if values[-1] > np.finfo(float).eps * values[0] else np.inf

    @cached_property
    def inverse(self) -> Array:
        """The inverse, shape (K, K); its rows add up to 1 too."""
        found = np.linalg.inv(self.matrix).astype(np.float64)
        found.flags.writeable = False
        return found

    @property
    def norm(self) -> float:
        r"""The largest absolute row sum of the inverse: a corrected loss is at most so many times the largest loss.

        With two levels :math:`(1 + |\rho_{01} - \rho_{10}|) / \kappa`.
        """
        return float(np.abs(self.inverse).sum(axis=1).max())

    def corrected(self, values: Array) -> Array:
        r"""Return what stands for the levels' values v on each logged level, :math:`T^{-1} v`: v on average over noise.

        Examples
        --------
        >>> noise = TransitionMatrix.band(3, 0.2)
        >>> (noise.matrix @ noise.corrected(np.array([1.0, 2.0, 3.0]))).round(6).tolist()
        [1.0, 2.0, 3.0]
        """
        return np.asarray(self.inverse @ values)

    @property
    def steps(self) -> Array:
        r"""What stands for :math:`1[r^* \ge c]` of a row logged at level k, :math:`\sum_{j \ge c} (T^{-1})_{kj}`.

        Shape (K, K - 1).
        """
        return _reached(self.inverse)

    @cached_property
    def step_slopes(self) -> Array:
        r"""The derivative of `steps` by each entry of T, by :math:`dT^{-1} = -T^{-1} dT\,T^{-1}`; (K * K, K, K - 1)."""
        size = self.n_levels
        slopes = -np.einsum("ka,bc->abkc", self.inverse, self.steps)
        return np.asarray(slopes.reshape(size * size, size, size - 1))

    def covariance_beside_noise(self, log: int | None) -> Array | None:
        """As that of `NoiseRates`, of all entries row by row; `None` if they are known."""
        return covariance_beside_noise(self.covariance, self.audit, log)

    def observe(self, places: npt.NDArray[Any], uniforms: Array) -> npt.NDArray[np.int8]:
        """Turn true levels, by their places from 0, into noisy ones: the first k whose cumulated chance is above.

        Examples
        --------
        >>> TransitionMatrix.band(3, 0.2).observe(np.array([1, 1, 1]), np.array([0.09, 0.5, 0.95])).tolist()
        [0, 1, 2]
        """
        edges = np.cumsum(self.matrix, axis=1)[:, :-1]
        return np.asarray((uniforms[..., None] >= edges[places]).sum(axis=-1), dtype=np.int8)

    @property
    def source(self) -> str:
        """What it comes from, in words, if whoever estimated it says; "given" if not."""
        return str(self.diagnostics.get("source", "given"))

    def __repr__(self) -> str:
        known = "" if self.covariance is None else ", estimated"
        return f"TransitionMatrix({self.n_levels} levels, {np.diag(self.matrix).mean():.1%} kept on average{known})"

    def _repr_html_(self) -> str:
        rows = {f"true level {place}": "  ".join(f"{one:.3f}" for one in row) for place, row in enumerate(self.matrix)}
        return html_table("Chances of each logged level", rows | {"norm of the inverse": f"{self.norm:.4g}"})


def _reached(by_level: Array) -> Array:
    """Turn chances by level, along the last axis, into those of reaching each level but the lowest."""
    return np.asarray(np.cumsum(by_level[..., :0:-1], axis=-1)[..., ::-1])


def _checked_matrix(given: Any) -> Array:
    matrix = number_array("a transition matrix", given, ndim=2, error=NoiseRateError).astype(np.float64)
    if matrix.shape[0] != matrix.shape[1] or not 2 <= len(matrix) <= 100:
        raise NoiseRateError(f"a transition matrix must be square, with a row a level; got shape {matrix.shape}")
    if not (np.isfinite(matrix).all() and (matrix >= 0).all()):
        raise NoiseRateError(f"a transition matrix must have entries of at least 0; got {short(given)}")
    sums = matrix.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1) > _LOST)
    if wrong.size:
        raise NoiseRateError(
            f"each row of a transition matrix must add up to 1; row {wrong[0]} adds up to {sums[wrong[0]]:.6g}"
        )
    matrix /= sums[:, None]
    matrix.flags.writeable = False
    return matrix
