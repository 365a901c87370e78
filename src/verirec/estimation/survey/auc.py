r"""AUC by a survey: likes and dislikes of all pairs as the label model expects them, put right by the surveyed ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from verirec.data.parts import totals
from verirec.estimation.intervals import Estimate
from verirec.estimation.survey.draws import Draws
from verirec.estimation.survey.inference import PSEUDO, power_of
from verirec.estimation.survey.tops import Walked
from verirec.exceptions import SurveyError

Array = npt.NDArray[np.float64]

_TINY: Final = 1e-12


class Expansion(NamedTuple):
    """AUC, and what a liked and a disliked pair add to it, at the surveyed pairs and at all levels of scores."""

    value: float
    if_liked: Array
    if_disliked: Array
    level_liked: Array
    level_disliked: Array


def auc_by_survey(
    levels: npt.NDArray[np.int64], expected: Array, walked: Walked, draws: Draws, confidence: float
) -> Estimate:
    r"""Estimate AUC over a target.

    Likes are the signed measure :math:`L = \lambda q` on the target plus :math:`v (y - \lambda q)` on the surveyed
    pairs, dislikes :math:`M = \lambda (1 - q)` plus :math:`v ((1 - y) - \lambda (1 - q))`, v the pairs' shares. AUC is
    the share of :math:`L \times M` in which the like scores higher, a surveyed pair never compared with itself. To
    first order that is the one-step estimate :math:`A_q + \sum v (y - q) \psi`,
    :math:`\psi = (F_0(s) - A)/P - (1 - F_1(s) - A)/(1 - P)`, without its bias where q is far off; right for any
    :math:`\lambda`, of which the one of least variance is taken, and for :math:`\lambda = 0` the AUC of the survey
    alone.

    Parameters
    ----------
    levels
        Of the surveyed pairs' scores, shape (n,).
    expected
        q of these pairs, shape (n,).
    walked
        The spread of scores over the target.
    draws, confidence
        The surveyed pairs; level of the interval.
    """
    labels, shares = draws.labels.values, draws.shares

    def parts(found: Expansion) -> tuple[Array, Array]:
        observed = labels * found.if_liked + (1 - labels) * found.if_disliked
        return observed, expected * found.if_liked + (1 - expected) * found.if_disliked

    first = _expanded(levels, labels, expected, shares, walked.spread, 1.0)
    power = power_of(*parts(first), draws)
    found = _expanded(levels, labels, expected, shares, walked.spread, power)
    observed, predicted = parts(found)
    values = observed - power * predicted
    sums = draws.deviations(values)
    variance = {
        "survey": draws.variance(sums, 1),
        "noise_rates": draws.rates_variance(found.if_liked - found.if_disliked),
        "sample": power**2 * walked.spread_variance(found.level_liked, found.level_disliked),
    }
    return _estimate(found.value, variance, draws, confidence, {"power": power, "freedom": _freedom(sums)})


def _freedom(sums: Array) -> float:
    r"""Return the degrees of freedom of a variance found from these sums: :math:`2 G / (k - 1)`, k their kurtosis.

    It is G for normal ones; where a few likes, or a few large weights, carry the sums, about as many as these are.
    """
    squares = sums**2
    kurtosis = float((squares**2).mean()) / max(float(squares.mean()) ** 2, np.finfo(float).tiny)
    return min(max(2 * len(sums) / max(kurtosis - 1, 1e-9), 2.0), max(len(sums) - 2.0, 2.0))


def _expanded(
    levels: npt.NDArray[np.int64],
    labels: Array,
    expected: Array,
    shares: Array,
    spread: tuple[Array, Array],
    power: float,
) -> Expansion:
    own_liked, own_disliked = shares * (labels - power * expected), shares * (1 - labels - power * (1 - expected))
    liked, disliked = (power * part for part in spread)
    survey_liked, survey_disliked = (totals(levels, own, len(liked)) for own in (own_liked, own_disliked))
    # Two different draws say something of two different pairs; a pair and itself do not.
    apart = 1 / (1 - float(shares @ shares))
    itself = float(own_liked @ own_disliked)
    wins = _wins(liked, disliked + survey_disliked) + _wins(survey_liked, disliked)
    wins += apart * (_wins(survey_liked, survey_disliked) - itself / 2)
    all_liked, all_disliked = float(liked.sum()), float(disliked.sum())
    from_survey = float(own_liked.sum()), float(own_disliked.sum())
    contests = all_liked * (all_disliked + from_survey[1]) + from_survey[0] * all_disliked
    contests += apart * (from_survey[0] * from_survey[1] - itself)
    value = wins / contests
    liked, disliked = liked + survey_liked, disliked + survey_disliked
    if not liked.sum() or not disliked.sum():
        raise SurveyError("noise rates leave no like or no dislike among the surveyed pairs: an AUC compares the two")
    below, above = _below(disliked) / disliked.sum() - value, (liked.sum() - _below(liked)) / liked.sum() - value
    level_liked, level_disliked = below / liked.sum(), above / disliked.sum()
    return Expansion(value, level_liked[levels], level_disliked[levels], level_liked, level_disliked)


def _below(mass: Array) -> Array:
    """Add up what is below each level, and half of what is at it."""
    return np.asarray(np.cumsum(mass) - mass / 2)


def _wins(up: Array, down: Array) -> float:
    return float(up @ _below(down))


def _estimate(
    value: float, variance: dict[str, float], draws: Draws, confidence: float, more: dict[str, Any]
) -> Estimate:
    r"""Put value, standard error and an interval together that holds for few likes too.

    With :math:`m_1` likes and :math:`m_0` dislikes the variance of an AUC of :math:`\theta` is about
    :math:`h(\theta) = [\theta (1 - \theta) + (m_1 - 1)(\theta / (2 - \theta) - \theta^2) + (m_0 - 1)(2 \theta^2 /
    (1 + \theta) - \theta^2)] / (m_1 m_0)` (Hanley and McNeil, 1982). It counts for as much as two pairs of the rarer
    class beside the variance that was found, which a few likes tell badly; and the interval is that of all
    :math:`\theta` that are within t of their own standard errors (Newcombe, 2006), t on the degrees of freedom that the
    variance has (`_freedom`).
    """
    liked, disliked = draws.effective_class(1), draws.effective_class(0)
    rarer = min(liked, disliked)
    edge = 0.5 / (rarer + 1)
    inside = min(max(value, edge), 1 - edge)

    def usual(share: float) -> float:
        return _hanley_mcneil(share, max(liked, 1.0), max(disliked, 1.0))

    found = sum(variance.values())
    blended = (rarer * found + PSEUDO * usual(inside)) / (rarer + PSEUDO)
    expected = usual(inside)
    more_than_usual = float(np.sqrt(blended / expected)) if expected > 0 else np.inf
    reach = float(stdtrit(more["freedom"], (1 + confidence) / 2)) * more_than_usual
    kept = min(max(value, 0.0), 1.0)
    # Of next to no like there is no usual variance: nothing is told.
    ends = (0.0, 1.0)
    if np.isfinite(reach):
        ends = _ends(kept, lambda share: abs(kept - share) - reach * float(np.sqrt(usual(share))))
    outside = {} if kept == value else {"outside": value}
    facts = draws.facts | more | outside | {"source": "survey", "variance": variance}
    return Estimate(kept, float(np.sqrt(blended)), ends, confidence, facts)


def _ends(value: float, excess: Callable[[float], float]) -> tuple[float, float]:
    """Return the smallest and the largest share that is not too far from the value."""
    from scipy.optimize import brentq  # Takes long to import, and only this needs it.

    low = 0.0 if value <= 0 or excess(_TINY) <= 0 else float(brentq(excess, _TINY, value))
    high = 1.0 if value >= 1 or excess(1 - _TINY) <= 0 else float(brentq(excess, value, 1 - _TINY))
    return min(low, value), max(high, value)


def _hanley_mcneil(share: float, liked: float, disliked: float) -> float:
    above, below = share / (2 - share) - share**2, 2 * share**2 / (1 + share) - share**2
    return max((share * (1 - share) + (liked - 1) * above + (disliked - 1) * below) / (liked * disliked), 0.0)
