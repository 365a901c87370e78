"""How much taste decides what people log: what a survey of pairs that nobody logged says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, stdtrit

from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import SHORT, counts, over_parts, totals
from verirec.estimation.inputs import Noise, Rates, checked_rates, judgeable
from verirec.estimation.intervals import checked_confidence
from verirec.estimation.survey.draws import Draws, draws_of, self_selected, target_of
from verirec.exceptions import SurveyError
from verirec.formatting import html_table
from verirec.losses import CorrectedLabels, correct_labels
from verirec.nuisance.label_model import LabelModel, LabelProbabilities
from verirec.nuisance.propensities import as_propensities
from verirec.nuisance.small_logistic import SmallFit, SmallRows, fit_small, fit_small_parts
from verirec.nuisance.surveys import SurveySample
from verirec.randomness import FOLDS_STREAM, RandomState, as_generator
from verirec.scratch import each

Array = npt.NDArray[np.float64]

_FOLDS: Final = 4
_ROUNDS: Final = 12
_STEP: Final = 0.05
_MOST_FOLLOWED: Final = 0.8
_WEAK: Final = 0.1
"""A belief in no selection by taste worth a tenth of a row, so that a survey of one class has a finite delta."""


_STEEP: Final = 3.0
"""Standard errors above which delta is not the same for all pairs."""


class Slope(NamedTuple):
    """By how much delta rises with one standard deviation."""

    value: float
    standard_error: float

    @property
    def steep(self) -> bool:
        """Whether it is farther from 0 than chance explains."""
        return abs(self.value) > _STEEP * self.standard_error


@dataclass(frozen=True)
class SelectionStrength:
    """Delta, the log of how much larger the odds of being logged are for a pair that is liked.

    Parameters
    ----------
    value, standard_error, interval, confidence
        Of delta: 0 if selection is by user and item alone.
    slopes
        By how much it rises with the log of a user's "activity" and of an item's "popularity", per standard deviation:
        far from 0, no one delta holds for all pairs.
    diagnostics
        What it rests on.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    confidence: float
    slopes: dict[str, Slope]
    diagnostics: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def odds_ratio(self) -> tuple[float, float, float]:
        """How many times the odds of being logged are if a pair is liked: by delta, and by the ends of its interval."""
        with np.errstate(over="ignore"):  # An interval without an end has a ratio without one.
            value, low, high = np.exp([self.value, *self.interval])
        return float(value), float(low), float(high)

    def to_dict(self) -> dict[str, Any]:
        """Return delta, its interval, the odds ratio and the slopes as plain numbers; an infinite one is `None`."""
        told = (one if np.isfinite(one) else None for one in self.odds_ratio)
        ratio = dict(zip(("value", "low", "high"), told, strict=True))
        return {
            "value": self.value,
            "low": self.interval[0],
            "high": self.interval[1],
            "standard_error": self.standard_error,
            "odds_ratio": ratio,
            "slopes": {name: one._asdict() for name, one in self.slopes.items()},
        }

    def _repr_html_(self) -> str:
        rows = {
            "delta": f"{self.value:.3g}",
            "standard error": f"{self.standard_error:.2g}",
            f"{self.confidence:.4g} interval": f"{self.interval[0]:.3g} to {self.interval[1]:.3g}",
        }
        rows |= {f"slope by {name}": f"{one.value:.2g} ± {one.standard_error:.2g}" for name, one in self.slopes.items()}
        return html_table("How much taste decides what is logged", rows)


@dataclass(frozen=True, eq=False)
class LoggedTaste:
    r"""What people like of what they log: :math:`logit P(r^* = 1 | o = 1) = x = a + b z`.

    z is the logit of a label model of user and item constants, cross-fitted and forward-corrected for noise; a and b
    solve :math:`\sum_O w (\tilde r - \sigma(x)) (1, z) = 0`. With w the odds of *not* being logged if disliked,
    :math:`e^{-\beta_u - \gamma_i}`, likes and dislikes among the weighted rows of any set of pairs are
    :math:`e^\delta` and 1 times those among its unlogged pairs, so that x need not tell all pairs apart.

    Parameters
    ----------
    log
        Rows that people chose themselves.
    labels
        Of the rows, corrected.
    model
        Of z.
    logits
        z of the rows, from models that have not seen them; shape (n,).
    odds
        w of each row, shape (n,).
    """

    log: FeedbackLog
    labels: CorrectedLabels
    model: LabelProbabilities
    logits: Array
    odds: Array

    @classmethod
    def of(cls, log: FeedbackLog, rates: Rates | None, odds: Array, seed: int) -> LoggedTaste:
        """Fit the label model to a log, at its noise rates if they are known; `seed` is that of the folds."""
        ones, random = np.broadcast_to(1.0, len(log)), np.random.default_rng([seed, FOLDS_STREAM])
        held_out = LabelModel().cross_fit(log, ones, _FOLDS, random, rates)
        return cls(
            log,
            correct_labels(log.labels, rates, log.users, log.items, log=log.fingerprint, in_parts=True),
            LabelModel().fit(log, ones, rates),
            each(logit, held_out),
            odds,
        )

    def features(self, at: slice) -> Array:
        """(1, z) of some rows, shape (m, 2)."""
        logits = self.logits[at]
        return np.stack([np.ones_like(logits), logits], axis=1)

    @cached_property
    def weights(self) -> Array:
        """w, of mean 1."""
        return each(np.divide, self.odds, self.odds.mean()) if self.odds.any() else self._ones

    @property
    def _ones(self) -> Array:
        return each(np.ones_like, self.odds)

    def _fit(self, weights: Array) -> tuple[Array, Array]:
        def rows(at: slice) -> SmallRows:
            return SmallRows(self.features(at), self.labels.values[at], weights[at])

        return fit_small_parts(rows, len(self.log), np.array([0.0, 1.0]), settled=True)

    @cached_property
    def fitted(self) -> tuple[Array, Array]:
        """(a, b), and the inverse of the information, shape (2, 2)."""
        return self._fit(self.weights)

    @property
    def coefficients(self) -> Array:
        """(a, b)."""
        return self.fitted[0]

    @property
    def liked(self) -> Array:
        """P(r* = 1) of the rows, each by a model that has seen its label too, shape (n,).

        Weights are convex in it: what is known of a row's own label has to be in it, or users and items of many likes
        weigh too little and delta is too small (by a tenth, at 30 rows a user).
        """
        level, _ = self._fit(self._ones)
        return self.at(level).at(self.log.users, self.log.items)

    def row_influence(self, at: slice) -> Array:
        """By how much each of some rows moves (a, b), shape (m, 2)."""
        features, (coefficients, inverse) = self.features(at), self.fitted
        rest = self.weights[at] * (self.labels.values[at] - expit(features @ coefficients))
        return np.asarray((features * rest[:, None]) @ inverse)

    def label_influence(self, at: slice) -> Array:
        """By how much the labels of some rows move (a, b), per unit, shape (m, 2)."""
        return np.asarray((self.features(at) * self.weights[at][:, None]) @ self.fitted[1])

    @cached_property
    def by_rate(self) -> Array:
        """Derivatives of (a, b) by each uncertain noise rate, shape (2, rates)."""

        def visit(at: slice) -> Array:
            weighted = self.fitted[1] @ (self.features(at) * self.weights[at][:, None]).T
            return np.asarray(weighted @ self.rate_slopes(at).T)

        return np.asarray(sum(self.over_rows(visit)))

    def rate_slopes(self, at: slice) -> Array:
        """Derivatives of some rows' labels by each uncertain noise rate, shape (rates, m)."""
        slopes = [by_rate[at] for by_rate in self.labels.slopes]
        return np.array(slopes).reshape(len(slopes), len(self.logits[at]))

    def over_rows(self, visit: Callable[[slice], Any]) -> list[Any]:
        """Apply a function to each part of the rows; nothing of their number is made."""
        _ = self.fitted, self.weights  # Made once, before threads ask for them.
        return over_parts(visit, len(self.log), size=SHORT)

    def weighted(self, odds: Array) -> LoggedTaste:
        """Return the same log's with other weights."""
        return replace(self, odds=odds)

    def at(self, coefficients: Array) -> LabelProbabilities:
        """Return the probabilities of all pairs at some (a, b)."""
        a, b = coefficients
        return LabelProbabilities(float(a + b * self.model.level), b * self.model.users, b * self.model.items)


@dataclass(frozen=True, eq=False)
class Tilt:
    r"""The model that unlogged pairs have the logged ones' logits less delta: -delta is an intercept of survey labels.

    From Bayes' rule, :math:`logit P(r^* = 1 | o = 0) = logit P(r^* = 1 | o = 1) - \delta` for any probability of being
    logged whose log-odds rise by delta where a pair is liked.

    Parameters
    ----------
    taste
        Of logged pairs.
    draws
        A survey's.
    gain
        By how much more a change of delta's data moves delta, as the rows' weights follow it.
    """

    taste: LoggedTaste
    draws: Draws
    gain: float = 1.0

    @classmethod
    def settled(cls, log: FeedbackLog, rates: Rates | None, draws: Draws, p: Array, seed: int) -> Tilt:
        r"""Find delta and the rows' weights, each of which follows from the other.

        With q of what is liked among logged pairs, :math:`e^{-b} = \frac{1-p}{p} / (1 - q + q e^{-\delta})`.

        Parameters
        ----------
        log, rates, draws, seed
            As in `LoggedTaste` and `Tilt`.
        p
            How likely each row was to be logged, by user and item alone, shape (n,).
        """
        odds = each(lambda p: (1 - p) / p, p)
        found = cls(LoggedTaste.of(log, rates, odds, seed), draws)
        liked = found.taste.liked

        def at(delta: float) -> Tilt:
            factor = np.exp(-delta)
            return cls(found.taste.weighted(each(lambda odds, q: odds / (1 - q + q * factor), odds, liked)), draws)

        for _ in range(_ROUNDS):
            found = at(found.delta)
        follows = (at(found.delta + _STEP).delta - at(found.delta - _STEP).delta) / (2 * _STEP)
        return replace(found, gain=1 / (1 - min(follows, _MOST_FOLLOWED)))

    @cached_property
    def unlogged(self) -> npt.NDArray[np.intp]:
        """Which draws are of pairs that nobody logged."""
        found = np.flatnonzero(~self.draws.logged)
        if len(found) == 0:
            raise SurveyError("how much taste decides what is logged needs surveyed pairs that nobody logged; got none")
        return found

    @cached_property
    def _weights(self) -> Array:
        shares = self.draws.shares[self.unlogged]
        return np.asarray(shares / (shares @ shares) * shares.sum())

    @cached_property
    def _offset_features(self) -> Array:
        draws, rows = self.draws, self.unlogged
        logits = self.taste.model.cell_logits(draws.users[rows], draws.items[rows])
        return np.stack([np.ones_like(logits), logits], axis=1)

    def fit(self, features: Array, coefficients: Array) -> SmallFit:
        """Fit minus delta, as a function of features of the unlogged draws, at some (a, b)."""
        labels, offset = self.draws.labels.values[self.unlogged], self._offset_features @ coefficients
        start = np.zeros(features.shape[1])
        return fit_small(features, labels, self._weights, start, offset=offset, penalty=_WEAK)

    def influences(self, features: Array, fitted: SmallFit) -> tuple[Array, Array, Array]:
        """Return what moves delta: each draw, shape (n, k); (a, b), (k, 2); and the noise rates, (k, rates)."""
        rest = self._weights * (self.draws.labels.values[self.unlogged] - fitted.liked)
        by_draw = np.zeros((len(self.draws), features.shape[1]))
        by_draw[self.unlogged] = -self.gain * (features * rest[:, None]) @ fitted.inverse
        bend = self._weights * fitted.liked * (1 - fitted.liked)
        by_taste = self.gain * fitted.inverse @ (features * bend[:, None]).T @ self._offset_features
        by_rate = by_taste @ self.taste.by_rate
        if self.draws.labels.slopes and by_rate.shape[1]:
            slopes = np.array(self.draws.labels.slopes)[:, self.unlogged]
            by_rate = by_rate - self.gain * fitted.inverse @ (features * self._weights[:, None]).T @ slopes.T
        return by_draw, by_taste, by_rate

    @cached_property
    def common(self) -> SmallFit:
        """One delta for all pairs."""
        return self.fit(np.ones((len(self.unlogged), 1)), self.taste.coefficients)

    @property
    def delta(self) -> float:
        """The common one."""
        return -float(self.common.coefficients[0])

    def covariance(self, features: Array, fitted: SmallFit) -> Array:
        """Return the covariance of delta's coefficients: of the draws by cluster, of the log's rows, of the rates."""
        by_draw, by_taste, by_rate = self.influences(features, fitted)
        groups = self.draws.groups
        sums = np.stack([totals(self.draws.clusters, column, groups) for column in by_draw.T], axis=1)

        def squares(at: slice) -> Array:
            by_row = self.taste.row_influence(at) @ by_taste.T
            return np.asarray(by_row.T @ by_row)

        found = sums.T @ sums * self.draws.factor() + sum(self.taste.over_rows(squares))
        if self.taste.labels.covariance is not None and by_rate.shape[1]:
            found = found + by_rate @ self.taste.labels.covariance @ by_rate.T
        return np.asarray(found)

    def standard_error(self) -> float:
        """Of the common delta."""
        return float(np.sqrt(self.covariance(np.ones((len(self.unlogged), 1)), self.common)[0, 0]))

    def slopes(self) -> dict[str, Slope]:
        """Return by how much delta rises with users' activity and items' popularity."""
        log, draws, rows = self.taste.log, self.draws, self.unlogged
        columns = [np.ones(len(rows))]
        for positions, size, own in (
            (draws.users, log.n_users, log.users),
            (draws.items, log.n_items, log.items),
        ):
            activity = np.log1p(counts(own, size))
            columns.append((activity[positions[rows]] - activity.mean()) / (activity.std() or 1.0))
        features = np.stack(columns, axis=1)
        fitted = self.fit(features, self.taste.coefficients)
        errors = np.sqrt(np.diag(self.covariance(features, fitted)))
        return {
            name: Slope(-float(fitted.coefficients[at]), float(errors[at]))
            for at, name in ((1, "activity"), (2, "popularity"))
        }

    def facts(self) -> dict[str, Any]:
        """What to report of delta."""
        return {"delta": self.delta, "delta_standard_error": self.standard_error(), "slopes": self.slopes()}


def selection_strength(
    log: FeedbackLog,
    survey: SurveySample,
    noise_rates: Noise = None,
    *,
    propensities: Any = None,
    exclude: Any = None,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> SelectionStrength:
    r"""Estimate how much more readily people log what they like: delta, the log of an odds ratio.

    In the model :math:`P(o = 1) = \sigma(\beta_u + \gamma_i + \delta r^*)`, unlogged pairs have the logits of logged
    ones less delta, :math:`logit P(r^* = 1 | o = 0) = logit P(r^* = 1 | o = 1) - \delta`. What logged pairs are like
    is learnt from the log; minus delta is the intercept of the labels of unlogged surveyed pairs with that as offset.
    The standard error has both, and that of the noise rates.

    Parameters
    ----------
    log
        n rows, of both classes; rows shown at random are left out.
    survey
        True labels of random pairs, some of them unlogged.
    noise_rates
        Of the log's labels. Without them these are taken as true, and the interval knows nothing of their noise: likes
        logged as dislikes make delta too small, which is the usual way to err, and dislikes logged as likes too large.
    propensities
        How likely pairs are to be logged by user and item; by default a logistic model.
    exclude
        Pairs that are not spoken of.
    confidence
        Of the interval.
    random_state
        Of the label model's folds.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> random = np.random.default_rng(0)
    >>> users, items = random.integers(200, size=800), random.integers(300, size=800)
    >>> survey = SurveySample(users, items, world.true_labels[users, items])
    >>> found = selection_strength(world.log, survey, world.noise_rates)
    >>> found.interval[0] > 0
    True
    """
    rates = checked_rates(noise_rates, judgeable(log))
    target = target_of(survey, log, exclude)
    draws = draws_of(survey, target, log, rates)
    own = self_selected(log)
    p = as_propensities(propensities, log).at(own.users, own.items)
    seed = int(as_generator(random_state).integers(2**32))
    tilt = Tilt.settled(own, rates, draws, p, seed)
    level, value, error = checked_confidence(confidence), tilt.delta, tilt.standard_error()
    reach = float(stdtrit(draws.freedom, (1 + level) / 2)) * error
    facts = draws.facts | {"unlogged": len(tilt.unlogged), "odds_ratio": float(np.exp(value))}
    return SelectionStrength(value, error, (value - reach, value + reach), level, tilt.slopes(), facts)
