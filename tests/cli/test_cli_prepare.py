"""verirec prepare, and verbs that take the folder it wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import verirec as vr
from verirec.cli import speech
from verirec.data.prepared.workplace import Workplace
from verirec.progress import working


@pytest.fixture
def ratings(tmp_path):
    random = np.random.default_rng(0)
    users, items = np.divmod(random.permutation(80 * 50)[:1_500], 50)
    likes = random.integers(1, 6, 1_500)
    for part in range(3):
        at = slice(500 * part, 500 * (part + 1))
        table = pa.table({"user": users[at], "item": items[at], "rating": likes[at]})
        pq.write_table(table, tmp_path / f"part-{part}.parquet")
    pq.write_table(pa.table({"user": users, "item": items, "rating": likes}), tmp_path / "whole.parquet")
    np.save(tmp_path / "scores.npy", random.uniform(0.1, 0.9, (80, 50)))
    return tmp_path


def test_it_says_what_it_made(run, ratings):
    code, output, errors = run("prepare", f"{ratings}/part-*.parquet", "--positive-from", 4, "--out", ratings / "log")
    assert (code, errors) == (0, "")
    assert output.splitlines() == ["1,500 rows, 80 users x 50 items", f"The log: {ratings / 'log'}"]


@pytest.mark.parametrize("verb", ["estimate", "plan", "assess", "train"])
def test_verbs_take_the_folder_as_their_log(run, ratings, verb):
    files = sorted(ratings.glob("part-*.parquet"))
    assert run("prepare", *files, "--positive-from", 4, "--out", ratings / "log")[0] == 0
    scores = ("--predictions", f"mine={ratings}/scores.npy")
    more = {
        "estimate": (*scores, "--json"),
        "plan": (*scores, "--budget", 50, "--out"),
        "assess": (*scores, "--out"),
        "train": ("--method", "mf", "--out"),
    }[verb]
    found = []
    for name, log in (("a", (ratings / "log",)), ("b", (ratings / "whole.parquet", "--positive-from", 4))):
        out = (ratings / f"{verb}-{name}{'.csv' if verb == 'plan' else ''}",) if more[-1] == "--out" else ()
        code, output, errors = run(verb, *log, *more, *out)
        assert code == 0, errors
        found.append((output if not out else None, *map(contents, out)))
    assert found[0] == found[1]


def contents(path):
    """Return what a verb wrote, but for times and the names of files."""
    if path.is_file():
        return path.read_bytes()
    if (path / "summary.json").is_file():
        return json.loads((path / "summary.json").read_text())
    return vr.load(path).predict(list(range(80)), [3] * 80).tolist()


MISTAKES = [
    (["--out", "there"], "there is there already"),
    (["--out", "log", "--memory", "much"], "memory must be such as 2GB or 500MB"),
    (["--out", "log", "--duplicates", "latest"], "needs timestamps; name their column: --timestamp"),
    (["part**.parquet", "--out", "log"], "a pattern has ** for folders within folders alone"),
    (["--out", "log", "--rating", "stars"], "no column 'stars'"),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_mistakes_are_told_in_a_line(run, ratings, monkeypatch, options, message):
    monkeypatch.chdir(ratings)
    (ratings / "there").mkdir()
    code, output, errors = run("prepare", "whole.parquet", *options)
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert message in errors.replace("'there'", "there")


def test_a_folder_that_was_prepared_otherwise(run, ratings):
    assert run("prepare", ratings / "whole.parquet", "--positive-from", 4, "--out", ratings / "log")[0] == 0
    scores = ("--predictions", f"mine={ratings}/scores.npy")
    code, _, errors = run("estimate", ratings / "log", "--positive-from", 3, *scores)
    assert code == 2
    assert "was prepared with --positive-from 4; got --positive-from 3" in errors


@pytest.mark.parametrize("kills", [3])
def test_killed_work_goes_on_and_gives_the_same_bits(tmp_path, kills):
    """By a signal that nobody can catch, at moments that the machine chooses."""
    random = np.random.default_rng(1)
    keys = random.permutation(4_000 * 1_000)[:600_000]
    for part in range(6):
        users, items = np.divmod(keys[100_000 * part : 100_000 * (part + 1)], 1_000)
        table = pa.table({"user": users, "item": items, "rating": random.integers(1, 6, 100_000)})
        pq.write_table(table, tmp_path / f"{part}.parquet")
    command = [sys.executable, "-m", "verirec", "prepare", f"{tmp_path}/*.parquet", "--positive-from", "4"]
    command += ["--memory", "64MB", "--out"]
    subprocess.run([*command, tmp_path / "whole"], check=True, capture_output=True)
    parts = tmp_path / ".log.parts"
    for kill in range(kills):
        working_on = subprocess.Popen(
            [*command, tmp_path / "log"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while working_on.poll() is None and len(list(parts.glob("*/*/part.json"))) < 3 + 6 * kill:
            time.sleep(0.002)
        os.kill(working_on.pid, signal.SIGKILL)
        assert working_on.wait() == -signal.SIGKILL
        assert not (tmp_path / "log").exists()
    done = subprocess.run([*command, tmp_path / "log"], check=True, capture_output=True, text=True)
    assert "finished parts of an earlier run are used again" in done.stderr
    for file in ("by_user.arrow", "by_item.arrow", "users.arrow", "items.arrow"):
        assert (tmp_path / "log" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    assert not parts.exists()


@pytest.mark.filterwarnings("always::verirec.exceptions.ReusedWorkWarning")
@pytest.mark.parametrize(("stop_at", "said"), [("run-00001-00000", speech.GOES_ON), ("run-00000-00000", "stopped")])
def test_a_stop_says_that_finished_parts_are_gone_on_from(run, ratings, monkeypatch, stop_at, said):
    words = "prepare", f"{ratings}/part-*.parquet", "--positive-from", 4, "--out", ratings / "log"
    part = Workplace.part

    def stopping(self, name, make):
        if name == stop_at:
            raise KeyboardInterrupt
        return part(self, name, make)

    with monkeypatch.context() as patched:
        patched.setattr(Workplace, "part", stopping)
        assert run(*words) == (130, "", f"verirec: {said}\n")
    assert run(*words)[0] == 0


def test_a_line_a_minute_where_nobody_watches(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with speech.working("Preparing the log"), working("Sorting by user", 1_000) as task:
        for _ in range(10):
            now[0] += 30
            task.advance(100)
    assert capsys.readouterr().err.splitlines() == [
        f"verirec: Preparing the log ({taken} so far): Sorting by user: {share}%, 3 rows/s, {left} left"
        for taken, share, left in (
            ("60 s", 20, "4 min"),
            ("2 min", 40, "3 min"),
            ("3 min", 60, "2 min"),
            ("4 min", 80, "60 s"),
            ("5 min", 100, "0 s"),
        )
    ]
