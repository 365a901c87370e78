"""Which one do I take? A search over methods, penalties and covariates; constants where nothing beats them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self

from verirec.checks import one_of
from verirec.data.feedback_log import FeedbackLog
from verirec.engine.choice import EngineLike, takes_engine
from verirec.estimation.inputs import KnownNoise
from verirec.methods.base import Method
from verirec.methods.folds import folds_of
from verirec.methods.parameters import Limits, check_numbers
from verirec.methods.search import Budget, Search
from verirec.methods.survey_choice import Verdict, chosen_by_survey
from verirec.methods.trained import Trained
from verirec.methods.tuning import OBJECTIVES, begun, finished
from verirec.methods.weighting import MF, OME, SNIPS
from verirec.nuisance.noise_rates import AuditSample
from verirec.nuisance.surveys import SurveySample
from verirec.randomness import RandomState, same_state

_START: Final[dict[str, Any]] = {
    "model": "constants",
    "dim": 0,
    "penalty_users": 4.0,
    "penalty_items": 4.0,
    "covariates": "none",
}
_COVARIATES: Final = ("propensity", "co-rating", "both", "none")
_FEATURES: Final = 60.0
"""Where the penalty of features starts from."""
_FACTORS: Final = (2.0, 8.0)
"""Penalties of factors that are tried first."""
_EPOCHS: Final = 200
"""Sweeps, at most: nothing is held out of a candidate's rows to stop by, it goes to its minimum."""


@dataclass(kw_only=True, eq=False, repr=False)
class Auto(Trained):
    """Searches for what predicts held-out rows best, and returns constants of users and items where nothing is better.

    Each family comes first as it is: constants of users and items, factors, features, and what people chose to rate as
    a covariate; then what the best of them lacks, and penalties; for probabilities also a correction for noise and
    weights of 1/p. Every candidate
    is fitted on all folds but one at a time and judged on the one left out. The best is returned if it beats the best
    constants by two standard errors, paired by row, where each fold judges picks that were made without it; it is
    fitted on all rows then. Otherwise constants as they come are: `MF(model="constants")`.

    Parameters
    ----------
    objective
        "ranking": candidates are judged by the AUC of held-out rows. "probability": by their log loss, corrected for
        noise where rates are known and weighted by 1/p (ome-snips). Of a log that keeps its levels both go by the
        squared error of predicted stars, as logged or so corrected and weighted.
    trials
        At most so many candidates.
    seconds
        No candidate is begun after so many; `None` for no limit.
    folds
        In how many parts rows are held out in turn.
    random_state, device
        Seed, of the folds and of training; where to train.

    Examples
    --------
    >>> import verirec as vr
    >>> world = vr.simulate.world(60, 40, observed=0.3, random_state=0)
    >>> found = vr.methods.Auto(trials=4).fit(world.log)
    >>> len(found.report_.search["trials"]), found.report_.search["stopped"]
    (4, 'after 4 trials')
    """

    name: ClassVar[str] = "auto"
    paper: ClassVar[str] = "none: a search over methods, penalties and covariates"
    summary: ClassVar[str] = "searches; constants where nothing beats them"
    uses_propensities: ClassVar[bool] = False
    correction: ClassVar[str] = "none"
    sweeps: ClassVar[bool] = True
    limits: ClassVar[Limits] = {"trials": (1, 10_000), "seconds": (1e-3, 1e9), "folds": (2, 100)}

    objective: Literal["ranking", "probability"] = "ranking"
    trials: int = 60
    seconds: float | None = None
    folds: int = 5
    random_state: RandomState = 0
    device: str = "cpu"

    def check_parameters(self) -> None:
        """Raise `ParameterError` for a parameter that is not what it must be; `fit` does so first."""
        check_numbers(self)
        one_of("objective", self.objective, OBJECTIVES)

    @takes_engine
    def fit(
        self,
        log: FeedbackLog,
        *,
        noise_rates: KnownNoise | None = None,
        audit: AuditSample | None = None,
        propensities: Any = None,
        survey: SurveySample | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        progress: Callable[[int, int, float], None] = lambda trial, trials, value: None,
        engine: EngineLike = None,
    ) -> Self:
        """Search, and train what was found on all rows.

        Parameters
        ----------
        log, noise_rates, audit, propensities
            As in `Method.fit`. Candidates are judged with the rates and 1/p if probabilities are wanted.
        survey
            True labels of random pairs. A gain that the log is sure of must show there too, or constants are returned;
            one that the log is not sure of may be established there. It decides between candidates that the log
            cannot tell apart, and puts level and slope right (`Recommender.calibrated`).
        checkpoint, resume
            A file that keeps what was tried; with `resume`, that is not tried again.
        progress
            Told (trial, at most so many, best loss so far) after every candidate.
        engine
            Where folds are fitted: as in `verirec.estimate`.
        """
        self.check_parameters()
        seed = same_state(self.random_state)
        folds = folds_of(log, self.folds, seed, noise_rates, audit, propensities, survey)
        base = MF(validation=0, refit=False, epochs=_EPOCHS, random_state=seed, device=self.device)
        search = begun(self, folds, self.objective, Budget(self.trials, self.seconds), checkpoint, resume, progress)
        _explore(search, base, log, corrected=self.objective == "probability", rates=folds.rates)
        # Constants are returned as they come: penalties that held-out rows prefer gave .0008 AUC on average over some
        # thirty worlds, and took .01 in the worst. A gain is held against the best of them.
        constants, gain = search.trials[0], search.nested_gain([trial for trial in search.trials if trial.plain])
        verdict = Verdict(search.best if gain.sure else constants, None)
        if survey is not None:
            verdict = chosen_by_survey(search, survey, log, constants, gain)
        self.recommender_ = finished(self, search, verdict.chosen, constants, gain, verdict.gain)
        if survey is not None:
            self.recommender_ = self.recommender_.calibrated(survey, exclude=log)
        return self


def _explore(search: Search, base: Method, log: FeedbackLog, *, corrected: bool, rates: KnownNoise | None) -> None:
    """Try each family as it comes, then refine the best of them, add to it what it lacks, and try other methods."""
    has_features = log.user_features is not None or log.item_features is not None
    search.attempt(base, [_START | one for one in _families(has_features=has_features)])
    if has_features:
        search.attempt(base, [_with_features(search.best.changed)])
    _add_factors(search, base)
    _climb_factors(search, base)
    _climb_constants(search)
    search.attempt(base, [search.best.changed | {"covariates": one} for one in _COVARIATES])
    if search.best.method.model == "features":
        search.climb("penalty_features", _FEATURES)
    _add_factors(search, base)
    _climb_factors(search, base)
    _climb_constants(search)
    _climb_constants(search, plain=True)
    if corrected:
        # Without factors: with a corrected label these need a penalty of their own to have a minimum.
        flat = min((one for one in search.trials if one.method.dim == 0), key=lambda trial: trial.loss).changed
        others: list[type[Method]] = [SNIPS] if rates is None else [OME, SNIPS]
        for other in others:
            search.attempt(other(**_shared(base)), [flat])


def _families(*, has_features: bool) -> list[dict[str, Any]]:
    """Return what each family changes of constants, so that a short search has met them all."""
    features = [_with_features({})] if has_features else []
    return [{}, *(_with_factors({}, one) for one in _FACTORS), *features, {"covariates": "both"}]


def _with_features(changed: dict[str, Any]) -> dict[str, Any]:
    return {"penalty_features": _FEATURES} | changed | {"model": "features"}


def _with_factors(changed: dict[str, Any], penalty: float) -> dict[str, Any]:
    model = "features" if changed.get("model") == "features" else "mf"
    return changed | {"model": model, "dim": 8, "penalty_factors": penalty}


def _add_factors(search: Search, base: Method) -> None:
    if not search.best.method.dim:
        best = search.best.changed
        search.attempt(base, [_with_factors(best, one) for one in reversed(_FACTORS)])


def _climb_factors(search: Search, base: Method) -> None:
    if search.best.method.dim:
        search.climb("penalty_factors", _FACTORS[-1])
        search.attempt(base, [search.best.changed | {"dim": dim} for dim in (16, 32)])


def _climb_constants(search: Search, *, plain: bool = False) -> None:
    for parameter in ("penalty_users", "penalty_items", "penalty_users"):
        search.climb(parameter, 4.0, plain=plain)


def _shared(base: Method) -> dict[str, Any]:
    return {name: getattr(base, name) for name in ("validation", "refit", "epochs", "random_state", "device")}
