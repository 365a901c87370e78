"""Logs on disk: prepared out of core, opened by memory map."""

from verirec.data.prepared.opening import PreparedLog
from verirec.data.prepared.prepare import prepare_log
from verirec.data.prepared.scan import scan_log

__all__ = ["PreparedLog", "prepare_log", "scan_log"]
