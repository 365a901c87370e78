"""--calibrate with a survey: what the verbs say is what Python's calibration by the survey gives."""

from __future__ import annotations

import json

import numpy as np
import pytest

import verirec as vr
from verirec.estimation.cross_calibration import calibrate_by_survey

SHAPE = (50, 40)


@pytest.fixture
def given(tmp_path, monkeypatch):
    """Write a log, a survey and scores; give the log, the survey and the scores."""
    world = vr.simulate.world(*SHAPE, observed=0.3, selectivity=2, random_state=0)
    users, items = np.divmod(np.random.default_rng(1).choice(SHAPE[0] * SHAPE[1], 300, replace=False), SHAPE[1])
    survey = vr.SurveySample(users, items, world.true_labels[users, items])
    scores = {"stars": 1 + 4 * world.preferences, "sharp": 0.1 + 0.8 * world.preferences}
    monkeypatch.chdir(tmp_path)
    world.log.to_frame().to_csv("log.csv", index=False)
    lines = [f"{u},{i},{label}" for u, i, label in zip(users, items, survey.labels, strict=True)]
    (tmp_path / "survey.csv").write_text("\n".join(["user,item,true_label", *lines]))
    for name, one in scores.items():
        np.save(f"{name}.npy", one)
    assert vr.read_log("log.csv").shape == SHAPE
    return world.log, survey, scores


BOTH = ("log.csv", "--survey", "survey.csv", "--predictions", "stars=stars.npy", "--predictions", "sharp=sharp.npy")


def test_estimate_and_assess_calibrate_all_by_the_survey(run, given, tmp_path):
    log, survey, scores = given
    made = calibrate_by_survey(scores, survey, log)
    options = (*BOTH, "--calibrate", "platt")
    code, output, _ = run("estimate", *options, "--estimators", "survey", "--json")
    assert code == 0
    shown = json.loads(output)
    assert (shown["calibrated"], shown["calibrated_by_survey"]) == ({}, {"stars": 300, "sharp": 300})
    code, output, _ = run("assess", *options, "--out", tmp_path / "page", "--json")
    assert code == 0
    assessed = json.loads(output)
    for name in scores:
        own = vr.estimate(made[name], log, survey=survey, estimators=["survey"])["survey"].value
        assert shown["recommenders"][name]["survey"]["value"] == pytest.approx(own, rel=1e-9)
        assert assessed["recommenders"][name]["survey"]["value"] == pytest.approx(own, rel=1e-9)


def test_the_table_says_who_was_calibrated_by_what(run, given):
    code, output, _ = run("estimate", *BOTH, "--calibrate", "platt")
    assert code == 0
    assert "stars was calibrated by the survey's 300 pairs, each judged by a curve of the others." in output
    code, output, _ = run("estimate", *BOTH[:1], *BOTH[3:], "--calibrate", "platt")
    assert "rows made them such, and the others judge them." in output


def test_the_page_says_what_a_constant_has(run, given, tmp_path):
    _, survey, _ = given
    q = survey.labels.mean()
    np.save("coin.npy", np.full(SHAPE, 0.9))
    run("assess", *BOTH[:3], "--predictions", "coin=coin.npy", "--out", tmp_path / "page")
    summary = json.loads((tmp_path / "page" / "summary.json").read_text())
    # The share of liked pairs is the survey's, sharpened by the log.
    assert summary["constant"]["value"] == pytest.approx(-q * np.log(q) - (1 - q) * np.log(1 - q), abs=0.03)
    assert summary["constant"]["low"] < summary["constant"]["value"] < summary["constant"]["high"]
    told = [one for one in summary["conclusions"] if one.startswith("Knowing nothing but the share of liked pairs")]
    assert len(told) == 1
    assert told[0].endswith(": coin has no less.")
    assert "a constant has a log loss of" in (tmp_path / "page" / "report.html").read_text()
