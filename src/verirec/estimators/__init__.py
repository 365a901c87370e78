"""Estimators of how good a recommender really is."""

from verirec.estimators.catalogue import ESTIMATORS, Estimator
from verirec.estimators.estimate import estimate
from verirec.estimators.intervals import Estimate, EstimateRange
from verirec.estimators.ranking import estimate_ranking
from verirec.estimators.results import Estimates

__all__ = ["ESTIMATORS", "Estimate", "EstimateRange", "Estimates", "Estimator", "estimate", "estimate_ranking"]
