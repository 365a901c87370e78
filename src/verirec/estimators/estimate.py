"""How good a recommender really is: every estimator, on one log, at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from verirec.checks import one_of, real_number, whole_number
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.grid import Positions, totals
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimators.catalogue import Estimator, chosen, imputation_weights
from verirec.estimators.cell_losses import CellLosses
from verirec.estimators.formulas import Linearised
from verirec.estimators.intervals import Estimate, EstimateRange, bootstrapped, normal_estimate
from verirec.estimators.rows import RATE_STEP, GivenErrors, Imputed, LabelledErrors, Rows
from verirec.estimators.unobserved import (
    Sample,
    Unobserved,
    over_grid,
    sample_unobserved,
    sample_variance,
    visit_sample,
    visit_unobserved,
)
from verirec.exceptions import EmptyLogError, LabelError, OverlapWarning, ParameterError, PredictionError, warn_caller
from verirec.losses import LossLike, NoiseRates, NoiseRegion, correct_labels, get_loss
from verirec.losses.noise_rates import GroupedNoiseRates
from verirec.nuisances.imputation import impute_additive, impute_constant
from verirec.nuisances.propensities import Propensities, as_propensities
from verirec.randomness import RandomState, as_generator

Array = npt.NDArray[np.float64]
Rates = NoiseRates | GroupedNoiseRates

MOST_CELLS: Final = 4_000_000_000
"""Grids up to this size are visited cell by cell, at some 10 ns a cell; larger ones by a sample."""
SAMPLE: Final = 10_000_000


class Estimates(Mapping[str, Estimate | EstimateRange]):
    """Estimates by the estimator's name.

    Parameters
    ----------
    values
        Name to estimate.
    of
        What they are estimates of, in words.
    """

    def __init__(self, values: dict[str, Any], of: str) -> None:
        self._values, self.of = values, of

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise KeyError(f"no estimate {name!r}; there are: {', '.join(self._values)}")
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Estimates of {self.of}\n{self.to_frame().to_string(index=False)}"

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False))

    def to_frame(self) -> Any:
        """Give one row an estimator, as a pandas frame; a range has its ends in place of a value."""
        import pandas as pd

        rows = []
        for name, one in self._values.items():
            of_range = isinstance(one, EstimateRange)
            rows.append(
                {
                    "estimator": name,
                    "value": np.nan if of_range else one.value,
                    "standard_error": np.nan if of_range else one.standard_error,
                    "low": one.interval[0],
                    "high": one.interval[1],
                    "range_low": one.range[0] if of_range else np.nan,
                    "range_high": one.range[1] if of_range else np.nan,
                }
            )
        frame = pd.DataFrame(rows)
        ranges = any(isinstance(one, EstimateRange) for one in self._values.values())
        return frame if ranges else frame.drop(columns=["range_low", "range_high"])


def estimate(
    predictions: PredictionsLike,
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: Rates | NoiseRegion | None = None,
    estimators: str | Sequence[str] | None = None,
    loss: LossLike = "log",
    imputation: Any = "constant",
    interval: Literal["delta", "bootstrap"] = "delta",
    confidence: float = 0.95,
    clip: float | None = None,
    sample: int | None = None,
    draws: int = 1_000,
    contributions: bool = False,
    random_state: RandomState = 0,
) -> Estimates:
    r"""Estimate the true prediction inaccuracy of a recommender, :math:`P^* = |D|^{-1} \sum_D l(f, r^*)`.

    A log shows o (which pairs) and r (what was said of them), neither at random nor always right. Each estimator
    corrects for none, one or both; `verirec.estimators.formulas` has their formulas.

    Parameters
    ----------
    predictions
        A dense array (n_users, n_items), (users, items, scores) by position, a function of (users, items), `Factors`
        or (U, V[, b_u, b_i]). Estimators without an imputed part (naive, ome, ips, snips and their OME forms) ask for
        the logged pairs only.
    log
        n rows, of both classes.
    propensities
        Fitted ones, a model, a matrix or a function; by default the log's own column, or else a logistic model.
    noise_rates
        Known or estimated rates, one for all or by group; or a `NoiseRegion`: then each OME estimate is an
        `EstimateRange`.
    estimators
        Names, or "all"; by default naive, ips, dr and, with noise rates, ome-ips, ome-dr.
    loss
        "log", "squared", "absolute", or a function of (f, y).
    imputation
        "constant": one label for all pairs, the inverse-propensity mean of the corrected labels. "model": user and
        item constants fitted to the corrected labels, cross-fitted. Or imputed errors, dense or as a function.
    interval
        "delta": from each pair's contribution; it carries the uncertainty of learnt propensities and noise rates.
        "bootstrap": whole users are drawn again, `draws` times, which allows for users who rate alike.
    confidence
        Of the intervals.
    clip
        Keep predictions this far from 0 and 1. Without it, the log loss refuses predictions of 0 and 1.
    sample
        Visit this many random unobserved pairs in place of all. By default all of them, up to 4 billion; the
        sample's own error is in the interval.
    contributions
        True keeps what each row contributes on the results.
    random_state
        Of the sample, the folds and the bootstrap.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> shares = np.full((200, 300), 0.4)
    >>> result = estimate(shares, world.log, propensities=world.propensity_values, noise_rates=NoiseRates(0.2, 0.1))
    >>> round(result["naive"].value, 2), round(result["ome-dr"].value, 2), round(world.true_inaccuracy(shares), 2)
    (0.71, 0.67, 0.68)
    """
    if isinstance(noise_rates, NoiseRegion):
        options = {name: value for name, value in locals().items() if name not in ("predictions", "log", "noise_rates")}
        return _over_region(predictions, log, noise_rates, options)
    selected = chosen(estimators, with_rates=noise_rates is not None)
    one_of("interval", interval, ("delta", "bootstrap"))
    study = _Study(
        judgeable(log),
        CellLosses(
            as_predictions(predictions, log.n_users, log.n_items),
            get_loss(loss),
            None if clip is None else real_number("clip", clip, above=0, below=0.5),
        ),
        as_propensities(propensities, log),
        checked_rates(noise_rates, log),
        imputation,
        None if sample is None else whole_number("sample", sample, least=2),
        as_generator(random_state),
    )
    _refuse_impossible(selected, study)
    results = {}
    random = study.random.spawn(1)[0]
    level = real_number("confidence", confidence, above=0, below=1)
    draws = whole_number("draws", draws, least=2)
    for estimator in selected:
        linearised, gradient = study.linearised(estimator)
        rows = study.rows(estimator.denoised)
        one = normal_estimate(linearised, rows, gradient, level, study.facts)
        if interval == "bootstrap":
            one = bootstrapped(one, linearised, rows, draws, random)
        results[estimator.name] = replace(one, contributions=linearised.influence) if contributions else one
    study.warn()
    return Estimates(results, f"the {study.losses.loss.name} loss")


@dataclass(frozen=True, eq=False)
class _Study:
    """One log, one recommender, and what they share among all estimators: worked out once, when asked for."""

    log: FeedbackLog
    losses: CellLosses
    propensities: Propensities
    rates: Rates | None
    imputation: Any
    sample_size: int | None
    random: np.random.Generator

    @cached_property
    def _plain_rows(self) -> Rows:
        log = self.log
        negative, difference = self.losses.of_rows(log.users, log.items)
        labels = correct_labels(log.labels, None, log.users, log.items)
        p = self.propensities.at(log.users, log.items)
        return Rows(log, negative, difference, labels, self.propensities, p, 1 / p)

    @cached_property
    def _denoised_rows(self) -> Rows:
        log = self.log
        return replace(self._plain_rows, labels=correct_labels(log.labels, self.rates, log.users, log.items))

    def rows(self, denoised: bool) -> Rows:
        """Give the logged pairs, with plain or corrected labels."""
        return self._denoised_rows if denoised else self._plain_rows

    @cached_property
    def sample(self) -> Sample | None:
        """The unobserved pairs to visit; `None` for all."""
        size = self.sample_size
        if size is None and self.log.n_cells > MOST_CELLS:
            size = SAMPLE
        return None if size is None else sample_unobserved(self.log, size, self.random.spawn(1)[0])

    @cached_property
    def unobserved(self) -> Unobserved:
        """The losses of the unobserved pairs."""
        if self.sample is not None:
            return visit_sample(self.losses, self.log, self.sample)
        rows = self._plain_rows
        return visit_unobserved(self.losses, self.log, rows.if_negative, rows.difference)

    @cached_property
    def _fold_seed(self) -> int:
        return int(self.random.integers(2**32))

    @cached_property
    def _fits(self) -> dict[tuple[bool, int], LabelledErrors]:
        """Imputed errors by the weights they were fitted with and the rows they were fitted to."""
        return {}

    def imputed(self, estimator: Estimator, rows: Rows) -> Imputed:
        """Fit or look up the imputed errors of an estimator."""
        if not isinstance(self.imputation, str):
            return self._given_errors
        key = estimator.for_least_variance, id(rows)
        if key not in self._fits:
            weights = imputation_weights(estimator, rows)
            if self.imputation == "model":
                labels = impute_additive(rows.labels.values, self.log, weights, self._fold_seed)
            else:
                labels = impute_constant(rows.labels.values, self.log, weights)
            self._fits[key] = LabelledErrors(labels, rows, self.unobserved)
        return self._fits[key]

    @cached_property
    def _given_errors(self) -> GivenErrors:
        log = self.log
        errors = as_predictions(self.imputation, log.n_users, log.n_items)
        of_rows = errors.at(log.users, log.items)
        if self.sample is not None:
            values = errors.at(self.sample.users, self.sample.items)
            by_user = totals(self.sample.users, values, log.n_users) * self.sample.scale
            return GivenErrors(of_rows, by_user, sample_variance(values, self.sample.scale))
        by_user = -totals(log.users, of_rows, log.n_users)

        def sums(block: tuple[Positions, Positions]) -> Array:
            return np.asarray(errors.block(*block).sum(axis=1))

        for (users, _), part in over_grid(sums, errors.shape, parallel=errors.parallel):
            by_user[users] += part
        return GivenErrors(of_rows, by_user, 0.0)

    def linearised(self, estimator: Estimator) -> tuple[Linearised, Array | None]:
        """Apply the formula; and give the estimate's gradient by the noise rates, if these are uncertain."""
        rows = self.rows(estimator.denoised)
        result = self._apply(estimator, rows)
        return result, rate_gradient(lambda other: self._apply(estimator, other), rows, result.value)

    def _apply(self, estimator: Estimator, rows: Rows) -> Linearised:
        if not estimator.over_grid:
            return estimator.formula(rows, _NOTHING)
        return estimator.formula(rows, self.imputed(estimator, rows))

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What all estimates rest on."""
        log, weights = self.log, self._plain_rows.weights
        facts: dict[str, Any] = {
            "rows": len(log),
            "cells": log.n_cells,
            "cells_visited": log.n_cells if self.sample is None else len(log) + len(self.sample.users),
            "effective_sample_size": float(weights.sum()) ** 2 / float(weights @ weights),
            "largest_weight": float(weights.max()),
            "floored": self.propensities.count_floored(log),
        }
        if self.losses.clip is not None:
            facts["clipped"] = self.losses.count_clipped(log.users, log.items)
        return facts

    def warn(self) -> None:
        """Say so where a few rows carry the estimate."""
        effective = self.facts["effective_sample_size"]
        if effective < _FEW:
            warn_caller(
                f"the weighted rows are worth {effective:.0f} equally weighted ones: intervals are not to be trusted",
                OverlapWarning,
            )


_FEW: Final = 30
_NOTHING: Final = GivenErrors(np.zeros(0), np.zeros(0), 0.0)


def rate_gradient(formula: Callable[[Rows], Linearised], rows: Rows, value: float) -> Array | None:
    """Give the derivative of an estimate by each noise rate, or `None` if these are known.

    Most estimates are linear in the labels, so that this difference is exact.
    """
    if not rows.moved:
        return None
    return np.array([(formula(other).value - value) / RATE_STEP for other in rows.moved])


def _over_region(
    predictions: PredictionsLike, log: FeedbackLog, region: NoiseRegion, options: dict[str, Any]
) -> Estimates:
    """Estimate at the region's corners: between them every estimate is monotone in each rate."""
    wanted = [estimator.name for estimator in chosen(options.pop("estimators"), with_rates=True)]
    options["propensities"] = as_propensities(options["propensities"], judgeable(log))
    corners = [
        estimate(predictions, log, noise_rates=corner, estimators=wanted, **options) for corner in region.corners
    ]
    values: dict[str, Any] = {}
    least = get_loss(options["loss"]).least
    for name in wanted:
        at_corners = [corner[name] for corner in corners]
        denoised = name.startswith("ome")
        values[name] = EstimateRange.over(at_corners, least=least) if denoised else at_corners[0]
    return Estimates(values, corners[0].of)


def judgeable(log: FeedbackLog) -> FeedbackLog:
    """Accept a log with rows of both classes."""
    if len(checked_log(log)) < 2:
        raise EmptyLogError(f"an estimate needs at least 2 rows; the log has {len(log)}")
    positives = int(log.labels.sum())
    if positives in (0, len(log)):
        raise LabelError(
            f"an estimate needs rows of both classes; all {len(log):,} are {'positive' if positives else 'negative'}"
        )
    return log


def checked_rates(rates: Any, log: FeedbackLog) -> Rates | None:
    """Accept noise rates for a log's grid, or none."""
    if rates is not None and not isinstance(rates, NoiseRates | GroupedNoiseRates):
        raise ParameterError(
            f"noise_rates must be a NoiseRates, GroupedNoiseRates or NoiseRegion; got {type(rates).__name__}"
        )
    if isinstance(rates, GroupedNoiseRates):
        rates.check_grid(log.n_users, log.n_items)
    return rates


def _refuse_impossible(estimators: list[Estimator], study: _Study) -> None:
    """Raise where an estimator cannot work with what it was given, before anything is computed."""
    if isinstance(study.imputation, str):
        one_of("imputation", study.imputation, ("constant", "model"))
    for estimator in estimators:
        if estimator.everywhere:
            study.propensities.require_everywhere(f"the {estimator.name} estimator")
    refuse_weights(study.log, [estimator.name for estimator in estimators if not estimator.weighs_rows])
    over = [estimator.name for estimator in estimators if estimator.over_grid]
    if over and study.sample is None:
        needed = study.log.n_cells
        covered = getattr(study.losses.predictions, "keys", None)
        if covered is not None and len(covered) < needed:
            raise PredictionError(
                f"{', '.join(over)} need predictions for all {needed:,} pairs; got {len(covered):,}. Those that "
                "need the logged pairs only: naive, ips, snips, ome, ome-ips, ome-snips"
            )


def refuse_weights(log: FeedbackLog, helpless: list[str]) -> None:
    """Raise `ParameterError` if a log has row weights and there is an estimate that cannot use them."""
    if log.weights is not None and helpless:
        raise ParameterError(
            f"the log has row weights, which {', '.join(helpless)} cannot use: the unobserved pairs have none"
        )
