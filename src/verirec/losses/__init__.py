"""Pointwise losses and the noise between what people prefer and what they say: exact algebra, nothing else."""

from verirec.losses.corrected_levels import CorrectedLevels
from verirec.losses.correction import Corrected, CorrectedLabels, correct_labels, corrected
from verirec.losses.levels import LevelLoss, errors_of, get_level_loss, over_levels
from verirec.losses.noise_rates import AuditOrigin, GroupedNoiseRates, NoiseRates, NoiseRegion
from verirec.losses.pointwise import Loss, LossLike, get_loss
from verirec.losses.regions import AnyRegion, TransitionRegion
from verirec.losses.transitions import TransitionMatrix

__all__ = [
    "AnyRegion",
    "AuditOrigin",
    "Corrected",
    "CorrectedLabels",
    "CorrectedLevels",
    "GroupedNoiseRates",
    "LevelLoss",
    "Loss",
    "LossLike",
    "NoiseRates",
    "NoiseRegion",
    "TransitionMatrix",
    "TransitionRegion",
    "correct_labels",
    "corrected",
    "errors_of",
    "get_level_loss",
    "get_loss",
    "over_levels",
]
