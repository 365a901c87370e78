"""With a survey, the survey decides: it has a veto, a casting vote, and the last word between near equals."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from verirec.data.cells import cell_keys
from verirec.data.feedback_log import FeedbackLog
from verirec.data.pair_keys import places_in
from verirec.exceptions import SurveyWarning, warn_caller
from verirec.methods.criteria import Array, Criterion, Gain, RankingLoss
from verirec.methods.search import Search, Trial
from verirec.nuisance.small_logistic import fit_small
from verirec.nuisance.surveys import SurveySample

FEWEST_TO_JUDGE: Final = 20
"""Pairs of a class below which a standard error means little, and two of them are no evidence."""


class Verdict(NamedTuple):
    """What is chosen, and by how much the log's best is better than constants on the survey, if it can tell."""

    chosen: Trial
    gain: Gain | None


class LevelledLoss(Criterion):
    """Log loss of logits whose level and slope are first put right on the same labels, as is done in the end."""

    name = "log loss of surveyed pairs"

    def parts(self, logits: Array, fold: int) -> Array:
        """Return each pair's share of the mean."""
        labels = self.labels[self.rows[fold]].astype(np.float64)
        features = np.column_stack([np.ones(len(labels)), logits[self.rows[fold]]])
        liked = fit_small(features, labels, np.ones(len(labels)), np.array([0.0, 1.0])).liked
        return -(labels * np.log(liked) + (1 - labels) * np.log1p(-liked)) / len(labels)

    def variance(self, parts: Array, fold: int) -> float:
        """Return that of a sum of independent pairs."""
        return float(len(parts) * parts.var(ddof=1))


def chosen_by_survey(search: Search, survey: SurveySample, log: FeedbackLog, constants: Trial, by_log: Gain) -> Verdict:
    """Return constants, or the best of what the log cannot tell apart.

    The log's best must be better than constants on the survey too where the log is sure of it, and surely better there
    (by two standard errors) where the log is not: held-out rows are what people chose to rate, and a gain on these may
    be none on random pairs. Then, of the trials within a standard error of the log's best, the one that predicts the
    survey best. Pairs of the survey that are in the log are left out, and of a pair that was asked about several times
    the first answer counts; where fewer than 20 of a class are left, the log decides.
    """
    fresh = _fresh(survey, log)
    labels, best = np.asarray(survey.labels)[fresh], search.best
    if not _can_judge(labels):
        return Verdict(best if by_log.sure else constants, None)
    kind = RankingLoss if isinstance(search.criterion, RankingLoss) else LevelledLoss
    judge = kind(labels, np.zeros(len(labels), np.int64))
    by_survey = judge.gain([constants.on_survey[fresh]], [best.on_survey[fresh]])
    if not (by_survey.sure or (by_log.sure and by_survey.value > 0)):
        return Verdict(constants, by_survey)
    near = [trial for trial in search.trials if _near(search, trial, best)]
    return Verdict(min(near, key=lambda trial: float(judge.losses(trial.on_survey[fresh])[0])), by_survey)


def _fresh(survey: SurveySample, log: FeedbackLog) -> Array:
    """Return the first draw of each surveyed pair that is not in the log, as row numbers."""
    _, first = np.unique(cell_keys(survey.users, survey.items, log.n_items), return_index=True)
    _, logged = places_in(survey.users[first], survey.items[first], log.users, log.items)
    return np.sort(first[~logged])


def _can_judge(labels: Array) -> bool:
    """Tell whether there are enough of both classes, and say so where there are some and too few."""
    liked = int(labels.sum())
    rarer, kind = min((liked, "liked"), (len(labels) - liked, "disliked"))
    # Of one class alone the calibration that follows warns.
    if 0 < rarer < FEWEST_TO_JUDGE:
        warn_caller(
            f"only {rarer} of {len(labels):,} surveyed pairs outside of the log are {kind}: with fewer than "
            f"{FEWEST_TO_JUDGE} of a class the log alone decides between candidates",
            SurveyWarning,
        )
    return rarer >= FEWEST_TO_JUDGE


def _near(search: Search, trial: Trial, best: Trial) -> bool:
    count = len(search.criterion.rows)
    lead = search.criterion.gain([trial.logits] * count, [best.logits] * count)
    return lead.value <= lead.standard_error
