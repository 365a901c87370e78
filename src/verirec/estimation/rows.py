"""The logged pairs as estimators see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import totals
from verirec.estimation.inputs import Rates
from verirec.estimation.unobserved import Unobserved
from verirec.losses import CorrectedLabels, correct_labels
from verirec.nuisance.imputation import ImputedLabels
from verirec.nuisance.noise_rates import AuditedRows
from verirec.nuisance.propensities import Propensities

Array = npt.NDArray[np.float64]

RATE_STEP: Final = 1e-4


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
    """

    log: FeedbackLog
    propensities: Propensities
    audited: AuditedRows | None = None
    left_out: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

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
        return found - float((1 / self.propensities.at(*np.divmod(self.left_out, self.log.n_items))).sum())

    @cached_property
    def p(self) -> Array:
        """Propensities, shape (n,)."""
        return self.propensities.at(self.log.users, self.log.items)

    @cached_property
    def weights(self) -> Array:
        """1/p."""
        return np.asarray(1 / self.p)

    def labels(self, rates: Rates | None) -> CorrectedLabels:
        """Return r, or the corrected labels; those of the rates last asked for are kept."""
        if not self._last or self._last[0][0] is not rates:
            log = self.log
            corrected = correct_labels(log.labels, rates, log.users, log.items, log=log.fingerprint)
            self._last[:] = [(rates, corrected)]
        return self._last[0][1]

    @cached_property
    def _last(self) -> list[tuple[Rates | None, CorrectedLabels]]:
        return []


@dataclass(frozen=True, eq=False)
class Rows:
    r"""A recommender's losses on the logged pairs, and their labels.

    Parameters
    ----------
    pairs
        The n logged pairs.
    if_negative, difference
        l(f, 0) and l(f, 1) - l(f, 0), shape (n,).
    labels
        r, or the corrected :math:`\tilde r`.
    fits
        Imputed errors fitted to these rows, by whether for least variance: kept as long as the rows are.
    """

    pairs: LoggedPairs
    if_negative: Array
    difference: Array
    labels: CorrectedLabels
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

    @cached_property
    def errors(self) -> Array:
        r"""e of each row, or the surrogate :math:`\tilde e`."""
        return np.asarray(self.if_negative + self.labels.values * self.difference)

    @property
    def n_cells(self) -> int:
        """Number of pairs that are spoken of."""
        return self.pairs.n_cells

    def moved(self, step: float) -> Iterator[Rows]:
        """Return, for each uncertain noise rate, the rows with the labels of a rate larger by a step."""
        for slopes in self.labels.slopes:
            yield self.with_labels(replace(self.labels, values=self.labels.values + step * slopes))

    def with_labels(self, labels: CorrectedLabels) -> Rows:
        """Return the same rows with other labels, and nothing fitted to them yet."""
        return replace(self, labels=labels, fits={})


class Imputed(Protocol):
    r"""Imputed errors :math:`\hat e` of the observed pairs, and their sums over the others."""

    @property
    def rows(self) -> Array:
        """Of the observed pairs, shape (n,)."""
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

    @property
    def weight_slopes(self) -> Array | float:
        """Derivative of the log of each row's weight in the fit by the log of its propensity."""
        ...

    def influence(self, row_gradient: Array) -> tuple[Array, Array]:
        """Return what each row does to a sum through the imputed errors: by being observed, and by its label.

        Parameters
        ----------
        row_gradient
            The sum's derivative by the imputed labels of the observed pairs, shape (n,); the others count whole.
        """
        ...

    def facts(self) -> dict[str, float]:
        """Return what to report of them."""
        ...


class LabelledErrors:
    """Imputed errors made of imputed labels."""

    def __init__(
        self, labels: ImputedLabels, rows: Rows, unobserved: Unobserved, weight_slopes: Array | float = -1.0
    ) -> None:
        self.weight_slopes = weight_slopes
        self.labels, self.unobserved, self._log = labels, unobserved, rows.log
        self.rows = rows.if_negative + labels.rows * rows.difference
        self.elsewhere = unobserved.total(labels.elsewhere)
        self.sampled = unobserved.sampled(labels.elsewhere)
        # Of cross-fitted labels, the mean over folds is followed.
        self.label_slopes_exact = len(labels.fits) == 1
        self._row_labels = rows.labels.values

    def elsewhere_by_user(self) -> Array:
        """Add up user by user."""
        return self.unobserved.totals_by_user(self.labels.elsewhere)

    def influence(self, row_gradient: Array) -> tuple[Array, Array]:
        """Follow each row's label through the fit of the imputed labels."""
        by_user = self.unobserved.by_user + totals(self._log.users, row_gradient, self._log.n_users)
        by_item = self.unobserved.by_item + totals(self._log.items, row_gradient, self._log.n_items)
        slopes = self.labels.row_slopes(by_user, by_item)
        return slopes * (self._row_labels - self.labels.rows), slopes

    def facts(self) -> dict[str, float]:
        """Report the constant."""
        return {"imputed_label": self.labels.elsewhere.constant}


class GivenErrors:
    """Imputed errors that somebody gave."""

    weight_slopes = 0.0
    label_slopes_exact = True

    def __init__(self, rows: Array, elsewhere_by_user: Array, sampled: Array | None = None) -> None:
        self.rows, self.sampled = rows, sampled
        self.elsewhere = float(elsewhere_by_user.sum())
        self._by_user = elsewhere_by_user

    def elsewhere_by_user(self) -> Array:
        """Return the sums."""
        return self._by_user

    def influence(self, row_gradient: Array) -> tuple[Array, Array]:
        """No row changes them."""
        return np.zeros_like(self.rows), np.zeros_like(self.rows)

    def facts(self) -> dict[str, float]:
        """Report their mean over the observed pairs."""
        return {"mean_imputed_error": float(self.rows.mean())}
