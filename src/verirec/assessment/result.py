"""A finished assessment, and what it can be made into."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verirec.assessment.findings import Findings
from verirec.assessment.sentences import conclusions
from verirec.assessment.summary import assessment_summary, verdicts
from verirec.pages.writing import write_report


@dataclass(frozen=True, eq=False, repr=False)
class Assessment(Findings):
    """What `assess` returns: all that was found, in Python, as JSON has it, and as a page."""

    def __repr__(self) -> str:
        settled = sum(one.established is not None for one in self.comparisons)
        return (
            f"Assessment({len(self.log):,} rows, {len(self.recommenders)} recommenders, by {self.basis}: "
            f"{settled} of {len(self.comparisons)} differences established)"
        )

    @property
    def summary(self) -> dict[str, Any]:
        """All figures, as `summary.json` has them."""
        return assessment_summary(self)

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """For every two recommenders, which is better, whether that is established, and what it rests on."""
        return verdicts(self)

    @property
    def conclusions(self) -> list[str]:
        """What can be concluded, in sentences, most important first."""
        return conclusions(self)

    def save(self, folder: str | Path) -> Path:
        """Write `report.html` and `summary.json` into a folder, both or neither, and return the page's path."""
        # Plotting takes a second to import, and only the page needs it.
        from verirec.assessment.page import assessment_page

        return write_report(folder, assessment_page(self), self.summary)
