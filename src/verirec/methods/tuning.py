"""A search from its beginning to its report, and the tuning of one method's parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from verirec.checks import one_of, real_number, whole_number
from verirec.engine.choice import EngineLike, takes_engine
from verirec.exceptions import ParameterError
from verirec.formatting import short
from verirec.methods import checking
from verirec.methods.base import Method
from verirec.methods.criteria import Gain, criterion_of
from verirec.methods.folds import Folds, folds_of
from verirec.methods.keys import search_key
from verirec.methods.search import Budget, Search, Trial
from verirec.methods.trained import Trained
from verirec.nuisance.noise_rates import AuditSample
from verirec.randomness import same_state
from verirec.training.recommender import Recommender

if TYPE_CHECKING:
    from verirec.data.feedback_log import FeedbackLog
    from verirec.estimation.inputs import KnownNoise

OBJECTIVES: Final = ("ranking", "probability")


@takes_engine
def tune(
    method: Method,
    log: FeedbackLog,
    *,
    objective: str = "ranking",
    trials: int = 30,
    seconds: float | None = None,
    folds: int = 5,
    noise_rates: KnownNoise | None = None,
    audit: AuditSample | None = None,
    propensities: Any = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[int, int, float], None] = lambda trial, trials, value: None,
    engine: EngineLike = None,
) -> Method:
    """Search for one method's penalties and dimension, and return it trained with the best.

    Each is doubled and halved as long as that helps on held-out folds, one after the other, from the parameters that
    the method comes with. `report_.search` says what was tried, and whether the best is better than where it started.

    Parameters
    ----------
    method
        With all its other parameters; it is not trained itself.
    log, noise_rates, audit, propensities
        As in `Method.fit`.
    objective, trials, seconds, folds, checkpoint, resume, progress, engine
        As in `Auto`.

    Examples
    --------
    >>> import verirec as vr
    >>> world = vr.simulate.world(60, 40, observed=0.3, random_state=0)
    >>> tuned = vr.methods.tune(vr.methods.MF(epochs=5), world.log, trials=3, folds=2)
    >>> [sorted(set(trial) & {"penalty_users", "penalty_items"}) for trial in tuned.report_.search["trials"]]
    [[], ['penalty_users'], ['penalty_users']]
    """
    if not isinstance(method, Method):
        raise ParameterError(f"method must be one of verirec.methods, such as OMEDR(); got {short(method)}")
    method.check_parameters()
    one_of("objective", objective, OBJECTIVES)
    budget = Budget(
        whole_number("trials", trials, min=1), None if seconds is None else real_number("seconds", seconds, above=0)
    )
    seed = same_state(method.random_state)
    base = type(method)(**method.get_params() | {"random_state": seed, "refit": False})
    parts = folds_of(log, whole_number("folds", folds, min=2), seed, noise_rates, audit, propensities, None)
    search = begun(method, parts, objective, budget, checkpoint, resume, progress)
    search.attempt(base, [{}])
    for parameter, start in _tuned(method, log).items():
        search.climb(parameter, start)
    first, best = search.trials[0], search.best
    tuned = type(method)(**method.get_params() | best.changed)
    tuned.recommender_ = finished(tuned, search, best, first, search.nested_gain([first]), refit=method.refit)
    return tuned


def _tuned(method: Method, log: FeedbackLog) -> dict[str, Any]:
    """Return the parameters that matter to a method's model, and where each starts."""
    kind = method.model if isinstance(method.model, str) else "own"
    names: list[str] = []
    if kind == "constants" or (method.constants and kind != "own"):
        names += ["penalty_users", "penalty_items"]
    if kind == "own" or (kind != "constants" and method.dim):
        names.append("penalty_factors")
    if kind in ("features", "ncf"):
        names.append("penalty_features")
    if kind in ("mf", "features", "ncf") and method.dim:
        names.append("dim")
    starts = {name: getattr(method, name) for name in names}
    usual = {"penalty_factors": method.usual_penalty_factors(log)}
    both = {name: usual.get(name, method.penalty_constants) for name, value in starts.items() if value is None}
    # What is 0 stays 0 however often it is doubled.
    return {name: value or 1.0 for name, value in (starts | both).items()}


def begun(
    method: Trained,
    folds: Folds,
    objective: str,
    budget: Budget,
    checkpoint: str | Path | None,
    resume: bool,
    progress: Callable[[int, int, float], None],
) -> Search:
    """Begin a search with what the objective goes by."""
    log = folds.log
    weights = 1 / folds.propensities.at(log.users, log.items)
    criterion = criterion_of(objective, log, folds.number, folds.rates, weights)
    file = checking.checkpoint_file(checkpoint)
    key = "" if file is None else _key(method, folds, objective)
    return Search(folds, criterion, budget, progress, file, key, resume)


def _key(method: Trained, folds: Folds, objective: str) -> str:
    # What is kept of a trial has logits of the survey's pairs; labels do not enter into them.
    survey = None if folds.survey is None else (folds.survey.users, folds.survey.items)
    own = {"objective": objective, "folds": folds.number, "survey": survey}
    return search_key(method, folds.whole, folds.rates, folds.propensities, own)


def finished(
    method: Trained,
    search: Search,
    chosen: Trial,
    reference: Trial,
    gain: Gain,
    by_survey: Gain | None = None,
    **parameters: Any,
) -> Recommender:
    """Train what was chosen on all rows, with some parameters changed, and report the whole search."""
    folds = search.folds
    final = type(chosen.method)(**chosen.method.get_params() | parameters)
    final.fit(folds.whole, noise_rates=folds.rates, propensities=folds.propensities)
    report = replace(
        final.report_,
        method=method.name,
        parameters=method.savable_parameters,
        validation_error=chosen.loss,
        validation_estimator=search.criterion.name,
        search=described(search, chosen, reference, gain, by_survey),
    )
    return replace(final.recommender_, report=report)


def described(search: Search, chosen: Trial, reference: Trial, gain: Gain, by_survey: Gain | None) -> dict[str, Any]:
    """Return what was tried and chosen, as JSON can hold it."""
    pairs = len(search.criterion.rows)

    def row(trial: Trial) -> dict[str, Any]:
        over = search.criterion.gain([reference.logits] * pairs, [trial.logits] * pairs)
        return {"method": trial.method.name, **trial.changed, "loss": trial.loss} | {
            "gain": over.value,
            "standard_error": over.standard_error,
        }

    return {
        "criterion": search.criterion.name,
        "folds": pairs,
        "stopped": search.budget.stopped or "all was tried",
        "chosen": search.trials.index(chosen),
        "parameters": chosen.method.savable_parameters,
        "reference": search.trials.index(reference),
        "guard": _told(gain),
        "survey": None if by_survey is None else _told(by_survey),
        "trials": [row(trial) for trial in search.trials],
    }


def _told(gain: Gain) -> dict[str, Any]:
    return {"gain": gain.value, "standard_error": gain.standard_error, "sure": gain.sure}
