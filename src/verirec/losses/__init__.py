"""Pointwise losses and the noise between what people prefer and what they say: exact algebra, nothing else."""

from verirec.losses.noise_rates import NoiseRates
from verirec.losses.pointwise import Loss, LossLike, get_loss

__all__ = ["Loss", "LossLike", "NoiseRates", "get_loss"]
