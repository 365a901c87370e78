"""Estimators of how good a recommender really is."""

from verirec.estimators.catalogue import ESTIMATORS, Estimator
from verirec.estimators.estimate import Estimates, estimate
from verirec.estimators.intervals import Estimate, EstimateRange
from verirec.estimators.ranking import estimate_ranking

__all__ = ["ESTIMATORS", "Estimate", "EstimateRange", "Estimates", "Estimator", "estimate", "estimate_ranking"]
