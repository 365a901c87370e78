"""What a log alone can say: the range of a loss where people may have logged what they like more readily."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.checks import real_number
from verirec.data.cells import Positions
from verirec.data.pair_keys import NO_PAIRS, keys_of, union
from verirec.data.parts import SHORT, over_parts
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.survey.draws import self_selected
from verirec.estimation.survey.target import Target, excluded_keys
from verirec.exceptions import ParameterError
from verirec.losses import CorrectedLabels, NoiseRegion, TransitionMatrix, TransitionRegion
from verirec.nuisance.label_folds import LabelFolds
from verirec.nuisance.label_model import LabelModel, LabelProbabilities
from verirec.randomness import FOLDS_STREAM, SAMPLE_STREAM, SLOPES_STREAM
from verirec.resuming import apart, kept, within
from verirec.scratch import each

if TYPE_CHECKING:
    from verirec.estimation.inputs import AnyNoise, Noise, Rates

Array = npt.NDArray[np.float64]

FOLDS: Final = 4
"""Of the label model's cross-fitting."""
_SAMPLE: Final = 50_000
"""Pairs from which derivatives are worked out, and where a difference ceases to be established."""
_FAR: Final = 20.0


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


class Known(NamedTuple):
    """What a log says of labels at some noise rates: a model, and logits of such a model without the row, (n,)."""

    rates: Rates | None
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
    left_out: npt.NDArray[np.int64] = field(default_factory=lambda: NO_PAIRS)
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
        keys = excluded_keys(exclude, pairs.log.shape)
        if len(keys) == pairs.log.n_cells:
            raise ParameterError("exclude leaves no pair to speak of: it has all pairs of the grid")
        return cls(LoggedPairs(self_selected(pairs.log), pairs.propensities), selection, noise, keys, **options)

    def logged(self, at: slice) -> npt.NDArray[np.bool_]:
        """Tell which of some rows are of pairs that are spoken of."""
        log = self.pairs.log
        return Target(log.shape, None, self.left_out).holds(log.users[at], log.items[at])

    @cached_property
    def unlogged(self) -> Target:
        """The pairs that are spoken of and that nobody logged."""
        log = self.pairs.log
        # Rows are in the order of their keys.
        keys = keys_of(log.users, log.items, log.n_items)
        return Target(log.shape, None, union(keys, self.left_out) if len(self.left_out) else keys)

    @cached_property
    def n_pairs(self) -> int:
        """Pairs that are spoken of."""
        logged: list[int] = over_parts(lambda at: int(self.logged(at).sum()), len(self.pairs.log), size=SHORT)
        return len(self.unlogged) + sum(logged)

    @cached_property
    def weights(self) -> Array:
        """How many unlogged pairs each row stands for, up to scale, shape (n,)."""
        weights = each(lambda p: (1 - p) / p, self.pairs.p)
        mean = float(weights.mean())
        return each(lambda weight: weight / mean if mean > 0 else np.ones_like(weight), weights)

    def labels_at(self, rates: Rates | None) -> CorrectedLabels:
        """Return the corrected labels of the rows."""
        labels = self.pairs.labels(rates)
        assert isinstance(labels, CorrectedLabels)  # noqa: S101 -- levels are refused where it is asked for
        return labels

    @cached_property
    def known(self) -> list[Known]:
        """What the log says, at each corner of the noise rates."""
        points: Sequence[Rates | None] = self.noise.corners if isinstance(self.noise, NoiseRegion) else [self.noise]
        folds = LabelFolds.of(len(self.pairs.log), FOLDS, np.random.default_rng([self.seed, FOLDS_STREAM]))
        found = []
        with apart("label models of the range"):
            for number, rates in enumerate(points):
                with within(f"corner {number}"):
                    found.append(self._known_at(rates, folds))
        return found

    def _known_at(self, rates: Rates | None, folds: LabelFolds) -> Known:
        log, ones, how = self.pairs.log, np.broadcast_to(1.0, len(self.pairs.log)), LabelModel()
        held_out = how.fit_folds(log, ones, folds, rates).logits()
        seen = log if folds.whole is None else log.select(folds.whole)
        of_all = kept("model of all", lambda: how.fit(seen, ones[: len(seen)], rates).constants)
        return Known(rates, LabelProbabilities(*of_all), held_out)

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
