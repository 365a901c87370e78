r"""What the log's most extreme rows say: upper bounds of the noise rates, whatever is true.

Among rows of any kind the share of positive labels is :math:`\rho_{10} + \kappa\,P(r^* = 1) \ge \rho_{10}`, and the
share of negative ones at least :math:`\rho_{01}`. Rows whose score is lowest and highest give the sharpest bounds; if
they are truly all negative and all positive, these are the rates themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr

from verirec.checks import real_number
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.exceptions import EmptyLogError, ParameterError
from verirec.losses import NoiseRates, NoiseRegion
from verirec.losses.noise_rates import MOST_RATE
from verirec.nuisance.label_model import LabelModel, parts_by_score
from verirec.nuisance.noise_rates.strata import table_of
from verirec.randomness import RandomState

Array = npt.NDArray[np.float64]

_FEWEST: Final = 20
"""Rows that a tail has at least: the mean of fewer labels says little."""
REGION_QUANTILE: Final = 0.02
"""Share of the rows in each tail."""


class Tails(NamedTuple):
    """What the most extreme rows say.

    Parameters
    ----------
    negative_on_top, positive_at_bottom
        Share of negative labels among the highest scores, and of positive ones among the lowest.
    rows
        In each tail.
    """

    negative_on_top: float
    positive_at_bottom: float
    rows: int

    @property
    def shares(self) -> Array:
        """Both shares: upper bounds of rho01 and rho10."""
        return np.array([self.negative_on_top, self.positive_at_bottom])

    @property
    def variances(self) -> Array:
        """Of the shares, never 0."""
        return np.asarray((self.shares * (1 - self.shares) + 0.5 / self.rows) / self.rows)


def _rows_in_a_tail(rows: int, quantile: float) -> int:
    return max(int(np.ceil(quantile * rows)), _FEWEST)


def look_at_tails(labels: npt.NDArray[Any], scores: Array, quantile: float) -> Tails:
    """Count labels among the lowest and the highest scores.

    Examples
    --------
    >>> labels = np.array([0] * 45 + [1] * 5 + [0] * 10 + [1] * 40)
    >>> tails = look_at_tails(labels, np.arange(100) / 100, 0.5 - 1e-9)
    >>> tails.shares.round(2).tolist()
    [0.2, 0.1]
    """
    count = _rows_in_a_tail(len(labels), quantile)
    if 2 * count > len(labels):
        raise EmptyLogError(f"two tails of {count} rows need a log of at least {2 * count}; it has {len(labels):,}")
    parts = parts_by_score(scores, (count, len(labels) - count), np.random.default_rng(0))
    table = table_of(parts, labels, 2)
    low, high = (float(table[end, 1] / table[end].sum()) for end in (0, 2))
    return Tails(1 - high, low, count)


def tail_rates(labels: npt.NDArray[Any], scores: Array, quantile: float) -> NoiseRates:
    """Take the shares of the tails for the rates, with binomial variances: right if the tails are pure."""
    tails = look_at_tails(labels, scores, quantile)
    first, second = tails.variances.tolist()
    facts = {"method": "anchor, tails", "rows_in_a_tail": tails.rows}
    rho01, rho10 = tails.shares.tolist()
    return NoiseRates(rho01, rho10, ((first, 0.0), (0.0, second)), diagnostics=facts)


def _cross_fitted_tails(
    log: FeedbackLog, scores: PredictionsLike | None, quantile: float, random_state: RandomState
) -> Tails:
    share = real_number("quantile", quantile, above=0, below=0.5)
    checked_log(log)
    if scores is None:
        values = LabelModel().cross_fit(log, np.broadcast_to(1.0, len(log)), 5, random_state)
    else:
        values = as_predictions(scores, log.n_users, log.n_items).at(log.users, log.items)
    return look_at_tails(log.labels, values, share)


def identified_region(
    log: FeedbackLog,
    *,
    scores: PredictionsLike | None = None,
    quantile: float = REGION_QUANTILE,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> NoiseRegion:
    r"""Return all noise rates that a log allows without an audit and without weak separability.

    :math:`\rho_{01}` can be anything from 0 to the share of negatives among the rows with the highest scores, and
    :math:`\rho_{10}` anything from 0 to the share of positives among the lowest. The upper ends of these
    shares' one-sided intervals bound the region.

    Parameters
    ----------
    log
        With labels of both classes.
    scores
        What sorts the rows, in any form of predictions, by a model that was not fitted to these labels; by default
        user and item constants, cross-fitted.
    quantile
        Share of the rows in each tail.
    confidence
        Of the two bounds together.
    random_state
        Of the cross-fitting.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=200, n_items=300, observed=0.2, random_state=0)
    >>> region = identified_region(world.log)
    >>> region.rho01_most > 0.2 and region.rho10_most > 0.1
    True
    """
    real_number("confidence", confidence, above=0, below=1)
    refuse_too_few(log, quantile)
    return region_of(_cross_fitted_tails(log, scores, quantile, random_state), confidence)


def refuse_too_few(log: FeedbackLog, quantile: float = REGION_QUANTILE) -> None:
    """Raise `EmptyLogError` if a log has fewer rows than two tails."""
    needed = 2 * _rows_in_a_tail(len(checked_log(log)), real_number("quantile", quantile, above=0, below=0.5))
    if needed > len(log):
        raise EmptyLogError(
            f"a log of {len(log):,} rows cannot tell how noisy its labels may be, which takes at least {needed:,}; "
            "give the noise rates: rho01=... and rho10=..."
        )


def region_of(tails: Tails, confidence: float) -> NoiseRegion:
    """Bound both rates by the upper ends of the shares' intervals."""
    # Clopper and Pearson's bound of a share; each at half the error, so that both hold together.
    wrong = np.round(tails.shares * tails.rows)
    most = betaincinv(wrong + 1, np.maximum(tails.rows - wrong, 1e-9), 1 - (1 - confidence) / 2)
    return NoiseRegion(*np.minimum(most, MOST_RATE).tolist())


@dataclass(frozen=True)
class SeparabilityTest:
    """Whether the log's most extreme rows can be all liked and all disliked.

    Parameters
    ----------
    statistic, p_value
        Of the hypothesis that they are: the larger of the two excesses in standard errors, and twice its one-sided
        probability (Bonferroni).
    liked_in_lowest, disliked_in_highest
        Estimated share of truly liked pairs among the rows with the lowest scores, and of disliked ones among the
        highest: 0 under weak separability.
    """

    statistic: float
    p_value: float
    liked_in_lowest: float
    disliked_in_highest: float


def weak_separability_test(
    log: FeedbackLog,
    rates: NoiseRates,
    *,
    scores: PredictionsLike | None = None,
    quantile: float = 0.02,
    random_state: RandomState = 0,
) -> SeparabilityTest:
    """Test the assumption behind the anchor rule against rates that do not rest on it.

    Noisy labels alone cannot tell: rates from an audit, or known ones, are compared with what the tails would imply. A
    rejection says that the rows which this score finds at its ends are no anchors; a sharper score may find some.

    Parameters
    ----------
    log
        To find the tails in.
    rates
        From `AuditNoiseRates`, or known.
    scores, quantile, random_state
        As in `identified_region`.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=200, n_items=300, observed=0.2, weak_separability=False, random_state=0)
    >>> weak_separability_test(world.log, NoiseRates(0.2, 0.1)).p_value < 0.01
    True
    """
    if not isinstance(rates, NoiseRates):
        raise ParameterError(f"rates must be a NoiseRates; got {type(rates).__name__}")
    tails = _cross_fitted_tails(log, scores, quantile, random_state)
    excess = tails.shares - np.array([rates.rho01, rates.rho10])
    variances = tails.variances
    if rates.covariance is not None:
        variances = variances + np.diag(np.array(rates.covariance))
    # Only an excess speaks against separability; a deficit is chance.
    statistic = float((excess / np.sqrt(variances)).max())
    disliked, liked = np.clip(excess / rates.kappa, 0, 1)
    return SeparabilityTest(statistic, min(1.0, 2 * float(ndtr(-statistic))), float(liked), float(disliked))
