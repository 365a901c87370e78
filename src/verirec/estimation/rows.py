"""The logged pairs as estimators see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from verirec.data.alike import copies_of_rows
from verirec.data.feedback_log import FeedbackLog
from verirec.data.pair_keys import NO_PAIRS, pairs_of
from verirec.data.parts import SHORT, filled, over_parts, parts_of, totals
from verirec.estimation.inputs import KnownNoise
from verirec.estimation.unobserved import Unobserved
from verirec.losses import Corrected, corrected, errors_of, over_levels
from verirec.nuisance.imputation import ImputedLabels
from verirec.nuisance.noise_rates import AuditedRows, WhoErrs
from verirec.nuisance.propensities import Propensities
from verirec.nuisance.propensities.base import VarianceChange
from verirec.nuisance.propensities.by_level import TrueLevelPropensities
from verirec.scratch import each, long_array

Array = npt.NDArray[np.float64]

RATE_STEP: Final = 1e-4


class WeightSums(NamedTuple):
    """What some weights add up to: their sum, that of their squares, and the largest."""

    total: float
    squares: float
    largest: float

    @property
    def worth(self) -> float:
        """How many equally weighted rows are as good (Kish)."""
        return self.total**2 / self.squares


@dataclass(frozen=True, eq=False)
class LoggedPairs:
    """What a log's n rows are, whichever recommender is judged on them: any number of problems can share it.

    Parameters
    ----------
    log, propensities
        Of one grid.
    audited
        The rows whose true labels are known, if there was an audit.
    left_out
        Pairs that are not spoken of, none of them a row's, by `cell_keys`, each once and in ascending order.
    errors
        Who errs, where that is known: what is expected of the true labels is then a control variate of an audit's.
    """

    log: FeedbackLog
    propensities: Propensities
    audited: AuditedRows | None = None
    left_out: npt.NDArray[np.int64] = field(default_factory=lambda: NO_PAIRS)
    errors: WhoErrs | None = None

    @property
    def n_cells(self) -> int:
        """Number of pairs that are spoken of."""
        return self.log.n_cells - len(self.left_out)

    @cached_property
    def inverse_total(self) -> float:
        """The sum of 1/p over these."""
        found = self.propensities.inverse_total
        if len(self.left_out) == 0:
            return found
        p = self.propensities.at(*pairs_of(self.left_out, self.log.n_items))
        return found - float(each(lambda p: 1 / p, p).sum())

    @cached_property
    def p(self) -> Array:
        """Propensities, shape (n,)."""
        users, items = self.log.users, self.log.items
        if not self.propensities.parallel:
            return self.propensities.at(users, items)
        return filled(lambda at: self.propensities.cells(users[at], items[at]), len(self.log))

    @cached_property
    def by_level(self) -> Array | None:
        """p of each true level, shape (K, n), where that decides what is logged; `p` is then that of the logged one."""
        if not isinstance(self.propensities, TrueLevelPropensities):
            return None
        log = self.log
        assert log.levels is not None  # noqa: S101 -- such propensities are of logs that keep their levels
        found = long_array((len(log.levels), len(log)))
        for at in parts_of(len(log)):
            found[:, at] = self.propensities.of_levels(log.users[at], log.items[at])
        return found

    @cached_property
    def weights(self) -> Array:
        """1/p."""
        p = self.p
        return filled(lambda at: 1 / p[at], len(p))

    @cached_property
    def weight_sums(self) -> WeightSums:
        """What the weights add up to."""
        weights = self.weights

        def of(at: slice) -> tuple[float, float, float]:
            own = weights[at]
            return float(own.sum()), float(own @ own), float(own.max())

        totals, squares, largest = zip(*over_parts(of, len(weights)), strict=True)
        return WeightSums(sum(totals), sum(squares), max(largest))

    @cached_property
    def chance(self) -> float:
        """The standard deviation of the weights' sum, by what happens to be logged."""
        p, weights = self.p, self.weights
        return float(np.sqrt(sum(over_parts(lambda at: (1 - p[at]) @ weights[at] ** 2, len(p), size=SHORT))))

    @cached_property
    def importance(self) -> Array | None:
        """The log's own weights of its rows, the largest being 1, if it has any."""
        weights = self.log.weights
        return None if weights is None else each(np.divide, weights, weights.max())

    @property
    def learnt(self) -> bool:
        """Whether the propensities were estimated from a log."""
        return type(self.propensities).variance_changes is not Propensities.variance_changes

    @cached_property
    def copies(self) -> float:
        """How often each row is there on average, under the names of users who are nearly the same."""
        return copies_of_rows(self.log)

    @cached_property
    def variance_change(self) -> VarianceChange:
        """What having estimated the propensities does to a variance."""
        return self.propensities.variance_changes(self.log)

    def labels(self, rates: KnownNoise | None) -> Corrected:
        """Return r, or the corrected labels; those of the rates last asked for are kept."""
        if not self._last or self._last[0][0] is not rates:
            log = self.log
            n_levels = None if log.levels is None else len(log.levels)
            found = corrected(log.labels, n_levels, rates, log.users, log.items, log=log.fingerprint, in_parts=True)
            self._last[:] = [(rates, found)]
        return self._last[0][1]

    @cached_property
    def expected(self) -> Corrected | None:
        """What is expected of the true labels, given what was logged and by whom, where that is known."""
        return None if self.errors is None else self.errors.expected(self.log)

    @cached_property
    def _last(self) -> list[tuple[KnownNoise | None, Corrected]]:
        return []


@dataclass(frozen=True, eq=False)
class RowPart:
    """Some of the rows, as formulas see them; shape (m,) each, and looked up when they are asked for.

    Of a log of levels, difference and labels have a column for each but the lowest in front, (K - 1, m).

    Parameters
    ----------
    rows
        All of them.
    at
        Which of these.
    """

    rows: Rows
    at: slice

    @cached_property
    def p(self) -> Array:
        """Propensities."""
        return self.rows.p[self.at]

    @cached_property
    def weights(self) -> Array:
        """1/p."""
        return self.rows.weights[self.at]

    @cached_property
    def if_negative(self) -> Array:
        """l(f, 0), as in `Rows`."""
        return self.rows.if_negative[self.at]

    @cached_property
    def difference(self) -> Array:
        """l(f, 1) - l(f, 0), as in `Rows`."""
        return self.rows.difference[..., self.at]

    @cached_property
    def labels(self) -> Array:
        """The labels, as in `Rows`."""
        return self.rows.labels.values[..., self.at]

    @cached_property
    def errors(self) -> Array:
        """The errors, as in `Rows`."""
        return errors_of(self.if_negative, self.difference, self.labels)

    @property
    def importance(self) -> Array | None:
        """The log's own weights of its rows, the largest being 1, if it has any."""
        found = self.rows.pairs.importance
        return None if found is None else found[self.at]

    @property
    def by_level(self) -> Array | None:
        """P of each true level, shape (K, m), where that decides what is logged."""
        found = self.rows.pairs.by_level
        return None if found is None else found[:, self.at]


@dataclass(frozen=True, eq=False)
class Rows:
    r"""A recommender's losses on the logged pairs, and their labels.

    Parameters
    ----------
    pairs
        The n logged pairs.
    if_negative, difference
        l(f, 0) and l(f, 1) - l(f, 0), shape (n,); of a log of levels, the loss at the lowest and the steps to the
        others, shapes (n,) and (K - 1, n).
    labels
        r, or the corrected :math:`\tilde r`; of a log of levels, which of these are reached.
    fits
        Imputed errors fitted to these rows, by whether for least variance: kept as long as the rows are.
    """

    pairs: LoggedPairs
    if_negative: Array
    difference: Array
    labels: Corrected
    fits: dict[bool, Imputed] = field(default_factory=dict)

    @property
    def log(self) -> FeedbackLog:
        """Where they come from."""
        return self.pairs.log

    @property
    def propensities(self) -> Propensities:
        """Of the grid."""
        return self.pairs.propensities

    @property
    def p(self) -> Array:
        """Of the rows."""
        return self.pairs.p

    @property
    def weights(self) -> Array:
        """1/p."""
        return self.pairs.weights

    @property
    def errors(self) -> Array:
        r"""e of each row, or the surrogate :math:`\tilde e`, worked out anew."""
        return self.each(lambda part: part.errors)

    @property
    def n_cells(self) -> int:
        """Number of pairs that are spoken of."""
        return self.pairs.n_cells

    def part(self, at: slice) -> RowPart:
        """Return some of the rows."""
        return RowPart(self, at)

    def ready(self) -> None:
        """Work out what is worked out once, before threads ask for it."""
        _ = self.weights, self.pairs.importance, self.pairs.by_level, self.labels.values

    def over_parts(self, function: Callable[[RowPart], Any]) -> list[Any]:
        """Apply a function to all rows, part by part, by threads; results in order."""
        self.ready()
        return over_parts(lambda at: function(self.part(at)), len(self.log), size=SHORT)

    def sums(self, function: Callable[[RowPart], tuple[Any, ...]]) -> list[float]:
        """Add up over all rows what a function gives of each part."""
        return np.asarray(self.over_parts(function)).sum(axis=0).tolist()  # type: ignore[no-any-return]

    def each(self, function: Callable[[RowPart], Array]) -> Array:
        """Return a number for each row, worked out part by part; shape (n,)."""
        self.ready()
        return filled(lambda at: function(self.part(at)), len(self.log))

    def each_label(self, function: Callable[[RowPart], Array]) -> Array:
        """Return a number for each row's label, or for each of its K - 1; shape (n,) or (K - 1, n)."""
        self.ready()
        return filled(lambda at: function(self.part(at)), len(self.log), self.difference.shape[:-1])

    def moved(self, step: float) -> Iterator[Rows]:
        """Return, for each uncertain noise rate, the rows with the labels of a rate larger by a step."""
        for labels in self.labels.moved(step):
            yield self.with_labels(labels)

    def with_labels(self, labels: Corrected) -> Rows:
        """Return the same rows with other labels, and nothing fitted to them yet."""
        return replace(self, labels=labels, fits={})


Influence = Callable[[RowPart], tuple[Array, Array]]
"""What rows do to a sum through the imputed errors: by being observed, and by their labels."""


class Imputed(Protocol):
    r"""Imputed errors :math:`\hat e` of the observed pairs, and their sums over the others."""

    def of(self, part: RowPart) -> Array:
        """Return those of some of the rows."""
        ...

    @property
    def elsewhere(self) -> float:
        """Their sum over all other pairs."""
        ...

    @property
    def sampled(self) -> Array | None:
        """What each sampled cell adds to that sum, if it is from a sample."""
        ...

    @property
    def label_slopes_exact(self) -> bool:
        """Whether the slopes by label that `influence` gives are exact."""
        ...

    def elsewhere_by_user(self) -> Array:
        """Return that sum user by user, shape (n_users,)."""
        ...

    def weight_slopes(self, part: RowPart) -> Array | float:
        """Return the derivative of the log of each row's weight in the fit by the log of its propensity."""
        ...

    def influence(self, rows: Rows, row_gradient: Callable[[RowPart], Array]) -> Influence:
        """Return what each row does to a sum through the imputed errors.

        Parameters
        ----------
        rows
            All of them.
        row_gradient
            The sum's derivative by the imputed labels of the observed pairs; the others count whole.
        """
        ...

    def facts(self) -> dict[str, Any]:
        """Return what to report of them."""
        ...


class LabelledErrors:
    """Imputed errors made of imputed labels.

    Parameters
    ----------
    labels, unobserved
        What is imputed, and the losses of the pairs that it is imputed to.
    weight_slopes
        As of `Imputed`; that of weights 1/p by default.
    """

    def __init__(
        self,
        labels: ImputedLabels,
        unobserved: Unobserved,
        weight_slopes: Callable[[RowPart], Array | float] = lambda part: -1.0,
    ) -> None:
        self.labels, self.unobserved, self.weight_slopes = labels, unobserved, weight_slopes
        self.elsewhere = unobserved.total(labels.elsewhere)
        self.sampled = unobserved.sampled(labels.elsewhere)
        # Of cross-fitted labels, the mean over folds is followed.
        self.label_slopes_exact = len(labels.fits) == 1

    def of(self, part: RowPart) -> Array:
        """Make them of the labels."""
        return errors_of(part.if_negative, part.difference, self.labels.rows[..., part.at])

    def elsewhere_by_user(self) -> Array:
        """Add up user by user."""
        return self.unobserved.totals_by_user(self.labels.elsewhere)

    def influence(self, rows: Rows, row_gradient: Callable[[RowPart], Array]) -> Influence:
        """Follow each row's label through the fit of the imputed labels."""
        slopes = self.labels.row_slopes(*self._gradient(rows, row_gradient))

        def of(part: RowPart) -> tuple[Array, Array]:
            own = slopes(part.at)
            return over_levels(own * (part.labels - self.labels.rows[..., part.at])), own

        return of

    def _gradient(self, rows: Rows, row_gradient: Callable[[RowPart], Array]) -> tuple[Array, Array]:
        """Add the derivative up by user and by item; of one label for all pairs, the sum is all that counts."""
        by_user, by_item, log = self.unobserved.by_user, self.unobserved.by_item, rows.log
        if self.labels.one_for_all:
            (of_rows,) = rows.sums(lambda part: (row_gradient(part).sum(axis=-1),))
            return np.concatenate([by_user, np.asarray(of_rows)[..., None]], axis=-1), by_item
        values = rows.each_label(row_gradient)
        return by_user + totals(log.users, values, log.n_users), by_item + totals(log.items, values, log.n_items)

    def facts(self) -> dict[str, Any]:
        """Report the constant; of a log of levels, the chance of each but the lowest to be reached."""
        return {"imputed_label": self.labels.elsewhere.constant}


class GivenErrors:
    """Imputed errors that somebody gave."""

    label_slopes_exact = True

    def __init__(self, of_rows: Array, elsewhere_by_user: Array, sampled: Array | None = None) -> None:
        self._of_rows, self.sampled = of_rows, sampled
        self.elsewhere = float(elsewhere_by_user.sum())
        self._by_user = elsewhere_by_user

    def of(self, part: RowPart) -> Array:
        """Look them up."""
        return self._of_rows[part.at]

    def elsewhere_by_user(self) -> Array:
        """Return the sums."""
        return self._by_user

    def weight_slopes(self, part: RowPart) -> Array | float:
        """No weights made them."""
        return 0.0

    def influence(self, rows: Rows, row_gradient: Callable[[RowPart], Array]) -> Influence:
        """No row changes them."""
        return lambda part: (np.zeros_like(part.errors), np.zeros_like(part.difference))

    def facts(self) -> dict[str, Any]:
        """Report their mean over the observed pairs."""
        return {"mean_imputed_error": float(self._of_rows.mean())}
