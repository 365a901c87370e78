"""The page that tells what of the paper reproduces, what does not, and why: a function of the result tables alone."""

from __future__ import annotations

from typing import Any

from verirec.reports.reproduction_words import table1_in_markdown, mean_with_gap


def table1_page(table: Any) -> str:
    """Give Table 1 in Markdown."""
    return f"# Table 1\n\nRelative error (gap to the printed number).\n\n{table1_in_markdown(table, mean_with_gap)}\n"
