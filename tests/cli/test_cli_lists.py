"""Two files of top-k lists on the command line: what the log leaves open, and what a filled-in sheet settles."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import verirec as vr

SHAPE = (100, 60)
WORLD = vr.simulate.world(*SHAPE, observed=0.2, selectivity=2, random_state=0)
pytestmark = pytest.mark.filterwarnings("ignore::verirec.exceptions.SurveyWarning")
LISTS = ("--predictions", "sharp=sharp.csv", "--predictions", "blunt=blunt.csv", "--rating", "label")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    WORLD.log.to_frame().to_csv("log.csv", index=False)
    for name, size in (("sharp", 0.05), ("blunt", 0.9)):
        scores = WORLD.preferences + size * np.random.default_rng(1).normal(size=SHAPE)
        items = np.argsort(-scores, axis=1)[:, :5]
        frame = {"user": np.repeat(np.arange(100), 5), "item": items.ravel(), "rank": np.tile(np.arange(1, 6), 100)}
        pd.DataFrame(frame).to_csv(f"{name}.csv", index=False)
    return tmp_path


def test_the_log_alone_gives_no_verdict(run, folder):
    code, output, _ = run("estimate", "log.csv", *LISTS)
    assert code == 0
    assert "Difference in ranking, sharp minus blunt" in output
    assert "hold if selection depends on user and item only" in " ".join(output.split())
    assert "ranks better by NDCG" not in output


def test_a_sheet_of_the_best_pairs_settles_it(run, folder):
    code, output, _ = run("plan", "log.csv", *LISTS, "--purpose", "ndcg@5", "--budget", "200", "--out", "ask.csv")
    assert code == 0
    assert "200 pairs to ask about (200 best)" in output
    assert "the difference in NDCG@5 of each two" in output
    sheet = pd.read_csv("ask.csv")
    sheet["true_label"] = WORLD.true_labels[sheet["user"], sheet["item"]]
    sheet.to_csv("ask.csv", index=False)
    code, output, _ = run("estimate", "log.csv", *LISTS, "--survey", "ask.csv")
    assert code == 0
    assert "sharp ranks better by NDCG@5: established by the survey." in output
    code, output, _ = run("estimate", "log.csv", *LISTS, "--survey", "ask.csv", "--json")
    assert json.loads(output)["ranking_difference"]["ndcg@5"]["low"] > 0
    code, output, _ = run("assess", "log.csv", *LISTS, "--survey", "ask.csv", "--out", "page")
    assert code == 0
    assert "sharp ranks better than blunt: its NDCG@5 is higher by" in output


def test_a_plan_names_the_depth_of_the_lists(run, folder):
    code, _, errors = run("plan", "log.csv", *LISTS, "--budget", "100", "--out", "ask.csv")
    assert code == 2
    assert "plan for its ranking, --purpose ndcg@5" in errors
    code, _, errors = run("plan", "log.csv", *LISTS, "--purpose", "ndcg@9", "--budget", "100", "--out", "ask.csv")
    assert (code, "must be at most 5" in errors) == (2, True)
