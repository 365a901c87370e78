"""The level and the slope of a model's logits, by a survey."""

from __future__ import annotations

from typing import Final

from verirec.data.cells import cell_keys, pair_positions
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.pair_keys import Keys, among, keys_of
from verirec.estimation.calibration import level_by_survey
from verirec.estimation.curves import PlattCurve
from verirec.estimation.inputs import Rates
from verirec.exceptions import SurveyError, SurveyWarning, warn_caller
from verirec.models import Model
from verirec.nuisance.surveys import SurveySample, check_of_all
from verirec.training.model_cells import ModelCells

FEWEST_WORTH: Final = 10.0
"""Pairs of both classes that a survey must be worth, or nothing is learnt by it."""
FEW_WORTH: Final = 100.0
"""Below which level and slope did harm about as often as good."""


def level_of(
    model: Model, shape: tuple[int, int], survey: SurveySample, trained_on: Keys, rates: Rates | None
) -> PlattCurve:
    """Find the curve that puts a model's logits right.

    Parameters
    ----------
    model, shape
        In evaluation mode, and its grid.
    survey
        True labels of random pairs.
    trained_on
        Pairs to leave out, by `cell_keys`, in ascending order.
    rates
        Noise rates, for a noisy survey.
    """
    asked = _untrained(survey, shape, trained_on)
    worth = _checked_worth(asked)
    curve = level_by_survey(ModelCells(model, shape), asked, rates)
    if _both_classes(asked) and worth < FEW_WORTH:
        warn_caller(
            f"the surveyed pairs are worth {worth:.0f}: level and slope by fewer than {FEW_WORTH:.0f} may do harm; "
            "ask about 200 or more, which helped in 20 of 25 worlds",
            SurveyWarning,
        )
    return curve


def check_survey(survey: SurveySample, log: FeedbackLog, *, has_rates: bool) -> None:
    """Raise, before any training, what would be raised after it."""
    checked_log(log)
    _checked_worth(_untrained(survey, log.shape, keys_of(log.users, log.items, log.n_items)))
    if survey.noisy and not has_rates:
        raise SurveyError("a noisy survey needs noise rates to be corrected with: noise_rates=...")


def _untrained(survey: SurveySample, shape: tuple[int, int], trained_on: Keys) -> SurveySample:
    """Return the part of a survey that is not of these pairs."""
    check_of_all(survey)
    users, items = pair_positions(survey.users, survey.items, shape)
    free = ~among(cell_keys(users, items, shape[1]), trained_on)
    if not free.any():
        raise SurveyError(f"all {len(survey):,} surveyed pairs were trained on: none is left to calibrate by")
    return survey if free.all() else survey.select(free)


def _checked_worth(survey: SurveySample) -> float:
    """Return how many pairs a survey is worth; one class moves the level alone, with a warning of its own."""
    worth = survey.worth
    if _both_classes(survey) and worth < FEWEST_WORTH:
        raise SurveyError(
            f"level and slope need a survey worth at least {FEWEST_WORTH:.0f} different, equally likely pairs that "
            f"were not trained on; its {len(survey):,} are worth {worth:.1f}"
        )
    return worth


def _both_classes(survey: SurveySample) -> bool:
    return 0 < int(survey.labels.sum()) < len(survey)
