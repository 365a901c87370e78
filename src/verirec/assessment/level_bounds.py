"""What levels leave possible: losses between the best and the worst true levels, and how many pairs to ask about."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike
from verirec.estimation.intervals import Estimate, EstimateRange
from verirec.estimation.roots import pointwise, root_of, rooted
from verirec.estimation.setup import cell_losses
from verirec.estimation.survey.target import Target
from verirec.losses import LossLike, TransitionMatrix
from verirec.nuisance.ordinal_model import fit_labels
from verirec.resuming import kept

Array = npt.NDArray[np.float64]

_VISITED: Final = 100_000
"""Pairs from which on a random sample stands for all."""


@dataclass(frozen=True, eq=False)
class LevelBounds:
    r"""Losses at every level of all pairs, or of a random sample of them.

    Whatever people truly think, a pair's loss is that of one of the levels: the mean loss over all pairs lies between
    :math:`|D|^{-1} \sum_D \min_j l(f, j)` and :math:`|D|^{-1} \sum_D \max_j l(f, j)`, and so does a difference of
    two losses (Manski 1990). Neither selection nor noise matters, and nothing is assumed.

    Parameters
    ----------
    log
        Of the grid and its levels.
    loss, clip, confidence
        As in `estimate`.
    exclude
        Pairs that are not spoken of.
    seed
        Of the sample.
    """

    log: FeedbackLog
    loss: LossLike
    clip: float | None
    confidence: float
    exclude: Any = None
    seed: Any = 0
    _kept: dict[str, Array] = field(default_factory=dict, repr=False)

    def add(self, name: str, given: PredictionsLike) -> None:
        """Take in a recommender."""
        self._kept[name] = kept(f"bounds of {name}", partial(self._losses, given))

    def of(self, name: str) -> EstimateRange:
        """Return what the loss of a recommender may be."""
        found = self._between(self._kept[name])
        return rooted(found) if self._roots else found  # type: ignore[return-value]

    def between(self, first: str, second: str) -> EstimateRange:
        r"""Return what the difference of two recommenders' losses, first minus second, may be.

        Of roots it is that of the means m of squares over :math:`\sqrt{m_1} + \sqrt{m_2}`, whose own ends are taken.
        """
        found = self._between(self._kept[first] - self._kept[second])
        if not self._roots:
            return found
        one, two = self.of(first), self.of(second)

        def ends(of: tuple[float, float], a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
            least, most = max(a[0] + b[0], 1e-12), max(a[1] + b[1], 1e-12)
            low = of[0] / (least if of[0] < 0 else most)
            high = of[1] / (most if of[1] < 0 else least)
            return max(low, a[0] - b[1]), min(high, a[1] - b[0])

        return replace(
            found,
            range=ends(found.range, one.range, two.range),
            interval=ends(found.interval, one.interval, two.interval),
        )

    def survey_size(self, names: list[str], half_width: float, noise: TransitionMatrix | None) -> int | None:
        r"""Return how many random pairs would tell a loss, or the difference of two, to a half-width.

        About :math:`(z / h)^2 |D|^{-1} \sum_D \mathrm{Var}(l \mid \text{pair})`, the variance being that of the
        ordinal label model of the log, which is the survey's control variate: a guess, as that model is one. `None`
        where there are not so many pairs.
        """
        users, items, _ = self._pairs
        reached = fit_labels(self.log, noise).cells(users, items)
        chances = -np.diff(reached, axis=0, prepend=1.0, append=0.0)
        variances = []
        weighted = [self._weighed(self._kept[name], chances) for name in names]
        for values in [weighted[0] - weighted[1]] if len(names) == 2 else weighted:
            means = (chances * values).sum(axis=0)
            variances.append(float(((chances * values**2).sum(axis=0) - means**2).mean()))
        reach = float(ndtri((1 + self.confidence) / 2))
        needed = max(1, int(np.ceil((reach / half_width) ** 2 * max(variances))))
        return needed if needed < len(self._target) else None

    def _losses(self, given: PredictionsLike) -> Array:
        """Return a recommender's losses at each level, shape (K, pairs)."""
        losses = cell_losses(given, self.log, pointwise(self.loss)[0], self.clip, counts_grid=False)
        lowest, steps = losses.cells(*self._pairs[:2])
        return np.cumsum(np.concatenate([lowest[None], steps]), axis=0)

    def _weighed(self, values: Array, chances: Array) -> Array:
        """Multiply squares by the slope of the root of their mean, as the model expects it."""
        if not self._roots:
            return values
        return np.asarray(values / (2 * max(root_of(float((chances * values).sum(axis=0).mean())), 1e-12)))

    def _between(self, values: Array) -> EstimateRange:
        return EstimateRange.over([self._mean(values.min(axis=0)), self._mean(values.max(axis=0))])

    def _mean(self, values: Array) -> Estimate:
        """Return the mean over pairs; a sample's has an error."""
        mean = float(values.mean())
        error = 0.0 if self._pairs[2] else float(values.std(ddof=1) / np.sqrt(len(values)))
        reach = float(ndtri((1 + self.confidence) / 2)) * error
        return Estimate(mean, error, (mean - reach, mean + reach), self.confidence)

    @property
    def _roots(self) -> bool:
        return pointwise(self.loss)[1]

    @cached_property
    def _target(self) -> Target:
        return Target.of(self.log.shape, None, self.exclude)

    @cached_property
    def _pairs(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], bool]:
        """Users and items, and whether these are all pairs."""
        if self.log.n_cells > _VISITED:
            random = np.random.default_rng(self.seed)
            return *self._target.sample(_VISITED, random), False
        users, items = np.divmod(np.arange(self.log.n_cells), self.log.n_items)
        inside = self._target.holds(users, items)
        return users[inside], items[inside], True
