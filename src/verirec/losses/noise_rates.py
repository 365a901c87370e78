"""Class-conditional label noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from verirec.checks import as_array, real_number
from verirec.exceptions import NoiseRateError, NoiseRateWarning, ParameterError, warn_caller
from verirec.formatting import html_table, short

WEAK_SIGNAL: Final = 0.1
"""Below this kappa a correction multiplies the noise of a log by more than ten."""
LATTICE: Final = 7
MOST_RATE: Final = 1 - WEAK_SIGNAL - 1e-9
"""The largest rate, or sum of both, that leaves that much."""


class AuditOrigin(NamedTuple):
    """Where audited rates come from: a log's fingerprint, and the share of its rows that was audited."""

    log: int
    share: float


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
    audit
        The log whose own rows were audited, if they were.
    diagnostics
        How they were estimated, if they were: for people to read.

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
    audit: AuditOrigin | None = None
    diagnostics: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("rho01", "rho10"):
            object.__setattr__(self, name, _checked_rate(name, getattr(self, name)))
        if self.rho01 + self.rho10 >= 1:
            raise NoiseRateError(
                f"rho01 + rho10 must be below 1, or labels carry no signal; got {self.rho01:g} + {self.rho10:g}"
            )
        if self.covariance is not None:
            (a, b), (c, d) = checked_covariance(self.covariance, 2).tolist()
            object.__setattr__(self, "covariance", ((a, b), (c, d)))
        if self.audit is not None and not isinstance(self.audit, AuditOrigin):
            raise NoiseRateError(f"audit must be an AuditOrigin; got {type(self.audit).__name__}")
        if self.kappa < WEAK_SIGNAL:
            warn_caller(
                f"kappa = 1 - rho01 - rho10 is {self.kappa:.3g}: labels carry so little signal that corrected "
                "estimates will be very uncertain",
                NoiseRateWarning,
            )

    def covariance_beside_noise(self, log: int | None) -> npt.NDArray[np.float64] | None:
        """Return the covariance as it adds to that of the noise in a log's labels; `None` if the rates are known.

        Where the log's own rows were audited, those that happen to be flipped more often raise the rate and lower the
        labels, which cancels in part: with a share f of them audited, a factor of 1 - 2f, not below 0.

        Parameters
        ----------
        log
            Its fingerprint.
        """
        return covariance_beside_noise(self.covariance, self.audit, log)

    def interval(self, confidence: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return each rate's normal interval, cut to [0, 1]; a known rate's is the rate itself.

        Examples
        --------
        >>> rates = NoiseRates(0.2, 0.1, covariance=((0.0004, 0), (0, 0.0001)))
        >>> [round(bound, 3) for bound in rates.interval()["rho01"]]
        [0.161, 0.239]
        """
        level = real_number("confidence", confidence, above=0, below=1)
        errors = np.zeros(2) if self.covariance is None else np.sqrt(np.diag(np.array(self.covariance)))
        reach = ndtri((1 + level) / 2) * errors
        return {
            name: (float(max(rate - width, 0.0)), float(min(rate + width, 1.0)))
            for name, rate, width in zip(("rho01", "rho10"), (self.rho01, self.rho10), reach, strict=True)
        }

    def _repr_html_(self) -> str:
        ends = self.interval()
        known = self.covariance is None
        rows = {
            f"{name}: {meaning}": f"{getattr(self, name):.4g}"
            + ("" if known else f" [{ends[name][0]:.4g}, {ends[name][1]:.4g}]")
            for name, meaning in (("rho01", "likes logged as dislikes"), ("rho10", "dislikes logged as likes"))
        }
        rows["kappa: what noise leaves of the signal"] = f"{self.kappa:.4g}"
        rows |= {name: str(fact) for name, fact in self.diagnostics.items() if name in ("method", "audited", "asked")}
        return html_table("Noise rates, known" if known else "Noise rates, with 95% intervals", rows)

    @property
    def source(self) -> str:
        """What they come from, in words, if whoever estimated them says; "given" if not."""
        return str(self.diagnostics.get("source", "given"))

    @property
    def kappa(self) -> float:
        """What noise leaves of the signal, 1 - rho01 - rho10."""
        return 1 - self.rho01 - self.rho10

    @property
    def least_kappa(self) -> float:
        """The lower end of kappa's 95% interval; of known rates, kappa.

        Examples
        --------
        >>> round(NoiseRates(0.3, 0.2, covariance=((0.01, 0), (0, 0.01))).least_kappa, 2)
        0.22
        """
        variance = 0.0 if self.covariance is None else float(np.sum(self.covariance))
        return self.kappa - float(ndtri(0.975)) * float(np.sqrt(max(variance, 0.0)))

    def of_pairs(self, users: npt.NDArray[Any], items: npt.NDArray[Any]) -> tuple[Any, Any]:
        """Return both rates of pairs: the same for all of them."""
        return self.rho01, self.rho10

    def observe(self, true_labels: npt.NDArray[Any], uniforms: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
        """Turn true labels into noisy ones; a label flips where its uniform number is below its class's rate.

        Examples
        --------
        >>> NoiseRates(0.2, 0.1).observe(np.array([1, 1, 0, 0]), np.array([0.19, 0.2, 0.09, 0.1])).tolist()
        [0, 1, 1, 0]
        """
        flip_below = np.where(true_labels == 1, self.rho01, self.rho10)
        return np.asarray((true_labels == 1) ^ (uniforms < flip_below), dtype=np.int8)


@dataclass(frozen=True, eq=False)
class GroupedNoiseRates:
    """Noise rates that differ between groups of users or of items: a channel full of bots is noisier.

    Parameters
    ----------
    rates
        One `NoiseRates` a group.
    user_groups, item_groups
        The group of each user, or of each item, by position: integers from 0, shape (n_users,) or (n_items,). One of
        the two.

    Examples
    --------
    >>> rates = GroupedNoiseRates((NoiseRates(0.1, 0.1), NoiseRates(0.3, 0.2)), user_groups=np.array([0, 0, 1]))
    >>> rates.group_of(np.array([2, 0]), np.array([0, 0])).tolist()
    [1, 0]
    """

    rates: tuple[NoiseRates, ...]
    user_groups: npt.NDArray[Any] | None = None
    item_groups: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        given: Any = self.rates
        object.__setattr__(self, "rates", tuple(given) if isinstance(given, list | tuple) else ())
        if not self.rates or not all(isinstance(of, NoiseRates) for of in self.rates):
            raise NoiseRateError("grouped noise rates need one NoiseRates a group")
        if (self.user_groups is None) == (self.item_groups is None):
            raise NoiseRateError("grouped noise rates need user_groups or item_groups, one of the two")
        for name in ("user_groups", "item_groups"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checked_groups(name, getattr(self, name), len(self.rates)))
        estimated = [of.covariance is not None for of in self.rates]
        if any(estimated) and not all(estimated):
            raise NoiseRateError("either all groups' rates have a covariance or none has")

    def of_pairs(self, users: npt.NDArray[Any], items: npt.NDArray[Any]) -> tuple[Any, Any]:
        """Return both rates of each pair, shape (n,)."""
        group = self.group_of(users, items)
        rho01, rho10 = (np.array([getattr(of, name) for of in self.rates]) for name in ("rho01", "rho10"))
        return rho01[group], rho10[group]

    def check_grid(self, n_users: int, n_items: int) -> None:
        """Raise `NoiseRateError` unless each user, or each item, of a grid has a group."""
        for name, groups, size in (("user", self.user_groups, n_users), ("item", self.item_groups, n_items)):
            if groups is not None and len(groups) != size:
                raise NoiseRateError(f"{name}_groups must name the group of all {size:,} {name}s; got {len(groups):,}")

    def group_of(self, users: npt.NDArray[Any], items: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the group of each pair."""
        if self.user_groups is not None:
            return np.asarray(self.user_groups[users], dtype=np.int64)
        assert self.item_groups is not None  # noqa: S101 -- one of the two is there, see above
        return np.asarray(self.item_groups[items], dtype=np.int64)

    def covariance_beside_noise(self, log: int | None) -> npt.NDArray[np.float64] | None:
        """As that of `NoiseRates`, of (rho01, rho10) of the first group, the second, ...; `None` if they are known."""
        from scipy.linalg import block_diag  # Takes long to import, and only groups need it.

        parts = [of.covariance_beside_noise(log) for of in self.rates]
        return None if parts[0] is None else np.asarray(block_diag(*parts))


@dataclass(frozen=True)
class NoiseRegion:
    """All noise rates that a log allows where nothing tells them apart: each from 0 up to a largest one.

    Without true labels and without weak separability, rho01 can be anything from 0 to 1 - max h and rho10 anything
    from 0 to min h, h being P(r = 1) of a pair (from the paper's Section 3.3, without its assumption).

    Parameters
    ----------
    rho01_most, rho10_most
        The largest rates. Of two that together leave less than a tenth of the signal, the part of the region with
        kappa of at least .1 counts: below that, labels say next to nothing.

    Examples
    --------
    >>> [(corner.rho01, corner.rho10) for corner in NoiseRegion(0.3, 0.2).corners]
    [(0.0, 0.0), (0.0, 0.2), (0.3, 0.0), (0.3, 0.2)]
    >>> [(round(corner.rho01, 2), round(corner.rho10, 2)) for corner in NoiseRegion(0.6, 0.5).corners]
    [(0.0, 0.0), (0.0, 0.5), (0.6, 0.0), (0.4, 0.5), (0.6, 0.3)]
    """

    rho01_most: float
    rho10_most: float

    def __post_init__(self) -> None:
        for name in ("rho01_most", "rho10_most"):
            object.__setattr__(self, name, min(_checked_rate(name, getattr(self, name)), MOST_RATE))

    @cached_property
    def corners(self) -> tuple[NoiseRates, ...]:
        """The region's corners: a mean of corrected errors has its ends there; ratios may peak inside (`lattice`)."""
        most01, most10 = self.rho01_most, self.rho10_most
        corners = [(0.0, 0.0), (0.0, most10), (most01, 0.0)]
        if most01 + most10 <= MOST_RATE:
            corners.append((most01, most10))
        else:
            corners += [(MOST_RATE - most10, most10), (most01, MOST_RATE - most01)]
        return tuple(NoiseRates(*rates) for rates in dict.fromkeys(corners))

    @cached_property
    def lattice(self) -> tuple[NoiseRates, ...]:
        """Points all over the region, its corners among them, for estimates that may peak inside."""
        steps = np.linspace(0, 1, LATTICE)
        inside = [(a * self.rho01_most, b * self.rho10_most) for a in steps for b in steps]
        corners = [(corner.rho01, corner.rho10) for corner in self.corners]
        points = dict.fromkeys([*corners, *(rates for rates in inside if sum(rates) <= MOST_RATE)])
        return tuple(NoiseRates(*rates) for rates in points)


def checked_groups(name: str, groups: Any, count: int) -> npt.NDArray[np.int64]:
    """Accept a group number from 0 to count - 1 for each position."""
    array = as_array(name, groups, error=NoiseRateError)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not ((array >= 0) & (array < count)).all():
        upto = f" to {count - 1}" if count < 2**31 else ""
        found = f"{array.min()} to {array.max()}" if array.size and array.dtype.kind in "iu" else str(array.dtype)
        raise NoiseRateError(
            f"{name} must be integers from 0{upto}, one a position in the order of the log's ids; got {found}, shape "
            f"{array.shape}"
        )
    return array.astype(np.int64)


def _checked_rate(name: str, value: object) -> float:
    try:
        rate = real_number(name, value, above=0, below=1, closed=True)
    except ParameterError:
        rate = 1.0
    if rate == 1:
        raise NoiseRateError(f"{name} must be a number of at least 0 and below 1; got {short(value)}")
    return rate


def covariance_beside_noise(
    covariance: Any, audit: AuditOrigin | None, log: int | None
) -> npt.NDArray[np.float64] | None:
    """Return the covariance of noise rates as `NoiseRates.covariance_beside_noise` says; `None` if they are known."""
    if covariance is None:
        return None
    own = audit is not None and audit.log == log
    return np.asarray(np.array(covariance) * (max(1 - 2 * audit.share, 0.0) if audit and own else 1.0))


def checked_covariance(covariance: Any, size: int) -> npt.NDArray[np.float64]:
    """Accept a finite symmetric matrix of so many rows, without a negative eigenvalue."""
    matrix = as_array("covariance", covariance, error=NoiseRateError)
    proper = matrix.shape == (size, size) and matrix.dtype.kind in "fiu" and bool(np.isfinite(matrix).all())
    # Variances of rates are small: what counts as equal goes by the matrix's own scale.
    tolerance = 1e-9 * float(np.abs(matrix).max()) if proper else 0.0
    if not proper or np.abs(matrix - matrix.T).max() > tolerance:
        raise NoiseRateError(f"covariance must be a finite symmetric {size} x {size} matrix; got {short(covariance)}")
    matrix = matrix.astype(np.float64)
    if np.linalg.eigvalsh(matrix).min() < -tolerance:
        raise NoiseRateError(f"covariance must not have a negative eigenvalue; got {short(covariance)}")
    return matrix
