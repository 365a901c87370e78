"""What the documents link to is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer.main

import verirec
from verirec.assessment import run_demo
from verirec.cli.main import app
from verirec.cli.verbs import called

REPOSITORY = Path(__file__).parents[1]

PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_of_ours_leads_to_one(page):
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_of_a_kind_that_the_tests_run(page):
    """A block without a language is shown and not run: output, a file's content."""
    assert set(re.findall(r"^ *```(\S+)$", page.read_text(), re.MULTILINE)) <= {"python", "sh"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_have_verbs_and_options_that_are_there(page, tmp_path, monkeypatch):
    """Those that take too long for a test too; what they read is not at hand."""
    monkeypatch.chdir(tmp_path)
    for line in re.findall(r"^verirec .*", page.read_text(), re.MULTILINE):
        command, words = called(shlex.split(line, comments=True)[1:])
        (command or typer.main.get_command(app)).make_context(line, words)


def test_the_readmes_table_is_what_the_demo_prints():
    readme = (REPOSITORY / "README.md").read_text().replace("**", "")
    demo = run_demo(0)
    naive = [one.estimates["naive"] for one in demo.assessment.recommenders.values()]
    rows = {"at face value": (naive, demo.preferred_by_log)}
    for stage, found in demo.stages.items():
        headlines = [one.estimates[one.headline] for one in found.recommenders.values()]
        rows[stage.replace("the log ", "")] = (headlines, found.comparisons[0].established or "left open")
    for label, (estimates, better) in rows.items():
        assert f"| {label} | {' | '.join(map(in_readme, estimates))} | {better} |" in readme
    truth = " | ".join(f"{truth:.3f}" for truth in demo.truth.values())
    assert f"| truth | {truth} | {demo.truly_better} |" in readme


def in_readme(one):
    low, high = (f"{end:.3f}" for end in one.interval)
    return f"{one.value:.3f} [{low}, {high}]" if isinstance(one, verirec.Estimate) else f"{low} to {high}"


def test_the_readmes_estimates_are_what_its_lines_give():
    readme = (REPOSITORY / "README.md").read_text()
    lines = readme[readme.index("import numpy as np\n\nworld =") :].partition("```")[0]
    names = {"vr": verirec}
    exec(lines, names)
    result, shown = names["result"], readme.replace("**", "")
    for label, name in (
        ("naive", "naive"),
        ("corrected for selection (`dr`)", "dr"),
        ("by the survey (`survey-ppi`)", "survey-ppi"),
    ):
        (low, high), value = result[name].interval, result[name].value
        assert f"| {label} | {value:.3f} | {low:.3f} to {high:.3f} |" in shown
    assert f"| truth | {names['world'].true_inaccuracy(names['predictions']):.3f} | |" in shown


def table_of_methods():
    """Give the table of all methods as the catalogue has it."""
    lines = ["| method | class | what it does | selection | noise |", "|---|---|---|---|---|"]
    for name, one in verirec.methods.catalogue.items():
        marks = ("yes" if mark else "" for mark in (one.uses_propensities, one.correction != "none"))
        lines.append(f"| `{name}` | `{one.__name__}` | {one.summary} | {' | '.join(marks)} |")
    return "\n".join(lines)


def test_the_table_of_methods_is_that_of_the_catalogue():
    page = (REPOSITORY / "docs" / "training.md").read_text()
    assert f"\n{table_of_methods()}\n\n" in page
