"""What the documents link to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from verirec.experiments import run_demo

REPOSITORY = Path(__file__).parents[1]

PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_of_ours_leads_to_one(page):
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_readmes_table_is_what_the_demo_prints():
    readme = (REPOSITORY / "README.md").read_text().replace("**", "")
    demo = run_demo(0)
    for name, estimates in demo.estimates.items():
        (low, high), value = estimates["naive"].interval, estimates["naive"].value
        assert f"| {name} | {value:.3f} [{low:.3f}, {high:.3f}] | {demo.truth[name]:.3f} |" in readme
