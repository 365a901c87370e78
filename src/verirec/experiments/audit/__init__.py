"""The audit: what a log can tell of how selective and noisy it is, and of how good recommenders really are."""

from verirec.experiments.audit.result import Comparison, LogAudit, Recommender
from verirec.experiments.audit.run import HALF_WIDTH, run_audit

__all__ = ["HALF_WIDTH", "Comparison", "LogAudit", "Recommender", "run_audit"]
