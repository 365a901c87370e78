"""The harness' short form, and that it can fail: a defect is found, reduced and printed as a call."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from torture.__main__ import SHARES
from torture.campaign import Figures, Results
from torture.determinism.run import run as determinism
from torture.environments.run import run as environments
from torture.fuzz import judge, material
from torture.fuzz.calls import Call
from torture.fuzz.reduce import reduced
from torture.fuzz.run import run as fuzz
from torture.fuzz.work import call_of
from torture.guided.run import run as guided
from torture.kill.run import run as kill
from torture.worlds import run as worlds

from torture import page


def test_no_odd_input_is_a_defect(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # What is changed below is undone in the end.
    material.use_folder(tmp_path)
    tried = [(call, judge.judged(call)) for call in (call_of(1, number) for number in range(1_500))]
    made = [(call, outcome) for call, outcome in tried if outcome.kind != "void"]
    assert not [(outcome.detail, str(call)) for call, outcome in made if outcome.kind == "defect"]
    assert np.mean([outcome.past_gate for _, outcome in made]) >= 0.4


def test_workers_count_what_they_try():
    found = fuzz(6, seed=1)
    assert found.counts["inputs"] == sum(found.counts.get(kind, 0) for kind in ("result", "refused", "defect")) > 0


def test_a_seed_and_a_number_give_the_same_call():
    assert str(call_of(3, 5)) == str(call_of(3, 5)) != str(call_of(3, 6))


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("lambda **given: 1 / 0", "ZeroDivisionError"),
        ("lambda **given: warnings.warn('no') or 1", "UserWarning"),
        ("lambda **given: nan", "NaN without a word"),
        ("lambda **given: time.sleep(9)", "TooLong"),
    ],
)
def test_defects_are_found_and_reduced(monkeypatch, function, told):
    import time
    import warnings

    monkeypatch.setitem(material.NAMES, "time", time)
    monkeypatch.setitem(material.NAMES, "warnings", warnings)
    call = Call(function, {}, {"a": "1", "b": "[2]"})
    outcome = judge.judged(call, seconds=0.5)
    assert outcome.kind == "defect"
    assert told in outcome.detail
    if told != "TooLong":
        assert reduced(call, outcome).arguments == {}


def test_kills_and_faults_leave_whole_outputs():
    found = kill(8, seed=1)
    assert found.counts["kills"] > 0
    assert not found.failures, "\n".join(f"{one.what}: {one.repeat}" for one in found.failures)


def test_corner_worlds_keep_the_rule(monkeypatch):
    odd = ("cloned ten times", "90% of the rows", "complete block", "kappa", "audit of 10", "one propensity")
    chosen = [world for world in worlds.WORLDS if any(word in world.name for word in odd)]
    monkeypatch.setattr(worlds, "WORLDS", chosen)
    found = worlds.run(0, seed=1)
    assert found.counts["worlds"] >= len(odd)
    assert not found.failures, found.failures


def test_a_world_against_the_rule_is_told():
    assert worlds.Row("a", "b", runs=200, held=184).holds
    assert not worlds.Row("a", "b", runs=200, held=183).holds
    assert worlds.Row("a", "b", runs=200, held=10, warned=180, refused=10).holds
    assert not worlds.Row("a", "b", runs=10, held=1).holds
    assert worlds.Row("a", "b", runs=10, held=8).holds


def test_environments_change_nothing():
    found = environments(8, seed=1)
    assert found.counts["commands"] > 0
    assert not found.failures, found.failures


def test_the_order_of_rows_changes_nothing():
    found = determinism(0, seed=1)
    assert found.counts["settings"] == 1
    assert not found.failures, found.failures


def test_what_cannot_be_run_is_said():
    if find_spec("atheris") is None:
        assert "atheris" in guided(1, seed=1).skipped["guided"]
    else:
        found = guided(5, seed=1)
        assert found.counts["inputs"] > 0
        assert not found.failures, found.failures


def test_all_campaigns_are_on_the_page(tmp_path):
    results = Results()
    for name in SHARES:
        results.add(name, Figures(1, tables={"worlds": [{"world": "a"}], "settings": [{"setting": "b"}]}))
    results.campaigns["guided"].skipped["guided"] = "no atheris"
    results.campaigns["kill"].fail("a file is lost", "kill 3")
    results.save(tmp_path / "a.json")
    text = page.rendered(Results.load(tmp_path / "a.json"))
    assert text.count("\n## ") == len(SHARES)
    assert "a file is lost (kill 3)" in text
    assert "Not run: no atheris" in text


def test_the_page_is_made_of_the_file(tmp_path):
    results = Results()
    results.add("fuzz", Figures(7, 3.0, {"inputs": 200, "past the gate": 90, "result": 60, "refused": 140}))
    results.save(tmp_path / "a.json")
    text = page.rendered(Results.load(tmp_path / "a.json"))
    assert "| 200 | 45% | 60 | 140 | 0 | 7 |" in text
