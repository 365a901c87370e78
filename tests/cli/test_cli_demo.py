"""verirec demo: two files, the same figures on the screen, and nothing left where it cannot write."""

from __future__ import annotations

import json
import re
from functools import cache

import pytest
from typer.testing import CliRunner

import verirec
from verirec.assessment import run_demo
from verirec.assessment.demo_page import demo_page, demo_summary
from verirec.cli.main import app

FILES = {"report.html", "summary.json"}


def contents(folder):
    return {file.name: file.read_text() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return folder, CliRunner().invoke(app, ["demo", "--out", str(folder)])


def test_it_writes_both_files_and_nothing_else(ran):
    folder, result = ran
    demo = once()
    assert result.exit_code == 0
    assert {file.name for file in folder.iterdir()} == FILES
    assert json.loads((folder / "summary.json").read_text()) == json.loads(json.dumps(demo_summary(demo)))
    assert (folder / "report.html").read_text() == demo_page(demo)


def test_it_shows_the_figures_of_the_summary_and_where_the_page_is(ran):
    folder, result = ran
    summary = json.loads((folder / "summary.json").read_text())
    rows = {line.split("│")[1].strip(): line for line in result.stdout.splitlines() if line.startswith("│")}
    assert list(rows) == ["at face value", "alone", "with an audit", "with a survey", "truth"]
    naive = [one["naive"][part] for one in summary["recommenders"].values() for part in ("value", "low", "high")]
    shown = {"at face value": naive, "truth": summary["truth"].values()}
    for row, stage in zip(("alone", "with an audit", "with a survey"), summary["stages"].values(), strict=True):
        parts = [one[part] for one in stage["headline"].values() for part in ("value", "low", "high")]
        shown[row] = [part for part in parts if part is not None]
        settled = stage["verdicts"][0]["better"] or "left open"
        assert rows[row].split("│")[-2].strip() == settled
    for row, numbers in shown.items():
        assert re.findall(r"\d\.\d{3}", rows[row]) == [f"{number:.3f}" for number in numbers]
    assert f"The page: {folder / 'report.html'}\n" in result.stdout


def test_the_seed_is_the_worlds(run, tmp_path, monkeypatch):
    seeds = []
    monkeypatch.setattr(verirec.assessment, "run_demo", lambda seed: seeds.append(seed) or once())
    monkeypatch.setattr(verirec.assessment.demo_page, "demo_page", lambda demo: "<p>page</p>")
    for seed in ((), ("--seed", 7)):
        assert run("demo", "--out", tmp_path, *seed)[0] == 0
    assert seeds == [0, 7]


def test_the_installed_command_does_what_its_help_says_in_the_folder_it_runs_in(spawn, tmp_path, ran):
    code, output, errors = spawn("demo", "--out", "demo")
    assert (code, errors) == (0, "")
    assert "The page: demo/report.html" in output
    assert contents(tmp_path / "demo") == contents(ran[0])


@cache
def once():
    return run_demo(0)


@pytest.fixture
def at_once(monkeypatch):
    """Let the demo be ready, and its page short: where only its path matters."""
    demo = once()
    monkeypatch.setattr(verirec.assessment, "run_demo", lambda seed: demo)
    monkeypatch.setattr(verirec.assessment.demo_page, "demo_page", lambda demo: "<p>page</p>")


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("narrow", [40, 80])
def test_the_pages_path_is_on_one_line_however_narrow_the_screen(run, tmp_path, monkeypatch, narrow):
    monkeypatch.setenv("COLUMNS", str(narrow))
    folder = tmp_path / ("long" * 20)
    assert f"The page: {folder}/report.html" in run("demo", "--out", folder)[1]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "name",
    [
        "with a space",
        "v[1]",
        "v[old]",
        "a[/b]",
    ],
)
def test_the_pages_path_is_shown_as_it_is(run, tmp_path, name):
    code, output, _ = run("demo", "--out", tmp_path / name)
    assert code == 0
    assert f"The page: {tmp_path / name}/report.html" in output


@pytest.mark.usefixtures("at_once")
def test_a_folder_that_cannot_be_is_told_in_one_line_and_nothing_is_written(run, tmp_path):
    (tmp_path / "taken").write_text("mine")
    code, output, errors = run("demo", "--out", tmp_path / "taken")
    assert (code, output) == (2, "")
    assert re.fullmatch(r"verirec: cannot write to '.*taken': .*\n", errors)
    assert contents(tmp_path) == {"taken": "mine"}
