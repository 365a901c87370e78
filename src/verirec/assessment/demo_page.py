"""The demo's page and its machine-readable summary."""

from __future__ import annotations

from typing import Any

from verirec.assessment.demo import AUDITED, PANEL_PER_ITEM, Demo
from verirec.assessment.page import assessment_page
from verirec.assessment.summary import assessment_summary, headlines, verdicts


def demo_summary(demo: Demo) -> dict[str, Any]:
    """Return the last assessment's summary, which has the truth, and the headlines of all of them."""
    stages = {
        stage: {"basis": found.basis, "headline": headlines(found), "verdicts": verdicts(found)}
        for stage, found in demo.stages.items()
    }
    return assessment_summary(demo.assessment) | {"stages": stages}


def demo_page(demo: Demo) -> str:
    """Return the self-contained HTML page: the survey's assessment, with what came before it and how it was made."""
    return assessment_page(
        demo.assessment,
        "demo.html",
        demo=demo,
        liked_in_truth=float(demo.world.true_labels.mean()),
        panel=PANEL_PER_ITEM,
        audited=AUDITED,
    )
