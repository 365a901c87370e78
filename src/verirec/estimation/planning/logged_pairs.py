r"""What true labels of logged pairs buy, where how likely pairs are to be logged is known.

audited-dr is the doubly robust estimate plus :math:`\sum_A (w / \pi)(e^* - \tilde e) / |D|`. What the log's own
selection leaves open, :math:`\sum_O w^2 (1 - p)(e^* - \bar e)^2 / |D|^2`, no audit takes away; the rest,
:math:`\sum_O w^2 (1/\pi - 1)(e^* - \tilde e)^2 / |D|^2`, falls with the number of audited pairs, fastest with
:math:`\pi` in proportion to :math:`w |e^* - \tilde e|`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import SHORT, filled, over_parts, parts_of
from verirec.estimation.planning.drawing import inclusion_probabilities
from verirec.estimation.planning.likes import ExpectedLikes
from verirec.estimation.planning.questions import MeanLosses
from verirec.estimation.planning.size_classes import SizeClasses
from verirec.estimation.rows import LoggedPairs
from verirec.losses import NoiseRates
from verirec.nuisance.noise_rates.design import likely_rates
from verirec.nuisance.noise_rates.tails import identified_region
from verirec.nuisance.propensities import as_propensities
from verirec.randomness import RandomState
from verirec.scratch import each, long_array

Array = npt.NDArray[np.float64]

_INSIDE: Final = 1e-3
_HALF: Final = 4
"""The place, among the rates that are thought possible, of half of the largest ones."""
_EVEN: Final = 0.1
"""The part of each probability that is the same for all rows."""


@dataclass(frozen=True, eq=False)
class RowErrors:
    r"""Expected :math:`w^2 (e^* - \tilde e)^2 / |D|^2` of each number asked for and row, never held for all rows.

    Parameters
    ----------
    weights
        What the numbers are made of, shape (numbers, recommenders).
    slopes
        Of each recommender's error by the label, times :math:`w / |D|`; shape (recommenders, n).
    left
        What is expected of the labels' :math:`(r^* - \tilde r)^2`, shape (n,).
    """

    weights: Array
    slopes: Array
    left: Array

    def __len__(self) -> int:
        return len(self.left)

    def squares(self, at: slice) -> Array:
        """Return the squared slopes of some rows by number, shape (numbers, m)."""
        return np.asarray((self.weights @ self.slopes[:, at]) ** 2)

    def of(self, at: slice) -> Array:
        """Return the errors of some rows by number, shape (numbers, m)."""
        return np.asarray(self.squares(at) * self.left[at])

    def sums(self, function: Callable[[slice], Array]) -> Array:
        """Add up over all rows what a function gives of each part, by number; shape (numbers,)."""
        return np.asarray(sum(over_parts(lambda at: function(at).sum(axis=-1), len(self), size=SHORT)))


@dataclass(frozen=True, eq=False)
class LoggedDesign:
    r"""The log's rows as something to ask about.

    Parameters
    ----------
    floor
        Variance of each number asked for that is left when all rows are audited, shape (numbers,).
    errors
        Of each number and row.
    rates
        The noise rates that this holds for.
    """

    floor: Array
    errors: RowErrors
    rates: NoiseRates

    @cached_property
    def sizes(self) -> Array:
        """What the chances of rows to be asked about are in proportion to, shape (n,)."""
        errors = self.errors
        means = errors.sums(errors.of)[:, None] / len(errors)
        scale = np.where(means > 0, means, 1.0)
        sizes = filled(lambda at: np.sqrt((errors.of(at) / scale).sum(axis=0)), len(errors))
        mean = max(float(sizes.mean()), 1e-300)
        return each(lambda one: _EVEN + (1 - _EVEN) * one / mean, sizes)

    @cached_property
    def _classes(self) -> SizeClasses:
        return SizeClasses.of(self.sizes, self.errors.of)

    def probabilities(self, count: int) -> Array:
        """Return how likely each row is to be asked about, shape (n,); they add up to `count`."""
        return inclusion_probabilities(self.sizes, count)

    def variances(self, count: int) -> Array:
        """Return what asking about so many rows leaves of each number's variance, shape (numbers,)."""
        if count == 0:
            return np.full(len(self.floor), np.inf)
        return np.asarray(self.floor + self._classes.unasked(count))


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
    pairs = LoggedPairs(log, fitted)
    before = _liked_before(log, likes, rates)
    typical = float(each(np.multiply, before, pairs.weights).sum() / pairs.weights.sum())
    errors = RowErrors(question.weights, _slopes(pairs, question), _left(log, before, rates))

    def unsaid(at: slice) -> Array:
        open_to_chance = before[at] * (1 - before[at]) + (before[at] - typical) ** 2
        return np.asarray(errors.squares(at) * ((1 - pairs.p[at]) * open_to_chance))

    return LoggedDesign(errors.sums(unsaid), errors, rates)


def _liked_before(log: FeedbackLog, likes: ExpectedLikes, rates: NoiseRates) -> Array:
    """Return how likely each row is to be liked, before its label is looked at; shape (n,)."""
    users, items = log.users, log.items

    def of(at: slice) -> Array:
        said = np.clip(likes.model.cells(users[at], items[at]), rates.rho10 + _INSIDE, 1 - rates.rho01 - _INSIDE)
        return np.asarray((said - rates.rho10) / rates.kappa)

    return filled(of, len(log))


def _left(log: FeedbackLog, before: Array, rates: NoiseRates) -> Array:
    """Return what is expected of the squared difference of each row's true label and its corrected one; shape (n,)."""

    def of(labels: npt.NDArray[Any], before: Array) -> Array:
        said = rates.rho10 + rates.kappa * before
        joint = before * np.where(labels == 1, 1 - rates.rho01, rates.rho01)
        after = joint / np.where(labels == 1, said, 1 - said)
        return np.asarray(after * (1 - after) + (after - (labels - rates.rho10) / rates.kappa) ** 2)

    return each(of, log.labels, before)


def _slopes(pairs: LoggedPairs, question: MeanLosses) -> Array:
    """Return by how much each row's label moves each recommender's mean, shape (recommenders, n)."""
    log, size = pairs.log, len(question.target)
    held = question.target.holds(log.users, log.items)
    slopes = long_array((len(question.losses), len(log)))
    for line, losses in zip(slopes, question.losses, strict=True):
        line[:] = losses.of_rows(log.users, log.items)[1]
        for at in parts_of(len(log)):
            line[at] *= held[at] / (pairs.p[at] * size)
    return slopes
