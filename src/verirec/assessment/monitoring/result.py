"""Monitoring, finished, and what it can be made into."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from verirec.assessment.monitoring.tables import OverTime
from verirec.pages.writing import table_content, write_together


@dataclass(frozen=True, eq=False, repr=False)
class Monitoring(OverTime):
    """What `monitor` returns: periods, verdicts, a table, a picture and a page."""

    def __repr__(self) -> str:
        settled = sum(one["established"] for one in self.verdicts)
        assessed = sum(one.found is not None for one in self.periods)
        return (
            f"Monitoring({assessed} of {len(self.periods)} {self.every}s assessed, {len(self.recommenders)} "
            f"recommenders: {settled} of {len(self.verdicts)} verdicts established)"
        )

    def save(self, folder: str | Path) -> Path:
        """Write report.html, summary.json, monitoring.csv and monitoring.png into a folder; return the page's path."""
        # Plotting takes a second to import, and only the page needs it.
        from verirec.assessment.monitoring.page import monitoring_page, over_time_plot
        from verirec.pages.figures import as_png

        contents = {
            "monitoring.csv": table_content(self.to_frame()),
            "monitoring.png": as_png(over_time_plot(self)),
            "summary.json": (json.dumps(self.summary, indent=2, allow_nan=False) + "\n").encode(),
            "report.html": monitoring_page(self).encode(errors="backslashreplace"),
        }
        return write_together(folder, contents) / "report.html"
