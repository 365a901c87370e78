"""What a log alone can say: the range of a loss where people may have logged what they like more readily."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, ndtri

from verirec.checks import real_number
from verirec.data.cells import Positions, cell_keys
from verirec.estimation.inputs import AnyNoise, Noise, Rates
from verirec.estimation.intervals import Estimate, EstimateRange
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.survey.draws import self_selected
from verirec.estimation.survey.problem import LossDifference, Losses
from verirec.estimation.survey.target import Target, excluded_keys
from verirec.exceptions import ParameterError
from verirec.losses import CorrectedLabels, NoiseRegion, TransitionMatrix, TransitionRegion
from verirec.nuisance.label_model import LabelModel, LabelProbabilities
from verirec.nuisance.small_logistic import SmallFit, fit_small
from verirec.randomness import FOLDS_STREAM, SAMPLE_STREAM, SLOPES_STREAM

Array = npt.NDArray[np.float64]

FOLDS: Final = 4
"""Of the label model's cross-fitting."""
_STRICTER: Final = 10.0
"""Each end's error rate is a tenth of the interval's: the truth may lie at the very end of a range."""
_SAMPLE: Final = 50_000
"""Pairs from which derivatives are worked out, and where a difference ceases to be established."""
_FAR: Final = 20.0
_SURE: Final = 4.0
"""Standard errors of a sample by which what is possible is allowed to be wrong."""
_STEEPEST: Final = 300.0
_HALVINGS: Final = 12


@dataclass(frozen=True)
class SelectionRange:
    r"""How much more readily people may log what they like: delta, the log of an odds ratio, of each pair for itself.

    Among pairs of the same user, item and prediction, the odds of being logged are :math:`e^\delta` times as large for
    one that is liked. A log says nothing of it: 0 is selection by user and item only; on two public data sets with
    random exposure beside the log it was .6 to 2.7. Pairs need not have one delta in common.

    Parameters
    ----------
    low, high
        The smallest and the largest that any pair may have.

    Examples
    --------
    >>> SelectionRange()
    SelectionRange(low=0.0, high=3.0)
    """

    low: float = 0.0
    high: float = 3.0

    def __post_init__(self) -> None:
        low = real_number("low", self.low, above=-_FAR, below=_FAR, closed=True)
        object.__setattr__(self, "high", real_number("high", self.high, above=low, below=_FAR, closed=True))
        object.__setattr__(self, "low", low)


class _Known(NamedTuple):
    """What a log says of labels at some noise rates: corrected ones, a model, and logits of it without the row."""

    labels: CorrectedLabels
    model: LabelProbabilities
    held_out: Array


@dataclass(frozen=True, eq=False)
class RangeProblem:
    r"""A log, what may be unknown of it, and the pairs to speak of; any number of recommenders can share it.

    The true label of an unlogged pair is liked with probability :math:`\sigma(x - \delta)`, where
    :math:`x = a + b z + c d + e d^2` is the logit of being liked *among logged pairs*: z of a label model of user and
    item constants (cross-fitted, forward-corrected for noise), and d, the loss's own difference, as a good recommender
    knows more of taste than these constants do. a, b, c, e solve :math:`\sum_O \frac{1-p}{p} (\tilde r - \sigma(x))
    (1, z, d, d^2) = 0`, so that at delta = 0 the value is a doubly robust one. Then the low end is the mean over
    unlogged pairs of :math:`l_0 + d\,\sigma(x - \delta_{max})` where d > 0 and of
    :math:`l_0 + d\,\sigma(x - \delta_{min})` where d < 0, the high end the reverse, and logged pairs have
    :math:`l_0 + \tilde r d` in both.

    Parameters
    ----------
    pairs
        The logged pairs with their propensities.
    selection
        What delta may be.
    noise
        Rates, a region of them, or none.
    left_out
        Pairs that are not spoken of, by `cell_keys`, each once and in ascending order.
    sample, seed
        Unlogged pairs to visit in place of all, if any; and the seed of samples and folds.
    """

    pairs: LoggedPairs
    selection: SelectionRange
    noise: Noise = None
    left_out: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    sample: int | None = None
    seed: int = 0

    @classmethod
    def of(
        cls, pairs: LoggedPairs, selection: Any, noise: AnyNoise, *, exclude: Any = None, **options: Any
    ) -> RangeProblem:
        """Check a range of selection and pairs to exclude; rows shown at random are left out of the log."""
        assert not isinstance(noise, TransitionMatrix | TransitionRegion)  # noqa: S101 -- levels are refused where it is asked for
        if not isinstance(selection, SelectionRange):
            raise ParameterError(f"selection must be such as SelectionRange(0, 3); got {type(selection).__name__}")
        keys = np.unique(excluded_keys(exclude, pairs.log.shape))
        if len(keys) == pairs.log.n_cells:
            raise ParameterError("exclude leaves no pair to speak of: it has all pairs of the grid")
        return cls(LoggedPairs(self_selected(pairs.log), pairs.propensities), selection, noise, keys, **options)

    @cached_property
    def logged(self) -> npt.NDArray[np.bool_]:
        """Which rows are of pairs that are spoken of, shape (n,)."""
        return Target(self.pairs.log.shape, None, self.left_out).holds(self.pairs.log.users, self.pairs.log.items)

    @cached_property
    def unlogged(self) -> Target:
        """The pairs that are spoken of and that nobody logged."""
        log = self.pairs.log
        keys = cell_keys(log.users, log.items, log.n_items)
        return Target(log.shape, None, np.union1d(keys, self.left_out))

    @cached_property
    def n_pairs(self) -> int:
        """Pairs that are spoken of."""
        return len(self.unlogged) + int(self.logged.sum())

    @cached_property
    def weights(self) -> Array:
        """How many unlogged pairs each row stands for, up to scale, shape (n,)."""
        weights = (1 - self.pairs.p) / self.pairs.p
        return np.asarray(weights / weights.mean()) if weights.any() else np.ones(len(weights))

    @cached_property
    def known(self) -> list[_Known]:
        """What the log says, at each corner of the noise rates."""
        points: Sequence[Rates | None] = self.noise.corners if isinstance(self.noise, NoiseRegion) else [self.noise]
        return [self._known_at(rates) for rates in points]

    def _known_at(self, rates: Rates | None) -> _Known:
        log, ones = self.pairs.log, np.ones(len(self.pairs.log))
        random = np.random.default_rng([self.seed, FOLDS_STREAM])
        held_out = LabelModel().cross_fit(log, ones, FOLDS, random, rates)
        labels = self.pairs.labels(rates)
        assert isinstance(labels, CorrectedLabels)  # noqa: S101 -- levels are refused where it is asked for
        return _Known(labels, LabelModel().fit(log, ones, rates), np.asarray(logit(held_out)))

    @cached_property
    def sampled(self) -> tuple[Positions, Positions]:
        """Unlogged pairs that stand for all, in derivatives."""
        return self.unlogged.sample(_SAMPLE, np.random.default_rng([self.seed, SLOPES_STREAM]))

    @cached_property
    def visited(self) -> tuple[Positions, Positions] | None:
        """Unlogged pairs to visit; `None` for all."""
        size, grid = self.sample, self.unlogged.grid
        if size is None and not grid.fits:
            size = grid.sample_cells
        if size is None or size >= len(self.unlogged):
            return None
        return self.unlogged.sample(size, np.random.default_rng([self.seed, SAMPLE_STREAM]))


class _End(NamedTuple):
    """One end of a range from sampled pairs: value, gradient by (a, b, c, e), and mean variance of a pair's loss."""

    value: float
    gradient: Array
    variance: float


@dataclass(frozen=True, eq=False)
class _Calibrated:
    r"""Logits of being liked among logged pairs, :math:`x = a + b z + c d + e d^2`, for one recommender or difference.

    Parameters
    ----------
    problem, known, losses
        What it is fitted to.
    """

    problem: RangeProblem
    known: _Known
    losses: Losses

    @cached_property
    def rows(self) -> tuple[Array, Array]:
        """Both losses of the logged pairs, shape (n,) each."""
        log = self.problem.pairs.log
        return self.losses.of_rows(log.users, log.items)

    @cached_property
    def scale(self) -> float:
        """The size of d, so that a penalty means the same whatever the loss's unit."""
        return float(np.abs(self.rows[1]).mean()) or 1.0

    @cached_property
    def _within(self) -> tuple[float, float]:
        """The extremes of d among the rows, beyond which no curve is known."""
        return float(self.rows[1].min()), float(self.rows[1].max())

    def _curve(self, difference: Array) -> Array:
        """The square of d, which goes on flat beyond the rows'."""
        return np.asarray((np.clip(difference, *self._within) / self.scale) ** 2)

    def _features(self, logits: Array, difference: Array) -> Array:
        return np.stack([np.ones_like(logits), logits, difference / self.scale, self._curve(difference)], axis=-1)

    @cached_property
    def features(self) -> Array:
        """(1, z, d, d^2) of the rows, shape (n, 4)."""
        return self._features(self.known.held_out, self.rows[1])

    @cached_property
    def fitted(self) -> SmallFit:
        """(a, b, c, e); one row's worth of belief in the label model as it is keeps them finite."""
        start = np.array([0.0, 1.0, 0.0, 0.0])
        return fit_small(self.features, self.known.labels.values, self.problem.weights, start)

    @cached_property
    def _by_constants(self) -> LabelProbabilities:
        (a, b, *_), model = self.fitted.coefficients, self.known.model
        return LabelProbabilities(float(a + b * model.level), b * model.users, b * model.items)

    @np.errstate(over="ignore")
    def ends(self, users: Positions, items: Positions) -> list[Array]:
        """Return the low and the high end of pairs, and their losses by the better label and by the worse."""
        negative, difference = self.losses.cells(users, items)
        selection = self.problem.selection
        odds = self._by_constants.cell_odds(users, items)
        by_difference, by_square = self.fitted.coefficients[2:]
        bent = by_difference / self.scale * difference + by_square * self._curve(difference)
        odds = odds * np.exp(-np.clip(bent, -_STEEPEST, _STEEPEST))
        often, rarely = (1 / (1 + odds * np.exp(delta)) for delta in (selection.low, selection.high))
        middle, change = negative + difference * often, difference * (rarely - often)
        by_label = [negative + np.minimum(difference, 0), negative + np.maximum(difference, 0)]
        return [middle + np.minimum(change, 0), middle + np.maximum(change, 0), *by_label]

    @cached_property
    def means(self) -> list[tuple[float, float]]:
        """Means of `ends` over the unlogged pairs, with their variance where a sample stood for these."""
        pairs, target = self.problem.visited, self.problem.unlogged
        if pairs is not None:
            return [(float(end.mean()), float(end.var(ddof=1)) / len(end)) for end in self.ends(*pairs)]
        if len(target) == 0:
            return [(0.0, 0.0)] * 4
        return [(float(mean), 0.0) for mean in target.means(self.ends, parallel=self.losses.parallel)]

    @cached_property
    def possible(self) -> tuple[float, float]:
        """The smallest and the largest mean loss that any labels whatever could make."""
        problem, (negative, difference) = self.problem, self.rows
        share = len(problem.unlogged) / problem.n_pairs
        found = []
        for (mean, variance), pick, sign in zip(self.means[2:], (np.minimum, np.maximum), (-1, 1), strict=True):
            logged = (negative + pick(difference, 0))[problem.logged]
            unlogged = mean + sign * _SURE * np.sqrt(variance)
            found.append(share * unlogged + float(logged.sum()) / problem.n_pairs)
        return found[0], found[1]

    @cached_property
    def _sampled(self) -> tuple[Array, Array, Array]:
        users, items = self.problem.sampled
        negative, difference = self.losses.cells(users, items)
        return negative, difference, self._features(self.known.model.cell_logits(users, items), difference)

    @cached_property
    def _widest(self) -> tuple[float, float]:
        """The high and the low end, from sampled pairs."""
        high = self.problem.selection.high
        return self.sampled_end(False, high).value, self.sampled_end(True, high).value

    def sampled_end(self, below: bool, high: float) -> _End:
        """Work an end out from sampled pairs, for a delta of at most `high`."""
        negative, difference, features = self._sampled
        if len(negative) == 0:
            return _End(0.0, np.zeros(4), 0.0)
        delta = np.where((difference > 0) == below, high, self.problem.selection.low)
        liked = expit(features @ self.fitted.coefficients - delta)
        bend = liked * (1 - liked)
        gradient = (difference * bend) @ features / len(negative)
        return _End(float((negative + difference * liked).mean()), gradient, float((difference**2 * bend).mean()))

    def estimated(self, below: bool, high: float, confidence: float) -> Estimate:
        """Estimate an end, for a delta of at most `high`.

        Its mean over the unlogged pairs is that of the walk, moved by what sampled pairs say of another `high`.
        """
        mean, sample_variance = self.means[0 if below else 1]
        end = self.sampled_end(below, high)
        if high != self.problem.selection.high:
            mean += end.value - self._widest[below]
        problem, labels, (negative, difference) = self.problem, self.known.labels, self.rows
        share = len(problem.unlogged) / problem.n_pairs
        errors = (negative + labels.values * difference)[problem.logged]
        value = share * mean + float(errors.sum()) / problem.n_pairs
        parts = self._variance(share, end) | {"sample": share**2 * sample_variance}
        error = float(np.sqrt(sum(parts.values())))
        reach = float(ndtri(1 - (1 - confidence) / 2 / _STRICTER)) * error
        return Estimate(value, error, (value - reach, value + reach), confidence, {"variance": parts})

    def _variance(self, share: float, end: _End) -> dict[str, float]:
        """Return an end's variance by source: (a, ..., e), what noise adds, and labels that nobody logged."""
        problem, labels, fitted = self.problem, self.known.labels, self.fitted
        by_label = share * problem.weights * (self.features @ (fitted.inverse @ end.gradient))
        own = np.where(problem.logged, self.rows[1], 0.0) / problem.n_pairs
        rest = labels.values - fitted.liked
        rates = 0.0
        if labels.covariance is not None and labels.slopes:
            gradient = np.array([float((by_label + own) @ slope) for slope in labels.slopes])
            rates = float(gradient @ labels.covariance @ gradient)
        # Where a class is rare by chance the rows vary too little in their own eyes: the model is asked too.
        spread = max(float(by_label**2 @ rest**2), float(by_label**2 @ (fitted.liked * (1 - fitted.liked))))
        return {
            "selection": spread,
            "noise": max(float((2 * by_label * own + own**2) @ labels.variance), 0.0),
            "unlogged_labels": share / problem.n_pairs * end.variance,
            "noise_rates": rates,
        }


def judge_by_range(
    problem: RangeProblem, losses: Sequence[Losses], confidence: float, *, least: float = -np.inf
) -> list[EstimateRange]:
    r"""Return the range of each recommender, or difference of two, over all that selection and noise may be.

    The interval widens both ends by their sampling error: that of (a, ..., e) by the delta method, of the logged
    labels' noise and of its rates, and of the labels that nobody logged. Each end's error rate is a tenth of the
    interval's, as the truth may lie at the very end of a range.

    Parameters
    ----------
    problem, losses
        Of one grid.
    confidence
        Of the intervals.
    least
        What no loss is below.
    """
    found = []
    for one in losses:
        corners = [_Calibrated(problem, known, one) for known in problem.known]

        def over(high: float, corners: list[_Calibrated] = corners) -> EstimateRange:
            ends = [each.estimated(below, high, confidence) for each in corners for below in (True, False)]
            low, most = corners[0].possible
            return EstimateRange.over(ends, least=max(least, low), most=most)

        facts: dict[str, Any] = {
            "selection": (problem.selection.low, problem.selection.high),
            "rows": len(problem.pairs.log),
            "target_pairs": problem.n_pairs,
            "unlogged_pairs": len(problem.unlogged),
        }
        if isinstance(one, LossDifference):
            facts["not_established_from"] = _ceases(over, problem.selection)
        found.append(replace(over(problem.selection.high), diagnostics=facts))
    return found


def _ceases(over: Callable[[float], EstimateRange], selection: SelectionRange) -> float | None:
    """Return the smallest largest delta at which 0 is in the interval; `None` if it is out of it all along."""

    def holds_zero(high: float) -> bool:
        low_end, high_end = over(high).interval
        return low_end <= 0 <= high_end

    if not holds_zero(selection.high):
        return None
    if holds_zero(selection.low):
        return selection.low
    low, high = selection.low, selection.high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds_zero(middle) else (middle, high)
    return high
