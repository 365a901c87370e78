r"""Logs of clicks alone: what was clicked is known, and of the rest nothing, neither that it was shown nor disliked.

They have no labels to learn from. What they do tell is how readily each user clicks and each item is clicked, which
goes with what people like as far as it goes: enough for a control variate that a survey puts right.
"""

from __future__ import annotations

import numpy as np

from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import counts
from verirec.nuisance.label_model import LabelProbabilities
from verirec.nuisance.propensities.two_way import fit_two_way


def clicks_only(log: FeedbackLog) -> bool:
    """Tell whether all rows of a binary log are positive, so that nothing in it is known to be disliked.

    Examples
    --------
    >>> clicks_only(FeedbackLog.from_arrays([0, 1], [0, 1], [1, 1], n_users=2, n_items=2))
    True
    """
    return log.levels is None and len(log) > 0 and bool(log.labels.all())


def fit_clicks(log: FeedbackLog) -> LabelProbabilities:
    r"""Model which pairs of the grid were clicked, :math:`P(\text{clicked}) = \sigma(\beta_u + \gamma_i)`.

    By maximum likelihood over all pairs, for which the clicks of each user and of each item are sufficient. Each user
    counts as having clicked one more item at random, and as having passed over one more, so that all constants are
    finite: :math:`n_u' = |I| (n_u + 1) / (|I| + 2)`, and of items, which share these clicks,
    :math:`n_i' = |I| (n_i + |U| / |I|) / (|I| + 2)`.

    Parameters
    ----------
    log
        Whose rows are the clicks.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0, 0, 1], [0, 1, 2, 0], [1, 1, 1, 1], n_users=3, n_items=4)
    >>> fit_clicks(log).block([0, 1, 2], [0, 3]).round(2).tolist()
    [[0.89, 0.36], [0.6, 0.1], [0.35, 0.04]]
    """
    size = log.n_items / (log.n_items + 2)
    of_users = (counts(log.users, log.n_users) + 1.0) * size
    of_items = (counts(log.items, log.n_items) + log.n_users / log.n_items) * size
    fitted = fit_two_way(of_users, of_items)
    users, items = fitted.user_constants[fitted.users.code], fitted.item_constants[fitted.items.code]
    level = float(np.mean(users) + np.mean(items))
    return LabelProbabilities(level, users - np.mean(users), items - np.mean(items))
