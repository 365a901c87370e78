"""The pages on Table 2: what their tables make, and nothing typed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from scipy import stats

from conftest import REPOSITORY
from refusals import check_refusal
from verirec.exceptions import DataError
from verirec.studies.table2.documents import FOLDERS, PAGES, read_studies, table2_page
from verirec.studies.table2.facts import advice, claims, corrections, gain
from verirec.studies.table2.page import study_markdown, study_page, write_study
from verirec.studies.table2.paper import PAPER_METHODS
from verirec.studies.table2.results import read_tables

RESULTS = REPOSITORY / "docs" / "table2"


@pytest.fixture(scope="module")
def studies():
    return read_studies(RESULTS)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_tables_make(name, studies):
    assert PAGES[name](studies) == (REPOSITORY / "docs" / name).read_text()


@pytest.mark.parametrize("name", PAGES)
def test_no_number_of_a_result_is_typed_on_a_page(name, studies):
    moved = studies.coat.table2.copy()
    moved["mean"] += 0.1234
    page = PAGES[name](replace(studies, coat=replace(studies.coat, table2=moved)))
    shown = f"{studies.coat.mean('mf', 'constants', 'auc'):.3f}"
    assert shown in PAGES[name](studies)
    assert f"{studies.coat.mean('mf', 'constants', 'auc') + 0.1234:.3f}" in page


def test_a_claim_turns_with_the_table(studies):
    table = studies.coat.table2.copy()
    before = {one.said: one.holds for one in claims(studies.coat)}
    best = table.form.eq("paper") & table.method.isin(("ome-dr",))
    table.loc[best, "mean"] = 2.0
    table.loc[table.form.eq("paper") & table.method.str.startswith("ome-"), ["better", "established"]] = "yes"
    after = {one.said: one.holds for one in claims(replace(studies.coat, table2=table))}
    assert after["The paper's own methods lead"]
    assert after["They significantly outperform the baselines"]
    assert set(before) == set(after)


def test_advice_names_the_best_and_those_as_good(studies):
    found = advice(studies.coat, "constants", "log_loss")
    part = studies.coat.table2
    part = part[part.form.isin(("constants", "baseline")) & (part.metric == "log_loss")]
    assert found["mean"] == part["mean"].min()
    assert found["count"] == (part["mean"] <= part["mean"].min() + 0.005).sum()
    assert corrections(None, "random test") == {}


def test_every_method_has_a_row_in_every_form(studies):
    page = table2_page(studies)
    run = set(studies.coat.table2.method)
    for name in PAPER_METHODS:
        if name not in run:
            assert name.upper() in page[: page.index("## In short")]
            continue
        assert len(re.findall(rf"^\| {re.escape(name.upper())} \|", page, re.MULTILINE)) >= 3


def test_studies_that_were_not_run_are_said_to_be_missing(studies):
    page = table2_page(replace(studies, swapped=None, audit=None, kuairec=None))
    assert page.count("*Not run: ") == 3


@pytest.mark.parametrize("folder", [one for one in FOLDERS.values() if (RESULTS / one).is_dir()])
def test_a_report_has_all_tables_and_pictures(folder, tmp_path):
    tables = read_tables(RESULTS / folder)
    write_study(tmp_path, tables)
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 3
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)
    assert study_markdown(tables).count("\n## ") >= len(tables.choices)
    again = read_tables(tmp_path)
    assert len(again.table2) == len(tables.table2)


def test_one_trial_leaves_a_report_without_a_spread(tmp_path):
    tables = read_tables(RESULTS / FOLDERS["coat"])
    write_study(tmp_path, replace(tables, spread=tables.spread.assign(trials=1)))
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 2
    assert "What tuning alone moves" not in page
    assert not (tmp_path / "spread.png").exists()


def test_gains_have_the_standard_errors_that_their_p_values_came_from(studies):
    one = studies.coat.cell("ome-dr", "constants", "auc")
    found = gain(studies.coat, "ome-dr", "constants", "auc")
    t_value = found.value / found.error
    assert 2 * stats.t.sf(abs(t_value), one.seeds - 1) == pytest.approx(one.p_value, rel=1e-6)


def test_the_same_tables_make_the_same_report():
    tables = read_tables(RESULTS / FOLDERS["coat"])
    assert study_page(tables) == study_page(tables)


def test_a_folder_without_tables_or_with_others_is_refused(tmp_path):
    check_refusal(lambda: read_tables(tmp_path), DataError, "has no table2.csv")
    (tmp_path / "table2.csv").write_text("a,b\n1,2\n")
    check_refusal(lambda: read_tables(tmp_path), DataError, "table2.csv must have rows and the column")
