r"""What a search goes by: how good logits of held-out rows are, and by how much one set of them is better.

For a ranking, the area under the ROC curve of each fold's rows as logged: weights of 1/p make it worse at choosing, and
noise alone does not move it. For probabilities, the log loss corrected for noise and weighted by 1/p, weights adding up
to 1 (ome-snips), of logits that are cut off. Held-out rows are what people chose to rate: both are wrong by a selection
that depends on the label; differences between models are less so. Of levels both go by the squared error of stars: as
logged, or corrected for noise and weighted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.inputs import KnownNoise, Rates
from verirec.losses import TransitionMatrix
from verirec.losses.correction import correct_labels
from verirec.training.heads import MOST_LOGIT

Array = npt.NDArray[Any]


class Gain(NamedTuple):
    """By how much something is better, and the standard error of that, paired by row."""

    value: float
    standard_error: float

    @property
    def sure(self) -> bool:
        """Whether it is better by two standard errors."""
        return self.value > 2 * self.standard_error


class Criterion(ABC):
    """A loss of each fold's logits, smaller being better.

    Parameters
    ----------
    labels
        Of rows that were held out in turn, as logged, shape (n,).
    folds
        The fold of each row, shape (n,).
    """

    name: str

    def __init__(self, labels: npt.NDArray[np.int8], folds: npt.NDArray[np.int64]) -> None:
        self.labels = labels
        self.rows = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]

    @abstractmethod
    def parts(self, logits: Array, fold: int) -> Array:
        """Return what each row of a fold adds to its loss, shape (rows,): the loss is their sum."""

    @abstractmethod
    def variance(self, parts: Array, fold: int) -> float:
        """Return the variance of a sum of parts, or of differences of such."""

    def losses(self, logits: Array) -> Array:
        """Return the loss of each fold, shape (folds,)."""
        return np.array([self.parts(logits, fold).sum() for fold in range(len(self.rows))])

    def gain(self, worse: list[Array], better: list[Array]) -> Gain:
        """Return how much better the second is than the first: their logits of all rows, a set for each fold."""
        pairs = [
            self.parts(one, fold) - self.parts(two, fold)
            for fold, (one, two) in enumerate(zip(worse, better, strict=True))
        ]
        variance = sum(self.variance(pair, fold) for fold, pair in enumerate(pairs))
        return Gain(float(np.mean([pair.sum() for pair in pairs])), float(variance**0.5 / len(pairs)))


class RankingLoss(Criterion):
    """1 - AUC of each fold; its variance by the rows' placements (DeLong et al. 1988)."""

    name = "1 - AUC of held-out rows"

    def parts(self, logits: Array, fold: int) -> Array:
        """Return half of the share of rows of the other class that come out on the wrong side, over its class."""
        rows = self.rows[fold]
        z, liked = logits[rows], self.labels[rows] == 1
        ranks, parts = _midranks(z), np.zeros(len(rows))
        n_liked, n_other = int(liked.sum()), int((~liked).sum())
        if not n_liked or not n_other:
            return parts
        parts[liked] = (1 - (ranks[liked] - _midranks(z[liked])) / n_other) / (2 * n_liked)
        parts[~liked] = ((ranks[~liked] - _midranks(z[~liked])) / n_liked) / (2 * n_other)
        return parts

    def variance(self, parts: Array, fold: int) -> float:
        """Add up the variances of both classes' placements."""
        liked = self.labels[self.rows[fold]] == 1
        # Each class's placements add up to half of the loss; a single row does not tell how much they vary.
        return float(sum(4 * len(one) * one.var(ddof=1) for one in (parts[liked], parts[~liked]) if len(one) > 1))


class ProbabilityLoss(Criterion):
    """Log loss, corrected for noise where rates are known, and weighted.

    Parameters
    ----------
    log
        All rows.
    folds
        As in `Criterion`.
    rates
        Noise rates, if any.
    weights
        1/p of each row, shape (n,).
    """

    def __init__(self, log: FeedbackLog, folds: npt.NDArray[np.int64], rates: Rates | None, weights: Array) -> None:
        super().__init__(log.labels, folds)
        self.name = "snips of held-out rows" if rates is None else "ome-snips of held-out rows"
        self.corrected, self.weights = correct_labels(log.labels, rates, log.users, log.items).values, weights

    def parts(self, logits: Array, fold: int) -> Array:
        """Return each row's share of the weighted mean."""
        rows = self.rows[fold]
        z = np.clip(logits[rows], -MOST_LOGIT, MOST_LOGIT)
        weights = self.weights[rows] / self.weights[rows].sum()
        return np.asarray(weights * (np.logaddexp(0, z) - self.corrected[rows] * z))

    def variance(self, parts: Array, fold: int) -> float:
        """Return that of a sum of independent rows."""
        return float(len(parts) * parts.var())


class StarsError(Criterion):
    """Squared error of stars; of noise, against :math:`T^{-1} v`, whose distance from the truth is the same for all.

    Parameters
    ----------
    log
        All rows, of levels.
    folds
        As in `Criterion`.
    noise
        The transition matrix, if any.
    weights
        Of each row, shape (n,).
    """

    def __init__(
        self, log: FeedbackLog, folds: npt.NDArray[np.int64], noise: KnownNoise | None, weights: Array
    ) -> None:
        super().__init__(log.labels, folds)
        assert log.levels is not None  # noqa: S101
        values = np.asarray(log.levels)
        self.stars = (noise.corrected(values) if isinstance(noise, TransitionMatrix) else values)[log.labels]
        self.name, self.weights = "squared error of held-out rows", weights

    def parts(self, logits: Array, fold: int) -> Array:
        """Return each row's share of the weighted mean."""
        rows = self.rows[fold]
        weights = self.weights[rows] / self.weights[rows].sum()
        return np.asarray(weights * (logits[rows] - self.stars[rows]) ** 2)

    def variance(self, parts: Array, fold: int) -> float:
        """Return that of a sum of independent rows."""
        return float(len(parts) * parts.var())


def criterion_of(
    objective: str, log: FeedbackLog, folds: npt.NDArray[np.int64], noise: KnownNoise | None, weights: Array
) -> Criterion:
    """Return what a search for an objective goes by, given 1/p of each row."""
    ranking = objective == "ranking"
    if log.levels is not None:
        return StarsError(log, folds, None if ranking else noise, np.ones(len(log)) if ranking else weights)
    assert not isinstance(noise, TransitionMatrix)  # noqa: S101 -- binary labels have rates
    return RankingLoss(log.labels, folds) if ranking else ProbabilityLoss(log, folds, noise, weights)


def _midranks(values: Array) -> Array:
    """Rank from 1 on, ties by their mean, as `scipy.stats.rankdata` does, which takes half a second to import."""
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") + 1) / 2
