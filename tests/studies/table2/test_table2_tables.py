"""Means, tests and intervals of Table 2, against plain re-implementations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from study_world import STUDY, small_problem

from verirec import FeedbackLog
from verirec.methods import catalogue
from verirec.metrics import evaluate
from verirec.studies.store import Store
from verirec.studies.table2 import Results, run_study
from verirec.studies.table2.findings import OVERALL, correction, selection, tuning_spread
from verirec.studies.table2.paper import PAPER_METHODS, TABLE2
from verirec.studies.table2.plans import Task
from verirec.studies.table2.tables import COLUMNS, best_baseline, holm, table2
from verirec.studies.table2.users import half_width, influences


def plain_holm(values):
    known = sorted((value, place) for place, value in enumerate(values) if not np.isnan(value))
    found, largest = [float("nan")] * len(values), 0.0
    for rank, (value, place) in enumerate(known):
        largest = max(largest, min(1.0, value * (len(known) - rank)))
        found[place] = largest
    return found


@pytest.mark.parametrize("seed", range(5))
def test_holm_is_the_plain_one(seed):
    values = np.random.default_rng(seed).random(12) ** 3
    values[3] = np.nan
    np.testing.assert_allclose(holm(values), plain_holm(values))


def test_the_papers_numbers_are_those_of_all_24_methods():
    assert len(TABLE2) == 24 * 9
    assert {method for _, method, _ in TABLE2} == set(PAPER_METHODS) <= set(catalogue)
    assert TABLE2["kuairec", "ome-ips", "recall"] == (0.763, 0.002)
    assert TABLE2["yahoo-r3", "dr-v2", "recall"] == (0.392, 0.004)
    assert max(one.mean for (data, _, metric), one in TABLE2.items() if (data, metric) == ("coat", "auc")) == 0.651


def test_influences_of_users_give_the_spread_that_drawing_users_anew_does():
    random = np.random.default_rng(0)
    users, items = np.repeat(np.arange(150), 12), np.tile(np.arange(12), 150)
    levels = random.normal(size=150)
    labels = (random.random(1800) < 1 / (1 + np.exp(-levels[users]))).astype(int)
    scores = 1 / (1 + np.exp(-(0.7 * levels[users] + random.normal(size=1800))))
    log = FeedbackLog.from_arrays(users, items, labels, n_users=150, n_items=12)
    found = influences(scores, log, 5)
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-5)
    draws = []
    for _ in range(300):
        drawn = random.integers(150, size=150)
        rows = (drawn[:, None] * 12 + np.arange(12)).ravel()
        again = FeedbackLog.from_arrays(np.repeat(np.arange(150), 12), items, labels[rows], n_users=150, n_items=12)
        one = evaluate(scores[rows].reshape(150, 12), again, k=5)
        draws.append([one[name] for name in ("auc", "ndcg@5", "recall@5", "log_loss")])
    spread = np.std(draws, axis=0)
    widths = np.array([half_width(row, z=1.0) for row in found])
    np.testing.assert_allclose(widths, spread, rtol=0.15)


def _results(values, study=STUDY):
    """Give results whose test metrics are these, by method."""

    def rows(method, form, numbers):
        return [
            {
                "key": f"{method} {form} {seed}",
                "setting": {},
                "cpu_seconds": 1.0,
                "test": dict.fromkeys(("auc", "ndcg", "recall", "log_loss", "brier", "calibration_error"), number),
            }
            for seed, number in enumerate(numbers)
        ]

    tasks = {Task(*name): rows(*name, numbers) for name, numbers in values.items()}
    return Results(study, tasks, {(task, "validation"): of for task, of in tasks.items()})


def test_a_method_is_held_against_the_best_baseline_of_its_form():
    values = {
        ("constants", "baseline"): [0.70, 0.71, 0.72],
        ("mf", "paper"): [0.60, 0.62, 0.61],
        ("ome-dr", "paper"): [0.65, 0.64, 0.66],
        ("mf", "constants"): [0.74, 0.75, 0.73],
        ("ome-dr", "constants"): [0.81, 0.8201, 0.7999],
    }
    results = _results(values)
    runs = {task: of for (task, _), of in results.chosen.items()}
    assert best_baseline(runs, Task("ome-dr", "paper"), "auc") == Task("constants", "baseline")
    assert best_baseline(runs, Task("ome-dr", "constants"), "auc") == Task("mf", "constants")
    assert best_baseline(runs, Task("ome-dr", "constants"), "log_loss") == Task("constants", "baseline")
    table = table2(results, 5, lambda key: np.zeros((4, 20)))
    assert list(table.columns) == list(COLUMNS)
    assert list(table.columns[:7]) == ["dataset", "method", "metric", "mean", "std", "paper", "p_value"]
    row = table[(table.method == "ome-dr") & (table.form == "constants") & (table.metric == "auc")].iloc[0]
    own, theirs = values["ome-dr", "constants"], values["mf", "constants"]
    assert row.p_value == pytest.approx(stats.ttest_rel(own, theirs).pvalue)
    assert row.difference == pytest.approx(0.07)
    assert (row.better, row.established) == ("yes", "yes")
    for (form, _), family in table.groupby(["form", "metric"]):
        expected = [float("nan")] * len(family) if form == "baseline" else plain_holm(family.p_value)
        np.testing.assert_allclose(family.p_holm, expected)
    assert (
        table[(table.method == "ome-dr") & (table.form == "paper") & (table.metric == "ndcg@5")].paper.iloc[0] == 0.561
    )
    assert table[table.form != "paper"].paper.isna().all()


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("honest")
    study = replace(STUDY, protocol="honest", methods=("mf", "ome"), trials=3, seeds=2)
    return folder, run_study(small_problem(features=True), study, folder, workers=2)


def test_the_selection_study_says_what_each_way_to_choose_loses(honest):
    _, results = honest
    table = selection(results)
    trials = results.trials[Task("mf", "constants")]
    of_mf = table[table.method == "mf"].set_index("chosen_by")
    for way in ("naive", "ome-snips-audit"):
        chosen = min(trials, key=lambda row: row["estimates"][way])["test"]
        assert of_mf.auc_regret[way] == max(row["test"]["auc"] for row in trials) - chosen["auc"]
        assert of_mf.log_loss_regret[way] == chosen["log_loss"] - min(row["test"]["log_loss"] for row in trials)
    assert (table.auc_regret >= 0).all()
    overall = table[(table.method == OVERALL) & (table.form == OVERALL)].set_index("chosen_by")
    of_all = table[table.method != OVERALL].groupby("chosen_by").auc_regret
    pd.testing.assert_series_equal(overall.auc_regret.sort_index(), of_all.mean().sort_index(), check_names=False)
    by_hand = of_all.std(ddof=1) / of_all.count() ** 0.5
    pd.testing.assert_series_equal(overall.auc_error.sort_index(), by_hand.sort_index(), check_names=False)


def test_what_goes_by_the_log_is_held_against_simple_baselines_and_is_no_rival():
    values = {
        ("constants", "baseline"): [0.70, 0.71, 0.72],
        ("mf", "constants"): [0.72, 0.73, 0.72],
        ("auto-ranking", "by-log"): [0.80, 0.81, 0.79],
        ("auto-survey", "by-log"): [0.81, 0.82, 0.80],
    }
    runs = {task: of for (task, _), of in _results(values).chosen.items()}
    assert best_baseline(runs, Task("auto-ranking", "by-log"), "auc") == Task("constants", "baseline")
    assert best_baseline(runs, Task("ome-dr", "constants"), "auc") == Task("mf", "constants")


def test_the_correction_is_compared_seed_by_seed_on_clean_labels(honest):
    _, results = honest
    table = correction(results)
    assert set(table.on) == {"held-out log", "random test"}
    one = table[(table.on == "held-out log") & (table.metric == "log_loss") & (table.choice == "naive")].iloc[0]
    losses = [
        [row["held_out"]["log_loss"] for row in results.chosen[Task(name, "constants"), "naive"]]
        for name in ("mf", "ome")
    ]
    assert one.difference == pytest.approx(np.mean(losses[1]) - np.mean(losses[0]))


def test_the_table_of_a_real_study_has_every_cell(honest):
    folder, results = honest
    table = table2(results, 5, Store(folder / "store").array)
    assert len(table) == 7 * 6
    tested = table[table.metric.isin(("auc", "log_loss")) & table.p_value.notna()]
    assert tested[["low", "high", "difference"]].notna().all(axis=None)
    spread = tuning_spread(results)
    assert (spread.auc_least <= spread.auc_median).all()
