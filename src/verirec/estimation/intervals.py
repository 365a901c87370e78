"""From what each pair contributes to a standard error and an interval: one place for all estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from verirec.checks import real_number
from verirec.data.parts import parts_of, totals
from verirec.engine import current_engine
from verirec.estimation.expansion import InfluenceExpansion
from verirec.estimation.rows import Rows
from verirec.estimation.variance import Expanded, variances_by_source
from verirec.exceptions import OverlapWarning, PredictionError, warn_caller
from verirec.formatting import html_table

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """An estimate, with what is known of its error.

    Parameters
    ----------
    value, standard_error
        The point and its standard error.
    interval
        (low, high), at the level `confidence`.
    diagnostics
        Rows and cells it rests on, weights, clipped and floored numbers, and `variance`: what each source adds.
    contributions
        What each row of the log changes by being observed, if asked for; shape (n,).
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    confidence: float = 0.95
    diagnostics: dict[str, Any] = field(default_factory=dict, repr=False)
    contributions: Array | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return value, standard error and interval as plain numbers, ready for JSON."""
        low, high = self.interval
        return {"value": self.value, "standard_error": self.standard_error, "low": low, "high": high}

    def _repr_html_(self) -> str:
        rows = {
            "value": f"{self.value:.5g}",
            "standard error": f"{self.standard_error:.3g}",
            f"{self.confidence:.4g} interval": _ends(self.interval),
        }
        return html_table("Estimate", rows)


@dataclass(frozen=True)
class EstimateRange:
    """The range of an estimate over all that the data allow: noise rates, or how taste decides what is logged.

    Without knowing more, no one value is right.

    Parameters
    ----------
    range
        (low, high) of the estimate itself.
    interval
        The range, widened at both ends by the sampling error there: at the level `confidence`, it holds the truth
        whichever of the rates is the right one. If the region is itself an estimate, its own error comes on top.
    lowest, highest
        The estimates at the two ends.
    diagnostics
        What it rests on.
    """

    range: tuple[float, float]
    interval: tuple[float, float]
    confidence: float
    lowest: Estimate = field(repr=False)
    highest: Estimate = field(repr=False)
    diagnostics: dict[str, Any] = field(default_factory=dict, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the ends of range and interval as plain numbers, ready for JSON; there is no value."""
        return {"value": None, "range": list(self.range), "low": self.interval[0], "high": self.interval[1]}

    def _repr_html_(self) -> str:
        rows = {"range": _ends(self.range), f"{self.confidence:.4g} interval": _ends(self.interval)}
        return html_table("Range of an estimate over all that is possible", rows)

    @classmethod
    def over(cls, estimates: list[Estimate], *, least: float = -np.inf, most: float = np.inf) -> EstimateRange:
        """Take the smallest and the largest; rates that would put it outside `least` and `most` are not possible."""
        lowest, highest = (best(estimates, key=lambda one: one.value) for best in (min, max))
        low, high = min(one.interval[0] for one in estimates), max(one.interval[1] for one in estimates)
        inside = [min(max(end, least), most) for end in (lowest.value, highest.value, low, high)]
        return cls((inside[0], inside[1]), (inside[2], inside[3]), lowest.confidence, lowest, highest)


def _ends(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.5g} to {ends[1]:.5g}"


_FEW_USERS: Final = 10
_DRAWS_A_PART: Final = 50


def normal_estimates(found: Sequence[Expanded], confidence: float, facts: dict[str, Any]) -> list[Estimate]:
    """Put values, their standard errors and their normal intervals together, of estimates of the same pairs."""
    estimates = []
    for (linearised, _, _), parts in zip(found, variances_by_source(found), strict=True):
        error = float(np.sqrt(max(sum(parts.values()), 0.0)))
        if not np.isfinite(error):
            raise PredictionError("the losses of these predictions are too large to add up their squares")
        bounds = normal_interval(linearised.value, error, confidence, freedom=_freedom(parts, linearised.sampled))
        about = facts | linearised.facts | {"variance": parts}
        estimates.append(Estimate(linearised.value, error, bounds, confidence, about))
    return estimates


def _freedom(parts: dict[str, float], sampled: Array | None) -> float:
    """Return the degrees of freedom of a variance of which a sample tells a part (Satterthwaite)."""
    if sampled is None or parts["sample"] <= 0:
        return np.inf
    return (len(sampled) - 1) * (max(sum(parts.values()), parts["sample"]) / parts["sample"]) ** 2


def checked_confidence(confidence: object) -> float:
    """Accept a level between 0 and 1, not so near to 1 that an interval has no end."""
    return real_number("confidence", confidence, above=1e-9, below=1 - 1e-9)


def normal_interval(value: float, error: float, confidence: float, freedom: float = np.inf) -> tuple[float, float]:
    """Return value -+ z error; with so many degrees of freedom, t in place of z.

    Examples
    --------
    >>> [round(bound, 3) for bound in normal_interval(1.0, 0.1, 0.95)]
    [0.804, 1.196]
    >>> [round(bound, 3) for bound in normal_interval(1.0, 0.1, 0.95, freedom=9)]
    [0.774, 1.226]
    """
    tail = (1 + checked_confidence(confidence)) / 2
    reach = float(ndtri(tail) if np.isinf(freedom) else stdtrit(freedom, tail)) * error
    return value - reach, value + reach


def bootstrapped(
    estimate: Estimate,
    linearised: InfluenceExpansion,
    rows: Rows,
    draws: int,
    random: np.random.Generator,
    groups: npt.NDArray[np.int64],
) -> Estimate:
    """Replace an estimate's normal interval by that of a bootstrap over users.

    Each draw takes whole groups of users, with their rows and their unobserved pairs, with replacement; propensities
    and imputed errors stay as they are, and the noise rates' uncertainty is added as normal. Of sampled unobserved
    pairs, those that users have vary with the users.

    Parameters
    ----------
    estimate, linearised, rows
        What was estimated, and how.
    draws, random
        How many, and from where.
    groups
        Number of each user's group, from 0, shape (n_users,).
    """
    parts = estimate.diagnostics["variance"]
    with_rows = len(np.unique(groups[rows.log.users]))
    if with_rows < _FEW_USERS:
        warn_caller(
            f"a bootstrap over {with_rows} users with rows says next to nothing: take interval='delta'", OverlapWarning
        )
    values = _values_by_groups(linearised, rows, draws, random, groups)
    beside = parts["noise_rates"] + (parts["sample"] if linearised.imputed is None else 0.0)
    values += random.normal(0, np.sqrt(max(beside, 0.0)), draws)
    tail = (1 - estimate.confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    facts = {name: fact for name, fact in estimate.diagnostics.items() if name != "variance"}
    facts |= {"draws": draws, "groups": int(groups.max()) + 1}
    error = float(values.std(ddof=1))
    return replace(estimate, standard_error=error, interval=(float(low), float(high)), diagnostics=facts)


def _values_by_groups(
    linearised: InfluenceExpansion,
    rows: Rows,
    draws: int,
    random: np.random.Generator,
    groups: npt.NDArray[np.int64],
) -> Array:
    """Draw whole groups of users with replacement, and give the estimate of each draw."""
    log, n_users = rows.log, rows.log.n_users
    numerators = totals(log.users, linearised.rows.each(linearised.terms), n_users)
    if linearised.imputed is not None:
        numerators += linearised.imputed.elsewhere_by_user() / rows.n_cells
    if linearised.shares is None:
        shares = np.full(n_users, 1 / n_users)
    else:
        shares = totals(log.users, linearised.rows.each(linearised.shares), n_users)
    # What belongs to no user in particular, such as a targeted step's sum over the grid, goes by share.
    numerators += (linearised.value - numerators.sum()) * shares
    n_groups, value = int(groups.max()) + 1, linearised.value
    if n_groups < n_users:
        numerators, shares = totals(groups, numerators, n_groups), totals(groups, shares, n_groups)

    def drawn(part: tuple[np.random.Generator, slice]) -> list[float]:
        return [_value_of_draw(part[0], numerators, shares, value) for _ in range(part[1].start, part[1].stop)]

    # Each part has random numbers of its own: whoever draws them, they are the same.
    sizes = list(parts_of(draws, size=_DRAWS_A_PART))
    parts = list(zip(random.spawn(len(sizes)), sizes, strict=True))
    return np.concatenate(list(current_engine().map(drawn, parts)))


def _value_of_draw(random: np.random.Generator, numerators: Array, shares: Array, otherwise: float) -> float:
    n_groups = len(shares)
    counts = np.bincount(random.integers(n_groups, size=n_groups), minlength=n_groups)
    mass = float(counts @ shares)
    return float(counts @ numerators) / mass if mass > 0 else otherwise
