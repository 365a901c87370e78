"""Tables from records whose summary is known by eye."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from verirec.studies.semi_synthetic import tables
from verirec.studies.semi_synthetic.plans import figure1_plan, table1_plan
from verirec.studies.semi_synthetic.seeds import Record


def record(method, rho, estimate, matrix="SKEW", interval=(None, None), setting="sound"):
    rates = (None, None) if rho == "none" else (0.25, 0.1)
    return Record(setting, 0.1, method, rho, matrix, 1.0, estimate, *interval, *rates)


SEEDS = [
    [record("naive", "none", 1.3), record("ome-dr", "true", 1.1, interval=(1.0, 1.2))],
    [record("naive", "none", 0.5), record("ome-dr", "true", 0.9, interval=(0.8, 0.95))],
]


def test_a_cell_is_its_mean_spread_coverage_and_gap():
    table = tables.table1(tables.as_frame(SEEDS), table1_plan("sound")).set_index("method")
    naive, ours = table.loc["naive"], table.loc["ome-dr"]
    assert list(table.reset_index().columns[:7]) == ["method", "rho", "matrix", "mean", "std", "paper", "gap"]
    assert naive["mean"] == pytest.approx(0.4)
    assert naive["std"] == pytest.approx(np.std([0.3, 0.5], ddof=1))
    assert ours.coverage == 0.5
    # SKEW's numbers stand under ROTATE.
    assert (naive.paper, ours.paper) == (0.125, 0.009)
    assert naive.gap == pytest.approx(0.4 - 0.125)
    assert ours.rho01 == 0.25
    assert ours.baseline == "naive"


def test_the_printed_variant_goes_by_the_papers_headers():
    table = tables.table1(tables.as_frame(SEEDS), table1_plan("printed"))
    assert set(table.matrix) == {"ROTATE"}
    assert set(table.made_as) == {"SKEW"}


def test_other_preferences_have_no_printed_number():
    plan = table1_plan("sound", preferences="kuairec")
    table = tables.table1(tables.as_frame(SEEDS), plan)
    assert table.paper.isna().all()
    assert tables.gaps(table).cells == 0
    assert not tables.gaps(table).reproduces


def test_headers_are_swapped_only_where_a_printed_number_stands_beside():
    table = tables.table1(tables.as_frame(SEEDS), table1_plan("printed", preferences="kuairec"))
    assert set(table.matrix) == set(table.made_as) == {"SKEW"}


def test_one_seed_has_no_spread_and_no_test():
    table = tables.table1(tables.as_frame(SEEDS[:1]), table1_plan("sound"))
    assert table["std"].isna().all()
    assert table.p_value.isna().all()


def test_the_paired_t_test_is_scipys():
    first, second = np.random.default_rng(0).random((2, 20))
    assert tables.paired_p_value(first, second) == pytest.approx(stats.ttest_rel(first, second).pvalue)
    assert math.isnan(tables.paired_p_value([1, 2], [0, 1]))


def test_gaps_count_what_uses_no_estimated_rates():
    rows = [record("naive", "none", 1.125), record("ome-dr", "paper", 1.5), record("ome-dr", "true", 1.012)]
    cells, rmse, largest = tables.gaps(tables.table1(tables.as_frame([rows]), table1_plan("sound")))
    assert cells == 2
    assert (rmse, largest) == pytest.approx((0.003 / math.sqrt(2), 0.003))


def test_robustness_averages_over_matrices_then_settings():
    rows = [record("ome-dr", "true", 1 + re, matrix, setting=name) for name, matrix, re in (
        ("a", "CRS", 0.1), ("a", "ONE", 0.3), ("b", "CRS", 0.5), ("b", "ONE", 0.5),
    )]  # fmt: skip
    table = tables.robustness(tables.as_frame([rows])).set_index("setting")
    assert table["mean"].to_dict() == pytest.approx({"a": 0.2, "b": 0.5, tables.OVERALL: 0.35})
    assert table.worst.to_dict() == pytest.approx({"a": 0.3, "b": 0.5, tables.OVERALL: 0.5})


def test_figure1_has_the_rates_errors():
    rows = [record("ome-dr", "audit-200", 1.1, setting="0.5"), record("dr", "none", 1.2, setting="0.5")]
    table = tables.figure1(tables.as_frame([rows]), figure1_plan()).set_index("method")
    assert table.loc["ome-dr", "rho01_error"] == pytest.approx(0.05)
    assert math.isnan(table.loc["dr", "rho01_error"])
    assert set(table.scale) == {0.5}
