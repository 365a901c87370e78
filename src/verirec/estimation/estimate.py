"""How good a recommender really is: every estimator, on one log, at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt

from verirec.checks import one_of, whole_number
from verirec.estimation.adapting import enter
from verirec.estimation.gathering import gather
from verirec.estimation.inference import judge
from verirec.estimation.inputs import AnyNoise, checked_sample, checked_user_groups
from verirec.estimation.intervals import checked_confidence
from verirec.estimation.range_ends import judge_by_range
from verirec.estimation.results import Estimates
from verirec.estimation.roots import pointwise, rooted
from verirec.estimation.selection_range import RangeProblem, SelectionRange
from verirec.estimation.setup import cell_losses, drawn_seed, make_problem
from verirec.estimation.survey.problem import survey_results
from verirec.losses import LossLike
from verirec.nuisance.noise_rates import AuditSample, WhoErrs
from verirec.resuming import kept, long_job

if TYPE_CHECKING:
    from verirec.data.feedback_log import FeedbackLog
    from verirec.data.predictions import PredictionsLike
    from verirec.engine.choice import EngineLike
    from verirec.nuisance.surveys import SurveySample
    from verirec.randomness import RandomState


@long_job
def estimate(  # noqa: PLR0913 -- what an estimate may rest on, each by its name
    predictions: PredictionsLike,
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: AnyNoise = None,
    audit: AuditSample | None = None,
    survey: SurveySample | None = None,
    errors: WhoErrs | None = None,
    exclude: Any = None,
    selection: SelectionRange | None = None,
    estimators: str | Sequence[str] | None = None,
    loss: LossLike = "log",
    imputation: Any = "constant",
    interval: Literal["delta", "bootstrap"] = "delta",
    confidence: float = 0.95,
    clip: float | None = None,
    sample: int | None = None,
    draws: int = 1_000,
    user_groups: npt.ArrayLike | None = None,
    contributions: bool = False,
    random_state: RandomState = 0,
    engine: EngineLike = None,
    checkpoint: str | Path | None = None,
) -> Estimates:
    r"""Estimate the true prediction inaccuracy of a recommender, :math:`P^* = |D|^{-1} \sum_D l(f, r^*)`.

    A log shows o (which pairs) and r (what was said of them), neither at random nor always right. Each estimator of the
    log corrects for none, one or both, and is right if its propensities and noise rates are
    (`verirec.estimation.formulas`). With an audit "audited-dr" is right whatever the noise is, if its propensities are
    (`verirec.estimation.audited`). With a survey there are estimators that are right whatever they are
    (`verirec.estimation.survey`): go by `survey-ppi`, the result's `headline`.

    Parameters
    ----------
    predictions
        A dense array (n_users, n_items), (users, items, scores) by position, a function of (users, items), `Factors`,
        (U, V[, b_u, b_i]), or a fitted model of another library (see `adapt`). Of a log that keeps its levels,
        predicted stars in these forms; or distributions, as a dense array (n_users, n_items, K), scores of shape (n, K)
        or a function that gives such. Estimators without an imputed part (naive, ome, ips, snips and their OME forms)
        ask for the logged pairs only.
    log
        n rows, of both classes; or of more than one level, if it keeps its levels.
    propensities
        Fitted ones, a model, a matrix or a function; by default the log's own column, or else a logistic model.
    noise_rates
        Known or estimated rates, one for all or by group; or a `NoiseRegion`: then each OME estimate is an
        `EstimateRange`. Of a log that keeps its levels, a `TransitionMatrix`.
    audit
        True labels of logged pairs: adds the estimator "audited-dr", and gives noise rates where none are given.
    survey
        True labels of random pairs: adds the estimators "survey" and "survey-ppi" and, by name, "delta-dr", a second
        line that assumes one delta for all pairs (`verirec.estimation.survey.delta`).
    errors
        Who errs (`AuditErrors`, `AuditErrorCurve`): what is expected of the true labels, given what was logged and by
        whom, is then the control variate of "audited-dr", which is right whatever it is, and the more precise the
        better it fits.
    exclude
        Pairs that are not spoken of: a log that the recommender was trained on, or (users, items). Rows to judge by
        that are random ones of what was logged, the others being trained on, stand for the pairs that are left
        (`Propensities.apart_from`): give the training log rather than its pairs.
    selection
        How much more readily people may log what they like, such as `SelectionRange(0, 3)`: the estimate "ome-dr", or
        "dr" without noise rates, is then an `EstimateRange` over all of it.
    estimators
        Names, or "all"; by default naive, ips, dr and, with noise rates, ome-ips, ome-dr, and those of an audit and a
        survey.
    loss
        "log", "squared", "absolute" ("mae"), "rmse", the root of the mean squared loss, or a function of (f, y). Of
        levels, "squared", "absolute", "rmse" or a function of predicted stars and the level's value; "log" or "rps"
        (ranked probability score) of distributions.
    imputation
        "constant": one label for all pairs, the inverse-propensity mean of the corrected labels. "model": user and
        item constants fitted to the corrected labels, cross-fitted. Or imputed errors, dense or as a function.
    interval
        "delta": from each pair's contribution; it carries the uncertainty of estimated propensities and noise rates.
        "bootstrap": whole users are drawn again, `draws` times, which allows for dependence within users; those who
        rated nearly the same items are drawn together.
    confidence
        Of the intervals.
    clip
        Keep predictions this far from 0 and 1. Without it, the log loss refuses predictions of 0 and 1. Of stars, this
        far from the ends of the scale, which they may leave without it; of distributions, the least probability.
    sample
        Visit this many random unobserved pairs in place of all. By default all of them, up to 4 billion; the
        sample's own error is in the interval.
    user_groups
        Group of each user, integers from 0, by position, shape (n_users,): a bootstrap draws whole groups, which
        allows for dependence within households or teams. By default `verirec.data.alike` finds groups.
    contributions
        True keeps what each row contributes on the results.
    random_state
        Of the sample, the folds and the bootstrap.
    engine
        Where the work runs: "serial", "processes", "ray", "ray:HOST:PORT" or an engine of `verirec.engine`; the results
        do not depend on it.
    checkpoint
        A folder that keeps what is finished of long work: after a stop the same call goes on from there, to the same
        result, and says so in a warning. It is for one call at a time, and removed at the end. Predictions, loss and
        propensities that are functions, or other libraries' objects, are refused with it: nothing tells whether they
        are still the same.

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
    groups = checked_user_groups(user_groups, log, interval)
    (predictions,), log, propensities, noise_rates, audit = enter(
        [predictions], log, propensities, noise_rates, audit, random_state, survey, exclude
    )
    given: dict[str, Any] = {"propensities": propensities, "noise_rates": noise_rates, "audit": audit, "survey": survey}
    given["errors"] = errors
    pairs, noise, selected, judged = gather(log, exclude=exclude, selection=selection, estimators=estimators, **given)
    seed = drawn_seed(random_state)
    averaged, roots = pointwise(loss)
    losses = cell_losses(predictions, log, averaged, clip, counts_grid=True)
    options: dict[str, Any] = {"exclude": exclude, "sample": checked_sample(sample), "seed": seed}
    found: dict[str, Any] = {}
    if judged is not None:
        how = {"loss": averaged, "imputation": imputation, "clip": clip, "sample": sample, "seed": seed}
        problem = make_problem(predictions, judged, selected.log, **how)
        bootstrap = draws if interval == "bootstrap" else None
        found |= judge(
            problem,
            selected.log,
            noise,
            level,
            draws=bootstrap,
            user_groups=groups,
            contributions=contributions is True,
        )
    if pairs is not None and selected.ranged:
        ranged = RangeProblem.of(pairs, selection, noise, **options)
        found[selected.ranged] = judge_by_range(ranged, [losses], level, least=losses.loss.least)[0]
    if survey is not None:
        audited = None if pairs is None else pairs.audited
        options |= {"confidence": level, "audited": audited}
        by_survey = partial(survey_results, [losses], selected.survey, survey, log, noise, **options)
        found |= kept("survey", by_survey)[0]
    if roots:
        return Estimates({name: rooted(one) for name, one in found.items()}, "the root mean squared error")
    return Estimates(found, f"the {losses.loss.name} loss")
