"""A log in parts that are held out in turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.inputs import Rates, checked_rates, judgeable
from verirec.exceptions import ParameterError
from verirec.methods.base import Method
from verirec.nuisance.noise_rates import AuditSample, rates_from_audit
from verirec.nuisance.propensities import LogisticPropensity, Propensities, as_propensities
from verirec.nuisance.surveys import SurveySample
from verirec.training.levels import check_survey
from verirec.training.model_cells import ModelCells
from verirec.training.side_information import Learnt
from verirec.training.trainer import Plan

Array = npt.NDArray[Any]


@dataclass(eq=False)
class Folds:
    """A log in parts, each held out in turn.

    Parameters
    ----------
    log
        All rows.
    number
        Of the fold of each row, shape (n,).
    rates, propensities
        Of the whole log.
    survey
        Pairs whose logits are wanted too.
    """

    log: FeedbackLog
    number: npt.NDArray[np.int64]
    rates: Rates | None
    propensities: Propensities
    survey: SurveySample | None = None
    learnt: Learnt = field(default_factory=dict)

    def logits(self, method: Method) -> tuple[Array, Array]:
        """Fit a method on all folds but one at a time; returns logits of all rows, and mean ones of the survey."""
        found = np.empty(len(self.log), np.float32)
        asked = (self.survey.users, self.survey.items) if self.survey is not None else (np.empty(0, np.int32),) * 2
        on_survey = np.zeros(len(asked[0]))
        count = int(self.number.max()) + 1
        for fold in range(count):
            held = self.number == fold
            part = self.log.select(~held)
            prepared = method.prepare(
                part,
                noise_rates=self.rates,
                audit=None,
                propensities=self.propensities.thinned(len(part) / len(self.log)),
                learnt=self.learnt,
            )
            fitted = type(method)(**method.get_params()).fit_prepared(prepared, Plan(method.epochs))
            cells = ModelCells(fitted.recommender_.model, self.log.shape)
            found[held] = cells.cell_logits(self.log.users[held], self.log.items[held])
            on_survey += cells.cell_logits(*asked) / count
        return found, on_survey


def folds_of(
    log: FeedbackLog,
    count: int,
    seed: int,
    noise_rates: Rates | None,
    audit: AuditSample | None,
    propensities: Any,
    survey: SurveySample | None,
) -> Folds:
    """Check what a search is given, and part the log in folds of about as many likes each."""
    if noise_rates is not None and audit is not None:
        raise ParameterError("give noise_rates or an audit: one of the two")
    rates = checked_rates(noise_rates, judgeable(log))
    classes = [np.flatnonzero(log.labels == label) for label in (0, 1)]
    least = min(len(rows) for rows in classes)
    if least < 2 * count:
        raise ParameterError(
            f"a search in {count} folds needs at least {2 * count} rows of each class; this log has {least} of one"
        )
    fitted = _propensities(propensities, log)
    if audit is not None:
        rates = rates_from_audit(log, audit, fitted)
    if survey is not None:
        check_survey(survey, log, has_rates=rates is not None)
    random, number = np.random.default_rng([seed, 20]), np.empty(len(log), np.int64)
    for rows in classes:
        number[random.permutation(rows)] = np.arange(len(rows)) % count
    return Folds(log, number, rates, fitted, survey)


def _propensities(given: Any, log: FeedbackLog) -> Propensities:
    """Take those that are given, or the log's; by default logistic ones without features, whose weights vary less."""
    if given is None and log.propensities is None:
        return LogisticPropensity(features=False).fit(log)
    return as_propensities(given, log)
