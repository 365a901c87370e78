"""From scores that are not probabilities to probabilities, by labels: Platt's curve, or an isotonic one."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from verirec.checks import one_of, real_number
from verirec.data.cells import CellValues, Positions, cell_keys, pair_positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import Grid
from verirec.data.predictions import LinkedFactors, PredictionsLike, as_predictions
from verirec.data.splits import split
from verirec.estimation.cell_losses import CellLosses, coin_losses, far_outside, worse_than_a_coin
from verirec.estimation.coverage import covered_rows
from verirec.estimation.curves import Curve, LabelledScores, PlattCurve, isotonic_curve, levelled_curve, platt_curve
from verirec.estimation.inputs import Rates, judgeable, predictions_for
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import PredictionError, ScoreWarning, SurveyError, SurveyWarning, warn_caller
from verirec.losses import correct_labels, get_loss
from verirec.nuisance.surveys import SurveySample, check_of_all
from verirec.randomness import RandomState

Array = npt.NDArray[np.float64]
CalibrationMethod = Literal["platt", "isotonic"]

METHODS: Final = ("platt", "isotonic")
HELD_OUT: Final = 0.2
"""Share of a log's rows that commands set aside for the fit."""
_LOOKED_AT: Final = 100_000
"""Random pairs that stand for all, where it is asked whether predictions are probabilities."""


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
        self.trained_on = scores.trained_on

    @property
    def covered(self) -> npt.NDArray[np.int64] | None:
        """The pairs that have a score."""
        return self.scores.covered

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the probabilities."""
        return self.curve.probabilities(raw_scores(self.scores, users, items))

    def cell_logits(self, users: Positions, items: Positions) -> npt.NDArray[Any] | None:
        """Return the logits, if the curve is made of such."""
        return self.curve.logits(raw_scores(self.scores, users, items)) if isinstance(self.curve, PlattCurve) else None

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
    values = predictions_for(scores, judgeable(log))
    if values.ranks_only:
        raise PredictionError("top-k lists have no scores to calibrate: judge their ranking, by estimate_ranking")
    rows = _labelled(values, log) if survey is None else surveyed_rows(values, survey)
    if survey is not None and len(np.unique(survey.labels)) < 2:
        raise SurveyError(f"calibration needs surveyed pairs of both classes; all {len(survey):,} are of one")
    return CalibratedScores(values, fitted_curve(rows, method))


def fitted_curve(rows: LabelledScores, method: CalibrationMethod) -> Curve:
    """Fit a curve to labelled scores of both classes; warn where it turns their order round."""
    if method == "isotonic":
        return isotonic_curve(rows)
    curve = platt_curve(rows)
    if curve.slope < 0:
        warn_caller(
            "these scores are lower the more a pair is liked: the calibrated ones turn their order round", ScoreWarning
        )
    return curve


def level_by_survey(logits: CellValues, survey: SurveySample, rates: Rates | None = None) -> PlattCurve:
    """Put a trained model's level and slope right by true labels of random pairs: see `levelled_curve`.

    Unlike `calibrate` it takes the model's logits for nearly right, so that few labels, or labels of one class, do.

    Parameters
    ----------
    logits
        Probabilities made of logits.
    survey
        Pairs that the model was not trained on: on others it is surer than it should be. A pair that was asked about
        several times counts once.
    rates
        Noise rates, with which labels of a noisy survey are corrected.
    """
    rows = surveyed_rows(logits, survey)
    liked = int(survey.labels.sum())
    both = 0 < liked < len(survey)
    if not both:
        warn_caller(
            f"all {len(survey):,} surveyed pairs are {'liked' if liked else 'disliked'}: they tell the "
            "level alone, and that roughly",
            SurveyWarning,
        )
    if survey.noisy:
        if rates is None:
            raise SurveyError("a noisy survey needs noise rates to be corrected with: noise_rates=...")
        rows = rows._replace(labels=correct_labels(survey.labels, rates, survey.users, survey.items).values)
    curve = levelled_curve(_once_each(rows, survey), both_classes=both)
    if curve.slope == 0:
        warn_caller(
            f"by the {len(survey):,} surveyed pairs what the model puts first is liked no more than the rest: all "
            "pairs get one probability",
            SurveyWarning,
        )
    return curve


def apart_for_calibration(
    pairs: LoggedPairs, share: float = HELD_OUT, random_state: RandomState = 0
) -> tuple[FeedbackLog, LoggedPairs]:
    """Part logged pairs in two: random rows to calibrate by, and the rest to judge by, with thinned propensities."""
    rest, apart = split(pairs.log, real_number("share", share, above=0, below=1), random_state=random_state)
    return apart, LoggedPairs(judgeable(rest), pairs.propensities.thinned(len(rest) / len(pairs.log)))


def calibrate_by(
    apart: FeedbackLog, predictions: PredictionsLike, method: CalibrationMethod
) -> tuple[CalibratedScores, int]:
    """Calibrate scores by rows set apart, and count those that the curve is fitted to: the ones that they cover."""
    covered = covered_rows(predictions, apart)
    return calibrate(predictions, apart, method=method), len(apart) if covered is None else int(covered.sum())


def need_calibration(predictions: PredictionsLike, log: FeedbackLog) -> bool:
    """Tell whether predictions are no probabilities: outside of 0 and 1, or factors that are no logits.

    Factors that say so are logits; those that do worse on the logged labels than a coin cannot be such.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0], [0, 1], [1, 0], n_users=1, n_items=3)
    >>> need_calibration([[0.2, 0.4, 1.0]], log), need_calibration([[0.2, 3.0, 1.0]], log)
    (False, True)
    """
    values = as_predictions(predictions, log.n_users, log.n_items)
    if not isinstance(values, LinkedFactors) or values.link != "logistic":
        return not values.ranks_only and not are_probabilities(values, log)
    if values.link_is_assumed:
        return True
    losses = CellLosses(values, get_loss("log"))
    return worse_than_a_coin(losses.of_labels(log), coin_losses(losses.loss, log))


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
    if far_outside(values.at(log.users[kept], log.items[kept])):
        return False
    if covered is not None:
        return True
    pairs = Grid(log.shape).sample(min(_LOOKED_AT, 4 * log.n_cells), np.random.default_rng(0))
    return not far_outside(values.cells(*pairs))


def raw_scores(values: CellValues, users: Positions, items: Positions) -> Array:
    """Return what is calibrated: logits, or else the values themselves."""
    logits = values.cell_logits(users, items)
    return np.asarray(values.cells(users, items) if logits is None else logits, dtype=np.float64)


def _labelled(values: CellValues, log: FeedbackLog) -> LabelledScores:
    """Return scores, labels and weights (1 on average) of the rows that the scores cover."""
    covered = covered_rows(values, log)
    if covered is not None:
        log = judgeable(log.select(covered))
    weights = np.ones(len(log)) if log.weights is None else log.weights
    return _weighted(raw_scores(values, log.users, log.items), log.labels, weights)


def surveyed_rows(values: CellValues, survey: SurveySample) -> LabelledScores:
    """Return scores, labels and weights (1 on average) of a survey's pairs."""
    check_of_all(survey)
    positions = pair_positions(survey.users, survey.items, values.shape)
    chances = np.ones(len(survey)) if survey.probabilities is None else survey.probabilities
    return _weighted(raw_scores(values, *positions), survey.labels, chances.min() / chances)


def _once_each(rows: LabelledScores, survey: SurveySample) -> LabelledScores:
    """Make one row of all draws of a pair: asking again tells nothing of other pairs. Noisy answers are averaged."""
    keys = cell_keys(survey.users, survey.items, int(survey.items.max()) + 1)
    _, first, same, draws = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    if len(first) == len(keys):
        return rows
    means = [np.bincount(same, values) / draws for values in (rows.labels, rows.weights)]
    return LabelledScores(rows.scores[first], means[0], means[1] / means[1].mean())


def _weighted(scores: Array, labels: npt.NDArray[np.int8], weights: Array) -> LabelledScores:
    wrong = int((~np.isfinite(scores)).sum())
    if wrong:
        raise PredictionError(f"scores must be finite; {wrong:,} of {len(scores):,} are not")
    return LabelledScores(scores, labels.astype(np.float64), weights / weights.mean())
