"""One run: a method in a form with a setting and a seed, from training to all metrics."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import as_predictions
from verirec.exceptions import NoMinimumError, TrainingError, VerirecWarning
from verirec.losses import NoiseRates
from verirec.nuisance.propensities import Propensities
from verirec.studies.table2.baselines import baseline_scores
from verirec.studies.table2.by_log import trained_by_log
from verirec.studies.table2.measuring import Scores, measured
from verirec.studies.table2.plans import Study, Task
from verirec.studies.table2.problems import Problem
from verirec.studies.table2.spaces import BASELINE_FORM, BY_LOG_FORM
from verirec.studies.table2.users import influences

if TYPE_CHECKING:
    from verirec.methods.base import Method

USERS: Final = "users"
"""Of what a run gives: by how much each test user moves its metrics; an array, kept beside the runs."""
PATIENCE: Final = 4
"""Judgements without a better one after which training stops, where held-out rows stop it."""
_DEFAULT_PROPENSITIES: Final = "constants"


def run_once(problem: Problem, study: Study, task: Task, setting: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train with one setting and one seed, and measure.

    Under `unbiased-validation` on all rows of the noisy log; under `honest` on those that are not held out, and what is
    held out gives the estimates to choose by. The part "held_out" has metrics on the clean labels of these rows, and
    "test" those on random ratings; nothing is chosen by either. A setting with which training fails has "failed".
    """
    rates = study.noise_rates
    noisy = problem.noisy(rates, seed)
    train, held = problem.parts(noisy, seed) if study.protocol == "honest" else (noisy, None)
    share = len(train) / len(noisy)
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VerirecWarning)
        audited = problem.audited(rates, seed)
        fitted = _part(problem.weights.named(setting.get("propensities", _DEFAULT_PROPENSITIES)), share)
    used = audited if study.rates == "audit" else rates
    began, cpu = time.perf_counter(), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VerirecWarning)
            scores, told = _trained(problem, task, setting, Given(train, fitted, used, seed))
            found["seconds"], found["cpu_seconds"] = time.perf_counter() - began, time.process_time() - cpu
            found |= told
            found |= measured(problem, scores, held, {"true": rates, "audit": audited}, seed)
            tested = problem.sliced.train if held is None else problem.random
            found[USERS] = influences(np.asarray(scores(tested.users, tested.items), np.float64), tested, problem.k)
    except (TrainingError, NoMinimumError, FloatingPointError) as error:
        found = {"failed": str(error), "seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
    return found


class Given(NamedTuple):
    """What a run is given to train with."""

    train: FeedbackLog
    propensities: Propensities
    rates: NoiseRates
    seed: int


def _trained(problem: Problem, task: Task, setting: dict[str, Any], given: Given) -> tuple[Scores, dict[str, Any]]:
    """Train, and give probabilities of pairs, and how training went."""
    if task.form == BASELINE_FORM and task.method != "constants":
        by_item = baseline_scores(task.method, given.train, given.propensities)
        return lambda users, items: by_item[items], {"epochs": 0}
    if task.form == BY_LOG_FORM:
        survey = problem.survey(given.seed) if task.method.endswith("-survey") else None
        method, search = trained_by_log(task.method, given.train, given.rates, survey, given.seed)
    else:
        method, search = _of_catalogue(problem, task, setting, given), {}
    told = {"epochs": len(method.report_.history), "search": search}
    return as_predictions(method.predictions, *given.train.shape).at, told


def _of_catalogue(problem: Problem, task: Task, setting: dict[str, Any], given: Given) -> Method:
    from verirec.methods import catalogue
    from verirec.training.side_information import COVARIATES
    from verirec.training.trainer import Plan

    train = given.train
    kind = cast("type[Method]", catalogue["mf" if task.method == "constants" else task.method])
    method = kind(**arguments(task, setting, len(train), has_features=problem.has_features), random_state=given.seed)
    # Only methods that correct for noise know its rates: no other gets to stop on them.
    known = given.rates if method.correction != "none" else None
    if method.validation:
        return method.fit(train, noise_rates=known, propensities=given.propensities)
    learnt = problem.learnt(train, COVARIATES[setting.get("covariates", "none")])
    prepared = method.prepare(train, noise_rates=known, audit=None, propensities=given.propensities, learnt=learnt)
    return method.fit_prepared(prepared, Plan(method.epochs))


def arguments(task: Task, setting: dict[str, Any], rows: int, *, has_features: bool = True) -> dict[str, Any]:
    """Return a method's parameters for a setting: a weight decay of d is a penalty of d times the rows.

    Examples
    --------
    >>> arguments(Task("mf", "paper"), {"dim": 8, "penalty_factors": 2.0}, 1000)
    {'dim': 8, 'penalty_factors': 2.0, 'constants': False, 'patience': 4}
    >>> arguments(Task("mf", "constants"), {"epochs": 30}, 1000)
    {'epochs': 30, 'validation': 0.0}
    """
    given = {name: value for name, value in setting.items() if name not in ("propensities", "weight_decay")}
    if "weight_decay" in setting:
        given |= dict.fromkeys(
            ("penalty_factors", "penalty_constants", "penalty_features"), setting["weight_decay"] * rows
        )
        # The printed grid is one of Adam's.
        given["solver"] = "gradient"
    if task.form == "paper":
        given["constants"] = False
    if task.form == "features":
        given |= {"model": "features", "covariates": "none"}
    if task.form == "exposure":
        given = {"covariates": "both"} | given | ({"model": "features"} if has_features else {})
    if task.method == "constants":
        given["model"] = "constants"
    if "epochs" in given:
        # The number of epochs is a part of the setting: all rows are trained on.
        given["validation"] = 0.0
    else:
        given["patience"] = PATIENCE
    return given


def _part(fitted: Propensities, share: float) -> Propensities:
    return fitted if share == 1 else fitted.thinned(share)
