"""What a method is trained on: a log of labels that it takes, noise of their kind, and the head that fits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.levels import in_words
from verirec.estimation.gathering import noise_from_audit
from verirec.estimation.inputs import KnownNoise, checked_rates, checked_transitions, has_clicks_alone, judgeable
from verirec.exceptions import LabelError, ParameterError
from verirec.losses import TransitionRegion
from verirec.nuisance.click_model import clicks_only
from verirec.nuisance.noise_rates import AuditSample
from verirec.nuisance.propensities import Propensities
from verirec.nuisance.propensities.by_level import TrueLevelPropensities
from verirec.training.heads import Head, make_head
from verirec.training.settings import TrainingSettings


def check_labels(method: Any, log: FeedbackLog, kinds: Iterable[Any]) -> None:
    """Raise `LabelError` for a log of levels, or of clicks alone, that a method is not for, and say which is.

    Parameters
    ----------
    method, log
        What was asked.
    kinds
        All methods, to name those that can.
    """
    levels = checked_log(log, levels=True).levels
    if levels is not None and not method.takes_levels:
        able = ", ".join(kind.name for kind in kinds if kind.takes_levels)
        raise LabelError(
            f"{method.name} is trained on 0/1 labels; the log has levels {in_words(levels)}: take "
            f"log.binary(positive_from=...), or a method that takes levels: {able}"
        )
    if clicks_only(log) and not method.takes_clicks:
        able = ", ".join(kind.name for kind in kinds if kind.takes_clicks)
        raise LabelError(
            f"{method.name} needs rows of both classes; all {len(log):,} are positive: take rows of 0 for what was "
            f"shown and not clicked, or a method that is trained on clicks alone: {able}"
        )


def checked_known(noise: Any, log: FeedbackLog) -> KnownNoise | None:
    """Accept noise rates for 0/1 labels, one matrix for levels, or none."""
    found = (checked_rates if log.levels is None else checked_transitions)(noise, log)
    if isinstance(found, TransitionRegion):
        raise ParameterError("training needs one TransitionMatrix; a TransitionRegion is for estimates")
    return found


def known_noise(
    given: KnownNoise | None, audit: AuditSample | None, log: FeedbackLog, propensities: Propensities
) -> KnownNoise | None:
    """Return the noise that was given, or what an audit tells of it; `None` where there is neither."""
    return given if audit is None else noise_from_audit(log, audit, propensities)


def admitted(settings: TrainingSettings, log: FeedbackLog, noise: KnownNoise | None) -> tuple[KnownNoise | None, Head]:
    """Accept a log that a method can be trained on, with noise of its kind; returns that, and the head."""
    if not (settings.takes_clicks and has_clicks_alone(log)):
        judgeable(log, levels=settings.takes_levels)
    return checked_known(noise, log), make_head(settings.head, settings.loss, log)


def insist_on_noise(name: str, log: FeedbackLog) -> None:
    """Raise where noise has to be learnt, and cannot be."""
    if log.levels is not None:
        raise ParameterError(
            f"{name} corrects for noise between levels, which a log alone does not tell: give noise_rates, a "
            "TransitionMatrix, or an audit"
        )


def refuse_true_levels(settings: TrainingSettings, propensities: Propensities) -> None:
    """Raise where noise is corrected and rows are weighted by what nobody knows of a noisy row: its true level."""
    if settings.correction != "none" and isinstance(propensities, TrueLevelPropensities):
        raise ParameterError(
            f"{settings.name} corrects labels and not their weights: LevelPropensity, by the true level, is for "
            "training without a correction, and for estimates"
        )
