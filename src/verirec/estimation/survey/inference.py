"""From surveyed pairs to a mean over all pairs, its standard error and an interval that holds for rare classes too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, stdtrit

from verirec.data.parts import totals
from verirec.estimation.intervals import Estimate
from verirec.estimation.survey.draws import Draws
from verirec.exceptions import PredictionError

Array = npt.NDArray[np.float64]

PSEUDO: Final = 2.0
"""Likes, and dislikes, that are added to a survey before its interval is taken (Agresti and Coull 1998)."""
_STEPS: Final = 100


@dataclass(frozen=True, eq=False)
class Mean:
    r"""A mean over the target, by survey: :math:`b + \sum_k v_k (x_k + y_k d_k)`.

    Parameters
    ----------
    base, base_variance
        What is known of it without the survey, and its variance (where a sample stood for the target).
    constants, slopes
        x and d of each draw, shape (n,).
    typical
        x and d of a typical draw, for the interval.
    facts
        What to report of it.
    """

    base: float
    constants: Array
    slopes: Array
    typical: tuple[float, float]
    base_variance: float = 0.0
    facts: dict[str, float] = field(default_factory=dict)


def inferred(mean: Mean, draws: Draws, confidence: float, more: dict[str, Any] | None = None) -> Estimate:
    r"""Estimate a mean from its draws.

    With v the draws' shares, :math:`\hat\mu = b + \sum v (x + y d)`. Its variance is that of the sums over clusters,
    :math:`G/(G-1) \sum_g [\sum_{k \in g} v_k (x_k + y_k d_k - \bar e)]^2`, and what the noise rates of noisy answers
    add. The interval is that of the survey with two likes and two dislikes of a typical pair added, by Student's t on
    G - 2: at 5% of positives the plain normal one covers too little.

    Parameters
    ----------
    mean, draws
        Of the same n pairs.
    confidence
        Of the interval.
    more
        Diagnostics to add.
    """
    values = mean.constants + draws.labels.values * mean.slopes
    value = mean.base + float(draws.shares @ values)
    weight = draws.effective / (draws.effective + 2 * PSEUDO)
    constant, slope = mean.typical
    pseudo = np.array([constant, constant + slope])
    centre = weight * float(draws.shares @ values) + (1 - weight) * float(pseudo.mean())
    sums = totals(draws.clusters, weight * draws.shares * (values - centre), draws.groups)
    spread = (
        float(sums @ sums) + 2 * PSEUDO * float(((pseudo - centre) ** 2).mean()) * ((1 - weight) / (2 * PSEUDO)) ** 2
    )
    parts = {
        "survey": spread * draws.groups / (draws.groups - 1 - len(mean.facts)),
        "noise_rates": draws.rates_variance(mean.slopes),
        "sample": mean.base_variance,
    }
    error = float(np.sqrt(sum(parts.values())))
    if not np.isfinite(error):
        raise PredictionError("the losses of these predictions are too large to add up their squares")
    reach = float(stdtrit(max(draws.groups - 2, 1), (1 + confidence) / 2)) * error
    middle = mean.base + centre
    bounds = min(middle - reach, value), max(middle + reach, value)
    facts = draws.facts | (more or {}) | mean.facts | {"variance": parts}
    return Estimate(value, error, bounds, confidence, facts)


def power_of(observed: Array, predicted: Array, shares: Array) -> float:
    """Return the slope of what was observed on what was predicted, between 0 and 1."""
    centred = predicted - float(shares @ predicted)
    # Weights enter squared, as they do in the variance.
    weighted = shares**2 * centred
    spread = float(weighted @ centred)
    return min(max(float(weighted @ (observed - float(shares @ observed))) / spread, 0.0), 1.0) if spread > 0 else 1.0


def intercept(logits: Array, draws: Draws) -> float:
    r"""Return the shift c at which :math:`\sigma(z + c)` has the mean of the survey's labels: a weighted logistic fit.

    Two likes and two dislikes at the mean logit are added, so that a survey of one class has a finite one. The mean
    rises with c, so halving finds it.

    Parameters
    ----------
    logits
        z of each draw, shape (n,).
    """
    weight = draws.effective / (draws.effective + 2 * PSEUDO)
    typical = float(draws.shares @ logits)
    wanted = weight * float(draws.shares @ draws.labels.values) + (1 - weight) / 2
    low, high = -50.0 - float(logits.max()), 50.0 - float(logits.min())
    for _ in range(_STEPS):
        middle = (low + high) / 2
        reached = weight * float(draws.shares @ expit(logits + middle)) + (1 - weight) * float(expit(typical + middle))
        low, high = (middle, high) if reached < wanted else (low, middle)
    return (low + high) / 2
