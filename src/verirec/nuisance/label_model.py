r"""A model h of what people say, P(r = 1 | x), on all pairs: debiased, and blind to noise.

Logistic with constants of users and items. In logs as sparse and noisy as these are, factors were measured to add next
to nothing to it out of sample, and to spoil its extremes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from verirec.checks import number_array, real_number, whole_number
from verirec.data.cells import CellValues, Positions
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.parts import order_statistics, parts_of, totals
from verirec.data.threads import mapped
from verirec.exceptions import EmptyLogError, ParameterError
from verirec.losses import GroupedNoiseRates, NoiseRates
from verirec.nuisance.label_folds import FoldModels, LabelFolds
from verirec.progress import working
from verirec.randomness import RandomState, as_generator
from verirec.resuming import kept
from verirec.scratch import each, long_array

Array = npt.NDArray[np.float64]

_STEEPEST: Final = 350.0
"""Logits of users, and of items, further from 0 would overflow; their probabilities are 0 or 1 in any case."""
_NOISY: Final = 3
"""Times as many sweeps where labels are noisy: expectation-maximisation takes smaller steps."""
CURVATURE: Final = 0.25
"""The log loss bends at most this much: a parabola with it lies above the loss everywhere."""
_PART: Final = 1 << 15
"""Rows that are worked on at a time."""


class LabelProbabilities(CellValues):
    r""":math:`\sigma(c + a_u + b_i)` of each pair."""

    def __init__(self, level: float, users: Array, items: Array) -> None:
        self.shape = (len(users), len(items))
        self.level, self.users, self.items = level, users, items

    @property
    def constants(self) -> tuple[float, Array, Array]:
        """Level, users' and items' constants."""
        return self.level, self.users, self.items

    @property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest probability of any pair."""
        low = self.level + float(self.users.min()) + float(self.items.min())
        high = self.level + float(self.users.max()) + float(self.items.max())
        return float(expit(low)), float(expit(high))

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the probabilities."""
        if users.ndim == 2 and users.shape[1] == 1 and items.ndim == 2 and items.shape[0] == 1:
            # A division a cell in place of an exponential.
            odds = self.cell_odds(users, items)
            odds += 1
            return np.asarray(np.reciprocal(odds, out=odds))
        return np.asarray(expit(self.cell_logits(users, items)))

    def cell_odds(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the odds of a 0, exp(-logit): of a block, the outer product of its users' and its items'."""
        return np.asarray(_odds(self.level + self.users[users]) * _odds(self.items[items]))

    def cell_logits(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the logits."""
        return np.asarray(self.level + self.users[users] + self.items[items])

    def shifted(self, shift: float) -> LabelProbabilities:
        """Return the probabilities with all logits moved by a number."""
        return LabelProbabilities(self.level + shift, self.users, self.items)


def _odds(logits: Array) -> Array:
    """Return the odds of a 0: those of a sum of logits are the product."""
    return np.exp(-np.clip(logits, -_STEEPEST, _STEEPEST))


@dataclass(frozen=True)
class LabelModel:
    """How to fit h, by weighted maximum likelihood with a ridge penalty.

    Each sweep majorises the loss by a parabola and solves for users and the level, then for items and the level, so
    that the penalised loss never rises.

    Parameters
    ----------
    penalty
        On each constant, in rows of average weight.
    sweeps
        Over users and items, at most; three times as many where labels are noisy.
    tolerance
        Constants that are this near to where they are going, as far as the last two sweeps tell, are left there.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 0, 1], n_users=2, n_items=2)
    >>> h = LabelModel(penalty=1).fit(log, np.ones(4))
    >>> h.at([0, 1], [1, 0]).round(2).tolist()
    [0.87, 0.61]
    """

    penalty: float = 10.0
    sweeps: int = 30
    tolerance: float = 1e-5

    def fit(
        self, log: FeedbackLog, weights: Array, rates: NoiseRates | GroupedNoiseRates | None = None
    ) -> LabelProbabilities:
        r"""Fit to a log's labels, each row with its weight.

        With noise rates the model is one of what people prefer, :math:`P(r^* = 1)`, and what they say follows from it
        as :math:`\rho_{10} + \kappa P(r^* = 1)`: each sweep fits to the labels that are expected to be true, given what
        was said and the model so far (expectation-maximisation, so that the loss still never rises).
        """
        given = _checked_weights(log, weights)
        given = each(lambda weight, most: weight / most, given, given.max())
        scaled = each(lambda weight, mean: weight / mean, given, given.mean())
        liked = sum(float(scaled[part] @ log.labels[part]) for part in parts_of(len(log)))
        share = float(np.clip(liked / scaled.sum(), 1e-3, 1 - 1e-3))
        fitted = LabelProbabilities(float(logit(share)), np.zeros(log.n_users), np.zeros(log.n_items))
        descend(self, log, scaled, fitted, _residuals(log, scaled, rates), noisy=rates is not None)
        return fitted

    def cross_fit(
        self,
        log: FeedbackLog,
        weights: Array,
        folds: int,
        random_state: RandomState,
        rates: NoiseRates | GroupedNoiseRates | None = None,
    ) -> Array:
        """Return h of each row from a model that has not seen the row's fold, shape (n,)."""
        if len(checked_log(log)) < 2:
            raise EmptyLogError(f"cross-fitting needs a log of at least 2 rows; it has {len(log)}")
        count = min(whole_number("folds", folds, min=2), len(log))
        placed = LabelFolds.of(len(log), count, as_generator(random_state))
        return self.fit_folds(log, weights, placed, rates).probabilities()

    def fit_folds(
        self,
        log: FeedbackLog,
        weights: Array,
        folds: LabelFolds,
        rates: NoiseRates | GroupedNoiseRates | None = None,
    ) -> FoldModels:
        """Fit a model for each fold, to rows that are not in it."""
        given = _checked_weights(log, weights)

        def fitted(rows: npt.NDArray[Any]) -> tuple[float, Array, Array]:
            return self.fit(log.select(rows), given[rows], rates).constants

        models = kept("models of folds", lambda: list(mapped(fitted, folds.training, threads=2)))
        return FoldModels(log, folds, [LabelProbabilities(*one) for one in models])


def descend(
    how: LabelModel,
    log: FeedbackLog,
    weights: Array,
    fitted: LabelProbabilities,
    rest: Callable[[LabelProbabilities], Array],
    settle: Callable[[], float] = lambda: 0.0,
    *,
    noisy: bool,
) -> None:
    """Improve the constants of users and items, sweep by sweep, until they are where they are going.

    Parameters
    ----------
    how
        Penalty, sweeps and tolerance.
    log, weights
        Its rows and their weights, of mean 1.
    fitted, rest
        What is fitted, in place, and each row's weight times what is left of its label.
    settle
        What else each sweep improves; it returns its largest step.
    noisy
        Whether labels are expected ones.
    """
    penalty = real_number("penalty", how.penalty, above=0)
    tolerance = real_number("tolerance", how.tolerance, above=0, closed=True)
    sides = [
        (constants, positions, CURVATURE * totals(positions, weights, len(constants)))
        for constants, positions in ((fitted.users, log.users), (fitted.items, log.items))
    ]
    before, most = 0.0, whole_number("sweeps", how.sweeps) * (_NOISY if noisy else 1)
    with working("Fitting a label model", most, "sweeps") as task:
        for _ in range(most):
            step = max(*(_improve(fitted, rest, *side, penalty) for side in sides), settle())
            # Steps shrink by about the same factor each: this is what all that are left out would add up to.
            if step == 0 or (step < before and step * step / (before - step) < tolerance):
                break
            before = step
            task.advance(1)


def _improve(
    fitted: LabelProbabilities,
    rest: Callable[[LabelProbabilities], Array],
    constants: Array,
    positions: Positions,
    curvature: Array,
    penalty: float,
) -> float:
    """Minimise the parabola in one side's constants and the level together; return the largest step of any."""
    slope = totals(positions, rest(fitted), len(constants))
    both = curvature + penalty
    level = float(((slope + curvature * constants) / both).sum() / (curvature / both).sum())
    steps = (slope - curvature * level - penalty * constants) / both
    constants += steps
    fitted.level += level
    return max(float(np.abs(steps).max()), abs(level))


def _residuals(
    log: FeedbackLog, weights: Array, rates: NoiseRates | GroupedNoiseRates | None
) -> Callable[[LabelProbabilities], Array]:
    """Return what gives each row's weight times the expected true label less its probability, in an array of its own.

    Part by part, and by the odds of users and items: no exponential a row, and nothing on the way leaves the cache.
    """
    expected = _expectation(log, rates)
    rest = long_array(len(log))

    def at(fitted: LabelProbabilities) -> Array:
        of_users, of_items = _odds(fitted.level + fitted.users), _odds(fitted.items)
        for part in parts_of(len(log), size=_PART):
            liked = of_users[log.users[part]]
            liked *= of_items[log.items[part]]
            liked += 1
            np.reciprocal(liked, out=liked)
            np.subtract(expected(part, liked), liked, out=liked)
            np.multiply(liked, weights[part], out=rest[part])
        return rest

    return at


def _expectation(
    log: FeedbackLog, rates: NoiseRates | GroupedNoiseRates | None
) -> Callable[[slice, Array], npt.NDArray[Any]]:
    """Return what gives the expected true labels of a part of the rows, from the probabilities that they are liked."""
    if rates is None:
        return lambda part, liked: log.labels[part]
    if not isinstance(rates, NoiseRates | GroupedNoiseRates):
        raise ParameterError(f"rates must be NoiseRates or GroupedNoiseRates; got {type(rates).__name__}")
    rho01, rho10 = rates.of_pairs(log.users, log.items)
    if_liked = each(lambda label, rate: np.where(label == 1, 1 - rate, rate), log.labels, rho01)
    if_not = each(lambda label, rate: np.where(label == 1, rate, 1 - rate), log.labels, rho10)

    def at(part: slice, liked: Array) -> Array:
        joint = if_liked[part] * liked
        return np.asarray(joint / np.maximum(joint + if_not[part] * (1 - liked), 1e-300))

    return at


def _checked_weights(log: FeedbackLog, weights: npt.ArrayLike) -> Array:
    given = number_array("weights", weights, ndim=1).astype(np.float64, copy=False)
    usable = np.isfinite(given.sum()) and given.min(initial=0) >= 0 and given.max(initial=0) > 0
    if len(checked_log(log)) == 0 or given.shape != (len(log),) or not usable:
        raise ParameterError(
            f"a model of labels needs rows and a finite weight of at least 0 for each; got {len(log):,} rows and "
            f"weights of shape {given.shape}"
        )
    return given


def parts_by_score(scores: Array, ends: Sequence[int], random: np.random.Generator) -> npt.NDArray[Any]:
    """Part rows by their rank in a score: part 0 has the first `ends[0]` rows, part 1 those up to `ends[1]`, and so on.

    Ties, common where users and items have few rows, are broken by chance, not by row order.

    Examples
    --------
    >>> parts_by_score(np.array([0.3, 0.1, 0.2, 0.9]), [1, 3], np.random.default_rng(0)).tolist()
    [1, 0, 1, 2]
    """
    inside = np.array([end for end in ends if end < len(scores)], np.int64)
    edges = np.unique(order_statistics(scores, inside)) if inside.size else scores[:0]
    parts = each(lambda _: 0, scores, dtype=np.min_scalar_type(len(ends)))
    runs = list(parts_of(len(scores)))
    for edge in edges:
        below = sum(int((scores[at] < edge).sum()) for at in runs)
        tied = np.concatenate([at.start + np.flatnonzero(scores[at] == edge) for at in runs])
        for at in runs:
            parts[at][scores[at] > edge] = np.searchsorted(ends, below + len(tied), side="right")
        parts[tied] = random.permutation(np.searchsorted(ends, below + np.arange(len(tied)), side="right"))
    return parts
