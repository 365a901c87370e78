"""The variances of estimates by source, from one walk over the rows for several of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.parts import each_part, parts_of
from verirec.estimation.expansion import Effects, InfluenceExpansion
from verirec.estimation.level_selection import variances
from verirec.estimation.rows import RowPart, Rows
from verirec.nuisance.propensities.base import parts_for_change

Array = npt.NDArray[np.float64]

_MOST_TAKEN: Final = 0.95
"""Of the variance; estimates of what learning propensities takes away can be larger by chance."""
TOGETHER: Final = 8
"""Estimates of one walk: each has sums by user and by item of its own."""


class Expanded(NamedTuple):
    """An estimate to first order, the rows whose noise is in it, and its gradient by uncertain noise rates."""

    expansion: InfluenceExpansion
    rows: Rows
    rate_gradient: Array | None = None


class _RowSums(NamedTuple):
    """Squares of influence, plain and times 1 - p, what noise adds, and what estimated propensities do."""

    squares: float
    selection: float
    noise: float
    change: float


def variances_by_source(found: Sequence[Expanded]) -> list[dict[str, float]]:
    r"""Return the variances of estimates of the same pairs, each by source.

    The target is the true inaccuracy of this very grid, :math:`|D|^{-1} \sum_D l(f, r^*)`; what varies is who rates
    what (each pair for itself, with probability p) and which labels are wrong. With A a row's influence and b its
    slope by label:

    - selection: :math:`\sum (1 - p) A^2`, the variance of Poisson sampling;
    - noise: :math:`\sum p\, b^2\, Var(\tilde r \mid r^*)`, what wrong labels add on top;
    - propensities: what having estimated them changes, mostly for the better;
    - noise rates: :math:`g^\top \Sigma g` (the delta method);
    - sample: of the unobserved pairs, where not all were visited;
    - audit: of which pairs were audited, where true labels are in the estimate: these take the place of noise and
      noise rates.

    Where an estimator takes the log for a random sample it is :math:`\sum A^2`, and noise is in it already.
    """
    parts = [found[some] for some in parts_of(len(found), size=TOGETHER)]
    return [_by_source(one, sums) for some in parts for one, sums in zip(some, _over_rows(some), strict=True)]


def _by_source(found: Expanded, sums: _RowSums) -> dict[str, float]:
    linearised, rows, rate_gradient = found
    parts = {"selection": sums.selection, "noise": 0.0, "propensities": 0.0, "noise_rates": 0.0, "sample": 0.0}
    if linearised.as_sample:
        parts["selection"] = sums.squares
    else:
        parts |= {"noise": max(sums.noise, 0.0)} if linearised.audit is None else linearised.audit._asdict()
        # Learning propensities cannot make an estimate better than knowing every label.
        parts["propensities"] = max(sums.change, -_MOST_TAKEN * parts["selection"])
    parts["sample"] = linearised.sample_variance
    if rate_gradient is not None and rows.labels.covariance is not None:
        parts["noise_rates"] = float(rate_gradient @ rows.labels.covariance @ rate_gradient)
    return parts


def _over_rows(found: Sequence[Expanded]) -> list[_RowSums]:
    """Walk over the rows."""
    pairs = found[0].rows.pairs
    for one in found:
        one.rows.ready()
        one.expansion.rows.ready()
    # What takes the rows for a random sample knows nothing of propensities.
    weighted = [number for number, one in enumerate(found) if not one.expansion.as_sample]
    change, sums = pairs.variance_change, np.zeros((len(found), 3))

    def visit(at: slice) -> tuple[list[tuple[float, ...]], list[Any]]:
        parts: dict[int, RowPart] = {}
        of_rows, of_change = [], []
        for linearised, rows, _ in found:
            part = parts.setdefault(id(linearised.rows), linearised.rows.part(at))
            effects = linearised.effects(part)
            of_rows.append(_sums(part, effects, rows))
            if not linearised.as_sample:
                of_change.append(change.of_part(at, effects.p_slopes, effects.influence))
        return of_rows, of_change

    def changes() -> Iterator[Any]:
        for of_part, of_change in each_part(visit, len(pairs.log), size=parts_for_change(pairs.log)):
            sums[:] += of_part
            yield of_change

    by_change = np.zeros(len(found))
    if weighted:
        by_change[weighted] = change.of_sums(changes(), len(weighted))
    else:
        list(changes())
    return [_RowSums(*map(float, own)) for own in np.column_stack([sums, by_change])]


def _sums(part: RowPart, effects: Effects, rows: Rows) -> tuple[float, ...]:
    """Return what some rows add to all but the change."""
    squares = effects.influence**2
    if part.by_level is not None:
        return squares.sum(), *variances(part, effects)
    noise = part.p @ rows.labels.noise_variance(part.at, effects.label_slopes)
    return squares.sum(), float((1 - part.p) @ squares), float(noise)
