"""The store: lines are there whole or not at all, other versions are refused, tasks are one's own."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys

import numpy as np
import pytest

from refusals import check_refusal
from verirec.exceptions import DataError, ParameterError
from verirec.studies.store import Store, key_of


def a_run(key, **more):
    return {"key": key, "study": {}, "method": "mf", "form": "paper", "trial": 0, "setting": {}, "seed": 0} | more


def test_what_is_appended_is_read_back_in_order(tmp_path):
    store = Store(tmp_path / "store")
    for key in "cab":
        store.append(a_run(key, value=1.5), np.arange(3, dtype=np.float32))
    again = Store(tmp_path / "store")
    assert list(again.rows()) == ["c", "a", "b"]
    assert again.array("a").tolist() == [0, 1, 2]


@pytest.mark.parametrize("torn", [b'{"key": "b", "val', b'{"key": "b"', b"\xff\xfe", b"[1, 2"])
def test_a_line_that_was_cut_short_is_not_there_and_the_next_stands_alone(torn, tmp_path):
    store = Store(tmp_path)
    store.append(a_run("a"))
    with store.file.open("ab") as file:
        file.write(torn)
    assert list(store.rows()) == ["a"]
    Store(tmp_path).append(a_run("c"))
    assert list(store.rows()) == ["a", "c"]


def test_a_line_that_is_no_run_is_not_there_and_a_later_one_of_its_key_is(tmp_path):
    store = Store(tmp_path, lambda row: row["seed"] == 1)
    store.append(a_run("a", seed=0))
    assert store.rows() == {}
    store.append(a_run("a", seed=1))
    assert store.rows()["a"]["seed"] == Store(tmp_path).rows()["a"]["seed"] + 1 == 1


def test_what_others_append_is_read_by_and_by(tmp_path):
    store, other = Store(tmp_path), Store(tmp_path)
    for place, key in enumerate("abc"):
        other.append(a_run(key))
        assert list(store.rows()) == ["a", "b", "c"][: place + 1]
    with store.file.open("ab") as file:
        file.write(json.dumps(a_run("d")).encode())
    assert list(store.rows()) == ["a", "b", "c"]
    other.append(a_run("e"))
    assert list(store.rows()) == ["a", "b", "c", "d", "e"]


def test_figures_that_are_not_finite_are_refused_in_one_line(tmp_path):
    store = Store(tmp_path)
    check_refusal(lambda: store.append(a_run("a", value=float("nan"))), DataError, "not finite numbers.*: a$")
    assert store.rows() == {}


def test_of_the_same_run_the_first_counts(tmp_path):
    store = Store(tmp_path)
    store.append(a_run("a", value=1))
    store.append(a_run("a", value=2))
    assert store.rows()["a"]["value"] == 1


def test_a_store_of_another_version_is_refused_in_one_line(tmp_path):
    (tmp_path / "runs.jsonl").write_text(json.dumps({"format": 1, "verirec": "9.9"}) + "\n")
    check_refusal(lambda: Store(tmp_path), DataError, r"was written by verirec 9\.9 \(format 1\), and this is")


@pytest.mark.parametrize("first", ["hello\n", "[]\n", '{"key": "a"}\n'])
def test_a_file_that_is_no_store_is_refused(first, tmp_path):
    (tmp_path / "runs.jsonl").write_text(first)
    check_refusal(lambda: Store(tmp_path), DataError, "is no store of results")


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    check_refusal(lambda: Store(tmp_path / "file" / "store"), ParameterError, "cannot write to")


def test_an_array_that_is_lost_is_named(tmp_path):
    check_refusal(lambda: Store(tmp_path).array("abc"), DataError, "the store has run abc and cannot read")


def _append_many(folder, name):
    store = Store(folder)
    for number in range(50):
        store.append(a_run(f"{name}{number}", text="x" * 5_000))


def test_lines_of_two_processes_do_not_mix(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_many, args=(tmp_path, name)) for name in "ab"]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert len(Store(tmp_path).rows()) == 100
    assert all(json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines())


def test_a_task_is_one_process_s_own_until_that_ends(tmp_path):
    store = Store(tmp_path)
    code = (
        "import sys\nfrom verirec.studies.store import Store\n"
        "with Store(sys.argv[1]).claim('task') as held:\n    print(held, flush=True)\n    sys.stdin.read()\n"
    )
    command, pipe = [sys.executable, "-c", code, str(tmp_path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout.readline() == "True\n"
        with store.claim("task") as held:
            assert not held
        with store.claim("other task") as held:
            assert held
        other.kill()
        other.wait()
    with store.claim("task", wait=True) as held:
        assert held


def test_a_key_depends_on_every_fact():
    facts = {"method": "mf", "seed": 0, "setting": {"dim": 4}}
    changed = [facts | {"method": "ome"}, facts | {"seed": 1}, facts | {"setting": {"dim": 8}}]
    assert len({key_of(**one) for one in [facts, *changed]}) == 4
