"""The same assessment of each week or month of a log, with verdicts that allow for looking many times."""

from verirec.assessment.monitoring.findings import Change, Monitored
from verirec.assessment.monitoring.result import Monitoring
from verirec.assessment.monitoring.run import monitor

__all__ = ["Change", "Monitored", "Monitoring", "monitor"]
