"""Pointwise losses and the noise between what people prefer and what they say: exact algebra, nothing else."""

from verirec.losses.correction import CorrectedLabels, correct_labels
from verirec.losses.noise_rates import AuditOrigin, GroupedNoiseRates, NoiseRates, NoiseRegion
from verirec.losses.pointwise import Loss, LossLike, get_loss

__all__ = [
    "AuditOrigin",
    "CorrectedLabels",
    "GroupedNoiseRates",
    "Loss",
    "LossLike",
    "NoiseRates",
    "NoiseRegion",
    "correct_labels",
    "get_loss",
]
