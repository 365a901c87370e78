"""An estimate as the sum of what its rows do: what formulas give, and intervals take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.parts import SHORT, over_parts
from verirec.estimation.rows import Imputed, RowPart, Rows

Array = npt.NDArray[np.float64]
Values = Callable[[RowPart], Array]
"""A number for each row, worked out for some of them at a time."""


class AuditVariance(NamedTuple):
    """Variances of an estimate that an audit's true labels are in: of who rates what, and of who was audited."""

    selection: float
    audit: float


class Effects(NamedTuple):
    r"""What some of the rows do to an estimate, to first order; shape (m,) each, label slopes of levels (K - 1, m).

    Parameters
    ----------
    influence
        What each row changes by being observed: the estimate varies with :math:`\sum (o - p) \cdot` influence.
    label_slopes
        Derivative by each row's (corrected) label.
    p_slopes
        Derivative by the log of each row's propensity; `None` where it is minus the influence, as where a row counts
        by 1/p and by nothing else.
    """

    influence: Array
    label_slopes: Array
    p_slopes: Array | None = None


@dataclass(frozen=True, eq=False)
class InfluenceExpansion:
    r"""An estimate, and its first-order dependence on each observed pair.

    Parameters
    ----------
    value
        The estimate.
    rows
        What it rests on.
    effects
        Gives what some of these rows do to it.
    terms
        Gives each row's part of the numerator, divided by the denominator: a bootstrap alone asks for it.
    shares
        Gives each row's part of the denominator, adding up to 1; `None` where that is the number of cells.
    imputed
        The imputed errors whose sum over the other pairs is in the numerator, if any.
    sampled
        What each sampled unobserved pair adds to the estimate, if not all were visited.
    label_slopes_exact
        Whether slopes by label are all that the labels do; not so where a tilt or a targeted step depends on them too.
    as_sample
        True where the rows are taken for a simple random sample: the interval knows nothing of propensities.
    audit
        What an audit's true labels leave of the variance, where they are in the estimate.
    facts
        What to report besides.
    """

    value: float
    rows: Rows
    effects: Callable[[RowPart], Effects]
    terms: Values
    shares: Values | None = None
    imputed: Imputed | None = None
    sampled: Array | None = None
    label_slopes_exact: bool = False
    as_sample: bool = False
    audit: AuditVariance | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def at(self, some: slice) -> Effects:
        """Return what some of the rows do."""
        return self.effects(self.rows.part(some))

    @property
    def influence(self) -> Array:
        """What each row changes by being observed, shape (n,)."""
        return self.rows.each(lambda part: self.effects(part).influence)

    @property
    def label_slopes(self) -> Array:
        """The derivative by each row's label, shape (n,), or by its K - 1, (K - 1, n)."""
        return self.rows.each_label(lambda part: self.effects(part).label_slopes)

    @property
    def p_slopes(self) -> Array:
        """The derivative by the log of each row's propensity, shape (n,)."""

        def of(part: RowPart) -> Array:
            effects = self.effects(part)
            return -effects.influence if effects.p_slopes is None else effects.p_slopes

        return self.rows.each(of)

    @property
    def sample_variance(self) -> float:
        """What having visited a sample of the unobserved pairs adds to the variance."""
        if self.sampled is None or len(self.sampled) < 2:
            return 0.0
        mean, sampled = self.sampled.mean(), self.sampled
        squares = over_parts(lambda at: float(((sampled[at] - mean) ** 2).sum()), len(sampled), size=SHORT)
        return float(sum(squares)) / (len(sampled) - 1) * len(sampled)
