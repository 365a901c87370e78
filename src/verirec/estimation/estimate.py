"""How good a recommender really is: every estimator, on one log, at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from verirec.checks import one_of, whole_number
from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimation.catalogue import Estimator
from verirec.estimation.cell_losses import CellLosses
from verirec.estimation.gathering import gather
from verirec.estimation.inference import judge
from verirec.estimation.inputs import Noise, checked_clip, checked_sample, refuse_weights
from verirec.estimation.intervals import checked_confidence
from verirec.estimation.problem import EstimationProblem
from verirec.estimation.results import Estimates
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import PredictionError
from verirec.losses import LossLike, get_loss
from verirec.nuisance.noise_rates import AuditSample
from verirec.randomness import RandomState, as_generator


def estimate(
    predictions: PredictionsLike,
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: Noise = None,
    audit: AuditSample | None = None,
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
    corrects for none, one or both; `verirec.estimation.formulas` has their formulas.

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
    audit
        True labels of logged pairs: they are in "audited-dr", which is then right whatever the noise is, and give the
        noise rates where none are given.
    estimators
        Names, or "all"; by default naive, ips, dr, with noise rates ome-ips, ome-dr, and with an audit audited-dr.
    loss
        "log", "squared", "absolute", or a function of (f, y).
    imputation
        "constant": one label for all pairs, the inverse-propensity mean of the corrected labels. "model": user and
        item constants fitted to the corrected labels, cross-fitted. Or imputed errors, dense or as a function.
    interval
        "delta": from each pair's contribution; it carries the uncertainty of estimated propensities and noise rates.
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
    >>> import numpy as np
    >>> from verirec import NoiseRates, simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> shares = np.full((200, 300), 0.4)
    >>> result = estimate(shares, world.log, propensities=world.propensity_values, noise_rates=NoiseRates(0.2, 0.1))
    >>> round(result["naive"].value, 2), round(result["ome-dr"].value, 2), round(world.true_inaccuracy(shares), 2)
    (0.71, 0.67, 0.68)
    """
    one_of("interval", interval, ("delta", "bootstrap"))
    level, draws = checked_confidence(confidence), whole_number("draws", draws, min=20, max=1_000_000)
    pairs, noise, selected = gather(
        log, propensities=propensities, noise_rates=noise_rates, audit=audit, estimators=estimators
    )
    problem = make_problem(
        predictions,
        pairs,
        selected,
        loss=loss,
        imputation=imputation,
        clip=clip,
        sample=sample,
        random_state=random_state,
    )
    bootstrap = draws if interval == "bootstrap" else None
    return judge(problem, selected, noise, level, draws=bootstrap, contributions=contributions)


def make_problem(
    predictions: PredictionsLike,
    pairs: LoggedPairs,
    estimators: list[Estimator],
    *,
    loss: LossLike = "log",
    imputation: Any = "constant",
    clip: float | None = None,
    sample: int | None = None,
    random_state: RandomState = 0,
) -> EstimationProblem:
    """Check what an estimate is given, and put it together (see `estimate`)."""
    log = pairs.log
    problem = EstimationProblem(
        pairs,
        CellLosses(
            as_predictions(predictions, log.n_users, log.n_items),
            get_loss(loss),
            checked_clip(clip),
            counts_grid=any(estimator.needs_all_predictions for estimator in estimators),
        ),
        imputation,
        checked_sample(sample),
        int(as_generator(random_state).integers(2**32)),
    )
    _refuse_impossible(estimators, problem)
    return problem


def _refuse_impossible(estimators: list[Estimator], problem: EstimationProblem) -> None:
    """Raise where an estimator cannot work with what it was given, before anything is computed."""
    given = not isinstance(problem.imputation, str)
    if not given:
        one_of("imputation", problem.imputation, ("constant", "model"))
    for estimator in estimators:
        if estimator.needs_all_propensities:
            problem.propensities.require_everywhere(f"the {estimator.name} estimator")
    refuse_weights(problem.log, [estimator.name for estimator in estimators if not estimator.supports_row_weights])
    over = [estimator.name for estimator in estimators if estimator.needs_all_predictions]
    covered = problem.losses.predictions.covered
    if over and not given and problem.sample is None and covered is not None:
        raise PredictionError(
            f"{', '.join(over)} need predictions for all {problem.log.n_cells:,} pairs; got {len(covered):,}. Those "
            "that need the logged pairs only: naive, ips, snips, ome, ome-ips, ome-snips"
        )
