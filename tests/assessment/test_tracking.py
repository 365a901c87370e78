"""Assessments in experiment trackers: flat dicts, and the real MLflow where it is installed."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.assessment.tracking import track, track_in_mlflow, track_in_wandb
from verirec.exceptions import MissingExtraError, ParameterError

WORLD = vr.simulate.world(60, 40, observed=0.4, random_state=0)
FOUND = vr.assess(
    WORLD.log,
    {"mine (v2)": 0.1 + 0.8 * WORLD.preferences, "half": np.full((60, 40), 0.5)},
    propensities=vr.GivenPropensity(WORLD.propensity_values),
)


def test_metrics_are_the_summarys_numbers_by_name(tmp_path):
    told = track(FOUND, tmp_path)
    summary = json.loads(told.artefacts["summary.json"].read_text())
    headline = summary["headline"]["half"]
    assert [told.metrics[f"half/headline/{end}"] for end in ("low", "high")] == [headline["low"], headline["high"]]
    assert told.metrics["mine _v2_/ndcg_at_5/low"] == summary["ranking"]["mine (v2)"]["ndcg@5"]["low"]
    assert told.metrics["half/naive/value"] == pytest.approx(np.log(2))
    assert told.metrics["log/rows"] == len(WORLD.log)
    assert told.facts["better/mine _v2_ or half"] == "mine (v2)"
    assert told.facts["basis"] == "known propensities"
    assert all(isinstance(value, float) and np.isfinite(value) for value in told.metrics.values())
    assert told.artefacts["report.html"].stat().st_size > 10_000


def test_mlflow_has_metrics_tags_and_files(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed here: make test-adapters")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    told = track_in_mlflow(FOUND, run_name="first")
    (run,) = mlflow.search_runs(output_format="list")
    assert run.data.metrics == pytest.approx(told.metrics)
    assert told.facts.items() <= run.data.tags.items()
    names = {one.path for one in mlflow.MlflowClient().list_artifacts(run.info.run_id)}
    assert names == {"report.html", "summary.json"}
    assert mlflow.active_run() is None
    with mlflow.start_run() as active:
        track_in_mlflow(FOUND)
        assert mlflow.active_run().info.run_id == active.info.run_id


class Recorder:
    """A run of Weights & Biases."""

    def __init__(self):
        self.summary, self.logged = {}, {}

    def log(self, told):
        self.logged |= told


def test_wandb_has_the_summary_and_the_page(monkeypatch):
    run = Recorder()
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=None, Html=lambda text: ("html", text)))
    check_refusal(lambda: track_in_wandb(FOUND), ParameterError, "call wandb.init first")
    told = track_in_wandb(FOUND, run)
    assert run.summary == told.metrics | told.facts
    assert run.logged["report"][1].startswith("<!doctype html>")


def test_what_is_missing_is_said(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    check_refusal(lambda: track_in_mlflow(FOUND), MissingExtraError, r"needs mlflow: pip install 'verirec\[mlflow\]'")
    check_refusal(lambda: track({}, tmp_path), ParameterError, "got dict")
