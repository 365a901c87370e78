r"""Who errs: how often each group's labels are wrong, from an audit, and whether groups differ at all.

Of the audited rows of group g with true level j, :math:`n_{gjk}` were logged at level k. A group's chances
:math:`T_{gj}` are shrunk towards those of all groups (`verirec.nuisance.noise_rates.partial_pooling`). Groups without
audited rows have the common rates.

Whether groups differ is tested by shuffling what was logged among the audited rows of each true level: under the
hypothesis all orders are as likely, so that the test has its size however small groups are. The statistic is Pearson's,
:math:`\sum (n - E)^2 / E`, added up over true levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from verirec.checks import real_number, whole_number
from verirec.data.cells import CellValues
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.parts import parts_of
from verirec.exceptions import AuditError
from verirec.formatting import html_table
from verirec.losses import AuditOrigin, Corrected, CorrectedLabels, CorrectedLevels, GroupedNoiseRates, NoiseRates
from verirec.nuisance.noise_rates.partial_pooling import Shrunk
from verirec.nuisance.noise_rates.samples import AuditSample

if TYPE_CHECKING:
    import pandas as pd

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

_SHUFFLES: Final = 999
_CELLS: Final = 1 << 21
"""Of shuffled labels that are counted at a time."""


class GroupTest(NamedTuple):
    """Whether groups differ: Pearson's statistic, and how often shuffled labels reach it."""

    statistic: float
    p_value: float


@dataclass(frozen=True, eq=False, repr=False)
class GroupErrors:
    """How often labels of each group are wrong: rates in their own right, and a control variate for "audited-dr".

    Parameters
    ----------
    log
        The log that was audited.
    names
        Of the groups, in order.
    of_row
        The group of each row of the log, by its number.
    rates
        Chances of each logged level, by group and true level.
    truths
        Chances of each true level, by group and logged level.
    audited
        Audited rows by group, true level and logged level, of equal weight; shape (groups, K, K).
    test
        Whether groups differ.
    audit
        What it was found from.
    weighs
        The share of each audited pair in the audit's weight of its group and logged level.
    sides
        The group of each user, or of each item, if that is what groups are of.
    origin
        The log and the share of it that was audited.
    """

    log: FeedbackLog
    names: tuple[str, ...]
    of_row: CellValues
    rates: Shrunk
    truths: Shrunk
    audited: Array
    test: GroupTest
    audit: AuditSample
    weighs: CellValues
    sides: dict[str, Numbers] = field(default_factory=dict)
    origin: AuditOrigin | None = None

    def expected(self, log: FeedbackLog) -> Corrected:
        """Return what is expected of the true labels of a log's rows, given what was logged and by whom."""
        group = self.of_row.at(log.users, log.items).astype(np.int64)
        said, size = log.labels.astype(np.int64), self.rates.shares.shape[2]
        reached = np.cumsum(self.truths.shares[..., :0:-1], axis=-1)[..., ::-1]
        if log.levels is None:
            values = reached[group, said, 0]
            return CorrectedLabels(values, np.broadcast_to(0.0, values.shape))
        table = reached.reshape(-1, size - 1)
        return CorrectedLevels(group * size + said, table, np.empty((0, len(table), size - 1)))

    def leverage(self, log: FeedbackLog, rows: Numbers) -> Array:
        """Return by how much what is expected of audited rows of a log rests on their own true labels, shape (m,)."""
        group = self.of_row.at(log.users[rows], log.items[rows]).astype(np.int64)
        said = log.labels[rows].astype(np.int64)
        return np.asarray(self.truths.own[group, said] * self.weighs.at(log.users[rows], log.items[rows]))

    @property
    def wrong(self) -> Array:
        """How often labels of each group and true level are wrong, shape (groups, K)."""
        return 1 - np.diagonal(self.rates.shares, axis1=1, axis2=2)

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Return the ends of an interval of each rate, shape (groups, K) each.

        They are quantiles of the beta distribution that has the rate's mean and variance. They hold rates on average
        over groups: that of a group unlike all others is drawn too near to them, and its interval misses it more often.
        `exact_interval` goes by each group's own rows.
        """
        tail = (1 - real_number("confidence", confidence, above=0, below=1)) / 2
        rates = np.clip(self.wrong, 1e-9, 1 - 1e-9)
        worth = np.maximum(rates * (1 - rates) / np.maximum(self._variances, 1e-12) - 1, 1e-3)
        wrong, right = rates * worth, (1 - rates) * worth
        return betaincinv(wrong, right, tail), betaincinv(wrong, right, 1 - tail)

    def exact_interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Return the ends of an interval of each rate by the group's own audited rows, shape (groups, K) each.

        They are wider, and hold each group's rate, however unlike the others it is (Clopper and Pearson 1934).
        """
        tail = (1 - real_number("confidence", confidence, above=0, below=1)) / 2
        right = np.diagonal(self.audited, axis1=1, axis2=2)
        wrong = np.maximum(self.audited.sum(axis=2) - right, 0)
        low = np.where(wrong > 0, betaincinv(np.maximum(wrong, 1e-9), right + 1, tail), 0.0)
        return low, np.where(right > 0, betaincinv(wrong + 1, np.maximum(right, 1e-9), 1 - tail), 1.0)

    @property
    def _variances(self) -> Array:
        """Of the rates of wrong labels, shape (groups, K)."""
        return np.diagonal(self.rates.variances, axis1=1, axis2=2)

    @cached_property
    def noise_rates(self) -> GroupedNoiseRates:
        """The rates of users' or items' groups of a binary log, for the noise-corrected estimators."""
        if self.log.levels is not None or not self.sides:
            raise AuditError("rates by group, for noise-corrected estimators, are of users or items of a binary log")
        wrong, variances = self.wrong, self._variances
        each = tuple(
            NoiseRates(rho01, rho10, ((of01, 0.0), (0.0, of10)), self.origin, {"source": f"an audit, {name}"})
            for name, (rho10, rho01), (of10, of01) in zip(self.names, wrong.tolist(), variances.tolist(), strict=True)
        )
        return GroupedNoiseRates(each, **self.sides)

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return a row for each group and true level: audited rows, wrong ones, the rate and its interval.

        `low` to `high` is that of `interval`, `exact_low` to `exact_high` that of `exact_interval`.
        """
        import pandas as pd  # Takes long to import, and only tables need it.

        (low, high), (exact_low, exact_high) = self.interval(confidence), self.exact_interval(confidence)
        counts, own = self.audited.sum(axis=2), np.diagonal(self.audited, axis1=1, axis2=2)
        levels = (0, 1) if self.log.levels is None else self.log.levels
        rows = [
            {
                "group": name,
                "true_label": level,
                "audited": counts[group, place],
                "wrong": counts[group, place] - own[group, place],
                "rate": self.wrong[group, place],
                "low": low[group, place],
                "high": high[group, place],
                "exact_low": exact_low[group, place],
                "exact_high": exact_high[group, place],
            }
            for group, name in enumerate(self.names)
            for place, level in enumerate(levels)
        ]
        return pd.DataFrame(rows)

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """Return the test and the rates as plain numbers, ready for JSON."""
        return {"test": self.test._asdict(), "groups": self.to_frame(confidence).to_dict("records")}

    def __repr__(self) -> str:
        told = "groups differ" if self.test.p_value < 0.05 else "no sign that groups differ"
        return f"GroupErrors({len(self.names)} groups, p = {self.test.p_value:.3g}: {told})\n{self.to_frame().round(3)}"

    def _repr_html_(self) -> str:
        rows = {
            f"{one.group}, true label {one.true_label:g}": f"{one.rate:.1%} wrong [{one.low:.1%}, {one.high:.1%}], "
            f"{one.audited:.0f} audited"
            for one in self.to_frame().itertuples()
        }
        return html_table(f"Who errs (groups differ: p = {self.test.p_value:.3g})", rows)


class Counted(NamedTuple):
    """Audited rows by group.

    Parameters
    ----------
    by_truth, by_said
        Counts of equal weight by group, true and logged level, and by group, logged and true level.
    rows, weighs
        The audited rows, and the share of each in the weight of its group and logged level, shape (m,) each.
    test
        Whether groups differ.
    """

    by_truth: Array
    by_said: Array
    rows: Numbers
    weighs: Array
    test: GroupTest


def counted(log: FeedbackLog, audit: AuditSample, group: Numbers, n_groups: int, seed: int) -> Counted:
    """Count audited rows by group and level.

    Parameters
    ----------
    log, audit
        The log, and which of its rows were audited.
    group
        Of each row of the log.
    n_groups
        How many there are.
    seed
        Of the test.
    """
    rows, truths, chances = audit.rows_in(checked_log(log, levels=True))
    size = 2 if log.levels is None else len(log.levels)
    said, weights = log.labels[rows].astype(np.int64), chances.mean() / chances
    by_truth = _of_equal_weight((group[rows], truths.astype(np.int64), said), weights, (n_groups, size, size))
    by_said = _of_equal_weight((group[rows], said, truths.astype(np.int64)), weights, (n_groups, size, size))
    cells = group[rows] * size + said
    weighs = weights / np.bincount(cells, weights)[cells]
    return Counted(by_truth, by_said, rows, weighs, differ(group[rows], truths, said, weights, seed=seed))


def _of_equal_weight(places: tuple[Numbers, ...], weights: Array, shape: tuple[int, int, int]) -> Array:
    """Add weights up, and scale them within the first two axes to the rows that they are worth (Kish)."""
    totals, squares = np.zeros(shape), np.zeros(shape)
    np.add.at(totals, places, weights)
    np.add.at(squares, places, weights**2)
    within = squares.sum(axis=2, keepdims=True)
    return totals * np.where(within > 0, totals.sum(axis=2, keepdims=True) / np.where(within > 0, within, 1), 1.0)


def differ(
    group: Numbers,
    truths: npt.NDArray[Any],
    said: Numbers,
    weights: Array,
    *,
    shuffles: int = _SHUFFLES,
    seed: int = 0,
) -> GroupTest:
    """Test whether what was logged of a true level depends on the group, by shuffling it among its rows.

    A row's weight goes with what was logged: rows may have been audited by what was logged of them, and by nothing
    else that goes with the group.

    Examples
    --------
    >>> group, truths = np.repeat([0, 1], 40), np.ones(80, int)
    >>> said = np.r_[np.ones(40, int), np.zeros(15, int), np.ones(25, int)]
    >>> differ(group, truths, said, np.ones(80)).p_value < 0.01
    True
    """
    random = np.random.default_rng([seed, len(group)])
    observed, shuffled = 0.0, np.zeros(whole_number("shuffles", shuffles))
    for level in np.unique(truths):
        own = np.flatnonzero(truths == level)
        groups, labels, each = np.unique(group[own], return_inverse=True)[1], said[own], weights[own]
        observed += float(_pearson(groups, labels[None], each[None])[0])
        for part in parts_of(shuffles, size=max(_CELLS // (len(own) * (int(labels.max()) + 1)), 1)):
            order = random.permuted(np.tile(np.arange(len(own)), (part.stop - part.start, 1)), axis=1)
            shuffled[part] += _pearson(groups, labels[order], each[order])
    reached = int((shuffled >= observed * (1 - 1e-9) - 1e-12).sum())
    return GroupTest(float(observed), (1 + reached) / (1 + shuffles))


def _pearson(groups: Numbers, said: Numbers, weights: Array) -> Array:
    """Return Pearson's statistic of each of b orders, said and weights of shape (b, n)."""
    columns, n_groups = int(said.max()) + 1, int(groups.max()) + 1
    cells = (np.arange(len(said))[:, None] * n_groups + groups) * columns + said
    counts = np.bincount(cells.ravel(), weights.ravel(), minlength=len(said) * n_groups * columns)
    table = counts.reshape(len(said), n_groups, columns)
    sizes = table.sum(axis=2, keepdims=True)
    expected = sizes * (table.sum(axis=1, keepdims=True) / sizes.sum(axis=1, keepdims=True))
    apart = np.divide((table - expected) ** 2, expected, out=np.zeros_like(table), where=expected > 0)
    return np.asarray(apart.sum(axis=(1, 2)))


def named_groups(groups: Sequence[Any] | npt.NDArray[Any]) -> tuple[tuple[str, ...], Numbers]:
    """Return the names of groups, and the number of each entry's."""
    names, numbers = np.unique(np.asarray(groups), return_inverse=True)
    return tuple(str(name) for name in names), numbers.astype(np.int64)
