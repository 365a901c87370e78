"""Estimators of how good a recommender really is."""

from verirec.estimators.catalogue import ESTIMATORS, Estimator
from verirec.estimators.compare import compare
from verirec.estimators.estimate import estimate
from verirec.estimators.intervals import Estimate, EstimateRange
from verirec.estimators.ranking import estimate_ranking
from verirec.estimators.results import Estimates
from verirec.estimators.sensitivity import Sensitivity, sensitivity

__all__ = [
    "ESTIMATORS",
    "Estimate",
    "EstimateRange",
    "Estimates",
    "Estimator",
    "Sensitivity",
    "compare",
    "estimate",
    "estimate_ranking",
    "sensitivity",
]
