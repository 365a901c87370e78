"""What people see: pages, plots, and the files they are written to."""

from verirec.reports.audit import audit_page, audit_summary
from verirec.reports.demo import demo_page, demo_summary
from verirec.reports.sentences import conclusions
from verirec.reports.writing import check_writable, write_report

__all__ = ["audit_page", "audit_summary", "check_writable", "conclusions", "demo_page", "demo_summary", "write_report"]
