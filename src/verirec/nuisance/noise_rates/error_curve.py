r"""How often labels are wrong along a score: people err near their threshold.

With z the logit of what is said at a score, :math:`h = \sigma(z) = P(r = 1)`, the chance that a label is wrong is

.. math:: logit P(r \ne r^* \mid r^*, z) = a + b z + c \log 4 h (1 - h)

with numbers of its own for likes and for dislikes. The last term is 0 at the threshold, where people are as likely to
say one thing as the other, and falls like -|z| away from it: c > 0 says that they err near it; b is by how much more
they err on one side. The numbers are fitted to the audited rows, b and c shrunk towards 0 by a weak ridge penalty, so
that they are finite; bands are of single scores, from the inverse of the penalised information. They hold if rates
have this form, which is tested (`verirec.nuisance.noise_rates.curve_form`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag
from scipy.special import expit, logit, ndtri

from verirec.checks import real_number, whole_number
from verirec.data.cells import CellValues
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.exceptions import AuditError, MisfitWarning, ParameterError, warn_caller
from verirec.losses import CorrectedLabels
from verirec.nuisance.noise_rates.curve_form import FittedRows, form_p_value
from verirec.nuisance.noise_rates.samples import AuditSample
from verirec.nuisance.noise_rates.score_scale import Scale
from verirec.nuisance.noise_rates.strata import FOLDS_SEED, score_rows
from verirec.nuisance.small_logistic import SmallFit, fit_small
from verirec.randomness import RandomState, as_generator

Array = npt.NDArray[np.float64]

_STEEPEST: Final = 30.0
_PENALTY: Final = 0.1
"""On the square of a number times its feature's standard deviation, in rows: a whole row flattens what people do."""
_POINTS: Final = 21
_MOST_LEVERAGE: Final = 0.5
_DOUBTED: Final = 0.01
"""The p-value up to which it is warned that a curve has not the form of the rates."""
_FEWEST: Final = 10
"""Audited rows of a class that a curve is fitted to at least."""


class Band(NamedTuple):
    """A curve and its band, shape (n,) each."""

    values: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class Curve:
    """A logistic curve in z: coefficients of 1, z and log 4h(1-h), and their covariance."""

    coefficients: Array
    covariance: Array

    @classmethod
    def fitted(cls, logits: Array, labels: Array, weights: Array) -> Curve:
        """Fit to rows; the penalty is that of features of standard deviation 1."""
        features = _features(logits)
        spread = features.std(axis=0)
        penalty = np.maximum(_PENALTY * spread**2, 1e-3)
        share = float(np.clip((weights @ labels + 0.5) / (weights.sum() + 1), 0.001, 0.999))
        prior = np.array([logit(share), 0.0, 0.0])
        penalty[0] = _PENALTY
        found: SmallFit = fit_small(features, labels, weights, prior, penalty=penalty)
        return cls(found.coefficients, found.inverse)

    def at(self, logits: Array) -> Array:
        """Return the chances."""
        return np.asarray(expit(_features(logits) @ self.coefficients))

    def band(self, logits: Array, confidence: float) -> Band:
        """Return the chances with a band of single ones."""
        middle = _features(logits) @ self.coefficients
        reach = float(ndtri((1 + confidence) / 2)) * np.sqrt(self._variances(logits))
        return Band(expit(middle), expit(middle - reach), expit(middle + reach))

    def leverage(self, logits: Array, weights: Array) -> Array:
        """Return by how much the chances of fitted rows rest on their own labels."""
        chances = self.at(logits)
        return np.asarray(np.minimum(weights * chances * (1 - chances) * self._variances(logits), _MOST_LEVERAGE))

    def _variances(self, logits: Array) -> Array:
        """Return those of the curve's own logits."""
        features = _features(logits)
        return np.asarray(np.einsum("ni,ij,nj->n", features, self.covariance, features))


def _features(logits: Array) -> Array:
    z = np.clip(logits, -_STEEPEST, _STEEPEST)
    # log 4h(1-h), without 1 - h, which has no digits left where h is near 1
    undecided = np.log(4.0) - np.logaddexp(0, z) - np.logaddexp(0, -z)
    return np.stack([np.ones_like(z), z, undecided], axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class ErrorCurve:
    """How often likes and dislikes are logged as their opposites, along a score; a control variate for "audited-dr".

    Parameters
    ----------
    log
        The log that was audited.
    scale
        From scores to logits of what is said.
    scores
        Of the log's rows.
    likes, dislikes
        Curves of rho01 and of rho10.
    truths
        Curves of P(r* = 1) of rows logged as 0 and as 1: what is expected of their true labels.
    audited
        Scores, true labels and logged labels of the audited rows.
    audit
        What it was found from.
    weights
        Of each audited pair in the fit: rows of equal weight that it is worth.
    p_value
        Of the test of the curves' form: small where rates along the score are not as any curve of this form has them.
        The bands hold only if they are.
    """

    log: FeedbackLog
    scale: Scale
    scores: CellValues
    likes: Curve
    dislikes: Curve
    truths: tuple[Curve, Curve]
    audited: tuple[Array, npt.NDArray[np.int8], npt.NDArray[np.int8]]
    audit: AuditSample
    weights: CellValues
    p_value: float

    def rho01(self, scores: npt.ArrayLike, confidence: float = 0.95) -> Band:
        """Return how often likes are logged as dislikes at some scores, with the band of each."""
        return self.likes.band(self.scale.logits_of(scores), _level(confidence))

    def rho10(self, scores: npt.ArrayLike, confidence: float = 0.95) -> Band:
        """Return how often dislikes are logged as likes at some scores, with the band of each."""
        return self.dislikes.band(self.scale.logits_of(scores), _level(confidence))

    def expected(self, log: FeedbackLog) -> CorrectedLabels:
        """Return what is expected of the true labels of a log's rows, given what was logged and the score."""
        logits = self.scale.logits(self.scores.at(log.users, log.items))
        values = np.where(log.labels == 1, self.truths[1].at(logits), self.truths[0].at(logits))
        return CorrectedLabels(values, np.broadcast_to(0.0, values.shape))

    def leverage(self, log: FeedbackLog, rows: npt.NDArray[np.int64]) -> Array:
        """Return by how much what is expected of audited rows of a log rests on their own true labels, shape (m,)."""
        pairs = log.users[rows], log.items[rows]
        given = self.scale.logits(self.scores.at(*pairs)), self.weights.at(*pairs)
        return np.where(log.labels[rows] == 1, self.truths[1].leverage(*given), self.truths[0].leverage(*given))

    @property
    def span(self) -> tuple[float, float]:
        """The scores that nine in ten of the audited rows have."""
        low, high = np.quantile(self.audited[0], [0.05, 0.95])
        return float(low), float(high)

    def shares(self, parts: int = 6) -> dict[str, Array]:
        """Return the audit's own shares of wrong labels in equal parts of its rows, by class.

        Returns
        -------
        For "rho01" and "rho10" an array of shape (parts, 3): mean score, share of wrong labels, and rows.
        """
        most = whole_number("parts", parts)
        scores, truths, said = self.audited
        found = {}
        for name, truth in (("rho01", 1), ("rho10", 0)):
            own = np.flatnonzero(truths == truth)
            order = own[np.argsort(scores[own], kind="stable")]
            found[name] = np.array(
                [
                    (scores[part].mean(), (said[part] != truth).mean(), len(part))
                    for part in np.array_split(order, min(most, max(len(own) // 5, 1)))
                ]
            )
        return found

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """Return both curves with their bands at some scores as plain numbers, ready for JSON."""
        at = np.linspace(*self.span, _POINTS)
        bands = {name: getattr(self, name)(at, confidence) for name in ("rho01", "rho10")}
        return {"scores": at.tolist()} | {
            name: {part: values.tolist() for part, values in band._asdict().items()} for name, band in bands.items()
        }

    def __repr__(self) -> str:
        ends = [f"{float(value):.3g}" for value in np.quantile(self.audited[0], [0.1, 0.5, 0.9])]
        told = [
            f"{name} {', '.join(f'{value:.3f}' for value in getattr(self, name)([float(end) for end in ends]).values)}"
            for name in ("rho01", "rho10")
        ]
        return f"ErrorCurve({len(self.audited[0])} audited rows; at scores {', '.join(ends)}: {'; '.join(told)})"


@dataclass(frozen=True, kw_only=True)
class AuditErrorCurve:
    """Estimate how often labels are wrong along a score, from an audit of a binary log.

    Parameters
    ----------
    random_state
        Of the score's folds.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=200, n_items=300, near_threshold=True, random_state=0)
    >>> rows = np.random.default_rng(0).choice(len(world.log), 800, replace=False)
    >>> users, items = world.log.users[rows], world.log.items[rows]
    >>> audit = AuditSample(users, items, world.at(users, items).true_labels)
    >>> curve = AuditErrorCurve().fit(world.log, audit=audit, scores=world.preferences)
    >>> curve.rho01([0.1, 0.5, 0.9]).values.round(2).tolist()
    [0.14, 0.2, 0.07]
    """

    random_state: RandomState = FOLDS_SEED

    def fit(self, log: FeedbackLog, *, audit: AuditSample, scores: PredictionsLike | None = None) -> ErrorCurve:
        """Fit the curves to the audited rows of a log; warn where rates have not their form (`MisfitWarning`).

        Parameters
        ----------
        log, audit
            A binary log, and true labels of some of its pairs.
        scores
            Of all logged pairs, in any form of predictions, by a model that was not fitted to these labels; by default
            user and item constants, cross-fitted.
        """
        if not isinstance(audit, AuditSample):
            raise ParameterError(f"audit must be an AuditSample; got {type(audit).__name__}")
        rows, truths, chances = audit.rows_in(checked_log(log))
        _refuse_few(truths, log.labels[rows])
        scored = score_rows(log, None, scores, folds=5, random=as_generator(self.random_state)).astype(np.float64)
        scale = Scale.of(scored, log.labels)
        said, weights = log.labels[rows], 1 / chances
        # As many rows of equal weight as these are worth (Kish).
        weights = weights * weights.sum() / (weights @ weights)
        logits = scale.logits(scored[rows])

        def curve(inside: npt.NDArray[np.bool_], labels: npt.NDArray[np.bool_]) -> Curve:
            return Curve.fitted(logits[inside], labels[inside].astype(np.float64), weights[inside])

        curves = curve(truths == 1, said == 0), curve(truths == 0, said == 1)
        p_value = form_p_value(_fitted(curves, scored[rows], logits, weights, truths, said))
        if p_value <= _DOUBTED:
            warn_caller(
                f"shares of wrong labels along the score are not as an error curve has them (p = {p_value:.3g}): its "
                'bands may miss them; AuditErrors(strata_of="score") takes no form for granted',
                MisfitWarning,
            )
        return ErrorCurve(
            log,
            scale,
            as_predictions((log.users, log.items, scored), *log.shape),
            *curves,
            (curve(said == 0, truths == 1), curve(said == 1, truths == 1)),
            (scored[rows], truths, said),
            audit,
            as_predictions((log.users[rows], log.items[rows], weights), *log.shape),
            p_value,
        )


def _fitted(
    curves: tuple[Curve, Curve],
    scores: Array,
    logits: Array,
    weights: Array,
    truths: npt.NDArray[np.int8],
    said: npt.NDArray[np.int8],
) -> FittedRows:
    """Put both classes' rows together: what both curves miss at one score adds up."""
    liked = truths == 1
    likes, dislikes = curves
    chances = np.where(liked, likes.at(logits), dislikes.at(logits))
    features = np.hstack([_features(logits) * own[:, None] for own in (liked, ~liked)])
    covariance = block_diag(likes.covariance, dislikes.covariance)
    return FittedRows(scores, (said != truths).astype(np.float64), weights, chances, features, covariance)


def _refuse_few(truths: npt.NDArray[np.int8], said: npt.NDArray[np.int8]) -> None:
    if said.min() == said.max():
        raise AuditError(f"an error curve needs audited pairs of both logged labels; all {len(said):,} are {said[0]}")
    likes = int(truths.sum())
    if min(likes, len(truths) - likes) < _FEWEST:
        raise AuditError(
            f"an error curve needs at least {_FEWEST} audited pairs that are truly liked and as many that are not; got "
            f"{likes:,} and {len(truths) - likes:,}"
        )


def _level(confidence: object) -> float:
    return real_number("confidence", confidence, above=0, below=1)
