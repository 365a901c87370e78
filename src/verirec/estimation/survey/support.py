"""Whether a survey could draw all the pairs that it is to speak for, or only a part of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from verirec.data.parts import totals
from verirec.exceptions import SurveyError
from verirec.nuisance.surveys import BEYOND_CHANCE, SurveySample

Array = npt.NDArray[np.float64]


def drawable_share(
    survey: SurveySample, clusters: npt.NDArray[np.int64], pairs: float, counts: Array | None = None
) -> float | None:
    r"""Return the share of some pairs that a survey could draw, where it cannot be all of them; `None` where it can.

    With :math:`\pi` the probability of a pair to be drawn, :math:`\hat N = \sum 1/\pi` over the draws has the number of
    pairs that could be drawn as its mean (Horvitz and Thompson 1952); of probabilities in a single draw, n times that.
    It is too small where :math:`\hat N / N` is below 1 by more than four of its relative standard errors
    :math:`[\sum_g (\sum_{k \in g} 1/\pi_k)^2]^{1/2} / \hat N`, g being clusters: that of draws which are independent
    of each other, and more than it is if their number is fixed. Of 3,000 simulated surveys of all pairs each, of 20 to
    2,000 draws, none was too small with probabilities within a factor of 50, and at most 2 in 1,000 with log-normal
    ones of scale 2. Nothing can be said where there are no probabilities, where they are in proportion only (above 1,
    or smaller than those of a single draw), and of rows of a log that were shown at random.

    Parameters
    ----------
    survey
        Whose draws are counted.
    clusters
        Which draws were made together, from 0, shape (n,).
    pairs
        How many pairs there are, N.
    counts
        How much of a pair each draw is, shape (n,); 0 for those that are none of these pairs. By default 1.

    Examples
    --------
    >>> survey = SurveySample(np.arange(100), np.zeros(100, int), np.zeros(100), np.full(100, 0.1))
    >>> drawable_share(survey, np.arange(100), 1_000), drawable_share(survey, np.arange(100), 10_000)
    (None, 0.1)
    """
    chances = survey.probabilities
    if chances is None or survey.shown or chances.max() > 1:
        return None
    inverse = 1 / chances if counts is None else counts / chances
    total = float(inverse.sum())
    by_cluster = totals(clusters, inverse, int(clusters.max()) + 1)
    chance = BEYOND_CHANCE * float(np.sqrt(by_cluster @ by_cluster)) / total
    in_all, in_each = total / pairs, total / pairs / len(survey)
    if any(1 - chance <= share <= 1 / max(1 - chance, 1e-12) for share in (in_all, in_each)) or in_each > 1:
        return None
    return in_all if in_all < 1 else in_each


def refuse_part(survey: SurveySample, clusters: npt.NDArray[np.int64], pairs: int) -> None:
    """Raise where only a part of all pairs that an answer is for could be drawn."""
    share = drawable_share(survey, clusters, pairs)
    if share is None:
        return
    raise SurveyError(
        f"this survey could draw only {share:.1%} of the {pairs:,} pairs that the answer is for (one over its "
        "probabilities adds up to no more), and tells nothing of the others: draw from all pairs (plan_labels), keep "
        "the rows that nobody answered, with an empty answer, say which pairs could be drawn (frame=..., exclude=...), "
        "or judge rankings alone by it (best=True)"
    )
