"""Clicks on the command line: from a file of clicks to a plan, a verdict and a ranking."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import verirec as vr

SHAPE = 80, 60
# Small logs have items of a few clicks.
pytestmark = pytest.mark.filterwarnings("ignore:.*fewer than 5 clicks")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("clicks")
    world = vr.simulate.world(*SHAPE, observed=0.3, selectivity=2, random_state=4)
    world.log.select(world.log.labels == 1).to_frame()[["user", "item"]].to_csv(home / "clicks.csv", index=False)
    users, items = (one.ravel() for one in np.indices(SHAPE))
    for name, slope in (("mine", 0.8), ("theirs", 0.2)):
        given = 0.5 + slope * (world.preferences.ravel() - 0.5)
        pd.DataFrame({"user": users, "item": items, "score": given}).to_csv(home / f"{name}.csv", index=False)
    for name, size in zip(("users", "items"), SHAPE, strict=True):
        (home / f"{name}.txt").write_text("\n".join(map(str, range(size))))
    np.save(home / "truth.npy", world.true_labels)
    return home


def options(folder):
    log = [folder / "clicks.csv", "--clicks", f"--all-users={folder}/users.txt", f"--all-items={folder}/items.txt"]
    return [*log, *(f"--predictions={one}={folder / one}.csv" for one in ("mine", "theirs"))]


def test_from_clicks_to_a_verdict(run, folder, tmp_path):
    assert run("plan", *options(folder), "--budget", 300, "--out", tmp_path / "ask.csv")[0] == 0
    plan = pd.read_csv(tmp_path / "ask.csv")
    plan["true_label"] = np.load(folder / "truth.npy")[plan["user"], plan["item"]]
    plan.to_csv(tmp_path / "asked.csv", index=False)
    code, out, _ = run("assess", *options(folder), "--survey", tmp_path / "asked.csv", "--out", tmp_path / "out")
    assert code == 0
    assert "mine is better than theirs" in out
    code, out, _ = run("estimate", *options(folder), "--survey", tmp_path / "asked.csv", "--json")
    assert set(json.loads(out)["recommenders"]["mine"]) == {"survey", "survey-ppi"}


def test_clicks_alone_train(run, folder, tmp_path):
    log = options(folder)[:4]
    code, out, _ = run("train", *log, "--method", "rel-mf", "--set", "power=0.3", "--out", tmp_path / "model")
    assert code == 0
    assert "rel-mf" in out
    trained = vr.methods.load(tmp_path / "model")
    assert trained.report.parameters["power"] == 0.3
    assert (len(trained.user_ids), len(trained.item_ids)) == SHAPE


def test_clicks_alone_tell_a_ranking_and_what_it_assumes(run, folder):
    code, out, _ = run("estimate", *options(folder), "--gamma", 1)
    assert code == 0
    assert "naive-dcg@5" in out
    assert "in proportion to the power 1 of its clicks" in out
    assert "a --survey would" in out
    assert "log loss" not in out


@pytest.mark.parametrize(
    ("verb", "more"),
    [("assess", ["--out", "out"]), ("estimate", ["--estimators", "dr"]), ("train", ["--method", "mf", "--out", "out"])],
)
def test_what_needs_both_classes_says_so_in_one_line(run, folder, tmp_path, monkeypatch, verb, more):
    monkeypatch.chdir(tmp_path)
    given = options(folder)[:4] if verb == "train" else options(folder)
    code, _, errors = run(verb, *given, *more)
    assert code == 2
    trained = "a method that is trained on clicks alone: rel-mf"
    assert (trained if verb == "train" else "of clicks alone, a survey of random pairs will do") in errors
    assert errors.count("\n") == 1
