r"""A model of the levels that people mean, :math:`P(r^* \ge c) = \sigma(\theta_c + a_u + b_i)`, on all pairs.

Proportional odds (McCullagh 1980) with constants of users and items, fitted by the mean of the K - 1 log losses of
"is level c reached": with two levels it is `verirec.nuisance.label_model`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from verirec.data.cells import CellValues, Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import parts_of
from verirec.losses import GroupedNoiseRates, NoiseRates, TransitionMatrix
from verirec.nuisance.click_model import clicks_only, fit_clicks
from verirec.nuisance.label_model import CURVATURE, LabelModel, LabelProbabilities, descend
from verirec.scratch import each, long_array

Array = npt.NDArray[np.float64]

_RARE: Final = 1e-3
_PART: Final = 1 << 14


class LevelProbabilities(CellValues):
    r""":math:`P(r^* \ge c) = \sigma(\theta_c + z)` of each pair, z being a pair's logit in common; (K - 1, ...)."""

    def __init__(self, common: LabelProbabilities, thresholds: Array) -> None:
        self.shape, self.common, self.thresholds = common.shape, common, thresholds

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the probabilities, with a first axis of levels."""
        return np.stack([self.common.shifted(one).cells(users, items) for one in self.thresholds])

    def cell_logits(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the logits, with a first axis of levels."""
        common = self.common.cell_logits(users, items)
        return np.stack([common + one for one in self.thresholds])

    def shifted(self, shifts: Array) -> LevelProbabilities:
        """Return the probabilities with the logits of each level moved by a number."""
        return LevelProbabilities(self.common, self.thresholds + shifts)


@dataclass(frozen=True)
class OrdinalModel:
    """How to fit it, with penalty, sweeps and tolerance as those of `LabelModel`.

    Examples
    --------
    >>> users, items = np.divmod(np.arange(12), 4)
    >>> stars = [1, 2, 3, 3, 1, 1, 2, 3, 2, 3, 3, 3]
    >>> log = FeedbackLog.from_arrays(users, items, stars, n_users=3, n_items=4, levels=[1, 2, 3])
    >>> OrdinalModel(LabelModel(penalty=1)).fit(log, np.ones(12)).at([1, 2], [0, 3]).round(2).tolist()
    [[0.46, 0.92], [0.2, 0.78]]
    """

    how: LabelModel = field(default_factory=LabelModel)

    def fit(self, log: FeedbackLog, weights: Array, noise: TransitionMatrix | None = None) -> LevelProbabilities:
        """Fit to a log's levels, each row with its weight.

        With a transition matrix the model is one of the true levels: each sweep fits to those that are expected, given
        what was said and the model so far.
        """
        assert log.levels is not None  # noqa: S101 -- binary logs have a model of their own
        scaled = each(np.divide, weights, weights.mean())
        size = len(log.levels)
        reached = [
            sum(float(scaled[at] @ (log.labels[at] >= level)) for at in parts_of(len(log))) for level in range(1, size)
        ]
        shares = np.array(reached) / scaled.sum()
        logits = logit(np.clip(shares, _RARE, 1 - _RARE))
        common = LabelProbabilities(float(logits[0]), np.zeros(log.n_users), np.zeros(log.n_items))
        fitted = LevelProbabilities(common, logits - logits[0])
        rest = _Residuals(log, scaled, fitted, noise)
        mass = CURVATURE * float(scaled.sum())

        def settle() -> float:
            """Move the thresholds; one alone is the level, which has been moved already."""
            if size == 2:
                return 0.0
            steps = rest.by_level() / mass
            fitted.thresholds += steps
            return float(np.abs(steps).max())

        descend(self.how, log, scaled, common, rest, settle, noisy=noise is not None)
        return fitted


ReachedProbabilities = LabelProbabilities | LevelProbabilities
"""The chance of a pair to be liked or, of levels, to reach each but the lowest."""


def fit_labels(
    log: FeedbackLog, noise: NoiseRates | GroupedNoiseRates | TransitionMatrix | None
) -> ReachedProbabilities:
    """Fit a model of true labels to a log's, all rows alike: the ordinal one if it keeps its levels.

    Of clicks alone it is the model of what is clicked, which is of true labels up to its level.
    """
    weights = np.broadcast_to(1.0, len(log))
    if clicks_only(log):
        return fit_clicks(log)
    if log.levels is not None:
        assert noise is None or isinstance(noise, TransitionMatrix)  # noqa: S101 -- refused where noise is checked
        return OrdinalModel().fit(log, weights, noise)
    assert not isinstance(noise, TransitionMatrix)  # noqa: S101 -- likewise
    return LabelModel().fit(log, weights, noise)


@dataclass(eq=False)
class _Residuals:
    """Each row's weight times what is expected to be reached less its probability, the mean over levels."""

    log: FeedbackLog
    weights: Array
    fitted: LevelProbabilities
    noise: TransitionMatrix | None

    def __call__(self, common: LabelProbabilities) -> Array:
        def keep(part: slice, rest: Array) -> None:
            self._means[part] = rest.mean(axis=0)

        self._visit(keep)
        return self._means

    @cached_property
    def _means(self) -> Array:
        return long_array(len(self.log))

    def by_level(self) -> Array:
        """Add up over rows, for each level but the lowest."""
        total = np.zeros(len(self.fitted.thresholds))

        def add(part: slice, rest: Array) -> None:
            total[:] += rest.sum(axis=1)

        self._visit(add)
        return total

    def _visit(self, take: Callable[[slice, Array], None]) -> None:
        log, levels = self.log, np.arange(1, len(self.fitted.thresholds) + 1)[:, None]
        for part in parts_of(len(log), size=_PART):
            reached = expit(self.fitted.cell_logits(log.users[part], log.items[part]))
            said = log.labels[part]
            wanted = (said >= levels) if self.noise is None else _expected(reached, said, self.noise)
            take(part, (wanted - reached) * self.weights[part])


def _expected(reached: Array, said: npt.NDArray[Any], noise: TransitionMatrix) -> Array:
    r"""Return :math:`P(r^* \ge c \mid r)`, from the model's and what was said."""
    joint = -np.diff(reached, axis=0, prepend=1.0, append=0.0) * noise.matrix[:, said]
    joint /= np.maximum(joint.sum(axis=0), 1e-300)
    return np.asarray(np.cumsum(joint[:0:-1], axis=0)[::-1])
