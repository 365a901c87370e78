"""Verbs that are stopped or killed go on from what they kept, to the same files."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import verirec as vr
from verirec.resuming import pieces

pytestmark = pytest.mark.filterwarnings("always::verirec.exceptions.VerirecWarning")

SHAPE = (30, 40)
GO_ON = "verirec: stopped: the same command goes on from here\n"

KILLED = """
import os, signal, sys
from verirec.cli.main import main
from verirec.resuming import pieces
count, name, *words = sys.argv[1:]
pieces.WORTH_KEEPING = 0.0
keep, kept = pieces.Pieces._keep, []
def killing(self, *given):
    kept.append(keep(self, *given))
    if sum(kept) == int(count):
        os.kill(os.getpid(), getattr(signal, name))
    return kept[-1]
pieces.Pieces._keep = killing
sys.argv = ["verirec", *words]
main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("resumed")
    world = vr.simulate.world(*SHAPE, observed=0.4, selectivity=1, noise_rates=vr.NoiseRates(0.2, 0.1), random_state=3)
    log = world.log
    rows = zip(log.users, log.items, log.labels, strict=True)
    lines = ["user,item,label", *(f"u{user:02},{item},{label}" for user, item, label in rows)]
    (place / "log.csv").write_text("\n".join(lines) + "\n")
    np.save(place / "sharp.npy", 0.1 + 0.8 * world.preferences)
    np.save(place / "blunt.npy", 0.4 + 0.2 * world.preferences)
    return place


@pytest.fixture
def words(folder, tmp_path, monkeypatch):
    """Words of verbs, by verb, which write to `out` where they write; all parts are kept."""
    monkeypatch.setattr(pieces, "WORTH_KEEPING", 0.0)
    given = [str(folder / "log.csv")]
    for name in ("sharp", "blunt"):
        given += ["--predictions", f"{name}={folder / name}.npy"]
    plan = ["--budget", "50", "--out", str(tmp_path / "out" / "plan.csv")]
    estimate = ["--json", "--checkpoint", str(tmp_path / "kept")]
    return {
        "assess": ["assess", *given, "--out", str(tmp_path / "out")],
        "plan": ["plan", *given, *plan],
        "plan of rates": ["plan", given[0], *plan],
        "estimate": ["estimate", *given, *estimate, "--rho01", ".2", "--rho10", ".1"],
        "bootstrap": ["estimate", *given[:3], *estimate, "--interval", "bootstrap"],
    }


def files_of(folder):
    """What a folder holds, by name."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def stop_after(count, monkeypatch):
    """Have Ctrl-C come when so many parts have been kept."""
    keep, kept = pieces.Pieces._keep, []

    def stopping(self, *given):
        kept.append(keep(self, *given))
        if sum(kept) == count:
            raise KeyboardInterrupt
        return kept[-1]

    monkeypatch.setattr(pieces.Pieces, "_keep", stopping)


@pytest.mark.parametrize(("count", "signal"), [(4, "SIGKILL"), (30, "SIGKILL"), (12, "SIGINT")])
def test_assess_goes_on_where_it_was_killed(run, words, tmp_path, count, signal):
    out = tmp_path / "out"
    assert run(*words["assess"])[0] == 0
    wanted = files_of(out)
    assert sorted(wanted) == ["report.html", "summary.json"]
    for file in wanted:
        (out / file).unlink()
    command = [sys.executable, "-c", KILLED, str(count), signal, *words["assess"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (130 if signal == "SIGINT" else -9)
    assert done.stderr.endswith(GO_ON) == (signal == "SIGINT")
    assert list(out.glob(".parts/*/*.piece"))
    code, _, errors = run(*words["assess"])
    assert code == 0
    assert re.search(
        r"^verirec: warning: going on from an earlier run: \d+ finished parts, \d+ s of work$", errors, re.M
    )
    assert files_of(out) == wanted
    assert not (out / ".parts").exists()


@pytest.mark.parametrize("verb", ["assess", "plan", "plan of rates", "estimate", "bootstrap"])
def test_a_stopped_verb_goes_on(run, words, tmp_path, monkeypatch, verb):
    undisturbed = run(*words[verb])
    wanted = files_of(tmp_path)
    for file in wanted:
        (tmp_path / file).unlink()
    with monkeypatch.context() as patched:
        stop_after(2, patched)
        code, output, errors = run(*words[verb])
    assert (code, output) == (130, "")
    assert errors.endswith(GO_ON)
    code, output, errors = run(*words[verb])
    assert (code, output) == (0, undisturbed[1])
    told = [line for line in errors.splitlines() if "going on from an earlier run: " not in line]
    assert told == undisturbed[2].splitlines() != errors.splitlines()
    assert files_of(tmp_path) == wanted


def test_a_stop_while_the_page_is_written_loses_nothing(run, words, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("verirec.assessment.page.assessment_page", lambda *_: _stop())
        assert run(*words["assess"])[::2] == (130, GO_ON)
    monkeypatch.setattr("verirec.nuisance.label_model.LabelModel.fit", lambda *_: pytest.fail("worked out again"))
    with monkeypatch.context() as patched:
        patched.setattr("verirec.assessment.run.propose", lambda *_: _stop())
        assert run(*words["assess"])[0] == 130
    assert (tmp_path / "out" / "report.html").exists()


def _stop():
    raise KeyboardInterrupt


def test_other_settings_begin_anew(run, words, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        stop_after(9, patched)
        run(*words["assess"])
    code, _, errors = run(*words["assess"], "--confidence", "0.9", "--json")
    assert (code, "earlier run" in errors) == (0, False)
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["confidence"] == 0.9
    assert not (tmp_path / "out" / ".parts").exists()


def test_a_stop_before_anything_is_kept_is_only_a_stop(run, words, tmp_path, monkeypatch):
    monkeypatch.setattr("verirec.assessment.preparation.as_propensities", lambda *_: _stop())
    assert run(*words["assess"]) == (130, "", "verirec: stopped\n")
    assert not (tmp_path / "out").exists()
