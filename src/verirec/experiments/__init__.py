"""Studies that can be run again: data or worlds, recommenders, estimates, and the truth where it is known."""

from verirec.experiments.audit import LogAudit, run_audit
from verirec.experiments.demo import Demo, run_demo

__all__ = ["Demo", "LogAudit", "run_audit", "run_demo"]
