"""--json: every verb that prints results prints them as JSON and nothing else."""

from __future__ import annotations

import json

import pytest

import verirec as vr

# The log is small, and warned of.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world = vr.simulate.world(40, 30, observed=0.4, random_state=0)
    world.log.to_frame().to_csv("log.csv", index=False)
    return tmp_path


def told(run, *arguments):
    code, out, err = run("--quiet", *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_assess_prints_the_summary_that_it_leaves(run, folder):
    assert told(run, "assess", "log.csv", "--out", "page") == json.loads((folder / "page/summary.json").read_text())


def test_plan_says_how_many_pairs_are_in_its_file(run, folder):
    found = told(run, "plan", "log.csv", "--budget", "30", "--out", "plan.csv")
    assert sum(found["pairs"].values()) == 30 == len((folder / "plan.csv").read_text().splitlines()) - 1


def test_train_and_recommend(run, folder):
    found = told(run, "train", "log.csv", "--method", "mf", "--out", "model", "--set", "dim=2")
    assert (found["method"], found["model"]) == ("mf", "model")
    assert 0 < found["best_epoch"] <= found["epochs"]
    lists = told(run, "recommend", "model", "--users", "3,4", "-k", "2")
    assert [(row["user"], row["rank"]) for row in lists] == [(3, 1), (3, 2), (4, 1), (4, 2)]
    code, _, err = run("recommend", "model", "--users", "3", "--json", "--out", "lists.csv")
    assert (code, "give one of the two" in err) == (2, True)


def test_a_plan_for_label_studio(run, folder):
    (folder / "titles.csv").write_text("item,title\n" + "".join(f"{item},Story {item}\n" for item in range(30)))
    arguments = ["plan", "log.csv", "--budget", "30", "--titles", "titles.csv"]
    assert told(run, *arguments, "--format", "label-studio", "--out", "tasks.json")["file"] == "tasks.json"
    tasks = json.loads((folder / "tasks.json").read_text())
    assert (len(tasks), "Story" in tasks[0]["data"]["question"]) == (30, True)
    told(run, *arguments, "--answers", "2", "--out", "sheet.csv")
    assert len((folder / "sheet.csv").read_text().splitlines()) == 61
    code, _, err = run(*arguments, "--format", "label-studio", "--out", "tasks.csv")
    assert (code, "writes a .json file" in err) == (2, True)
    assert run(*arguments, "--format", "excel", "--out", "tasks.csv")[0] == 2
