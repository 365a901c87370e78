"""Estimators of a recommender's true prediction inaccuracy."""

from verirec.estimators.naive import naive_estimate
from verirec.estimators.terms import Estimate, estimate_from_terms

__all__ = ["Estimate", "estimate_from_terms", "naive_estimate"]
