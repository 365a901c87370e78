"""The demo's page and its machine-readable summary."""

from __future__ import annotations

from typing import Any

from verirec.assessment.demo import AUDITED, SURVEY_PER_ITEM, Demo
from verirec.assessment.page import assessment_page
from verirec.assessment.summary import assessment_summary


def demo_summary(demo: Demo) -> dict[str, Any]:
    """Return the assessment's summary, which has the truth."""
    return assessment_summary(demo.assessment)


def demo_page(demo: Demo) -> str:
    """Return the self-contained HTML page: the assessment's, with the truth drawn in and how the world was made."""
    return assessment_page(
        demo.assessment,
        "demo.html",
        demo=demo,
        liked_in_truth=float(demo.world.true_labels.mean()),
        survey=SURVEY_PER_ITEM,
        audited=AUDITED,
    )
