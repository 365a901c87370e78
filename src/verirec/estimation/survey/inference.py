"""From surveyed pairs to a mean over all pairs, its standard error and an interval that holds for rare classes too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, stdtrit

from verirec.estimation.intervals import Estimate
from verirec.estimation.survey.draws import Draws
from verirec.exceptions import PredictionError
from verirec.losses import errors_of

Array = npt.NDArray[np.float64]

PSEUDO: Final = 2.0
"""Likes, and dislikes, that are added to a survey before its interval is taken (Agresti and Coull 1998)."""
_STEPS: Final = 100
_RARE: Final = 1e-9


@dataclass(frozen=True, eq=False)
class Mean:
    r"""A mean over the target, by survey: :math:`b + \sum_k v_k (x_k + y_k d_k)`.

    Parameters
    ----------
    base
        What is known of it without the survey.
    constants, slopes
        x and d of each draw, shape (n,); of levels slopes have a column for each but the lowest, (K - 1, n).
    liked
        P(y = 1) of each draw, by which likes and dislikes are added to the interval; `None` where nothing is known.
        Of levels, the chance of each but the lowest to be reached, (K - 1, n).
    base_variance
        Of the base, where a sample stood for the target.
    fitted
        How many numbers were fitted so that its variance is least; others, as the label model's shift, which is
        fitted to another end, leave it as it is.
    facts
        What to report of it.
    """

    base: float
    constants: Array
    slopes: Array
    liked: Array | None = None
    base_variance: float = 0.0
    fitted: int = 0
    facts: dict[str, float] = field(default_factory=dict)

    def added(self) -> list[tuple[Array, Array]]:
        """Return what each draw would be at each level, the lowest first, with its chance to be added as one."""
        slopes = np.atleast_2d(self.slopes)
        values = self.constants + np.concatenate([np.zeros((1, slopes.shape[1])), np.cumsum(slopes, axis=0)])
        if self.liked is None:
            chances = np.ones_like(values)
        else:
            reached = np.clip(np.atleast_2d(self.liked), _RARE, 1 - _RARE)
            chances = np.maximum(-np.diff(reached, axis=0, prepend=1.0, append=0.0), _RARE)
        return [(value, part / part.sum()) for value, part in zip(values, chances, strict=True)]


@np.errstate(over="ignore", invalid="ignore")
def inferred(mean: Mean, draws: Draws, confidence: float, more: dict[str, Any] | None = None) -> Estimate:
    r"""Estimate a mean from its draws.

    With v the draws' shares, :math:`\hat\mu = b + \sum v (x + y d)`. Standard error and interval are the survey's
    with two likes and two dislikes added, the interval by Student's t on G - 2: at 5% of positives the plain normal one
    covers too little. With :math:`w = n/(n + 4)`, :math:`\bar e` the mean with these four and m numbers fitted, the
    survey's part of the variance is that of the sums over clusters and of the four,
    :math:`w^2 G/(G-1-m) \{\sum_g [\sum_{k \in g} v_k (e_k - \bar e)]^2 +
    2 \sum_{y=0,1} \sum_k c_{ky} [v_k (x_k + y d_k - \bar e)]^2\}`, :math:`e = x + y d`;
    the noise rates of noisy answers add theirs. The four are added where they are likely: each is one of the draws, a
    like with a chance c that rises with what is known of its P(y = 1). Of K levels each has 4/K of the four.

    Parameters
    ----------
    mean, draws
        Of the same n pairs.
    confidence
        Of the interval.
    more
        Diagnostics to add.
    """
    values = errors_of(mean.constants, mean.slopes, draws.labels.values)
    value = mean.base + float(draws.shares @ values)
    weight = weight_of(draws)
    four = mean.added()
    middles = [float((draws.shares * part) @ one) / float(draws.shares @ part) for one, part in four]
    centre = weight * float(draws.shares @ values) + (1 - weight) * sum(middles) / len(four)
    sums = draws.deviations(values, centre)
    pseudo = sum(float(part @ (draws.shares * (one - centre)) ** 2) for one, part in four)
    added = 2 * PSEUDO / len(four) * pseudo * draws.factor(mean.fitted)
    parts = {
        "survey": weight**2 * (draws.variance(sums, mean.fitted) + added),
        "noise_rates": draws.rates_variance(mean.slopes),
        "sample": mean.base_variance,
    }
    error = float(np.sqrt(sum(parts.values())))
    if not np.isfinite(error):
        raise PredictionError("the losses of these predictions are too large to add up their squares")
    reach = float(stdtrit(draws.freedom, (1 + confidence) / 2)) * error
    middle = mean.base + centre
    bounds = min(middle - reach, value), max(middle + reach, value)
    facts = draws.facts | (more or {}) | mean.facts | {"variance": parts}
    return Estimate(value, error, bounds, confidence, facts)


@np.errstate(over="ignore", invalid="ignore")
def power_of(observed: Array, predicted: Array, draws: Draws) -> float:
    """Return the slope of what was observed on what was predicted, between 0 and 1, by the sums over clusters."""
    wanted, by_group = draws.deviations(observed), draws.deviations(predicted)
    spread = float(by_group @ by_group)
    return min(max(float(by_group @ wanted) / spread, 0.0), 1.0) if spread > 0 else 1.0


def weight_of(draws: Draws) -> float:
    """Return n/(n + 4), what the draws weigh beside two likes and two dislikes that are added to them.

    n is how many there are, not what they are worth (Kish): what is added is one of the draws, with its share.
    """
    return len(draws) / (len(draws) + 2 * PSEUDO)


def intercepts(logits: Array, draws: Draws) -> float | Array:
    """Return the shift of each level but the lowest, whose logits (K - 1, n) are; of binary labels, (n,), the one.

    As the logits of a pair differ between levels by the same for all pairs, levels stay in order.
    """
    if logits.ndim == 1:
        return intercept(logits, draws)
    size = len(logits) + 1
    return np.array(
        [
            _shift(own, reached, 1 - level / size, draws)
            for level, own, reached in zip(range(1, size), logits, draws.labels.values, strict=True)
        ]
    )


def intercept(logits: Array, draws: Draws) -> float:
    r"""Return the shift c at which :math:`\sigma(z + c)` has the mean of the survey's labels: a weighted logistic fit.

    Two likes and two dislikes at the mean logit are added, so that a survey of one class has a finite one. The mean
    rises with c, so halving finds it.

    Parameters
    ----------
    logits
        z of each draw, shape (n,).
    """
    return _shift(logits, draws.labels.values, 0.5, draws)


def _shift(logits: Array, labels: Array, added: float, draws: Draws) -> float:
    """Return that shift for labels of the draws, with a share of likes among the four that are added."""
    weight = weight_of(draws)
    typical = float(draws.shares @ logits)
    wanted = weight * float(draws.shares @ labels) + (1 - weight) * added
    low, high = -50.0 - float(logits.max()), 50.0 - float(logits.min())
    for _ in range(_STEPS):
        middle = (low + high) / 2
        reached = weight * float(draws.shares @ expit(logits + middle)) + (1 - weight) * float(expit(typical + middle))
        low, high = (middle, high) if reached < wanted else (low, middle)
    return (low + high) / 2
