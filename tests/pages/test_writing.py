"""A report is whole or not there."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import ParameterError
from verirec.pages.writing import FORMULA_STARTS, check_writable_file, write_file, write_report, write_table


@pytest.fixture
def written(tmp_path):
    """A folder with an older report."""
    write_report(tmp_path, "old page", {"truth": "old"})
    return tmp_path


def contents(folder):
    return {file.name: file.read_text() for file in folder.iterdir()}


def fail_on(monkeypatch, name, error):
    """Let renaming onto one file fail."""
    replace = Path.replace

    def failing(self, target):
        if Path(target).name == name:
            raise error
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)


def test_both_files_are_written_and_the_pages_path_is_given(tmp_path):
    page = write_report(tmp_path, "<p>grüße</p>", {"truth": None, "value": 0.1})
    assert page == tmp_path / "report.html"
    assert page.read_text(encoding="utf-8") == "<p>grüße</p>"
    assert json.loads((tmp_path / "summary.json").read_text()) == {"truth": None, "value": 0.1}
    assert {file.name for file in tmp_path.iterdir()} == {"report.html", "summary.json"}


def test_a_folder_is_made_with_those_above_it(tmp_path):
    assert write_report(str(tmp_path / "a" / "b"), "page", {}).is_file()


def test_others_can_read_the_report(written):
    assert all(file.stat().st_mode & 0o044 == 0o044 for file in written.iterdir())


def test_a_newer_report_takes_the_olders_place(written):
    write_report(written, "new page", {"truth": "new"})
    assert contents(written) == {"report.html": "new page", "summary.json": '{\n  "truth": "new"\n}\n'}


@pytest.mark.parametrize(
    "name",
    [
        "summary.json",
        "report.html",
    ],
)
def test_a_failure_keeps_both_old_files_and_leaves_nothing_else(written, monkeypatch, name):
    before = contents(written)
    fail_on(monkeypatch, name, OSError(28, "No space left on device"))
    check_refusal(
        lambda: write_report(written, "new page", {"truth": "new"}),
        ParameterError,
        r"cannot write to '.*': No space left on device",
    )
    assert contents(written) == before


@pytest.mark.parametrize("name", ["summary.json", "report.html"])
def test_a_failure_in_an_empty_folder_leaves_nothing_half_written(tmp_path, monkeypatch, name):
    fail_on(monkeypatch, name, OSError("broken"))
    with pytest.raises(ParameterError, match="broken"):
        write_report(tmp_path, "new page", {"truth": "new"})
    assert not list(tmp_path.glob(".*"))
    assert not (tmp_path / name).exists()


def test_an_interruption_keeps_the_old_file_and_goes_on_to_the_caller(written, monkeypatch):
    before = contents(written)
    fail_on(monkeypatch, "summary.json", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        write_report(written, "new page", {"truth": "new"})
    assert contents(written) == before


def test_a_summary_that_is_no_json_changes_nothing(written):
    before = contents(written)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_report(written, "new page", {"truth": float("nan")})
    assert contents(written) == before


def test_a_file_in_the_folders_place_is_refused_in_one_line(tmp_path):
    (tmp_path / "taken").write_text("mine")
    check_refusal(lambda: write_report(tmp_path / "taken", "page", {}), ParameterError, "cannot write to .*taken")
    check_refusal(lambda: write_report(tmp_path / "taken" / "b", "page", {}), ParameterError, "cannot write to")
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_folder_in_the_pages_place_is_refused_in_one_line(tmp_path):
    (tmp_path / "report.html").mkdir()
    check_refusal(lambda: write_report(tmp_path, "page", {}), ParameterError, "cannot write to")
    assert not list(tmp_path.glob(".*"))


ODD = ["a\rb", "\r=cmd", "\n=cmd", "a\r\n=cmd", "'\r", "a\n", "=cmd", "plain", 'a "b", c']


def test_ids_with_line_ends_in_them_are_read_back_and_start_no_formula(tmp_path):
    """A bare carriage return ends a line for most readers: what comes after it would be a cell."""
    count = len(ODD)
    log = vr.FeedbackLog.from_arrays(
        np.arange(count), np.zeros(count, int), [0, 1] * 4 + [1], n_users=count, n_items=1, user_ids=ODD, item_ids=["i"]
    )
    frame = log.to_frame()[["user", "item", "label"]].assign(true_label=1, weight=2.0)
    write_table(tmp_path / "plan.csv", frame)
    sample = vr.AuditSample.from_file(tmp_path / "plan.csv", log)
    assert sample.users.tolist() == list(range(count))
    with (tmp_path / "plan.csv").open(newline="") as opened:
        rows = list(csv.reader(opened))
    assert [row[0].removeprefix("'") if row[0] != "''\r" else "'\r" for row in rows[1:]] == ODD
    assert not [cell for row in rows for cell in row if cell.startswith(FORMULA_STARTS)]


def test_an_empty_label_stays_empty_where_text_is_quoted(tmp_path):
    write_table(tmp_path / "plan.csv", pd.DataFrame({"user": ["a\rb", "c"], "item": ["i", "i"], "true_label": None}))
    with (tmp_path / "plan.csv").open(newline="") as opened:
        assert [row["true_label"] for row in csv.DictReader(opened)] == ["", ""]


def test_text_is_quoted_only_where_it_has_to_be(tmp_path):
    write_table(tmp_path / "plan.csv", pd.DataFrame({"user": ["ann", "bob"], "label": [1, 0]}))
    assert (tmp_path / "plan.csv").read_bytes() == b"user,label\nann,1\nbob,0\n"


def test_a_place_that_is_no_regular_file_is_refused_before_the_work(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    check_refusal(lambda: check_writable_file(tmp_path / "pipe"), ParameterError, "is not a regular file")
    check_refusal(lambda: write_file(tmp_path / "pipe", b"x"), ParameterError, "is not a regular file")
