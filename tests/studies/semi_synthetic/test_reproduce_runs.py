"""Runs: whatever the number of workers, and however often they are stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from refusals import check_refusal
from verirec.engine.revision import revision
from verirec.exceptions import DataError, ParameterError
from verirec.studies.semi_synthetic import Population, Record, WorkerEndedError, run_plan, run_seed, runs, table1_plan
from verirec.studies.semi_synthetic.runs import keys_of, records_of
from verirec.studies.store import Store

LEVELS = np.random.default_rng(0).choice(5, (60, 80), p=(0.53, 0.24, 0.14, 0.07, 0.02)).astype(np.int8) + 1
PLAN = table1_plan("printed")

SCRIPT = """
    import sys
    import numpy as np
    from verirec.studies.semi_synthetic import Population, run_plan, table1_plan

    if __name__ == "__main__":
        levels = np.load(sys.argv[1])
        run_plan(table1_plan("printed"), Population(levels), seeds=int(sys.argv[3]), folder=sys.argv[2])
"""


@pytest.fixture(scope="module")
def by_two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    return folder, run_plan(PLAN, Population(LEVELS), seeds=3, folder=folder, workers=2)


def lines(folder):
    """Give the store's runs by their seeds, as they stand in its file."""
    rows = [json.loads(line) for line in (folder / "store" / "runs.jsonl").read_text().splitlines()[1:]]
    return {row["seed"]: row for row in rows}


def test_the_number_of_workers_changes_nothing(by_two, tmp_path):
    by_one = run_plan(PLAN, Population(LEVELS), seeds=3, folder=tmp_path, workers=1)
    assert by_one == by_two[1]
    assert lines(tmp_path) == lines(by_two[0])


def test_a_saved_seed_is_what_the_seed_gives(by_two):
    saved = by_two[1][1]
    again = run_seed(PLAN, Population(LEVELS), 1)
    assert [one[:5] for one in saved] == [one[:5] for one in again]
    assert [one.estimate for one in saved] == pytest.approx([one.estimate for one in again], rel=1e-12)


def test_a_kept_seed_says_what_it_is_of(by_two):
    row = lines(by_two[0])[2]
    assert (row["study"], row["seed"], row["revision"]) == ("table1", 2, revision())


def test_finished_seeds_are_not_run_again_and_broken_ones_are(by_two, tmp_path):
    _, records = by_two
    store = store_of(tmp_path, [lines(by_two[0])[seed] for seed in (0, 2)])
    with store.open("a") as file:
        file.write(json.dumps(lines(by_two[0])[1])[:100])
    told = []
    again = run_plan(
        PLAN, Population(LEVELS), seeds=3, folder=tmp_path, progress=lambda done, total: told.append((done, total))
    )
    assert again == records
    assert (told[0], told[-1]) == ((2, 3), (3, 3))
    assert [json.loads(line)["seed"] for line in (store.read_text().splitlines()[i] for i in (1, 2, 4))] == [0, 2, 1]


def store_of(folder, rows):
    """Write a store of some runs, as it would be; give its file."""
    store = Store(folder / "store")
    for row in rows:
        store.append(row)
    return store.file


def test_other_plans_and_populations_have_other_keys():
    other = Population(LEVELS.T.copy())
    keys = [keys_of(plan, one, 2) for plan in (PLAN, table1_plan()) for one in (Population(LEVELS), other)]
    assert len({key for some in keys for key in some}) == 8


def test_a_stopped_run_leaves_whole_seeds_and_goes_on(started, tmp_path):
    out = tmp_path / "out"
    running = started(out, 3000)
    while not (out / "store" / "runs.jsonl").exists() or len(Store(out / "store").rows()) < 2:
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    assert running.wait() != 0
    left = lines(out)
    # Two workers: at most one seed was under way below the last finished one.
    count = len(left) + 1
    assert started(out, count).wait() == 0
    whole = lines(out)
    assert sorted(whole) == list(range(count))
    assert {seed: whole[seed] for seed in left} == left


def test_two_runs_share_a_folder_and_do_each_seed_once(by_two, started, tmp_path):
    both = [started(tmp_path, 3), started(tmp_path, 3)]
    assert [one.wait() for one in both] == [0, 0]
    assert lines(tmp_path) == lines(by_two[0])
    assert (tmp_path / "store" / "runs.jsonl").read_text().count("\n") == 1 + 3


@pytest.fixture
def started(tmp_path_factory):
    """Start runs of so many seeds in processes of their own; whatever the test does, they are ended after it."""
    place, running = tmp_path_factory.mktemp("script"), []
    (place / "script.py").write_text(textwrap.dedent(SCRIPT))
    np.save(place / "levels.npy", LEVELS)

    def start(out, seeds):
        command = [sys.executable, place / "script.py", place / "levels.npy", out, str(seeds)]
        running.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        return running[-1]

    yield start
    for one in running:
        one.kill()
        one.wait()


def _with(name, value, row=0):
    """Change one value of a seed's records."""

    def edit(records):
        records[row][Record._fields.index(name)] = value
        return records

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        lambda records: records[:-1],
        lambda records: [*records[:-1], records[0]],
        lambda records: [*records, records[0]],
        lambda records: [],
        lambda records: 5,
        lambda records: None,
        lambda records: [[]],
        lambda records: [dict.fromkeys("abcdefghijk")],
        _with("method", "best"),
        _with("method", ["naive"]),
        _with("setting", "sound"),
        _with("truth", 0.0),
        _with("truth", -0.1),
        _with("estimate", float("nan")),
        _with("estimate", float("inf")),
        _with("estimate", "0.5"),
        _with("estimate", True),
        _with("estimate", None),
        _with("observed", float("nan")),
        _with("low", "a"),
        _with("rho01", 0.2),
        _with("rho01", None, row=-1),
    ],
)
def test_records_that_are_not_the_plans_are_no_run(edit, by_two):
    row = lines(by_two[0])[1]
    assert records_of(row, PLAN) == by_two[1][1]
    assert records_of(row | {"records": edit(row["records"])}, PLAN) is None


def test_a_kept_seed_that_is_not_the_plans_is_run_again(by_two, tmp_path, monkeypatch):
    rows = lines(by_two[0])
    store_of(tmp_path, [rows[0], rows[1] | {"records": []}, rows[2]])

    def pretend(work, shared, jobs, *_, **__):
        assert [(seed, wait) for (seed, _), wait in jobs] == [(1, False), (1, True)]
        Store(shared[2]).append(rows[1])

    monkeypatch.setattr(runs, "in_processes", pretend)
    assert run_plan(PLAN, Population(LEVELS), seeds=3, folder=tmp_path) == by_two[1]


def test_a_seed_that_vanishes_is_not_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "in_processes", lambda *_, **__: None)
    check_refusal(
        lambda: run_plan(PLAN, Population(LEVELS), seeds=2, folder=tmp_path),
        DataError,
        "seed 0 was run just now, and .* does not hold the plan's cells",
    )


def _end_at_the_second(shared, task, wait):
    if task[0] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    WORK(shared, task, wait)


def _fail(shared, task, wait):
    raise OSError(28, "No space left on device")


WORK = runs._work


@pytest.mark.parametrize(("work", "error"), [(_end_at_the_second, WorkerEndedError), (_fail, OSError)])
def test_a_worker_that_ends_early_is_told_in_one_line_and_finished_seeds_are_kept(work, error, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "_work", work)
    with pytest.raises(error) as caught:
        run_plan(PLAN, Population(LEVELS), seeds=2, folder=tmp_path, workers=1)
    assert "\n" not in str(caught.value)
    assert sorted(lines(tmp_path)) == ([0] if error is WorkerEndedError else [])
    if error is WorkerEndedError:
        assert "finished seeds are kept" in str(caught.value)


@pytest.mark.parametrize(("seeds", "workers"), [(0, 1), (-1, 1), (1, 0), (1.5, 1)])
def test_counts_that_are_none_are_refused(seeds, workers, tmp_path):
    check_refusal(
        lambda: run_plan(PLAN, Population(LEVELS), seeds=seeds, folder=tmp_path, workers=workers),
        ParameterError,
        "must be a whole number from 1",
    )


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    check_refusal(
        lambda: run_plan(PLAN, Population(LEVELS), seeds=1, folder=tmp_path / "file"),
        ParameterError,
        "cannot write to .*file",
    )
