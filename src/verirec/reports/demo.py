"""The demo's page and its machine-readable summary."""

from __future__ import annotations

from typing import Any

from verirec.experiments.demo import AUDITED, SURVEY_PER_ITEM, Demo
from verirec.reports.audit import audit_page, audit_summary


def demo_summary(demo: Demo) -> dict[str, Any]:
    """Return the audit's summary, which has the truth."""
    return audit_summary(demo.audit)


def demo_page(demo: Demo) -> str:
    """Return the self-contained HTML page: the audit's, with the truth drawn in and how the world was made."""
    return audit_page(
        demo.audit,
        "demo.html",
        demo=demo,
        liked_in_truth=float(demo.world.true_labels.mean()),
        survey=SURVEY_PER_ITEM,
        audited=AUDITED,
    )
