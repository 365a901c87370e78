"""What people see: pages, plots, and the files they are written to."""

from verirec.reports.demo import demo_page, demo_summary
from verirec.reports.writing import write_report

__all__ = ["demo_page", "demo_summary", "write_report"]
