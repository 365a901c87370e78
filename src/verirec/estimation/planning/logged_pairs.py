r"""What true labels of logged pairs buy, where how likely pairs are to be logged is known.

audited-dr is the doubly robust estimate plus :math:`\sum_A (w / \pi)(e^* - \tilde e) / |D|`. What the log's own
selection leaves open, :math:`\sum_O w^2 (1 - p)(e^* - \bar e)^2 / |D|^2`, no audit takes away; the rest,
:math:`\sum_O w^2 (1/\pi - 1)(e^* - \tilde e)^2 / |D|^2`, falls with the number of audited pairs, fastest with
:math:`\pi` in proportion to :math:`w |e^* - \tilde e|`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.planning.drawing import inclusion_probabilities
from verirec.estimation.planning.likes import ExpectedLikes
from verirec.estimation.planning.questions import MeanLosses
from verirec.losses import NoiseRates
from verirec.nuisance.noise_rates.design import likely_rates
from verirec.nuisance.noise_rates.tails import identified_region
from verirec.nuisance.propensities import as_propensities
from verirec.randomness import RandomState

Array = npt.NDArray[np.float64]

_INSIDE: Final = 1e-3
_HALF: Final = 4
"""The place, among the rates that are thought possible, of half of the largest ones."""
_EVEN: Final = 0.1
"""The part of each probability that is the same for all rows."""


@dataclass(frozen=True, eq=False)
class LoggedDesign:
    r"""The log's rows as something to ask about.

    Parameters
    ----------
    floor
        Variance of each number asked for that is left when all rows are audited, shape (numbers,).
    errors
        Expected :math:`w^2 (e^* - \tilde e)^2 / |D|^2` of each number and row, shape (numbers, n).
    rates
        The noise rates that this holds for.
    """

    floor: Array
    errors: Array
    rates: NoiseRates

    def probabilities(self, count: int) -> Array:
        """Return how likely each row is to be asked about, shape (n,); they add up to `count`."""
        means = self.errors.mean(axis=1, keepdims=True)
        sizes = np.sqrt((self.errors / np.where(means > 0, means, 1.0)).sum(axis=0))
        return inclusion_probabilities(_EVEN + (1 - _EVEN) * sizes / max(float(sizes.mean()), 1e-300), count)

    def variances(self, count: int) -> Array:
        """Return what asking about so many rows leaves of each number's variance, shape (numbers,)."""
        if count == 0:
            return np.full(len(self.floor), np.inf)
        return np.asarray(self.floor + self.errors @ (1 / self.probabilities(count) - 1))


def design_logged(
    log: FeedbackLog,
    propensities: Any,
    question: MeanLosses,
    likes: ExpectedLikes,
    guess: NoiseRates | None,
    *,
    random_state: RandomState,
) -> LoggedDesign | None:
    """Work out what audited rows would tell; `None` unless propensities are declared known: they settle nothing then.

    Parameters
    ----------
    log
        n rows.
    propensities
        As in `estimate`; without any, those that the log has.
    question
        What is asked for.
    likes
        The model of what people say, from which their likes follow by the rates.
    guess
        Of the noise rates; by default half of what the log allows.
    """
    if propensities is None and log.propensities is None:
        return None
    fitted = as_propensities(propensities, log)
    if not fitted.known:
        return None
    rates = likely_rates(identified_region(log, random_state=random_state))[_HALF] if guess is None else guess
    p = fitted.at(log.users, log.items)
    said = np.clip(likes.model.cells(log.users, log.items), rates.rho10 + _INSIDE, 1 - rates.rho01 - _INSIDE)
    before = (said - rates.rho10) / rates.kappa
    joint = before * np.where(log.labels == 1, 1 - rates.rho01, rates.rho01)
    after = joint / np.where(log.labels == 1, said, 1 - said)
    surrogate = (log.labels - rates.rho10) / rates.kappa
    typical = float(np.average(before, weights=1 / p))
    slopes = question.slopes_at(log.users, log.items) * question.target.holds(log.users, log.items)
    squares = ((question.weights @ slopes) / (p * len(question.target))) ** 2
    unsaid = before * (1 - before) + (before - typical) ** 2
    left = after * (1 - after) + (after - surrogate) ** 2
    return LoggedDesign(squares @ ((1 - p) * unsaid), squares * left, rates)
