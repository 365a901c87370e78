"""The harness' short form, and that it can fail: a defect is found, reduced and printed as a call."""

from __future__ import annotations

import numpy as np
import pytest
from torture.campaign import Figures, Results
from torture.fuzz import judge, material
from torture.fuzz.calls import Call
from torture.fuzz.reduce import reduced
from torture.fuzz.run import run as fuzz
from torture.fuzz.work import call_of
from torture.kill.run import run as kill

from torture import page


def test_no_odd_input_is_a_defect(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # What is changed below is undone in the end.
    material.use_folder(tmp_path)
    tried = [(call, judge.judged(call)) for call in (call_of(1, number) for number in range(4_000))]
    made = [(call, outcome) for call, outcome in tried if outcome.kind != "void"]
    assert not [(outcome.detail, str(call)) for call, outcome in made if outcome.kind == "defect"]
    assert np.mean([outcome.past_gate for _, outcome in made]) >= 0.4


def test_workers_count_what_they_try():
    found = fuzz(12, seed=1)
    assert found.counts["inputs"] == sum(found.counts[kind] for kind in ("result", "refused")) + found.counts.get(
        "defect", 0
    )


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
    found = kill(20, seed=1)
    assert found.counts["faults"] + found.counts.get("kills", 0) > 0
    assert not found.failures, "\n".join(f"{one.what}: {one.repeat}" for one in found.failures)


def test_the_page_is_made_of_the_file(tmp_path):
    results = Results()
    results.add("fuzz", Figures(7, 3.0, {"inputs": 200, "past the gate": 90, "result": 60, "refused": 140}))
    results.save(tmp_path / "a.json")
    text = page.rendered(Results.load(tmp_path / "a.json"))
    assert "| 200 | 45% | 60 | 140 | 0 | 7 |" in text
