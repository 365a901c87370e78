"""From what a user gives to a problem that estimators can be applied to: checked, and put together."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from verirec.checks import one_of
from verirec.data.feedback_log import FeedbackLog
from verirec.data.pair_sketch import warn_of_trained_rows
from verirec.data.predictions import PredictionsLike
from verirec.estimation.catalogue import Estimator
from verirec.estimation.cell_losses import CellLosses
from verirec.estimation.inputs import checked_clip, checked_sample, predictions_for, refuse_weights
from verirec.estimation.level_losses import LevelLosses
from verirec.estimation.problem import EstimationProblem
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import ParameterError, PredictionError, PropensityError
from verirec.losses import LossLike, get_loss
from verirec.randomness import RandomState, as_generator

_ROUNDING: Final = 1e-9


def drawn_seed(random_state: RandomState) -> int:
    """Draw the number that samples, folds and bootstraps come from."""
    return int(as_generator(random_state).integers(2**32))


def cell_losses(
    predictions: PredictionsLike, log: FeedbackLog, loss: LossLike, clip: float | None, *, counts_grid: bool
) -> CellLosses:
    """Check predictions, and put them together with the loss that judges them."""
    if log.levels is not None:
        return LevelLosses.of(predictions, log, loss, clip, counts_grid=counts_grid)
    values = predictions_for(predictions, log)
    if values.ranks_only:
        raise PredictionError("top-k lists have no probabilities, so no loss: judge their ranking, by estimate_ranking")
    return CellLosses(values, get_loss(loss), checked_clip(clip), counts_grid=counts_grid)


def make_problem(
    predictions: PredictionsLike,
    pairs: LoggedPairs,
    estimators: list[Estimator],
    *,
    loss: LossLike = "log",
    imputation: Any = "constant",
    clip: float | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> EstimationProblem:
    """Check what an estimate is given, and put it together (see `estimate`)."""
    log = pairs.log
    problem = EstimationProblem(
        pairs,
        cell_losses(
            predictions, log, loss, clip, counts_grid=any(estimator.needs_all_predictions for estimator in estimators)
        ),
        imputation,
        checked_sample(sample),
        seed,
    )
    _refuse_impossible(estimators, problem)
    warn_of_trained_rows(problem.losses.predictions, log)
    return problem


def _refuse_impossible(estimators: list[Estimator], problem: EstimationProblem) -> None:
    """Raise where an estimator cannot work with what it was given, before anything is computed."""
    given = not isinstance(problem.imputation, str)
    if not given:
        one_of("imputation", problem.imputation, ("constant", "model"))
    for estimator in estimators:
        if estimator.needs_all_propensities:
            problem.propensities.require_everywhere(f"the {estimator.name} estimator")
        if estimator.plain_name == "sdr" and problem.pairs.by_level is not None:
            raise ParameterError(
                f"{estimator.name} tilts one propensity a row, and cannot take those of each level; ome-dr and "
                "audited-dr can"
            )
    if any(estimator.uses_propensities for estimator in estimators):
        _refuse_complete_block(problem.pairs)
    refuse_weights(problem.log, [estimator.name for estimator in estimators if not estimator.supports_row_weights])
    over = [estimator.name for estimator in estimators if estimator.needs_all_predictions]
    covered = problem.losses.predictions.covered
    if over and not given and problem.sample is None and covered is not None:
        raise PredictionError(
            f"{', '.join(over)} need predictions for all {problem.log.n_cells:,} pairs; got {len(covered):,}. Those "
            "that need the logged pairs only: naive, ips, snips, ome, ome-ips, ome-snips"
        )


def _refuse_complete_block(pairs: LoggedPairs) -> None:
    """Raise where all logged pairs were sure to be logged, and others there are: nothing stands for these."""
    if len(pairs.log) < pairs.n_cells and float(pairs.p.min()) > 1 - _ROUNDING:
        log = pairs.log
        users, items = len(np.unique(log.users)), len(np.unique(log.items))
        raise PropensityError(
            f"all {len(log):,} logged pairs have a propensity of 1 (they are of {users:,} users x {items:,} items), "
            f"and say nothing of the other {pairs.n_cells - len(log):,} pairs: leave those out (exclude=...)"
        )
