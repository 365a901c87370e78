"""Runs: whatever the number of workers, and however often they are stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress

import numpy as np
import pytest

from refusals import check_refusal
from verirec.exceptions import DataError, ParameterError
from verirec.studies.semi_synthetic import Population, Record, WorkerEndedError, run_plan, run_seed, runs, table1_plan
from verirec.studies.semi_synthetic.runs import fingerprint

LEVELS = np.random.default_rng(0).choice(5, (60, 80), p=(0.53, 0.24, 0.14, 0.07, 0.02)).astype(np.int8) + 1
PLAN = table1_plan("printed")

SCRIPT = """
    import sys
    import numpy as np
    from verirec.studies.semi_synthetic import Population, run_plan, table1_plan

    if __name__ == "__main__":
        levels = np.load(sys.argv[1])
        run_plan(table1_plan("printed"), Population(levels), seeds=1000, folder=sys.argv[2], workers=2)
"""


@pytest.fixture(scope="module")
def by_two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    return folder, run_plan(PLAN, Population(LEVELS), seeds=3, folder=folder, workers=2)


def files(folder):
    return sorted((folder / "runs").glob("*.json"))


def test_the_number_of_workers_changes_nothing(by_two, tmp_path):
    by_one = run_plan(PLAN, Population(LEVELS), seeds=3, folder=tmp_path, workers=1)
    assert by_one == by_two[1]
    assert [file.read_bytes() for file in files(tmp_path)] == [file.read_bytes() for file in files(by_two[0])]


def test_a_saved_seed_is_what_the_seed_gives(by_two):
    saved = by_two[1][1]
    again = run_seed(PLAN, Population(LEVELS), 1)
    assert [one[:5] for one in saved] == [one[:5] for one in again]
    assert [one.estimate for one in saved] == pytest.approx([one.estimate for one in again], rel=1e-12)


def test_finished_seeds_are_not_run_again_and_broken_ones_are(by_two):
    folder, records = by_two
    before = {file: file.stat().st_mtime_ns for file in files(folder)}
    broken = files(folder)[0]
    broken.write_text(broken.read_text()[:100])
    told = []
    again = run_plan(
        PLAN, Population(LEVELS), seeds=3, folder=folder, progress=lambda done, total: told.append((done, total))
    )
    assert again == records
    assert told == [(2, 3), (3, 3)]
    assert all(file.stat().st_mtime_ns == then for file, then in before.items() if file != broken)


def test_other_plans_and_populations_have_other_files():
    other = Population(LEVELS.T.copy())
    keys = {fingerprint(plan, one) for plan in (PLAN, table1_plan()) for one in (Population(LEVELS), other)}
    assert len(keys) == 4


@pytest.fixture
def running(tmp_path):
    """A run of two workers in processes of their own, all of which end with the test."""
    script, levels = tmp_path / "script.py", tmp_path / "levels.npy"
    script.write_text(textwrap.dedent(SCRIPT))
    np.save(levels, LEVELS)
    command = [sys.executable, script, levels, tmp_path / "out"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        yield process
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_a_stopped_run_leaves_whole_seeds_and_goes_on(running, tmp_path):
    out = tmp_path / "out"
    while len(files(out)) < 2:
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    assert running.wait() != 0
    left = {file: file.stat().st_mtime_ns for file in files(out)}
    running.stderr.read()  # ends when nobody can write to it any more, which the workers could as well
    assert set(files(out)) == set(left)  # nobody went on behind our back
    assert set((out / "runs").iterdir()) == set(left)  # nor is anything there that was not finished
    count = len(left) + 1
    run_plan(PLAN, Population(LEVELS), seeds=count, folder=out, workers=1)
    # Two workers: at most one seed was under way below the last finished one, so the first of all seeds are there now.
    key = fingerprint(PLAN, Population(LEVELS))
    assert [file.name for file in files(out)] == [f"table1-{key}-{seed:04d}.json" for seed in range(count)]
    assert {file: file.stat().st_mtime_ns for file in left} == left


def _edited(edit):
    """Change a saved seed's records, given as lists of the values of `Record`."""

    def write(file):
        records = json.loads(file.read_text())
        file.write_text(json.dumps(edit(records)))

    return write


def _with(name, value, row=0):
    def edit(records):
        records[row][Record._fields.index(name)] = value
        return records

    return _edited(edit)


@pytest.mark.parametrize(
    "spoil",
    [
        _edited(lambda records: records[:-1]),
        _edited(lambda records: [*records[:-1], records[0]]),
        _edited(lambda records: [*records, records[0]]),
        _edited(lambda records: []),
        _edited(lambda records: 5),
        _edited(lambda records: [[]]),
        _edited(lambda records: [dict.fromkeys("abcdefghijk")]),
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
        lambda file: file.write_text("[" * 100_000),
        lambda file: file.write_bytes(b"\xff\xfe"),
        lambda file: file.unlink(),
    ],
)
def test_a_saved_seed_that_is_not_the_plans_is_run_again(spoil, by_two, monkeypatch):
    folder, records = by_two
    file = files(folder)[1]
    content = file.read_bytes()
    spoil(file)
    ran = []

    def pretend(plan, population, wanted, *_):
        ran.extend(wanted)
        for one in wanted.values():
            one.write_bytes(content)

    monkeypatch.setattr(runs, "_run_missing", pretend)
    try:
        assert run_plan(PLAN, Population(LEVELS), seeds=3, folder=folder) == records
    finally:
        file.write_bytes(content)
    assert ran == [1]


@pytest.mark.parametrize(("leave", "message"), [(None, "is gone"), ("[]", "does not hold the plan's cells")])
def test_a_seed_that_vanishes_is_not_dropped(leave, message, tmp_path, monkeypatch):
    def lose(plan, population, wanted, *_):
        for file in wanted.values():
            if leave is not None:
                file.write_text(leave)

    monkeypatch.setattr(runs, "_run_missing", lose)
    check_refusal(lambda: run_plan(PLAN, Population(LEVELS), seeds=2, folder=tmp_path), DataError, message)


def _leave_a_part_and_end(shared, seed, unfinished, file):
    unfinished.write_text("[")
    if seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    file.write_text("[]")


def _leave_a_part_and_fail(shared, seed, unfinished, file):
    unfinished.write_text("[")
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("work", "error"), [(_leave_a_part_and_end, WorkerEndedError), (_leave_a_part_and_fail, OSError)]
)
def test_a_worker_that_ends_early_leaves_no_part_of_a_file(work, error, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "_run_and_save", work)
    with pytest.raises(error) as caught:
        run_plan(PLAN, Population(LEVELS), seeds=2, folder=tmp_path, workers=1)
    assert "\n" not in str(caught.value)
    assert {file.suffix for file in (tmp_path / "runs").iterdir()} <= {".json"}
    if error is WorkerEndedError:
        assert "finished seeds are kept" in str(caught.value)
        assert len(files(tmp_path)) == 1


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
