"""The logged pairs as estimators see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import totals
from verirec.estimators.unobserved import Unobserved
from verirec.losses import CorrectedLabels
from verirec.nuisances.imputation import ImputedLabels
from verirec.nuisances.propensities import Propensities

Array = npt.NDArray[np.float64]

RATE_STEP: Final = 1e-4


@dataclass(frozen=True, eq=False)
class Rows:
    r"""Losses, labels and propensities of the log's n rows.

    Parameters
    ----------
    log
        Where they come from.
    if_negative, difference
        l(f, 0) and l(f, 1) - l(f, 0), shape (n,).
    labels
        r, or the corrected :math:`\tilde r`.
    propensities
        Of the grid.
    p, weights
        Of the rows, shape (n,), and 1/p.
    fits
        Imputed errors fitted to these rows, by whether for least variance: kept as long as the rows are.
    """

    log: FeedbackLog
    if_negative: Array
    difference: Array
    labels: CorrectedLabels
    propensities: Propensities
    p: Array
    weights: Array
    fits: dict[bool, Imputed] = field(default_factory=dict)

    @cached_property
    def errors(self) -> Array:
        r"""e of each row, or the surrogate :math:`\tilde e`."""
        return np.asarray(self.if_negative + self.labels.values * self.difference)

    @property
    def n_cells(self) -> int:
        """Number of pairs in the grid."""
        return self.log.n_cells

    def moved(self) -> Iterator[Rows]:
        """Give, for each uncertain noise rate, the rows with the labels of a rate larger by `RATE_STEP`."""
        for slopes in self.labels.slopes:
            yield self.with_labels(replace(self.labels, values=self.labels.values + RATE_STEP * slopes))

    def with_labels(self, labels: CorrectedLabels) -> Rows:
        """Give the same rows with other labels, and nothing fitted to them yet."""
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
    def elsewhere_variance(self) -> float:
        """Variance of that sum, if it is from a sample."""
        ...

    def elsewhere_by_user(self) -> Array:
        """Give that sum user by user, shape (n_users,)."""
        ...

    @property
    def weight_slopes(self) -> Array | float:
        """Derivative of the log of each row's weight in the fit by the log of its propensity."""
        ...

    def influence(self, row_gradient: Array) -> tuple[Array, Array]:
        """Give what each row does to a sum through the imputed errors: by being observed, and by its label.

        Parameters
        ----------
        row_gradient
            The sum's derivative by the imputed labels of the observed pairs, shape (n,); the others count whole.
        """
        ...

    def facts(self) -> dict[str, float]:
        """Give what to report of them."""
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
        self.elsewhere_variance = unobserved.variance(labels.elsewhere)
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

    def __init__(self, rows: Array, elsewhere_by_user: Array, elsewhere_variance: float) -> None:
        self.rows, self.elsewhere_variance = rows, elsewhere_variance
        self.elsewhere = float(elsewhere_by_user.sum())
        self._by_user = elsewhere_by_user

    def elsewhere_by_user(self) -> Array:
        """Give the sums."""
        return self._by_user

    def influence(self, row_gradient: Array) -> tuple[Array, Array]:
        """No row changes them."""
        return np.zeros_like(self.rows), np.zeros_like(self.rows)

    def facts(self) -> dict[str, float]:
        """Report their mean over the observed pairs."""
        return {"mean_imputed_error": float(self.rows.mean())}
