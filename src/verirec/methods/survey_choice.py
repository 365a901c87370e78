"""A survey decides between what the log cannot tell apart."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from verirec.data.cells import cell_keys
from verirec.data.feedback_log import FeedbackLog
from verirec.methods.criteria import Array, RankingLoss
from verirec.methods.search import Search, Trial
from verirec.metrics import auc
from verirec.nuisance.small_logistic import fit_small
from verirec.nuisance.surveys import SurveySample


def chosen_by_survey(search: Search, survey: SurveySample, log: FeedbackLog) -> Trial:
    """Return, of the trials within a standard error of the best, the one that predicts the survey best.

    Pairs of the survey that are in the log are left out. For probabilities each trial's level and slope are first put
    right on the survey, as is done in the end.
    """
    fresh = ~np.isin(cell_keys(survey.users, survey.items, log.n_items), cell_keys(log.users, log.items, log.n_items))
    labels = np.asarray(survey.labels)[fresh].astype(np.float64)
    if len(np.unique(labels)) < 2:
        return search.best
    best, count = search.best, len(search.criterion.rows)
    near = []
    for trial in search.trials:
        lead = search.criterion.gain([trial.logits] * count, [best.logits] * count)
        if lead.value <= lead.standard_error:
            near.append(trial)
    ranking = isinstance(search.criterion, RankingLoss)
    return min(near, key=lambda trial: _loss(trial.on_survey[fresh], labels, ranking=ranking))


def _loss(logits: Array, labels: Array, *, ranking: bool) -> float:
    if ranking:
        return -float(auc(labels, expit(logits)))
    features = np.column_stack([np.ones(len(logits)), logits])
    liked = fit_small(features, labels, np.ones(len(labels)), np.array([0.0, 1.0])).liked
    return float(-(labels * np.log(liked) + (1 - labels) * np.log1p(-liked)).mean())
