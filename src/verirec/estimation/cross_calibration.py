"""Probabilities by a survey that judges them too: every surveyed pair by a curve that was fitted without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues, Positions, cell_keys
from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimation.calibration import CalibratedScores, CalibrationMethod, fitted_curve, raw_scores, surveyed_rows
from verirec.estimation.curves import Curve, PlattCurve
from verirec.nuisance.surveys import SurveySample

Name = TypeVar("Name")

FOLDS: Final = 5
ENOUGH: Final = 200
"""Surveyed pairs, by what they are worth, from which on intervals of what they calibrated hold."""


class CrossFittedScores(CalibratedScores):
    r"""Probabilities by a curve of a whole survey and, of a surveyed pair, by the curve of the other folds.

    Judged by the same survey they are judged as those of pairs that nobody asked about: a surveyed pair's own label is
    not in its probability. A fitted curve of Platt's is the best in log loss of all such curves but for about 1/n, n
    the survey's pairs, and four fifths of them give one that is worse by another 1/4n: what is estimated is the loss of
    the scores at their best, and slightly more.

    Parameters
    ----------
    scores
        Of all pairs of a grid.
    curve
        Of the whole survey.
    keys
        The surveyed pairs, by `cell_keys`, each once and in ascending order, shape (n,).
    folds
        Which one each is in, shape (n,).
    curves
        Fitted without each fold.
    """

    def __init__(
        self,
        scores: CellValues,
        curve: Curve,
        keys: npt.NDArray[np.int64],
        folds: npt.NDArray[np.int64],
        curves: list[Curve],
    ) -> None:
        super().__init__(scores, curve)
        self.keys, self.folds, self.curves = keys, folds, curves
        self._asked = np.unique(keys // scores.shape[1])

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the probabilities."""
        raw = raw_scores(self.scores, users, items)
        found = self.curve.probabilities(raw)
        for curve, at in self._out_of_fold(users, items, raw.shape):
            found[at] = curve.probabilities(raw[at])
        return found

    def cell_logits(self, users: Positions, items: Positions) -> npt.NDArray[Any] | None:
        """Return the logits, if the curves are made of such."""
        if not isinstance(self.curve, PlattCurve):
            return None
        raw = raw_scores(self.scores, users, items)
        found = self.curve.logits(raw)
        for curve, at in self._out_of_fold(users, items, raw.shape):
            found[at] = curve.logits(raw[at])
        return found

    def _out_of_fold(self, users: Positions, items: Positions, shape: tuple[int, ...]) -> list[tuple[Curve, Any]]:
        """Return where surveyed pairs are among positions that broadcast together, and the curve of each of them."""
        # Few users of a block were asked: the others need no look-up.
        asked = np.isin(users, self._asked)
        at = np.nonzero(np.broadcast_to(asked, shape))
        wanted = np.broadcast_to(cell_keys(users, items, self.shape[1]), shape)[at]
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        fold = np.where(self.keys[place] == wanted, self.folds[place], -1)
        return [
            (curve, tuple(side[fold == number] for side in at))
            for number, curve in enumerate(self.curves)
            if (fold == number).any()
        ]


def can_calibrate(survey: SurveySample | None, seed: Any = 0) -> bool:
    """Tell whether a survey's labels can be fitted to: true ones of random pairs, both classes outside of every fold.

    Examples
    --------
    >>> users = np.arange(300)
    >>> can_calibrate(SurveySample(users, users, users % 2)), can_calibrate(SurveySample(users, users, users // 299))
    (True, False)
    """
    if survey is None or survey.noisy or survey.best or survey.levels is not None or survey.worth < ENOUGH:
        return False
    folds = _folds(survey, seed)
    return all(len(np.unique(survey.labels[folds != number])) > 1 for number in range(FOLDS))


def calibrate_by_survey(
    scores: Mapping[Name, PredictionsLike],
    survey: SurveySample,
    log: FeedbackLog,
    method: CalibrationMethod = "platt",
    seed: Any = 0,
) -> dict[Name, CrossFittedScores]:
    """Make probabilities of scores of all pairs by a survey that judges them too, all with the same folds.

    Parameters
    ----------
    scores
        By name, of any range.
    survey
        Such as `can_calibrate` takes.
    log
        Whose grid it is.
    method
        As in `calibrate`.
    seed
        Of the folds.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=100, n_items=80, random_state=0)
    >>> users, items = np.random.default_rng(0).integers([[100], [80]], size=(2, 400))
    >>> survey = SurveySample(users, items, world.true_labels[users, items])
    >>> stars = {"mine": 1 + 4 * world.preferences}
    >>> made = calibrate_by_survey(stars, survey, world.log)["mine"]
    >>> round(world.true_inaccuracy(made.block(range(100), range(80))), 2)
    0.49
    """
    folds = _folds(survey, seed)
    every = cell_keys(survey.users, survey.items, log.n_items)
    keys, first, which = np.unique(every, return_index=True, return_inverse=True)
    # A pair that several clusters drew is judged by the curve of its first: none of its draws may make that one.
    parts = [survey.select((folds != number) & (folds[first][which] != number)) for number in range(FOLDS)]
    found = {}
    for name, given in scores.items():
        values = as_predictions(given, log.n_users, log.n_items)
        curve, *others = (fitted_curve(surveyed_rows(values, part), method) for part in (survey, *parts))
        found[name] = CrossFittedScores(values, curve, keys, folds[first], others)
    return found


def _folds(survey: SurveySample, seed: Any) -> npt.NDArray[np.int64]:
    """Deal a survey's draws into folds: those that were made together, and those of one pair, into one."""
    together = survey.clusters
    if together is None:
        together = cell_keys(survey.users, survey.items, int(survey.items.max()) + 1)
    units, which = np.unique(together, return_inverse=True)
    return np.asarray((np.random.default_rng(seed).permutation(len(units)) % FOLDS)[which])
