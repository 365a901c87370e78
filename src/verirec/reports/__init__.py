"""What people see: pages, plots, and the files they are written to."""

from verirec.reports.demo import Demo, run_demo
from verirec.reports.writing import write_report

__all__ = ["Demo", "run_demo", "write_report"]
