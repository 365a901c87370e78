"""One log and one recommender: what all estimators share, worked out once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import Block, Grid
from verirec.data.pair_keys import pairs_of
from verirec.data.parts import totals
from verirec.data.predictions import as_predictions
from verirec.estimation.catalogue import Estimator, imputation_weight_slopes, imputation_weights
from verirec.estimation.cell_losses import CellLosses
from verirec.estimation.expansion import InfluenceExpansion
from verirec.estimation.inputs import KnownNoise
from verirec.estimation.rows import RATE_STEP, GivenErrors, Imputed, LabelledErrors, LoggedPairs, RowPart, Rows
from verirec.estimation.unobserved import (
    BLOCK_CELLS,
    Sample,
    Unobserved,
    sample_unobserved,
    visit_sample,
    visit_unobserved,
)
from verirec.exceptions import PredictionError
from verirec.nuisance.imputation import impute_additive, impute_constant
from verirec.nuisance.propensities import Propensities

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EstimationProblem:
    """A log, the losses of a recommender's predictions, and what they make of each estimator.

    The walk over the grid is made when it is first asked for, and kept: any number of estimators, at any number of
    noise rates, costs one. Of the rows, which take room, those with plain labels are kept and those at the noise rates
    last asked for, until `let_go_of_rows`.

    Parameters
    ----------
    pairs, losses
        Checked, and for one grid.
    imputation
        "constant", "model", or imputed errors.
    sample_size
        Unobserved pairs to visit; `None` for all, or a sample of the size that `Grid` has for larger grids.
    seed
        Of the sample and the folds.
    """

    pairs: LoggedPairs
    losses: CellLosses
    imputation: Any
    sample_size: int | None
    seed: int

    @property
    def log(self) -> FeedbackLog:
        """The log."""
        return self.pairs.log

    @property
    def propensities(self) -> Propensities:
        """Of the grid."""
        return self.pairs.propensities

    def linearised(
        self, estimator: Estimator, rates: KnownNoise | None
    ) -> tuple[InfluenceExpansion, Rows, Array | None]:
        """Apply an estimator: the result, the rows it rests on, and its gradient by uncertain noise rates."""
        rows = self.rows(rates if estimator.noise_corrected else None)
        if estimator.audited and self.pairs.expected is not None:
            rows = rows.with_labels(self.pairs.expected)
        result = self._apply(estimator, rows)
        return result, rows, rate_gradient(lambda other: self._apply(estimator, other), rows, result)

    def _apply(self, estimator: Estimator, rows: Rows) -> InfluenceExpansion:
        if not estimator.needs_all_predictions:
            return estimator.formula(rows, _NOTHING)
        return estimator.formula(rows, self.imputed(estimator, rows))

    @cached_property
    def _plain_rows(self) -> Rows:
        negative, difference = self.losses.of_rows(self.log.users, self.log.items)
        return Rows(self.pairs, negative, difference, self.pairs.labels(None))

    @cached_property
    def _corrected_rows(self) -> list[tuple[KnownNoise, Rows]]:
        """The rows at the noise rates last asked for: one entry, or none."""
        return []

    def rows(self, rates: KnownNoise | None) -> Rows:
        """Return the logged pairs, with plain labels or with corrected ones."""
        if rates is None:
            return self._plain_rows
        if not self._corrected_rows or self._corrected_rows[0][0] is not rates:
            self._corrected_rows.clear()
            self._corrected_rows.append((rates, self._plain_rows.with_labels(self.pairs.labels(rates))))
        return self._corrected_rows[0][1]

    def let_go_of_rows(self) -> None:
        """Free the rows, some 50 bytes each; what has been added up over the grid stays."""
        self.__dict__.pop("_plain_rows", None)
        self._corrected_rows.clear()

    @cached_property
    def sample(self) -> Sample | None:
        """The unobserved pairs to visit; `None` for all."""
        size, grid = self.sample_size, Grid(self.log.shape)
        if size is None and not grid.fits:
            size = grid.sample_cells
        if size is None or size >= self.pairs.n_cells - len(self.log):
            return None
        return sample_unobserved(self.log, size, np.random.default_rng([self.seed, 0]), self.pairs.left_out)

    @cached_property
    def unobserved(self) -> Unobserved:
        """The losses of the unobserved pairs."""
        if self.sample is not None:
            return visit_sample(self.losses, self.log, self.sample, self.pairs.left_out)
        rows = self._plain_rows
        return visit_unobserved(self.losses, self.log, rows.if_negative, rows.difference, self.pairs.left_out)

    def imputed(self, estimator: Estimator, rows: Rows) -> Imputed:
        """Fit or look up the imputed errors of an estimator."""
        if not isinstance(self.imputation, str):
            return self._given_errors
        if estimator.variance_optimal not in rows.fits:
            rows.fits[estimator.variance_optimal] = self._fitted(estimator, rows)
        return rows.fits[estimator.variance_optimal]

    def _fitted(self, estimator: Estimator, rows: Rows) -> LabelledErrors:
        weights = imputation_weights(estimator, rows)
        if self.imputation == "model":
            labels = impute_additive(rows.labels.values, self.log, weights, np.random.default_rng([self.seed, 1]))
        else:
            labels = impute_constant(rows.labels.values, self.log, weights)
        return LabelledErrors(labels, self.unobserved, imputation_weight_slopes(estimator))

    @cached_property
    def _given_errors(self) -> GivenErrors:
        try:
            return self._added_up(as_predictions(self.imputation, self.log.n_users, self.log.n_items))
        except PredictionError as error:
            raise PredictionError(f"imputed errors: {error}") from None

    def _added_up(self, errors: CellValues) -> GivenErrors:
        log = self.log
        of_rows = errors.at(log.users, log.items)
        if self.sample is not None:
            values = self.sample.scale * errors.at(self.sample.users, self.sample.items)
            return GivenErrors(of_rows, self.sample.totals_by_user(values), values)
        others = pairs_of(self.pairs.left_out, log.n_items)
        by_user = -totals(log.users, of_rows, log.n_users) - totals(others[0], errors.at(*others), log.n_users)

        def sums(block: Block) -> Array:
            return np.asarray(errors.block(*block).sum(axis=1))

        for (users, _), part in Grid(errors.shape, BLOCK_CELLS).map_blocks(sums, parallel=errors.parallel):
            by_user[users] += part
        return GivenErrors(of_rows, by_user)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What all estimates rest on."""
        log, weights = self.log, self.pairs.weight_sums
        facts: dict[str, Any] = {
            "rows": len(log),
            "cells": self.pairs.n_cells,
            "cells_visited": self.pairs.n_cells if self.sample is None else len(log) + len(self.sample.users),
            "effective_sample_size": weights.worth,
            "largest_weight": weights.largest,
            "mass": weights.total / self.pairs.n_cells,
            "floored": self.propensities.count_floored(log),
        }
        if self.losses.clip is not None:
            facts["clipped"] = self.losses.count_clipped(log.users, log.items)
        return facts


_NOTHING: Final = GivenErrors(np.zeros(0), np.zeros(0))


def rate_gradient(
    formula: Callable[[Rows], InfluenceExpansion], rows: Rows, result: InfluenceExpansion
) -> Array | None:
    """Return the derivative of an estimate by each noise rate, or `None` if these are known.

    It follows from the slopes by label; where these are not the whole of it, from a small step of each rate.
    """
    if len(rows.labels.slopes) == 0:
        return None

    def gradient(part: RowPart) -> tuple[float, ...]:
        return tuple(rows.labels.rate_gradient(part.at, result.at(part.at).label_slopes))

    if result.label_slopes_exact:
        return np.array(rows.sums(gradient))
    ahead, behind = ([formula(other).value for other in rows.moved(step)] for step in (RATE_STEP, -RATE_STEP))
    return np.subtract(ahead, behind) / (2 * RATE_STEP)
