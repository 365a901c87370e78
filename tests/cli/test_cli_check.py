"""verirec check and split, and logs on standard input."""

from __future__ import annotations

import io
import json
import shlex
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest

import verirec as vr

MESSY = "user;item;rating\n ann;7;5\nbob;7;four\n" + "".join(
    f"u{n % 20};{n % 9};{'13445'[n % 5]}\n" for n in range(180)
)


@pytest.fixture
def messy(tmp_path):
    (tmp_path / "ratings.csv").write_text(MESSY)
    return str(tmp_path / "ratings.csv")


@pytest.mark.filterwarnings("default")
def test_the_options_that_check_ends_with_read_the_file(run, messy, tmp_path):
    code, out, err = run("check", messy)
    assert (code, err) == (0, "")
    assert "' ann'" in out
    assert "'four'" in out
    options = shlex.split(out.strip().splitlines()[-2].removeprefix("Give "))
    assert options == ["--delimiter", ";", "--clean-ids", "--drop-missing", "--positive-from", "4"]
    command = shlex.split(out.strip().splitlines()[-1].removeprefix("For example: "))
    assert command == ["verirec", "assess", messy, *options, "--train", "mf", "--out", "assessment"]
    parts = ["--train", str(tmp_path / "a.csv"), "--test", str(tmp_path / "b.parquet")]
    code, out, err = run("split", messy, *options, *parts, "--json")
    assert (code, "1 of 182 rows are left out" in err) == (0, True), err
    assert {name: part["rows"] for name, part in json.loads(out).items()} == {"train": 145, "test": 36}
    train, test = vr.read_log(tmp_path / "a.csv"), vr.read_log(tmp_path / "b.parquet")
    assert len(train) + len(test) == 181
    assert not {*zip(*pairs(train), strict=True)} & {*zip(*pairs(test), strict=True)}


def pairs(log):
    return log.user_ids.ids(log.users).tolist(), log.item_ids.ids(log.items).tolist()


def test_check_as_json(run, messy):
    code, out, _ = run("check", messy, "--json", "--positive-from", "3")
    found = json.loads(out)
    assert code == 0
    assert found["options"] == "--positive-from 3 --delimiter ';' --clean-ids --drop-missing"
    assert found["log"] == {"rows": 181, "users": 21, "items": 9}
    assert found["faults"][1]["first"] == [0]


def test_a_good_file_has_nothing_wrong_with_it(run, tmp_path):
    file = tmp_path / "good.csv"
    pd.DataFrame({"user": [1, 2], "item": [1, 1], "label": [0, 1]}).to_csv(file, index=False)
    code, out, _ = run("check", str(file))
    assert (code, out.splitlines()[-2]) == (0, "Nothing is wrong with it.")


def test_a_prepared_folder_is_opened(run, messy, tmp_path):
    options = "--delimiter", ";", "--clean-ids", "--drop-missing", "--positive-from", "4"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert run("prepare", messy, *options, "--out", tmp_path / "log")[0] == 0
    code, out, _ = run("check", tmp_path / "log")
    assert (code, out.splitlines()[-2]) == (0, "Nothing is wrong with it.")
    next((tmp_path / "log").glob("by_user*")).write_bytes(b"")
    assert run("check", tmp_path / "log")[0] == 2


def test_all_columns_that_cannot_be_told_are_named_at_once_by_their_options(run, tmp_path):
    (tmp_path / "odd.csv").write_text("who,what,how many\nann,1,5\nbob,2,1\n")
    code, out, _ = run("check", tmp_path / "odd.csv", "--json")
    found = json.loads(out)
    assert (code, found["log"]) == (2, None)
    assert (
        "name them: --user ..., --item ..., --rating ... (--clicks if each row is a click"
        in found["faults"][-1]["what"]
    )


def test_repeated_pairs_are_counted_and_what_was_given_is_given_again(run, tmp_path):
    rows = "ann,1,5,1\nann,1,1,2\nbob,1,5,1\nbob,1,4,2\nbob,2,1,3\n"
    (tmp_path / "log.csv").write_text("who,item,rating,when\n" + rows)
    given = "--user", "who", "--timestamp", "when", "--positive-from", "4"
    found = json.loads(run("check", tmp_path / "log.csv", *given, "--json")[1])
    assert found["options"] == "--user who --positive-from 4 --timestamp when --duplicates latest"
    assert found["remarks"] == ["2 of 5 rows are of pairs that have another row, which counts: --duplicates latest"]
    assert "duplicates" not in found["faults"][0]["what"]


def test_a_log_comes_on_standard_input(run, messy, monkeypatch, tmp_path):
    def given(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    given(MESSY.encode())
    assert json.loads(run("check", "-", "--json")[1])["log"]["rows"] == 181
    file = tmp_path / "log.parquet"
    pd.DataFrame({"user": [1, 2, 3], "item": [1, 1, 2], "label": [0, 1, 1]}).to_parquet(file)
    given(file.read_bytes())
    code, out, err = run("split", "-", "--train", str(tmp_path / "a.csv"), "--test", str(tmp_path / "b.csv"))
    assert code == 0, err
    assert [line.partition(":")[0] for line in out.splitlines()[:2]] == [
        str(tmp_path / "a.csv"),
        str(tmp_path / "b.csv"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "nowhere.csv"], "no file 'nowhere.csv'"),
        (["split", "x.csv", "--train", "a.csv", "--test", "a.csv"], "--train and --test must be two files"),
        (["split", "x.csv", "--train", "a.csv", "--test", "./b/../a.csv"], "--train and --test must be two files"),
        (["split", "x.csv", "--train", "./b/../x.csv", "--test", "a.csv"], "must not take the place of what is read"),
        (["split", "b", "--train", "a.csv", "--test", "b/x.csv"], "must not take the place of what is read"),
        (["split", "x.csv", "--train", "a.txt", "--test", "b.csv"], "a part must end in .csv or .parquet; got 'a.txt'"),
    ],
)
def test_mistakes_end_in_one_line(run, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b").mkdir()
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_part_that_cannot_be_written_takes_the_other_along(run, tmp_path, monkeypatch):
    (tmp_path / "log.csv").write_text("user,item,label\na,1,1\nb,2,0\nc,3,1\n")
    replace = Path.replace

    def full(self, target):
        if Path(target).name == "test.csv":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", full)
    parts = ["--train", str(tmp_path / "train.csv"), "--test", str(tmp_path / "test.csv")]
    code, _, err = run("split", str(tmp_path / "log.csv"), *parts)
    assert (code, "No space left on device" in err) == (2, True)
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]


def test_split_writes_the_ids_that_keep_the_grid_of_its_parts(run, tmp_path):
    rows = [f"u{user},{item},{(user + item) % 2}" for user in range(12) for item in range(3)] + ["u99,77,1"]
    (tmp_path / "log.csv").write_text("user,item,label\n" + "\n".join(rows) + "\n")
    parts = ["--train", tmp_path / "a.csv", "--test", tmp_path / "b.csv"]
    code, out, err = run("split", tmp_path / "log.csv", *parts, "--held-out", ".1")
    assert (code, err) == (0, "")
    assert "of 13 users; to keep the others in its grid, split with --ids, and read it with --all-users" in out
    code, out, err = run("split", tmp_path / "log.csv", *parts, "--held-out", ".1", "--ids", tmp_path / "ids")
    assert (code, err) == (0, "")
    assert f"read it with --all-users {tmp_path / 'ids' / 'users.txt'}" in out
    lists = {f"all_{side}": tmp_path / "ids" / f"{side}.txt" for side in ("users", "items")}
    assert vr.read_log(tmp_path / "b.csv", **lists).shape == vr.read_log(tmp_path / "log.csv").shape
    named = ["--all-users", lists["all_users"], "--ids", tmp_path / "ids"]
    code, _, err = run("split", tmp_path / "log.csv", *parts, *named)
    assert (code, "--ids must not take the place of what is read" in err) == (2, True)


def test_the_latest_row_counts_where_there_are_times(run, tmp_path):
    (tmp_path / "log.csv").write_text(
        "user,item,label,rated_at\n1,1,1,2024-01-02\n1,1,0,2024-01-01\n2,1,0,2024-01-01\n"
    )
    _, out, _ = run("check", tmp_path / "log.csv", "--json")
    assert json.loads(out)["options"] == "--timestamp rated_at --duplicates latest"
    (tmp_path / "log.csv").write_text("user,item,label,rated_at\n1,1,1,spring\n1,1,0,2024-01-01\n2,1,0,2024-01-01\n")
    _, out, _ = run("check", tmp_path / "log.csv", "--json")
    assert json.loads(out)["options"] == "--duplicates last"
