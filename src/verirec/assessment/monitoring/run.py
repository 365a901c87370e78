"""An assessment of each period, one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import comb
from typing import TYPE_CHECKING, Any, Final

from verirec.assessment.evidence import Evidence
from verirec.assessment.monitoring.findings import Change, Monitored
from verirec.assessment.monitoring.inputs import check_audit, checked_surveys
from verirec.assessment.monitoring.levels import level_at
from verirec.assessment.monitoring.result import Monitoring
from verirec.assessment.preparation import Labels, Wishes, prepare
from verirec.assessment.recommenders import judge_all
from verirec.assessment.run import main_part, told
from verirec.assessment.settings import checked_settings, listener, named_entries
from verirec.data.periods import Every, periods_of
from verirec.engine.choice import EngineLike, takes_engine
from verirec.estimation import Estimate
from verirec.estimation.gathering import audit_within
from verirec.exceptions import DataError, ParameterError, PredictionError, VerirecError
from verirec.losses import get_loss

if TYPE_CHECKING:
    from verirec.assessment.findings import AssessedRecommender
    from verirec.data.feedback_log import FeedbackLog
    from verirec.data.predictions import PredictionsLike
    from verirec.estimation.selection_range import SelectionRange
    from verirec.losses import GroupedNoiseRates, LossLike, NoiseRates
    from verirec.nuisance.noise_rates import AuditSample
    from verirec.nuisance.surveys import SurveySample
    from verirec.randomness import RandomState

_MISTAKES: Final = (ParameterError, PredictionError)
"""What is wrong in every period, and not a lack of data in one."""


class _Unranked(Evidence):
    """Evidence of a period: rankings, which take long and give no verdict, are left out."""

    def ranking(self, scores: PredictionsLike) -> None:
        """Return nothing."""


@takes_engine
def monitor(
    log: FeedbackLog,
    predictions: Mapping[str, PredictionsLike] | None = None,
    *,
    every: Every = "month",
    surveys: Mapping[str, SurveySample] | None = None,
    audit: AuditSample | None = None,
    noise_rates: NoiseRates | GroupedNoiseRates | None = None,
    propensities: Any = None,
    selection: SelectionRange | None = None,
    exclude: Any = None,
    loss: LossLike = "log",
    confidence: float = 0.95,
    clip: float | None = None,
    sample: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
    random_state: RandomState = 0,
    engine: EngineLike = None,
) -> Monitoring:
    """Assess each week or month of a log: rates, selection and estimates over time, and what of it is established.

    Each period is assessed by its own rows, as `verirec.assess` does, with intervals at the level `confidence`. Its
    verdicts, which recommender is better and whether one has become worse since the first period, rest on wider
    intervals: the chance of any wrong verdict, however many periods come, is at most 1 - confidence
    (`verirec.assessment.monitoring.levels`).

    All periods are about the log's whole grid. Verdicts stay what they were when later months come in if these bring
    neither users nor items that the grid does not have (`all_users`, `all_items`), nor take rows out of earlier periods
    (`duplicates="first"`), nor true labels of their rows; otherwise earlier periods are judged anew.

    Parameters
    ----------
    log
        With timestamps. A pair is in a log once, in the period of the row that `duplicates` kept.
    predictions
        Recommenders by name, the same in all periods; they must not have been trained on these rows.
    every
        "day", "week", from Monday, "month" or "year".
    surveys
        True labels of random pairs by the name of the period in which people were asked ("2024-01"; of weeks the date
        of their Monday). Rows that the log marks as unbiased are their period's survey where none is given.
    audit
        True labels of logged pairs; each counts in the period of its row.
    noise_rates
        Known rates, the same in all periods.
    propensities
        A model, fitted to each period's rows; by default the log's own column, which then says how likely a pair was
        to be logged within its period, or else a logistic model.
    selection, exclude, loss, clip, sample, random_state, engine
        As in `verirec.assess`.
    confidence
        Of each interval shown, and of all verdicts together.
    progress
        Told in words what comes next.

    Examples
    --------
    >>> import numpy as np
    >>> from verirec import FeedbackLog, SurveySample, simulate
    >>> world = simulate.world(n_users=100, n_items=80, observed=0.3, random_state=0)
    >>> log, random = world.log, np.random.default_rng(0)
    >>> days = np.datetime64("2024-01-01") + random.integers(60, size=len(log))
    >>> dated = FeedbackLog.from_arrays(log.users, log.items, log.labels, n_users=100, n_items=80, timestamps=days)
    >>> def ask():
    ...     users, items = random.integers([[100], [80]], size=(2, 300))
    ...     return SurveySample(users, items, world.true_labels[users, items])
    >>> given = {"sharp": 0.1 + 0.8 * world.preferences, "blunt": 0.4 + 0.2 * world.preferences}
    >>> found = monitor(dated, given, surveys={"2024-01": ask(), "2024-02": ask()})
    >>> [(one["period"], one["better"]) for one in found.verdicts if one["kind"] == "comparison"]
    [('2024-01', 'sharp'), ('2024-02', 'sharp')]
    """
    settings = checked_settings(
        selection=selection, loss=loss, confidence=confidence, clip=clip, sample=sample, random_state=random_state, k=1
    )
    named, tell = named_entries("predictions", predictions), listener("progress", progress)
    if propensities is not None and not hasattr(propensities, "fit"):
        raise ParameterError(
            f"propensities must be a model, which is fitted to each period's rows; got {type(propensities).__name__}"
        )
    periods = periods_of(log, every)
    asked = checked_surveys(surveys, periods, log)
    check_audit(audit, log)
    watched = _Watched(named, propensities, exclude, settings, get_loss(loss).name)
    found: list[Monitored] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number, name in enumerate(periods.names):
            tell(f"Assessing {name}")
            rows = log.select(periods.of_rows == number)
            labels = Labels(audit_within(audit, rows) if len(rows) else None, asked.get(name), noise_rates)
            found.append(watched.assessed(name, rows, labels, found))
    if all(one.found is None for one in found):
        raise DataError(f"no period of {len(found):,} can be assessed; {found[0].name}: {found[0].lacking}")
    return Monitoring(every, settings["confidence"], watched.loss, tuple(named), tuple(found), told(caught))


@dataclass(frozen=True, eq=False)
class _Watched:
    """Recommenders, and how each period is assessed."""

    predictions: dict[str, PredictionsLike]
    propensities: Any
    exclude: Any
    settings: dict[str, Any]
    loss: str

    def assessed(self, name: str, log: FeedbackLog, labels: Labels, before: list[Monitored]) -> Monitored:
        """Assess a period; where its rows do not allow it, say why."""
        count, look = len(self.predictions), len(before) + 1
        statements = comb(count, 2) + (count if look > 1 else 0)
        level = level_at(look, statements, self.settings["confidence"])
        if len(log) == 0:
            return Monitored(name, 0, None, level, lacking="it has no rows")
        wishes = Wishes(None, (), self.exclude, None, curve=False)
        try:
            ready = prepare(log, self.predictions, labels, self.propensities, wishes, _silent, **self.settings)
            evidence = _Unranked(**vars(ready.evidence))
            usual = judge_all(ready.predictions, evidence, _silent)
            _refuse_without_losses(usual.recommenders, self.loss)
            main = main_part(ready._replace(evidence=evidence), usual, self.loss, {})
            strict = judge_all(ready.predictions, replace(evidence, confidence=level), _silent)
        except _MISTAKES:
            raise
        except VerirecError as error:
            return Monitored(name, len(log), None, level, lacking=str(error))
        changes = _changes(strict.recommenders, main.basis, before)
        return Monitored(name, len(log), main, level, tuple(strict.comparisons), changes)


def _refuse_without_losses(judged: dict[str, AssessedRecommender], loss: str) -> None:
    """Refuse recommenders of which a period says nothing: rankings are left out."""
    for name, one in judged.items():
        if one.estimates is None:
            raise PredictionError(
                f"{name}: its scores are not probabilities, so there is no {loss} loss to follow over time; make "
                "probabilities of them in Python, with verirec.calibrate"
            )


def _silent(step: str) -> None:
    """Say nothing of steps within a period."""


def _changes(now: dict[str, AssessedRecommender], basis: str, before: list[Monitored]) -> tuple[Change, ...]:
    """Hold each recommender's estimate against that of the first period on the same basis, where both are values."""
    found = []
    earlier = [one for one in before if one.found is not None and one.found.basis == basis]
    for name, one in now.items():
        estimate = _headline(one)
        for period in earlier:
            first = None if period.found is None else _headline(period.found.recommenders[name])
            if estimate is not None and first is not None:
                found.append(Change.of(name, period.name, estimate, first))
                break
    return tuple(found)


def _headline(one: AssessedRecommender) -> Estimate | None:
    """Return the estimate to go by, if it is a value and not a range."""
    found = None if one.estimates is None else one.estimates[one.headline]
    return found if isinstance(found, Estimate) else None
