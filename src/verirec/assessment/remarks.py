"""Remarks that stand beside the tables of an assessment's page."""

from __future__ import annotations

from verirec.assessment.findings import AssessedRecommender, Findings
from verirec.assessment.range_sentences import times
from verirec.losses import NoiseRegion


def about_taste(found: Findings) -> str:
    """Say how much more readily people log what they like, where a survey tells; nothing where none does.

    Examples
    --------
    >>> import numpy as np
    >>> from verirec import SurveySample, simulate
    >>> from verirec.assessment import assess
    >>> world = simulate.world(n_users=200, n_items=300, selectivity=3, random_state=0)
    >>> users, items = np.random.default_rng(0).integers([[200], [300]], size=(2, 800))
    >>> survey = SurveySample(users, items, world.true_labels[users, items])
    >>> about_taste(assess(world.log, survey=survey, noise_rates=world.noise_rates))[:40]
    'By the survey, people log what they like'
    """
    if found.strength is None:
        return ""
    value, low, high = found.strength.odds_ratio
    told = f"{times(value)} times as readily as what they do not like ({times(low)} to {times(high)} times, in odds)"
    if low <= 1 <= high:
        told += ": it cannot be told from selection by user and item alone"
    if not isinstance(found.noise, NoiseRegion):
        return f"By the survey, people log what they like {told}."
    return (
        f"By the survey, and if the logged labels are true, people log what they like {told}. How noisy these "
        "labels are is not known: it is more than that where likes are logged as dislikes, and less where dislikes are "
        "logged as likes."
    )


def coverage(found: Findings, recommender: AssessedRecommender) -> str:
    """Say which part of the pairs a recommender's predictions cover; nothing where they cover all."""
    rows = len(found.log)
    if recommender.covered is None:
        return ""
    if recommender.covered == rows:
        return (
            "all logged pairs but not all others: judged by the self-normalised estimators, which need no more, and "
            "whose figures differ from the doubly robust ones"
        )
    return (
        f"some of the logged pairs, {recommender.covered:,} of {rows:,}: judged on these, as if they were a fair part "
        "of the log, and by the self-normalised estimators; not to be compared with figures of other pairs"
    )
