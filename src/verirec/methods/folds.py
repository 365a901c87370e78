"""A log in parts that are held out in turn."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.data.threads import one_product_thread
from verirec.engine import current_engine, in_worker
from verirec.estimation.inputs import KnownNoise, judgeable
from verirec.exceptions import ParameterError
from verirec.latest import Latest
from verirec.methods.base import Method
from verirec.nuisance.noise_rates import AuditSample
from verirec.nuisance.propensities import LogisticPropensity, Propensities, as_propensities
from verirec.nuisance.surveys import SurveySample
from verirec.training.admission import checked_known, known_noise
from verirec.training.model_cells import ModelCells
from verirec.training.side_information import Learnt
from verirec.training.survey_calibration import check_survey
from verirec.training.trainer import Plan

Array = npt.NDArray[Any]
_LEARNT: Final[Latest[tuple[Any, ...], Learnt]] = Latest(2)
"""Covariates that this process, if it is a worker, has learnt, by folds: candidate after candidate has the same."""
FEWEST_ALIKE: Final = 3
"""Rows that copies have at least: smaller sets are the same by chance."""


@dataclass(eq=False)
class Folds:
    """A log in parts, each held out in turn.

    Parameters
    ----------
    log
        Its rows, without those of copied users.
    number
        Of the fold of each row, shape (n,).
    rates, propensities
        Of the whole log; rates of levels are a matrix.
    survey
        Pairs whose logits are wanted too.
    whole
        The log with all its rows, which what is chosen is trained on.
    """

    log: FeedbackLog
    number: npt.NDArray[np.int64]
    rates: KnownNoise | None
    propensities: Propensities
    survey: SurveySample | None
    whole: FeedbackLog
    learnt: Learnt = field(default_factory=dict)

    def logits(self, method: Method) -> tuple[Array, Array]:
        """Fit a method on all folds but one at a time; returns logits of all rows, and mean ones of the survey.

        Of levels, predicted stars are in their place.
        """
        found = np.empty(len(self.log), np.float32)
        on_survey = np.zeros(0 if self.survey is None else len(self.survey.users))
        count = int(self.number.max()) + 1
        # Workers learn covariates themselves, and keep them.
        sent = replace(self, learnt={}) if current_engine().elsewhere else self
        for fold, (held_out, asked) in enumerate(current_engine().map(partial(sent.fold_logits, method), range(count))):
            found[self.number == fold] = held_out
            on_survey += asked / count
        return found, on_survey

    def fold_logits(self, method: Method, fold: int) -> tuple[Array, Array]:
        """Fit a method on all folds but one; returns logits of that one's rows, and of the survey."""
        held = self.number == fold
        asked = (self.survey.users, self.survey.items) if self.survey is not None else (np.empty(0, np.int32),) * 2
        part = self.log.select(~held)
        with one_product_thread():
            prepared = method.prepare(
                part,
                noise_rates=self.rates,
                audit=None,
                propensities=self.propensities.thinned(len(part) / len(self.log)),
                learnt=self._learnt_here(),
            )
            fitted = type(method)(**method.get_params()).fit_prepared(prepared, Plan(method.epochs))
            found = fitted.recommender_
            cells = ModelCells(found.model, self.log.shape)
            scores = cells.cell_logits(self.log.users[held], self.log.items[held]), cells.cell_logits(*asked)
            return scores if found.head.levels is None else (found.head.values(scores[0]), found.head.values(scores[1]))

    def _learnt_here(self) -> Learnt:
        """Return where covariates are kept: here, or by a worker for the folds that it was last sent."""
        if not in_worker():
            return self.learnt
        return _LEARNT.get((self.log.fingerprint, self.log.shape, zlib.crc32(self.number.tobytes())), dict)


def folds_of(
    log: FeedbackLog,
    count: int,
    seed: int,
    noise_rates: KnownNoise | None,
    audit: AuditSample | None,
    propensities: Any,
    survey: SurveySample | None,
) -> Folds:
    """Check what a search is given, and part the log in folds of about as many likes, or rows of each level, each.

    Copied users (see `originals`) count once: a fit would have seen a held-out answer under another name. Their rows
    are left out rather than held out together, since answers that count twice made factors win that lost elsewhere.
    """
    if noise_rates is not None and audit is not None:
        raise ParameterError("give noise_rates or an audit: one of the two")
    rates = checked_known(noise_rates, judgeable(log, levels=True))
    own = originals(log)[log.users] == log.users
    judged = log if own.all() else log.select(own)
    # Of levels some may be rare: there must be others.
    rows = np.bincount(judged.labels, minlength=2)
    least = int(rows.min() if log.levels is None else rows.sum() - rows.max())
    if least < 2 * count:
        class_of = "class" if log.levels is None else "level, or more in all,"
        raise ParameterError(
            f"a search in {count} folds needs at least {2 * count} rows of each {class_of}; this log has {least} of one"
            f"{'' if own.all() else ', copied users counted once'}"
        )
    fitted = _propensities(propensities, log)
    rates = known_noise(rates, audit, log, fitted)
    if survey is not None:
        check_survey(survey, log, has_rates=rates is not None)
    return Folds(judged, _dealt(judged.labels, count, seed), rates, fitted, survey, log)


def originals(log: FeedbackLog) -> npt.NDArray[np.int64]:
    """Return for each user the first one who rated exactly the same items: the user itself, but for copies.

    Merged and automatic accounts are such. Labels may differ. Sets of fewer than 3 items do not count, nor those whose
    raters give half or more of all ratings of their items: then everybody was asked about the same items. Users who
    rated nearly the same are not found.

    Examples
    --------
    >>> items = np.array([[0, 1, 2], [0, 1, 2], [0, 1, 3], [0, 1, 4], [0, 2, 4], [1, 2, 3]])
    >>> users, labels = np.repeat(np.arange(6), 3), np.arange(18) % 2
    >>> originals(FeedbackLog.from_arrays(users, items.ravel(), labels, n_users=6, n_items=5)).tolist()
    [0, 0, 2, 3, 4, 5]
    """
    counts = np.bincount(log.users, minlength=log.n_users)
    # A set's key is the sum of its items' random numbers, modulo 2^64: no two sets of a log share one.
    marks = np.random.default_rng(0).integers(0, 2**64, log.n_items, dtype=np.uint64)
    keys = np.zeros(log.n_users, np.uint64)
    np.add.at(keys, log.users, marks[log.items])
    _, first, same, members = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    of_items = np.bincount(log.items, minlength=log.n_items)
    # All ratings of a set's items, by the rows of its first user.
    around = np.bincount(log.users, of_items[log.items], log.n_users)[first]
    copied = (counts[first] >= FEWEST_ALIKE) & (2 * members * counts[first] < around)
    return np.where(copied[same], first[same], np.arange(log.n_users))


def _dealt(labels: Array, count: int, seed: int) -> npt.NDArray[np.int64]:
    """Deal rows to folds, likes and dislikes apart, or each level."""
    random, number = np.random.default_rng([seed, 20]), np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        number[random.permutation(rows)] = np.arange(len(rows)) % count
    return number


def _propensities(given: Any, log: FeedbackLog) -> Propensities:
    """Take those that are given, or the log's; by default logistic ones without features, whose weights vary less."""
    if given is None and log.propensities is None:
        return LogisticPropensity(features=False).fit(log)
    return as_propensities(given, log)
