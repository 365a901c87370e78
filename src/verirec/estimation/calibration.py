"""From scores that are not probabilities to probabilities, by labels: Platt's curve, or an isotonic one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from verirec.checks import one_of, real_number
from verirec.data.cells import CellValues, Positions, pair_positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import Grid
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.data.splits import split
from verirec.estimation.cell_losses import far_outside
from verirec.estimation.coverage import covered_rows
from verirec.estimation.inputs import judgeable
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import PredictionError, ScoreWarning, SurveyError, warn_caller
from verirec.nuisance.surveys import SurveySample
from verirec.randomness import RandomState

Array = npt.NDArray[np.float64]
CalibrationMethod = Literal["platt", "isotonic"]

METHODS: Final = ("platt", "isotonic")
HELD_OUT: Final = 0.2
"""Share of a log's rows that commands set aside for the fit."""
_LOOKED_AT: Final = 100_000
"""Random pairs that stand for all, where it is asked whether predictions are probabilities."""
_STEPS, _HALVINGS = 100, 40


class Curve(Protocol):
    """A function from scores to probabilities strictly between 0 and 1."""

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities, in the shape of the scores."""
        ...

    def logits(self, scores: Array) -> Array | None:
        """Return their logits, where these are what is worked out; else `None`."""
        ...


@dataclass(frozen=True)
class PlattCurve:
    r""":math:`\sigma(b + a (s - m) / t)`: m and t centre and scale the scores."""

    slope: float
    level: float
    centre: float
    scale: float

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities."""
        return np.asarray(expit(self.logits(scores)))

    def logits(self, scores: Array) -> Array:
        """Return the logits."""
        return np.asarray(self.level + self.slope * ((scores - self.centre) / self.scale))


@dataclass(frozen=True, eq=False)
class IsotonicCurve:
    """Straight lines between the ends of steps that never fall; flat beyond the last ones."""

    scores: Array
    values: Array

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities."""
        return np.asarray(np.interp(scores, self.scores, self.values))

    def logits(self, scores: Array) -> None:
        """Return nothing: these are made without logits."""
        return


class CalibratedScores(CellValues):
    """Probabilities made of scores by a curve, worked out where they are asked for.

    Parameters
    ----------
    scores
        Of a grid, or of some of its pairs.
    curve
        From scores to probabilities; the logits of probabilities that are made of logits are its scores.
    """

    def __init__(self, scores: CellValues, curve: Curve) -> None:
        self.shape, self.scores, self.curve = scores.shape, scores, curve
        self.parallel = scores.parallel  # type: ignore[misc]

    @property
    def covered(self) -> npt.NDArray[np.int64] | None:
        """The pairs that have a score."""
        return self.scores.covered

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the probabilities."""
        return self.curve.probabilities(_raw(self.scores, users, items))

    def cell_logits(self, users: Positions, items: Positions) -> npt.NDArray[Any] | None:
        """Return the logits, if the curve is made of such."""
        return self.curve.logits(_raw(self.scores, users, items)) if isinstance(self.curve, PlattCurve) else None

    def __repr__(self) -> str:
        return f"CalibratedScores({self.shape[0]:,} users x {self.shape[1]:,} items, {type(self.curve).__name__})"


def calibrate(
    scores: PredictionsLike,
    log: FeedbackLog,
    *,
    survey: SurveySample | None = None,
    method: CalibrationMethod = "platt",
) -> CalibratedScores:
    r"""Make probabilities of any scores, by the labels of a log or of a survey.

    - "platt": :math:`\sigma(a s + b)` by maximum likelihood. Labels count as :math:`(n_1 + 1)/(n_1 + 2)` and
      :math:`1/(n_0 + 2)` in place of 1 and 0 (Platt, 1999), so that scores which part the classes perfectly get
      a finite curve. Two numbers: a few hundred rows will do, and the order of the scores stays.
    - "isotonic": the curve that never falls and is nearest to the labels (pool adjacent violators), kept
      :math:`1/(n + 2)` away from 0 and 1. Any shape, from some thousand rows on; within a step, scores tie.

    The labels that the curve is fitted to must not judge the result: hold some out for it. The level is that of the
    log's labels, selected and noisy as they are; how right it is, `estimate` says. By a survey it is that of all pairs.

    Parameters
    ----------
    scores
        As `estimate`'s predictions, of any range. Of predictions made of logits, the logits are the scores.
    log
        n rows of both classes, of which those count that the scores cover; row weights are used.
    survey
        Labels of random pairs to take in place of the log's, as they are and weighted by how likely each was drawn.
    method
        "platt" or "isotonic".

    Returns
    -------
    Probabilities of the pairs that the scores cover, for `estimate`, `compare` and all else that takes predictions.

    Examples
    --------
    >>> from verirec import estimate, simulate, split
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> stars = 1 + 4 * world.preferences
    >>> judged, apart = split(world.log, 0.3, random_state=0)
    >>> fitted = calibrate(stars, apart)
    >>> bool(0 < fitted.at([0], [0])[0] < 1)
    True
    >>> p = world.propensity_values
    >>> bool(estimate(fitted, judged, propensities=lambda u, i: 0.7 * p.at(u, i))["dr"].value < 0.69)
    True
    """
    one_of("method", method, METHODS)
    values = as_predictions(scores, judgeable(log).n_users, log.n_items)
    rows = _labelled(values, log) if survey is None else _surveyed(values, survey)
    if method == "isotonic":
        return CalibratedScores(values, _isotonic(rows))
    curve = _platt(rows)
    if curve.slope < 0:
        warn_caller(
            "these scores are lower the more a pair is liked: the calibrated ones turn their order round", ScoreWarning
        )
    return CalibratedScores(values, curve)


def apart_for_calibration(
    pairs: LoggedPairs, share: float = HELD_OUT, random_state: RandomState = 0
) -> tuple[FeedbackLog, LoggedPairs]:
    """Part logged pairs in two: random rows to calibrate by, and the rest to judge by, with thinned propensities."""
    rest, apart = split(pairs.log, real_number("share", share, above=0, below=1), random_state=random_state)
    return apart, LoggedPairs(judgeable(rest), pairs.propensities.thinned(len(rest) / len(pairs.log)))


def are_probabilities(predictions: PredictionsLike, log: FeedbackLog) -> bool:
    """Tell whether predictions stay within 0 and 1, by the logged pairs that they cover and a sample of the others.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0], [0, 1], [1, 0], n_users=1, n_items=3)
    >>> are_probabilities([[0.2, 0.4, 1.0]], log), are_probabilities([[0.2, 3.0, 1.0]], log)
    (True, False)
    """
    values = as_predictions(predictions, log.n_users, log.n_items)
    covered = covered_rows(values, log)
    kept = slice(None) if covered is None else covered
    if far_outside(values.cells(log.users[kept], log.items[kept])):
        return False
    if covered is not None:
        return True
    pairs = Grid(log.shape).sample(min(_LOOKED_AT, 4 * log.n_cells), np.random.default_rng(0))
    return not far_outside(values.cells(*pairs))


def _raw(values: CellValues, users: Positions, items: Positions) -> Array:
    """Return what is calibrated: logits, or else the values themselves."""
    logits = values.cell_logits(users, items)
    return np.asarray(values.cells(users, items) if logits is None else logits, dtype=np.float64)


class _Labelled(NamedTuple):
    scores: Array
    labels: Array
    weights: Array


def _labelled(values: CellValues, log: FeedbackLog) -> _Labelled:
    """Return scores, labels and weights (1 on average) of the rows that the scores cover."""
    covered = covered_rows(values, log)
    if covered is not None:
        log = judgeable(log.select(covered))
    weights = np.ones(len(log)) if log.weights is None else log.weights
    return _weighted(_raw(values, log.users, log.items), log.labels, weights)


def _surveyed(values: CellValues, survey: SurveySample) -> _Labelled:
    """Return the same of a survey's pairs."""
    if not isinstance(survey, SurveySample):
        raise SurveyError(f"survey must be a SurveySample; got {type(survey).__name__}")
    if len(np.unique(survey.labels)) < 2:
        raise SurveyError(f"calibration needs surveyed pairs of both classes; all {len(survey):,} are of one")
    positions = pair_positions(survey.users, survey.items, values.shape)
    chances = np.ones(len(survey)) if survey.probabilities is None else survey.probabilities
    return _weighted(_raw(values, *positions), survey.labels, chances.min() / chances)


def _weighted(scores: Array, labels: npt.NDArray[np.int8], weights: Array) -> _Labelled:
    wrong = int((~np.isfinite(scores)).sum())
    if wrong:
        raise PredictionError(f"scores must be finite; {wrong:,} of {len(scores):,} are not")
    return _Labelled(scores, labels.astype(np.float64), weights / weights.mean())


def _platt(rows: _Labelled) -> PlattCurve:
    # Divided by the largest first: the square of a large score is no float.
    largest = float(np.abs(rows.scores).max()) or 1.0
    mean, spread = float((rows.scores / largest).mean()), float((rows.scores / largest).std())
    centre, scale = mean * largest, (spread if spread > np.finfo(float).eps else 1.0) * largest
    liked = float(rows.weights @ rows.labels)
    disliked = float(rows.weights.sum()) - liked
    targets = np.where(rows.labels == 1, (liked + 1) / (liked + 2), 1 / (disliked + 2))
    slope, level = _logistic((rows.scores - centre) / scale, targets, rows.weights)
    return PlattCurve(slope, level, centre, scale)


def _logistic(scores: Array, targets: Array, weights: Array) -> tuple[float, float]:
    """Fit slope and level by Newton's method, each step halved until the loss falls."""

    def loss(at: Array) -> float:
        logits = at[0] * scores + at[1]
        return float(weights @ (np.logaddexp(0, logits) - targets * logits))

    found = np.array([0.0, logit(weights @ targets / weights.sum())])
    lowest = loss(found)
    for _ in range(_STEPS):
        f = expit(found[0] * scores + found[1])
        rest, curvature = weights * (f - targets), weights * f * (1 - f)
        gradient = np.array([rest @ scores, rest.sum()])
        mixed = curvature @ scores
        hessian = np.array([[curvature @ scores**2, mixed], [mixed, curvature.sum()]])
        # Where all scores are one and the same, there is no slope to tell.
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0]
        sizes = 0.5 ** np.arange(_HALVINGS)
        better = next((found - size * step for size in sizes if loss(found - size * step) < lowest), None)
        if better is None:
            break
        found, lowest = better, loss(better)
    return float(found[0]), float(found[1])


def _isotonic(rows: _Labelled) -> IsotonicCurve:
    from scipy.optimize import isotonic_regression  # Takes long to import, and is not always needed.

    distinct, place = np.unique(rows.scores, return_inverse=True)
    weights = np.bincount(place, weights=rows.weights)
    means = np.bincount(place, weights=rows.weights * rows.labels) / weights
    fitted = isotonic_regression(means, weights=weights)
    ends = np.unique(np.concatenate([fitted.blocks[:-1], fitted.blocks[1:] - 1]))
    least = 1 / (len(rows.labels) + 2)
    return IsotonicCurve(distinct[ends], np.clip(fitted.x[ends], least, 1 - least))
