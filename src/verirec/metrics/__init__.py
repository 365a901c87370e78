"""How good scores are on a test log: ranking, probability and calibration, in two stated conventions."""

from verirec.metrics.evaluate import Evaluation, evaluate
from verirec.metrics.probability import brier_score, calibration_error, log_loss
from verirec.metrics.ranking import Convention, GradedRankings, UserRankings, auc

__all__ = [
    "Convention",
    "Evaluation",
    "GradedRankings",
    "UserRankings",
    "auc",
    "brier_score",
    "calibration_error",
    "evaluate",
    "log_loss",
]
