"""Which of two recommenders is better, and whether that is established."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike
from verirec.estimation.estimate import make_problem
from verirec.estimation.gathering import gather
from verirec.estimation.inference import judge_difference
from verirec.estimation.inputs import Noise
from verirec.estimation.intervals import checked_confidence
from verirec.estimation.results import Estimates
from verirec.losses import LossLike
from verirec.nuisance.noise_rates import AuditSample
from verirec.randomness import RandomState, same_state


def compare(
    first: PredictionsLike,
    second: PredictionsLike,
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: Noise = None,
    audit: AuditSample | None = None,
    estimators: str | Sequence[str] | None = None,
    loss: LossLike = "log",
    imputation: Any = "constant",
    confidence: float = 0.95,
    clip: float | None = None,
    sample: int | None = None,
    random_state: RandomState = 0,
) -> Estimates:
    """Estimate how much larger the first recommender's true inaccuracy is than the second's, pair by pair.

    Both are judged on the same rows, so that much of their errors cancels: the interval of the difference is narrower
    than the two intervals apart suggest. Below 0, the first is better.

    Parameters
    ----------
    first, second
        Predictions.
    log, propensities, noise_rates, audit, estimators, loss, imputation, confidence, clip, sample, random_state
        As in `estimate`; both have the same sample and folds.

    Examples
    --------
    >>> from verirec import NoiseRates, simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> sharp, blunt = 0.2 + 0.6 * world.preferences, 0.4 + 0.2 * world.preferences
    >>> p, rates = world.propensity_values, NoiseRates(0.2, 0.1)
    >>> low, high = compare(sharp, blunt, world.log, propensities=p, noise_rates=rates)["ome-dr"].interval
    >>> high < 0
    True
    """
    level = checked_confidence(confidence)
    pairs, noise, selected = gather(
        log, propensities=propensities, noise_rates=noise_rates, audit=audit, estimators=estimators
    )
    options: dict[str, Any] = {"loss": loss, "imputation": imputation, "clip": clip, "sample": sample}
    # Both draw the same sample and the same folds.
    seed = same_state(random_state)
    one, two = (make_problem(given, pairs, selected, random_state=seed, **options) for given in (first, second))
    return judge_difference(one, two, selected, noise, level)
