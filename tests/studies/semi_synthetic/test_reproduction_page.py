"""The reproduction's page and pictures."""

from __future__ import annotations

import csv
import re
import shutil
from dataclasses import replace
from itertools import dropwhile, takewhile
from pathlib import Path

import pandas as pd
import pytest

from conftest import REPOSITORY
from refusals import check_refusal
from verirec.exceptions import DataError
from verirec.pages.figures import write_pictures
from verirec.studies.semi_synthetic import Record, figure1_plan, table1_plan, tables
from verirec.studies.semi_synthetic.page import FILES, read_results, reproduction_page, table1_page
from verirec.studies.semi_synthetic.paper import TABLE1
from verirec.studies.semi_synthetic.plots import figure1_plot, robustness_plot, table1_plot
from verirec.studies.semi_synthetic.results import _COLUMNS

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


def rows_on_page(page, heading):
    """Read the first table below a heading, by the words of row and column."""
    below = page[page.index(f"## {heading}") :].splitlines()
    lines = list(takewhile(lambda line: line.startswith("|"), dropwhile(lambda line: not line.startswith("|"), below)))
    header, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {(row, name): cell for row, *cells in body for name, cell in zip(header[1:], cells, strict=True)}


def test_every_cell_of_the_printed_table_is_ours_less_the_papers():
    page = (REPOSITORY / "docs" / "reproduction.md").read_text()
    shown = rows_on_page(page, "The printed table, without estimated noise rates")
    with (RESULTS / "printed" / "table1.csv").open() as file:
        ours = {(one["method"], one["rho"], one["matrix"]): float(one["mean"]) for one in csv.DictReader(file)}
    assert len(shown) == len(ours) == len(TABLE1) == 90
    said = {"none": "", "true": ", true rates", "paper": ", paper's rule"}
    for (method, rho, header), printed in TABLE1.items():
        name = "Naive" if method == "naive" else method.upper()
        mean, gap = re.fullmatch(r"(\d\.\d{3}) \(([+-]\d\.\d{3})\)", shown[f"{name}{said[rho]}", header]).groups()
        assert float(mean) == pytest.approx(ours[method, rho, header], abs=0.00051)
        assert float(gap) == pytest.approx(ours[method, rho, header] - printed.mean, abs=0.00051)


def changed(results, name, **columns):
    return replace(results, **{name: getattr(results, name).assign(**columns)})


def test_words_follow_the_tables(results):
    def words(results):
        return " ".join(reproduction_page(results, "reproduction").split())

    page, printed = words(results), results.printed
    assert "the 66 that use no estimated noise rate **reproduce**" in page
    assert "The 24 cells that use estimated noise rates **do not reproduce**" in page
    assert "They do so only with two faults included" in page
    assert "partly cancel" in page
    known = printed.rho != "paper"
    for gap in (printed.gap.where(~known, 0.0031), printed.gap.where(printed.index != known.idxmax(), 0.0061)):
        off = words(changed(results, "printed", gap=gap))
        assert "the 66 that use no estimated noise rate **do not reproduce**" in off
        assert "They do so" not in off
    near = words(changed(results, "printed", gap=printed.gap.where(known, 0.001)))
    assert "The 24 cells that use estimated noise rates **reproduce**" in near
    assert "at most, remains" not in near
    assert "partly cancel" not in words(changed(results, "printed", rho01=0.3, rho10=0.2))
    assert "over 7 seeds" in words(changed(results, "printed", seeds=7))
    assert "| propensities of the formula, nothing else changed | 2 of 6 | 6 of 6 |" in page
    assert "nothing else changed | 6 of 6 | 6 of 6 |" in words(replace(results, not_aliased=printed))
    assert "OME-DR at 0.9% (0.096 against 0.054)" in page
    figure1 = results.figure1
    right = words(changed(results, "figure1", mean=figure1["mean"].where(figure1.rho != "paper", 0.0)))
    assert "worse than no correction" not in right
    assert "So it does here" not in page
    errors = {f"{rate}_error": 1 / figure1.scale for rate in ("rho01", "rho10")}
    assert "So it does here" in words(changed(results, "figure1", **errors))


@pytest.mark.parametrize("name", sorted(set(FILES) - {"printed", "sound"}))
def test_a_study_that_was_not_run_leaves_its_section_out(name, results):
    page = reproduction_page(replace(results, **{name: None}), "reproduction")
    assert page.lower().count("not run") >= 1
    assert page.count("\n## ") == reproduction_page(results, "reproduction").count("\n## ")


def test_the_columns_read_are_those_written():
    records = [
        Record("sound", 0.1, method, rho, "CRS", 1.0, 1.1, None, None, 0.2, 0.1)
        for method, rho in (("dr", "none"), ("ome-dr", "true"))
    ]
    frame = tables.as_frame([records])
    figure1 = tables.as_frame([[one._replace(setting="0.5") for one in records]])
    written = {
        "table1": tables.table1(frame, table1_plan()),
        "figure1": tables.figure1(figure1, figure1_plan()),
        "robustness": tables.robustness(frame),
    }
    assert {study: " ".join(table.columns) for study, table in written.items()} == _COLUMNS


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
    page = table1_page(results.sound, table1_plan())
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 7 + 4 * 4
    assert all(row.count("|") == 8 for row in rows)


def test_a_results_folder_that_is_not_one_is_refused(tmp_path):
    check_refusal(lambda: read_results(tmp_path), DataError, "has no printed/table1.csv; verirec reproduce all writes")
    for file in FILES.values():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("")
    check_refusal(lambda: read_results(tmp_path), DataError, "is not a table")


def test_an_unfinished_study_is_refused_and_not_left_out(tmp_path):
    for name in ("printed", "sound"):
        shutil.copytree(RESULTS / name, tmp_path / name)
    (tmp_path / "kuairec" / "runs").mkdir(parents=True)
    check_refusal(lambda: read_results(tmp_path), DataError, "has no kuairec/table1.csv")


def put(column, value, row=0):
    def edit(table):
        table.loc[table.index[row], column] = value
        return table

    return edit


@pytest.mark.parametrize("name", ["printed", "kuairec", "figure1", "robustness"])
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda table: table.drop(columns="mean"), "'mean' is missing"),
        (lambda table: table.assign(extra=1), "'extra' is none of them"),
        (lambda table: table[:0], "has 0 of"),
        (lambda table: table[1:], "is missing"),
        (lambda table: pd.concat([table, table[:1]]), "more than once"),
        (lambda table: pd.concat([table[1:], table[1:2]]), "more than once"),
        (put("mean", "much"), "must have numbers as mean; got 'much'"),
        (put("mean", ""), "must have numbers as mean; got ''"),
        (put("mean", "nan"), "must have numbers as mean"),
        (put("mean", "-0.1"), "must have numbers as mean"),
        (put("coverage", "inf"), "must have numbers as coverage"),
        (put("rho", "guessed"), "guessed.* is not of this study"),
        (put("seeds", "7", row=3), "must have one number of seeds in all rows"),
        (lambda table: table.assign(seeds="1.5"), "must have one number of seeds"),
        (lambda table: table.assign(seeds="0"), "must have one number of seeds"),
    ],
)
def test_edited_tables_are_refused(name, edit, message, tmp_path):
    check_edited(name, edit, message, tmp_path)


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        ("printed", put("method", "best"), "best.* is not of this study"),
        ("printed", put("matrix", "TWO"), "TWO, which is not of this study"),
        ("printed", put("paper", "0.5"), "another recommender, printed number or gap"),
        ("printed", put("paper", ""), "another recommender, printed number or gap"),
        ("printed", put("gap", "0.0"), "another recommender, printed number or gap"),
        ("printed", put("made_as", "CRS"), "another recommender"),
        ("printed", put("coverage", "0.9"), "cannot have"),
        ("sound", put("coverage", ""), "cannot have"),
        ("sound", put("coverage", "1.5"), "cannot have"),
        ("sound", put("better", "perhaps"), "must have true, false or nothing as better"),
        ("sound", lambda table: table.assign(rho01=""), "noise rates where they are used"),
        ("kuairec", lambda table: pd.read_csv(RESULTS / "sound" / "table1.csv", dtype=str), "printed number"),
        ("printed", lambda table: pd.read_csv(RESULTS / "sound" / "table1.csv", dtype=str), "is not of this study"),
        ("figure1", put("scale", "0.3"), "0.3, .* is not of this study"),
    ],
)
def test_tables_that_are_of_another_study_are_refused(name, edit, message, tmp_path):
    check_edited(name, edit, message, tmp_path)


def check_edited(name, edit, message, folder):
    for one in {"printed", "sound", name}:
        shutil.copytree((RESULTS / FILES[one]).parent, (folder / FILES[one]).parent)
    file = folder / FILES[name]
    edit(pd.read_csv(file, dtype=str, keep_default_na=False)).to_csv(file, index=False)
    check_refusal(lambda: read_results(folder), DataError, f"{file.name}.*{message}")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a,b\n1,2,3\n1\n", b"user,item\n1,2\n", b"\n\n"])
def test_files_that_are_no_table_of_ours_are_refused(content, tmp_path):
    for name in ("printed", "sound"):
        shutil.copytree(RESULTS / name, tmp_path / name)
    (tmp_path / "printed" / "table1.csv").write_bytes(content)
    check_refusal(lambda: read_results(tmp_path), DataError, "table1.csv")


def test_the_order_of_rows_does_not_matter(tmp_path):
    shutil.copytree(RESULTS, tmp_path / "results")
    for file in FILES.values():
        table = pd.read_csv(tmp_path / "results" / file, dtype=str, keep_default_na=False)
        table.sample(frac=1, random_state=0).to_csv(tmp_path / "results" / file, index=False)
    page = (REPOSITORY / "docs" / "reproduction.md").read_text()
    assert reproduction_page(read_results(tmp_path / "results"), "reproduction") == page
