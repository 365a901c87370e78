"""The range of a loss over what selection and noise rates may be: its ends at each point of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri

from verirec.data.cells import Positions
from verirec.data.parts import SHORT, filled, over_parts
from verirec.estimation.intervals import Estimate, EstimateRange
from verirec.estimation.pair_ends import Curve, PairEnds
from verirec.estimation.selection_range import Known, RangeProblem, SelectionRange
from verirec.estimation.survey.problem import LossDifference, Losses
from verirec.losses import CorrectedLabels
from verirec.nuisance.label_model import LabelProbabilities
from verirec.nuisance.small_logistic import SmallRows, fit_small_parts
from verirec.resuming import kept

Array = npt.NDArray[np.float64]

_STRICTER: Final = 10.0
"""Each end's error rate is a tenth of the interval's: the truth may lie at the very end of a range."""
_SURE: Final = 4.0
"""Standard errors of a sample by which what is possible is allowed to be wrong."""
_HALVINGS: Final = 12
_START: Final = np.array([0.0, 1.0, 0.0, 0.0])
"""One row's worth of belief in the label model as it is keeps (a, b, c, e) finite."""


@dataclass(frozen=True, eq=False)
class LoggedLosses:
    """Both losses of the logged pairs, l(f, 0) and d = l(f, 1) - l(f, 0), shape (n,) each: one for all noise rates."""

    negative: Array
    difference: Array

    @classmethod
    def of(cls, losses: Losses, problem: RangeProblem) -> LoggedLosses:
        """Ask for them."""
        log = problem.pairs.log
        return cls(*losses.of_rows(log.users, log.items))

    @cached_property
    def scale(self) -> float:
        """The size of d, so that a penalty means the same whatever the loss's unit."""
        total = sum(over_parts(lambda at: float(np.abs(self.difference[at]).sum()), len(self.difference), size=SHORT))
        return total / max(len(self.difference), 1) or 1.0

    @cached_property
    def curve(self) -> Curve:
        """The square of d."""
        return Curve(self.scale, (float(self.difference.min()), float(self.difference.max())))

    def features(self, logits: Array, difference: Array) -> Array:
        """Return (1, z, d, d^2) of pairs, shape (m, 4)."""
        # Column after column: all that follows goes along these.
        return np.stack([np.ones_like(logits), logits, difference / self.scale, self.curve.of(difference)]).T


class _End(NamedTuple):
    """One end of a range from sampled pairs: value, gradient by (a, b, c, e), and mean variance of a pair's loss."""

    value: float
    gradient: Array
    variance: float


class _RowSums(NamedTuple):
    r"""What the rows add to ends and their variances, which are forms of second degree in v, shape (4,).

    With v the derivative of an end by the equations for (a, b, c, e), a row moves the end by :math:`w\,v^\top\phi` per
    unit of its label, and by its own error, d over the number of pairs, where it is spoken of.

    Parameters
    ----------
    errors, least, most
        Sums of the rows' losses: by corrected labels, by the better label and by the worse.
    rest, spread
        :math:`\sum w^2 \phi \phi^\top` times the square of what is left of the label, and times its variance by the
        model, shape (4, 4).
    noise, own_noise
        :math:`\sum w \phi d\,Var(\tilde r \mid r^*)` and :math:`\sum d^2\,Var(\tilde r \mid r^*)`, shapes (4,) and ().
    by_rate, own_by_rate
        :math:`\sum w \phi` and :math:`\sum d` times the label's slope by each noise rate, shapes (rates, 4) and
        (rates,).
    """

    errors: float
    least: float
    most: float
    rest: Array
    spread: Array
    noise: Array
    own_noise: float
    by_rate: Array
    own_by_rate: Array


@dataclass(frozen=True, eq=False)
class RangeEnds:
    r"""Logits of being liked among logged pairs, :math:`x = a + b z + c d + e d^2`, for one recommender or difference.

    All that is asked of the rows are sums, made once and part by part; nothing of their length is kept.

    Parameters
    ----------
    problem, known, losses
        What it is fitted to.
    logged
        The losses of the logged pairs.
    """

    problem: RangeProblem
    known: Known
    losses: Losses
    logged: LoggedLosses

    def settle(self, name: str) -> None:
        """Ask the rows and the pairs for all that ends are made of, as a piece of the work."""
        asked = kept(name, lambda: {"_fitted": self._fitted, "means": self.means, "_sums": self._sums})
        vars(self).update(asked)

    @property
    def _labels(self) -> CorrectedLabels:
        return self.problem.labels_at(self.known.rates)

    def _features(self, at: slice) -> Array:
        return self.logged.features(self.known.held_out[at], self.logged.difference[at])

    @cached_property
    def _fitted(self) -> tuple[Array, Array]:
        """(a, b, c, e), and the inverse of the information, shape (4, 4)."""
        labels, weights = self._labels.values, self.problem.weights
        return fit_small_parts(lambda at: SmallRows(self._features(at), labels[at], weights[at]), len(labels), _START)

    @property
    def coefficients(self) -> Array:
        """(a, b, c, e)."""
        return self._fitted[0]

    @property
    def of_pairs(self) -> PairEnds:
        """The ends of pairs."""
        (a, b, c, e), model = self.coefficients, self.known.model
        liked = LabelProbabilities(float(a + b * model.level), b * model.users, b * model.items)
        return PairEnds(self.losses, self.problem.selection, liked, c, e, self.logged.curve)

    @cached_property
    def means(self) -> list[tuple[float, float]]:
        """Means of `of_pairs` over the unlogged pairs, with their variance where a sample stood for these."""
        pairs, target = self.problem.visited, self.problem.unlogged
        if pairs is not None:
            return [(float(end.mean()), float(end.var(ddof=1)) / len(end)) for end in self._visited(*pairs)]
        if len(target) == 0:
            return [(0.0, 0.0)] * 4
        return [(float(mean), 0.0) for mean in target.means(self.of_pairs.of, parallel=self.losses.parallel)]

    def _visited(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the ends of single pairs, shape (4, m)."""
        ends, parallel = self.of_pairs, self.losses.parallel
        return filled(lambda at: np.array(ends.of(users[at], items[at])), len(users), (4,), parallel=parallel)

    @cached_property
    def possible(self) -> tuple[float, float]:
        """The smallest and the largest mean loss that any labels whatever could make."""
        problem, sums = self.problem, self._sums
        share = len(problem.unlogged) / problem.n_pairs
        found = []
        for (mean, variance), logged, sign in zip(self.means[2:], (sums.least, sums.most), (-1, 1), strict=True):
            unlogged = mean + sign * _SURE * np.sqrt(variance)
            found.append(share * unlogged + logged / problem.n_pairs)
        return found[0], found[1]

    @cached_property
    def _sampled(self) -> tuple[Array, Array, Array]:
        users, items = self.problem.sampled
        negative, difference = self.losses.cells(users, items)
        return negative, difference, self.logged.features(self.known.model.cell_logits(users, items), difference)

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
        liked = expit(features @ self.coefficients - delta)
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
        problem = self.problem
        share = len(problem.unlogged) / problem.n_pairs
        value = share * mean + self._sums.errors / problem.n_pairs
        parts = self._variance(share, end) | {"sample": share**2 * sample_variance}
        error = float(np.sqrt(sum(parts.values())))
        reach = float(ndtri(1 - (1 - confidence) / 2 / _STRICTER)) * error
        return Estimate(value, error, (value - reach, value + reach), confidence, {"variance": parts})

    @cached_property
    def _sums(self) -> _RowSums:
        """Visit the rows once."""
        labels, logged, problem, coefficients = self._labels, self.logged, self.problem, self.coefficients
        weights, values = problem.weights, labels.values

        def visit(at: slice) -> tuple[Any, ...]:
            features, spoken_of = self._features(at), problem.logged(at)
            negative, difference = (
                np.where(spoken_of, logged.negative[at], 0.0),
                np.where(spoken_of, logged.difference[at], 0.0),
            )
            liked, weighted = expit(features @ coefficients), features * weights[at, None]
            of_rest, of_model = (values[at] - liked) ** 2, liked * (1 - liked)
            noisy = difference * labels.variance[at]
            slopes = np.array([by_rate[at] for by_rate in labels.slopes]).reshape(-1, len(features))
            return (
                float((negative + values[at] * difference).sum()),
                float((negative + np.minimum(difference, 0)).sum()),
                float((negative + np.maximum(difference, 0)).sum()),
                (weighted * of_rest[:, None]).T @ weighted,
                (weighted * of_model[:, None]).T @ weighted,
                noisy @ weighted,
                float(noisy @ difference),
                slopes @ weighted,
                slopes @ difference,
            )

        parts: list[Any] = over_parts(visit, len(values), size=SHORT)
        return _RowSums(*(sum(one) for one in zip(*parts, strict=True)))

    def _variance(self, share: float, end: _End) -> dict[str, float]:
        """Return an end's variance by source: (a, ..., e), what noise adds, and labels that nobody logged."""
        sums, n_pairs, covariance = self._sums, self.problem.n_pairs, self._labels.covariance
        moved = share * (self._fitted[1] @ end.gradient)
        rates = 0.0
        if covariance is not None and len(sums.own_by_rate):
            gradient = sums.by_rate @ moved + sums.own_by_rate / n_pairs
            rates = float(gradient @ covariance @ gradient)
        # Where a class is rare by chance the rows vary too little in their own eyes: the model is asked too.
        spread = max(float(moved @ sums.rest @ moved), float(moved @ sums.spread @ moved))
        return {
            "selection": spread,
            "noise": max(2 * float(moved @ sums.noise) / n_pairs + sums.own_noise / n_pairs**2, 0.0),
            "unlogged_labels": share / n_pairs * end.variance,
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
    _ = problem.known  # Pieces of their own, as all of these go by them.
    ranges = (partial(_range_of, problem, one, confidence, least) for one in losses)
    return [kept(f"range {number}", judged) for number, judged in enumerate(ranges)]


def _range_of(problem: RangeProblem, losses: Losses, confidence: float, least: float) -> EstimateRange:
    """Return the range of one recommender, or of a difference."""
    logged = LoggedLosses.of(losses, problem)
    corners = [RangeEnds(problem, known, losses, logged) for known in problem.known]
    for number, corner in enumerate(corners):
        corner.settle(f"corner {number}")

    def over(high: float) -> EstimateRange:
        ends = [each.estimated(below, high, confidence) for each in corners for below in (True, False)]
        low, most = corners[0].possible
        return EstimateRange.over(ends, least=max(least, low), most=most)

    facts: dict[str, Any] = {
        "selection": (problem.selection.low, problem.selection.high),
        "rows": len(problem.pairs.log),
        "target_pairs": problem.n_pairs,
        "unlogged_pairs": len(problem.unlogged),
    }
    if isinstance(losses, LossDifference):
        facts["not_established_from"] = _ceases(over, problem.selection)
    return replace(over(problem.selection.high), diagnostics=facts)


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
