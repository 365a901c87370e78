"""Propensity models that are a formula: constant, popularity, naive Bayes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.checks import real_number
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.exceptions import EmptyLogError, PropensityError
from verirec.nuisance.propensities.base import Array, Propensities, VarianceChange, default_floor, own_slopes
from verirec.nuisance.propensities.given import observed_rows


@dataclass(frozen=True)
class ConstantPropensity:
    r"""The log's density for every pair, :math:`p = |O| / |D|`: nothing is corrected but the scale.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)
    >>> ConstantPropensity().fit(log).at([0], [1]).tolist()
    [0.5]
    """

    def fit(self, log: FeedbackLog) -> Propensities:
        """Take the log's density."""
        return _Constant(log_with_rows(log))


class _Constant(Propensities):
    assumption = "every pair is as likely to be logged as any other"

    def __init__(self, log: FeedbackLog) -> None:
        super().__init__((log.n_users, log.n_items))
        self.share = log.density

    @cached_property
    def inverse_total(self) -> float:
        return self.shape[0] * self.shape[1] / self.share

    def unfloored(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return np.full(np.broadcast_shapes(users.shape, items.shape), self.share)

    def variance_changes(self, log: FeedbackLog) -> VarianceChange:
        return _ConstantChange(self.share, log.n_cells)


class _ConstantChange:
    """Of one share for all pairs: sums of slopes and of influences tell it."""

    def __init__(self, share: float, n_cells: int) -> None:
        self.share, self.information = share, n_cells * share * (1 - share)

    def of_part(self, at: slice, slopes: Array | None, influence: Array) -> tuple[float, float]:
        return float(own_slopes(slopes, influence).sum()), float(influence.sum())

    def of_sums(self, parts: Iterator[list[Any]], count: int) -> Array:
        slope, joint = (1 - self.share) * sum(map(np.array, parts), np.zeros((count, 2))).T
        if self.information == 0:
            return np.zeros(count)
        return np.asarray((2 * slope * joint + slope**2) / self.information)


@dataclass(frozen=True, kw_only=True)
class PopularityPropensity:
    r"""A power of the item's popularity, :math:`p_i \propto n_i^{\eta}`, scaled to the log's density.

    Items that nobody rated count as half a rating. Saito et al. (2020), "Unbiased recommender learning from
    missing-not-at-random implicit feedback", take :math:`\eta = 1/2`. Its intervals take the propensities as known.

    Parameters
    ----------
    power
        :math:`\eta`; 0 gives the constant model.
    floor
        As in `Propensities`; by default a hundredth of the log's density.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1, 2, 3, 0], [0, 0, 0, 0, 1], [1, 0, 1, 1, 0], n_users=8, n_items=2)
    >>> PopularityPropensity().fit(log).at([0, 0], [0, 1]).round(4).tolist()
    [0.4167, 0.2083]
    """

    power: float = 0.5
    floor: float | None = None

    def fit(self, log: FeedbackLog) -> Propensities:
        """Count the items' rows."""
        power = real_number("power", self.power, above=0, below=10, closed=True)
        counts = np.maximum(np.bincount(log_with_rows(log).items, minlength=log.n_items), 0.5)
        relative = (counts / counts.max()) ** power
        # The most popular items of a dense log would go beyond 1; they are cut there.
        by_item = np.minimum(relative * log.density / relative.mean(), 1.0)
        return _ByItem(by_item, log, default_floor(log, self.floor))


class _ByItem(Propensities):
    assumption = "what gets logged depends on how popular an item is, and on nothing else"

    def __init__(self, by_item: Array, log: FeedbackLog, floor: float) -> None:
        super().__init__((log.n_users, log.n_items), floor)
        self.by_item = by_item

    @cached_property
    def inverse_total(self) -> float:
        return self.shape[0] * float((1 / np.maximum(self.by_item, self.floor)).sum())

    def unfloored(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return np.broadcast_to(self.by_item[items], np.broadcast_shapes(users.shape, items.shape))


@dataclass(frozen=True, kw_only=True)
class NaiveBayesPropensity:
    r"""Propensities that depend on the label alone, :math:`P(o \mid r) = P(r \mid o) P(o) / P(r)`.

    P(r) comes from ratings of pairs that people did not choose (Schnabel et al. 2016, "Recommendations as treatments",
    Section 5). The label of an unobserved pair is not known, so neither is its propensity: asking for it is a
    `PropensityError`.

    Parameters
    ----------
    unbiased
        A log of such ratings, labelled by the same rule; by default the rows that the log marks as `unbiased`.
    floor
        As in `Propensities`; by default a hundredth of the log's density.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1, 2], [0, 1, 0], [1, 1, 0], n_users=3, n_items=2)
    >>> random = FeedbackLog.from_arrays([0, 1, 2, 0], [1, 0, 1, 0], [0, 0, 0, 1], n_users=3, n_items=2)
    >>> NaiveBayesPropensity(unbiased=random).fit(log).at([0, 2], [0, 0]).round(4).tolist()
    [1.0, 0.2222]
    """

    unbiased: FeedbackLog | None = None
    floor: float | None = None

    def fit(self, log: FeedbackLog) -> Propensities:
        """Count labels in the log and in the unbiased sample."""
        sample = self._sample(log_with_rows(checked_log(log)))
        share, in_log = float(sample.labels.mean()), float(log.labels.mean())
        if not 0 < share < 1:
            raise PropensityError(
                f"naive Bayes needs both labels in the unbiased sample; its {len(sample):,} rows have one"
            )
        by_label = np.array([(1 - in_log) / (1 - share), in_log / share]) * log.density
        if (by_label <= 0).any():
            raise PropensityError("naive Bayes needs both labels in the log; it has one")
        return _NaiveBayes(np.minimum(by_label, 1.0), share, len(sample), log, default_floor(log, self.floor))

    def _sample(self, log: FeedbackLog) -> FeedbackLog:
        if self.unbiased is not None:
            return log_with_rows(self.unbiased)
        if log.unbiased is None or not log.unbiased.any():
            raise PropensityError(
                "naive Bayes needs an unbiased sample: give unbiased=..., or a log that marks its rows"
            )
        return log.select(log.unbiased)


class _NaiveBayes(Propensities):
    known_everywhere = False
    depends_on_label = True

    assumption = "what gets logged depends on what is said of it, and on nothing else"

    def __init__(self, by_label: Array, share: float, sample_size: int, log: FeedbackLog, floor: float) -> None:
        super().__init__((log.n_users, log.n_items), floor)
        self.share, self.sample_size = share, sample_size
        self.by_label, self.log = by_label, log

    def unfloored(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return np.asarray(self.by_label[self.log.labels[observed_rows(self.log, users, items)]])

    def variance_changes(self, log: FeedbackLog) -> VarianceChange:
        return _BayesChange(self, log)


class _BayesChange:
    """What the unbiased sample leaves open of P(r), by the delta method; a p of 1 or on the floor stays."""

    def __init__(self, model: _NaiveBayes, log: FeedbackLog) -> None:
        self.model, self.log = model, log

    def of_part(self, at: slice, slopes: Array | None, influence: Array) -> float:
        model, log = self.model, self.log
        p = model.unfloored(log.users[at], log.items[at])
        of_share = np.where(log.labels[at] == 1, -1 / model.share, 1 / (1 - model.share))
        of_share[(p < model.floor) | (p >= 1)] = 0.0
        return float(own_slopes(slopes, influence) @ of_share)

    def of_sums(self, parts: Iterator[list[Any]], count: int) -> Array:
        variance = self.model.share * (1 - self.model.share) / self.model.sample_size
        return np.asarray(sum(map(np.array, parts), np.zeros(count)) ** 2 * variance)


def log_with_rows(log: FeedbackLog) -> FeedbackLog:
    """Accept a log that is not empty."""
    if len(checked_log(log, levels=True)) == 0:
        raise EmptyLogError("propensities cannot be estimated from a log without rows")
    return log
