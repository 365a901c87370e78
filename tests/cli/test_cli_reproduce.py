"""verirec reproduce, as its users run it."""

from __future__ import annotations

import io
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from conftest import REPOSITORY
from verirec.cli.options import StudyEngineOptions
from verirec.engine import current_engine
from verirec.studies.cli import reproduce
from verirec.studies.semi_synthetic import Population, WorkerEndedError, runs, table1_plan
from verirec.studies.semi_synthetic.page import read_results
from verirec.studies.semi_synthetic.words import row_in_words, rows_of, table1_cell

RESULTS = REPOSITORY / "docs" / "reproduction"
LEVELS = np.random.default_rng(0).choice(5, (60, 80), p=(0.53, 0.24, 0.14, 0.07, 0.02)).astype(np.int8) + 1

VERBS = ("table1", "figure1", "robustness", "all", "page")


def test_table1_as_printed_leaves_the_table_and_its_pictures(real_data, run, tmp_path):
    out = tmp_path / "out"
    data = real_data("movielens-100k")
    code, shown, errors = run("reproduce", "table1", "--data", data, "--seeds", 2, "--variant", "printed", "--out", out)
    assert (code, errors) == (0, "")
    assert "66 cells without estimated rates: RMSE 0.001" in shown
    table = pd.read_csv(out / "table1.csv")
    assert list(table.columns[:7]) == ["method", "rho", "matrix", "mean", "std", "paper", "gap"]
    assert len(table) == 90
    assert table[table.rho != "paper"].gap.abs().max() <= 0.006
    assert (out / "table1.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "table1.svg").read_text().startswith("<svg")
    assert len((out / "store" / "runs.jsonl").read_text().splitlines()) == 1 + 2
    page = (out / "table1.md").read_text()
    assert page.startswith("# Table 1, as printed: movielens-100k, 2 seeds\n")
    assert page.count("| OME-DR, true rates |") == 1


def test_the_module_is_the_command(python):
    shown = python("import runpy, sys; sys.argv[1:] = ['--version']; runpy.run_module('verirec', run_name='__main__')")
    assert re.match(r"verirec \d", shown)


@pytest.fixture
def small(monkeypatch):
    """Have small populations in place of the real ones; give the names that were loaded."""
    loaded = []

    def load(preferences, data):
        loaded.append(preferences)
        truth = (LEVELS > 3).astype(np.int8)
        return Population(LEVELS, truth if preferences == "kuairec" else None)

    monkeypatch.setattr(reproduce, "_population", load)
    return loaded


def test_all_completes_once_and_leaves_kuairec_out_with_a_line(small, run, tmp_path, monkeypatch):
    ran = []
    for name in ("_table1", "_figure1", "_robustness"):
        monkeypatch.setattr(reproduce, name, lambda plan, population, seeds, out: ran.append((out.name, plan, seeds)))
    code, shown, errors = run("reproduce", "all", "--data", tmp_path, "--seeds", 3, "--out", tmp_path / "out")
    assert (code, errors) == (0, "")
    assert shown.startswith("kuairec is left out: neither small_matrix.csv")
    assert small == ["movielens-100k"]
    folders = [folder.name for folder in sorted(RESULTS.iterdir()) if folder.name != "kuairec"]
    assert sorted(name for name, _, _ in ran) == folders
    assert {name: seeds for name, _, seeds in ran if seeds == 2}.keys() == {
        "figure1", "robustness", "robustness-wrong-propensities",
    }  # fmt: skip
    (tmp_path / "small_matrix.csv").write_text("")
    ran.clear()
    assert run("reproduce", "all", "--data", tmp_path, "--seeds", 3, "--out", tmp_path / "out")[1] == ""
    assert [(plan.preferences, seeds) for name, plan, seeds in ran if name == "kuairec"] == [("kuairec", 2)]


@pytest.mark.parametrize(("variant", "preferences"), [("printed", "kuairec"), ("sound", "movielens-100k")])
def test_table1_says_what_it_is(variant, preferences, small, run, tmp_path):
    options = ("--variant", variant, "--preferences", preferences, "--seeds", 2)
    code, shown, errors = run("reproduce", "table1", *options, "--out", tmp_path)
    assert (code, errors) == (0, "")
    assert shown.startswith(
        f"Table 1, {'done right' if variant == 'sound' else 'as printed'}: {preferences}, 2 seeds\n"
    )
    assert "RMSE" not in shown
    table = pd.read_csv(tmp_path / "table1.csv")
    assert (table.matrix == table.made_as).all()
    page = (tmp_path / "table1.md").read_text()
    assert shown.splitlines()[0] == page.splitlines()[0].removeprefix("# ")
    assert ("swapped" in page) == (variant == "sound")
    assert ("]" in page.splitlines()[-1]) == (variant == "sound")


def test_seeds_are_run_where_they_are_told_to(small, run, tmp_path, monkeypatch):
    used = []

    def seen(work, shared, jobs, workers, *_, engine, **__):
        used.append(current_engine().name if engine is None else engine)
        for job in jobs:
            work(shared, *job)

    monkeypatch.setattr(runs, "in_processes", seen)
    for engine in ("serial", "processes"):
        options = ("--variant", "printed", "--seeds", 1, "--engine", engine)
        code, _, errors = run("reproduce", "table1", *options, "--out", tmp_path / engine)
        assert (code, errors) == (0, "")
    assert used == ["serial", "processes"]
    assert (tmp_path / "serial" / "table1.csv").read_bytes() == (tmp_path / "processes" / "table1.csv").read_bytes()


@pytest.mark.parametrize(
    ("given", "workers"),
    [
        ({}, 2),
        ({"workers": 3}, 3),
        ({"engine": "serial"}, None),
        ({"engine": "ray"}, None),
        ({"engine": "ray:10.0.0.1:6379", "workers": 3}, 3),
    ],
)
def test_a_study_takes_two_processes_or_all_of_a_cluster(given, workers):
    assert StudyEngineOptions(**given).workers == workers


@pytest.mark.parametrize("name", ["printed", "sound"])
@pytest.mark.parametrize("width", [200, 80, 60, 20])
def test_no_number_of_table1_is_cut_whatever_the_width(name, width):
    table, plan = getattr(read_results(RESULTS), name), table1_plan(name)
    file = io.StringIO()
    reproduce.show_table1(Console(file=file, width=width, markup=False, highlight=False), table, plan)
    lines = file.getvalue().splitlines()
    if width >= 60:
        assert max(len(line) for line in lines if "│" in line) <= width
    say = table1_cell(plan)
    for method, rho in rows_of(table):
        label = f"│ {row_in_words(method, rho)} "
        found = [cell.strip() for line in lines if line.startswith(label) for cell in line.split("│")[2:-1]]
        assert found == [say(one) for one in table[(table.method == method) & (table.rho == rho)].itertuples()]


def test_a_worker_that_was_ended_is_one_line(small, run, tmp_path, monkeypatch):
    def ended(*_, **__):
        raise WorkerEndedError("a worker was ended; use fewer, such as workers=1")

    monkeypatch.setattr("verirec.studies.semi_synthetic.run_plan", ended)
    check_one_line(run("reproduce", "table1", "--out", tmp_path), "a worker was ended; use fewer, such as --workers 1")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb, run):
    code, shown, _ = run("reproduce", verb, "--help")
    assert code == 0
    assert "Example: verirec reproduce" in " ".join(shown.split())


@pytest.mark.parametrize("verb", ["table1", "figure1", "robustness", "all"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--data", "nowhere"), "no data folder 'nowhere'"),
        (("--seeds", "0"), "seeds must be a whole number from 1 to 100,000; got 0"),
        (("--seeds", "many"), "Invalid value for '--seeds'"),
        (("--workers", "0"), "workers must be a whole number from 1 to 256; got 0"),
        (("--workers", "257", "--data", "nowhere"), "workers must be a whole number from 1 to 256; got 257"),
        (("--engine", "threads"), 'engine must be "serial", "processes", "ray"'),
        (("--out", ""), "out must name a place; got ''"),
        (("--out", "taken"), "cannot write to 'taken"),
        (("--data", "."), "movielens-100k is not in '.'"),
    ],
)
def test_bad_input_is_one_line(verb, options, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file")
    named = () if "--out" in options else ("--out", tmp_path / "out")
    check_one_line(run("reproduce", verb, *named, *options), message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("table1", "--variant", "best"), "variant must be one of printed, sound; got 'best'"),
        (("table1", "--preferences", "coat"), "preferences must be one of kuairec, movielens-100k; got 'coat'"),
        (("table1", "--propensity-error", "2"), "propensity_error must be a finite number at least 0 and at most 1"),
        (("table1", "--no-aliased"), "aliased False is for variant printed"),
        (("robustness", "--propensity-error", "-1"), "propensity_error must be"),
        (("figure1", "--preferences", "coat"), "preferences must be one of"),
        (("table3",), "No such command 'table3'"),
        (("table1", "--out", "out", "extra"), "extra"),
    ],
)
def test_wrong_options_are_one_line(options, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = () if "--out" in options or options[0] == "table3" else ("--out", "out")
    check_one_line(run("reproduce", *options, *named), message)


def test_a_page_of_missing_results_is_one_line(run, tmp_path):
    page = tmp_path / "page.md"
    check_one_line(
        run("reproduce", "page", "--results", tmp_path, "--out", page),
        "has no printed/table1.csv",
    )
    assert not page.exists()
    check_one_line(run("reproduce", "page", "--results", RESULTS, "--out", ""), "out must name a place")
    check_one_line(run("reproduce", "page", "--results", RESULTS, "--out", tmp_path), "it is a folder; name a file")


def test_a_page_of_two_studies_says_what_was_not_run(run, tmp_path):
    for name in ("printed", "sound"):
        shutil.copytree(RESULTS / name, tmp_path / name)
    page = tmp_path / "page.md"
    code, shown, errors = run("reproduce", "page", "--results", tmp_path, "--out", page)
    assert (code, errors) == (0, "")
    assert "not on the page: printed-not-aliased, wrong-propensities, kuairec, figure1, robustness" in shown
    assert page.read_text().count("Not run: the results have no folder") == 5


def test_the_pages_own_results_make_the_page(run, tmp_path):
    page = tmp_path / "page.md"
    code, _, errors = run("reproduce", "page", "--results", RESULTS, "--out", page)
    assert (code, errors) == (0, "")
    assert "# The paper's semi-synthetic study" in page.read_text()


def check_one_line(ended, message):
    code, shown, errors = ended
    assert code == 2
    assert shown == ""
    assert errors.startswith("verirec: ")
    assert errors.count("\n") == 1
    assert message in errors
