"""Estimators of how good a recommender really is."""

from verirec.estimation.calibration import calibrate
from verirec.estimation.catalogue import ESTIMATORS, Estimator
from verirec.estimation.click_ranking import estimate_click_ranking
from verirec.estimation.compare import compare
from verirec.estimation.estimate import estimate
from verirec.estimation.intervals import Estimate, EstimateRange
from verirec.estimation.ranking import compare_rankings, estimate_ranking
from verirec.estimation.results import Estimates
from verirec.estimation.selection_range import SelectionRange
from verirec.estimation.sensitivity import Sensitivity, sensitivity
from verirec.estimation.survey.strength import SelectionStrength, selection_strength

__all__ = [
    "ESTIMATORS",
    "Estimate",
    "EstimateRange",
    "Estimates",
    "Estimator",
    "SelectionRange",
    "SelectionStrength",
    "Sensitivity",
    "calibrate",
    "compare",
    "compare_rankings",
    "estimate",
    "estimate_click_ranking",
    "estimate_ranking",
    "selection_strength",
    "sensitivity",
]
