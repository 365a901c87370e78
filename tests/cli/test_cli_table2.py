"""verirec reproduce table2, as its users run it."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from conftest import REPOSITORY
from verirec.studies.table2.tables import COLUMNS

FILES = ("table2.csv", "spread.csv", "settings.csv", "table2.md", "report.html", "intervals.png", "time.svg")


def test_a_quick_look_at_coat_leaves_tables_pictures_and_a_page(real_data, run, tmp_path):
    data, out = real_data("coat"), tmp_path / "out"
    arguments = ("reproduce", "table2", "--quick", "--methods", "mf,ome-dr", "--forms", "constants,features")
    code, shown, errors = run(*arguments, "--data", data, "--out", out)
    assert (code, errors) == (0, "")
    assert "With constants and features, chosen on a slice of the random ratings" in shown
    assert all((out / name).is_file() for name in FILES)
    table = pd.read_csv(out / "table2.csv")
    assert list(table.columns) == list(COLUMNS)
    means = table[table.metric == "auc"].set_index(["form", "method"])["mean"]
    assert means["baseline", "global-mean"] == 0.5
    assert means["baseline", "constants"] > means["baseline", "item-mean"] + 0.1
    assert means["features", "mf"] > 0.7
    page = (out / "report.html").read_text()
    assert page.count("OME-DR") > 3
    assert "<svg" in page
    code, _, errors = run(*arguments, "--data", data, "--out", out)
    assert (code, errors) == (0, "")


def test_one_trial_and_one_seed_leave_a_page_too(real_data, run, tmp_path):
    arguments = ("--methods", "mf", "--forms", "constants", "--trials", "1", "--seeds", "1", "--no-auto")
    code, _, errors = run("reproduce", "table2", *arguments, "--data", real_data("coat"), "--out", tmp_path)
    assert (code, errors) == (0, "")
    assert (tmp_path / "report.html").is_file()
    assert not (tmp_path / "spread.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dataset", "netflix"), "dataset must be one of coat, kuairec, yahoo-r3; got 'netflix'"),
        (("--methods", "mf,svd"), "method must be one of cvib, damf, "),
        (("--methods", ","), "methods must name some of the catalogue; got none"),
        (("--forms", "deep"), "form must be one of constants, exposure, features, paper; got 'deep'"),
        (("--protocol", "cheating"), "protocol must be one of honest, unbiased-validation; got 'cheating'"),
        (("--seeds", "0"), "seeds must be a whole number from 1"),
        (("--trials", "0"), "trials must be a whole number from 1"),
        (("--rates", "guess"), "rates must be one of audit, true; got 'guess'"),
        (("--data", "nowhere"), "no data folder 'nowhere'"),
        (("--data", "."), "coat is not in '.'; download it from its makers: https://"),
        (("--dataset", "yahoo-r3", "--data", "."), "yahoo-r3 is not in '.'; ask Yahoo Webscope for R3"),
    ],
)
def test_a_mistake_is_one_clear_line(arguments, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, shown, errors = run("reproduce", "table2", *arguments, "--out", tmp_path / "out")
    assert (code, shown) == (2, "")
    assert message in errors
    assert errors.count("\n") == 1


def test_a_store_of_another_version_is_one_clear_line(real_data, run, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    (store / "runs.jsonl").write_text(json.dumps({"format": 0, "verirec": "0.0.1"}) + "\n")
    code, _, errors = run("reproduce", "table2", "--quick", "--data", real_data("coat"), "--out", tmp_path)
    assert code == 2
    assert "was written by verirec 0.0.1 (format 0)" in errors
    assert errors.count("\n") == 1


def test_pages_are_written_from_results(run, tmp_path):
    results = REPOSITORY / "docs" / "table2"
    code, shown, errors = run("reproduce", "table2-pages", "--results", results, "--out", tmp_path)
    assert (code, errors) == (0, "")
    assert shown.count("The page: ") == 2
    assert (tmp_path / "which-method.md").read_text() == (REPOSITORY / "docs" / "which-method.md").read_text()


def test_results_that_are_not_there_are_one_clear_line(run, tmp_path):
    code, _, errors = run("reproduce", "table2-pages", "--results", tmp_path, "--out", tmp_path)
    assert code == 2
    assert "has no folder coat: verirec reproduce table2 --dataset coat" in errors
    assert errors.count("\n") == 1
