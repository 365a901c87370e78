"""Running a study: the same results however often it is stopped, and by however many processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from study_world import STUDY, lasting, small_problem

from verirec.studies.store import Store
from verirec.studies.table2 import run_study
from verirec.studies.table2.findings import SELECTORS, searches
from verirec.studies.table2.plans import Task
from verirec.studies.table2.runs import _facts, _missing, claim_of, is_run
from verirec.studies.table2.spaces import BY_LOG
from verirec.studies.table2.tuning import best_of, score_of

HERE = str(Path(__file__).parent)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, run_study(small_problem(), STUDY, folder, workers=1)


def rows_of(folder):
    return lasting(Store(folder / "store").rows())


def test_every_task_has_its_trials_and_its_seeds(whole):
    _, results = whole
    tasks = [Task("mf", "constants"), Task("ome-ips", "constants"), Task("constants", "baseline")]
    assert [len(results.trials[task]) for task in tasks] == [3, 3, 3]
    assert [len(results.chosen[task, "validation"]) for task in tasks] == [2, 2, 2]
    assert len(results.trials[Task("item-mean", "baseline")]) == 1
    row = results.chosen[tasks[0], "validation"][1]
    assert row["seed"] == 1
    assert {"setting", "study", "revision", "seconds", "validation", "test", "random"} <= set(row)


def test_the_chosen_setting_is_the_best_on_validation_and_nothing_else(whole):
    _, results = whole
    for (task, choice), runs in results.chosen.items():
        scores = [score_of("validation", row) for row in results.trials[task]]
        assert runs[0]["setting"] == results.trials[task][int(np.argmax(scores))]["setting"]
        assert choice == "validation"
    worse_on_test = [dict(row, test=dict.fromkeys(row["test"], 0.0)) for row in results.trials[task]]
    assert best_of("validation", worse_on_test)["setting"] == runs[0]["setting"]


def test_two_workers_give_what_one_does(whole, tmp_path):
    folder, _ = whole
    run_study(small_problem(), STUDY, tmp_path, workers=2)
    assert rows_of(tmp_path) == rows_of(folder)


def test_a_study_that_was_cut_off_goes_on_and_takes_more_trials(whole, tmp_path):
    folder, results = whole
    lines = (folder / "store" / "runs.jsonl").read_bytes().splitlines(keepends=True)
    store = Store(tmp_path / "store")
    for line in lines[1:8]:
        row = json.loads(line)
        store.append(row, Store(folder / "store").array(row["key"]))
    with store.file.open("ab") as file:
        file.write(lines[8][:40])
    # More trials than before begin with the same ones.
    more = run_study(small_problem(), replace(STUDY, trials=4), tmp_path, workers=1)
    for task, trials in results.trials.items():
        of_more = more.trials[task]
        assert len(of_more) == (4 if len(trials) == 3 else 1)
        assert [(row["setting"], row["test"]) for row in of_more[: len(trials)]] == [
            (row["setting"], row["test"]) for row in trials
        ]


def test_a_finished_study_runs_nothing(whole):
    folder, results = whole
    before = (folder / "store" / "runs.jsonl").read_bytes()
    told = []
    again = run_study(small_problem(), STUDY, folder, progress=lambda done, total: told.append((done, total)))
    assert (folder / "store" / "runs.jsonl").read_bytes() == before
    assert told[-1][0] == told[-1][1]
    assert again.chosen == results.chosen


def test_another_log_or_protocol_is_another_study(whole):
    folder, _ = whole
    rows = Store(folder / "store").rows()
    task = Task("item-mean", "baseline")
    assert list(_missing(small_problem(), STUDY, task, rows)) == []
    for problem, study in (
        (small_problem(seed=1), STUDY),
        (small_problem(), replace(STUDY, protocol="honest")),
        (small_problem(), replace(STUDY, rho01=0.1)),
    ):
        assert _facts(problem, study) != _facts(small_problem(), STUDY)
        assert next(_missing(problem, study, task, rows))[0] == 0


@pytest.fixture
def start():
    """Start a study in a process of its own, which ends with the test, its worker too."""
    started = []

    def start(folder):
        started.append(_start(folder))
        return started[-1]

    yield start
    for one in started:
        with suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)
        one.wait()


def _start(folder):
    code = (
        f"import sys\nsys.path.insert(0, {HERE!r})\n"
        "from study_world import STUDY, small_problem\nfrom verirec.studies.table2 import run_study\n"
        "if __name__ == '__main__':\n    run_study(small_problem(), STUDY, sys.argv[1], workers=1)\n"
    )
    script = folder / "script.py"
    script.write_text(code)
    return subprocess.Popen(
        [sys.executable, str(script), str(folder)],
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([HERE, *sys.path])},
    )


def test_two_processes_share_a_study_and_do_each_run_once(whole, start, tmp_path):
    folder, _ = whole
    both = [start(tmp_path), start(tmp_path)]
    assert [one.wait() for one in both] == [0, 0]
    assert rows_of(tmp_path) == rows_of(folder)
    lines = (tmp_path / "store" / "runs.jsonl").read_text().splitlines()[1:]
    assert len(lines) == len({json.loads(line)["key"] for line in lines})


def test_what_another_process_is_at_is_left_for_the_end(start, tmp_path):
    store, task = Store(tmp_path / "store"), Task("global-mean", "baseline")
    with store.claim(claim_of(small_problem(), STUDY, task)) as held:
        assert held
        one = start(tmp_path)
        # The others are all done: 3 means of 2 seeds, 3 tuned tasks of 3 trials and a seed more.
        _wait_for(one, store.file, 1 + 3 * 2 + 3 * 4)
        assert one.poll() is None
        assert not any(row["method"] == "global-mean" for row in store.rows().values())
    assert one.wait() == 0
    assert any(row["method"] == "global-mean" for row in store.rows().values())


def _wait_for(process, file, lines):
    while not file.exists() or file.read_bytes().count(b"\n") < lines:
        assert process.poll() is None
        time.sleep(0.05)


def test_a_killed_study_goes_on_to_the_same(whole, start, tmp_path):
    folder, _ = whole
    one = start(tmp_path)
    file = tmp_path / "store" / "runs.jsonl"
    _wait_for(one, file, 6)
    # The worker is not killed, and ends by itself.
    os.kill(one.pid, signal.SIGKILL)
    one.wait()
    assert file.read_bytes().count(b"\n") >= 6
    run_study(small_problem(), STUDY, tmp_path, workers=1)
    assert rows_of(tmp_path) == rows_of(folder)


@pytest.mark.parametrize(
    "changed", [{"study": None}, {"setting": None}, {"seed": "0"}, {"test": {"auc": "high"}}, {"estimates": [0.6]}]
)
def test_a_line_that_hands_have_left_is_no_run(changed):
    run = {"key": "a", "study": {}, "method": "mf", "form": "paper", "trial": 0, "setting": {}, "seed": 0}
    assert is_run(run)
    assert not is_run(run | changed)


def test_the_honest_protocol_holds_rows_out_and_estimates_on_them(tmp_path):
    study = replace(STUDY, protocol="honest", methods=("mf",), trials=2, seeds=2)
    results = run_study(small_problem(), study, tmp_path, workers=1)
    for task, trials in results.trials.items():
        for row in trials:
            assert set(row["estimates"]) == set(SELECTORS), task
            assert "validation" not in row
    assert {choice for _, choice in results.chosen} == {"naive"}


def test_what_goes_by_the_log_alone_is_run_once_a_seed_and_tells_its_search(tmp_path):
    study = replace(STUDY, methods=("mf",), by_log=("auto-survey", "constants-survey"), trials=1, seeds=2)
    results = run_study(small_problem(), study, tmp_path, workers=1)
    auto, constants = (results.chosen[Task(name, "by-log"), "validation"] for name in study.by_log)
    assert [row["seed"] for row in auto] == [0, 1]
    assert all(row["search"]["tried"] >= 5 and row["search"]["standard_error"] > 0 for row in auto)
    assert all(row["search"] == {} for row in constants)
    table = searches(results)
    assert list(table.seed) == [0, 1]
    assert set(table.method) == {"auto-survey"}
    assert json.loads(table.chosen[0])["method"] == auto[0]["search"]["chosen"]["method"]


def test_honest_searches_have_no_survey():
    tasks = set(replace(STUDY, protocol="honest", by_log=BY_LOG).tasks(has_features=True))
    assert {task.method for task in tasks if task.form == "by-log"} == {
        "auto-ranking",
        "auto-probability",
        "constants-default",
    }
