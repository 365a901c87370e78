"""verirec reproduce, as its users run it."""

from __future__ import annotations

import pandas as pd
import pytest

from conftest import REPOSITORY

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
    assert len(list((out / "runs").glob("*.json"))) == 2
    assert (out / "table1.md").read_text().count("| OME-DR, true rates |") == 1


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
        (("--seeds", "0"), "seeds must be a whole number of at least 1; got 0"),
        (("--seeds", "many"), "Invalid value for '--seeds'"),
        (("--workers", "0"), "workers must be a whole number of at least 1; got 0"),
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
        (("robustness", "--propensity-error", "-1"), "propensity_error must be"),
        (("figure1", "--preferences", "coat"), "preferences must be one of"),
        (("table2",), "No such command 'table2'"),
        (("table1", "--out", "out", "extra"), "extra"),
    ],
)
def test_wrong_options_are_one_line(options, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = () if "--out" in options or options[0] == "table2" else ("--out", "out")
    check_one_line(run("reproduce", *options, *named), message)


def test_a_page_of_missing_results_is_one_line(run, tmp_path):
    page = tmp_path / "page.md"
    check_one_line(
        run("reproduce", "page", "--results", tmp_path, "--out", page),
        "has no printed/table1.csv (8 of 8 tables are missing)",
    )
    assert not page.exists()


def test_the_pages_own_results_make_the_page(run, tmp_path):
    results, page = REPOSITORY / "docs" / "reproduction", tmp_path / "page.md"
    code, _, errors = run("reproduce", "page", "--results", results, "--out", page)
    assert (code, errors) == (0, "")
    assert "# The paper's semi-synthetic study" in page.read_text()


def check_one_line(ended, message):
    code, shown, errors = ended
    assert code == 2
    assert shown == ""
    assert errors.startswith("verirec: ")
    assert errors.count("\n") == 1
    assert message in errors
