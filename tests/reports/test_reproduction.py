"""The reproduction's page and pictures."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import REPOSITORY
from refusals import check_refusal
from verirec.exceptions import DataError
from verirec.reports.reproduction import FILES, read_results, reproduction_page, table1_page
from verirec.reports.reproduction_plots import figure1_plot, robustness_plot, table1_plot, write_pictures

RESULTS = REPOSITORY / "docs" / "reproduction"


@pytest.fixture(scope="module")
def results():
    return read_results(RESULTS)


def test_the_page_is_what_its_tables_make(results):
    page = (REPOSITORY / "docs" / "reproduction.md").read_text()
    assert reproduction_page(results, "reproduction") == page


def test_the_page_changes_with_the_tables(results):
    page = reproduction_page(results, "reproduction")
    moved = results.printed.assign(gap=results.printed.gap + 0.01)
    assert reproduction_page(replace(results, printed=moved), "reproduction") != page


def test_every_printed_number_on_the_page_is_in_the_tables(results):
    page = (REPOSITORY / "docs" / "reproduction.md").read_text()
    for one in results.printed.itertuples():
        assert f"{one.mean:.3f} ({one.gap:+.3f})" in page


def test_the_committed_tables_meet_what_is_claimed(results):
    known = results.printed[results.printed.rho != "paper"]
    assert len(known) == 66
    assert known.gap.abs().max() <= 0.006
    assert (known.gap**2).mean() ** 0.5 <= 0.003
    assert (results.printed.seeds == 20).all()


def test_only_aggregates_are_committed():
    assert {file.relative_to(RESULTS).as_posix() for file in RESULTS.rglob("*.csv")} == set(FILES.values())
    assert not list(RESULTS.rglob("runs")), "saved seeds are not for the repository"


@pytest.mark.parametrize(
    ("name", "draw", "table"),
    [
        ("table1", table1_plot, "printed"),
        ("table1", table1_plot, "kuairec"),
        ("figure1", figure1_plot, "figure1"),
        ("robustness", robustness_plot, "robustness"),
    ],
)
def test_pictures_are_written_twice_the_same(name, draw, table, results, tmp_path):
    pictures = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        write_pictures(folder, name, draw(getattr(results, table)))
        pictures.append([Path(folder, f"{name}.{kind}").read_bytes() for kind in ("png", "svg")])
    assert pictures[0] == pictures[1]
    assert re.match(rb"<svg ", pictures[0][1])


def test_a_table_of_its_own_is_whole(results):
    page = table1_page(results.sound)
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 7 + 4 * 4
    assert all(row.count("|") == 8 for row in rows)


def test_a_results_folder_that_is_not_one_is_refused(tmp_path):
    check_refusal(lambda: read_results(tmp_path), DataError, "8 of 8 tables are missing")
    for file in FILES.values():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("")
    check_refusal(lambda: read_results(tmp_path), DataError, "is not a table")
