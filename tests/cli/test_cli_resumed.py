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
GO_ON = "verirec: stopped; the same command goes on from what is finished\n"

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

WATCHED = """
import json, os, signal, sys
from pathlib import Path
from verirec.cli.main import main
from verirec.resuming import pieces
place, stop, *words = sys.argv[1:]
pieces.WORTH_KEEPING = 0.0
seen = {"kept": 0, "reused": 0, "lost": 0}
keep, opened, remove = pieces.Pieces._keep, pieces._opened, pieces.Pieces.remove
def told():
    Path(place).write_text(json.dumps(seen))
def keeping(self, *given):
    if stop == str(seen["kept"]):
        told()
        os.kill(os.getpid(), signal.SIGKILL)
    kept = keep(self, *given)
    seen["kept"] += kept
    return kept
def opening(file):
    found = opened(file)
    seen["lost" if found is None else "reused"] += 1
    return found
def removing(self):
    told()
    if stop == "end":
        os.kill(os.getpid(), signal.SIGKILL)
    remove(self)
pieces.Pieces._keep, pieces._opened, pieces.Pieces.remove = keeping, opening, removing
sys.argv = ["verirec", *words]
main()
"""


@pytest.fixture
def watched(tmp_path):
    """Run a verb in a process of its own, which may be killed: when it has kept so many, or at the end.

    Gives its code, output and errors, and how many pieces it kept, reused, and asked for in vain.
    """

    def watched(*words, stop):
        seen = tmp_path / "seen.json"
        command = [sys.executable, "-c", WATCHED, str(seen), str(stop), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        counts = json.loads(seen.read_text())
        seen.unlink()
        return done.returncode, done.stdout, done.stderr, *counts.values()

    return watched


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
    np.save(place / "stars.npy", 1 + 4 * world.preferences)
    np.save(place / "other.npy", 2 + 2 * world.preferences)
    clicks = (f"{user},{item}" for user, item, label in zip(log.users, log.items, log.labels, strict=True) if label)
    (place / "clicks.csv").write_text("\n".join(["user,item", *clicks]) + "\n")
    for side, size in zip(("users", "items"), SHAPE, strict=True):
        (place / f"{side}.txt").write_text("\n".join(map(str, range(size))))
    random = np.random.default_rng(0)
    true = random.integers(1, 6, len(log))
    near = np.clip(true + random.choice([-1, 0, 0, 0, 1], len(log)), 1, 5)
    _write(place / "stars.csv", "rating", log.users, log.items, near)
    audited = random.choice(len(log), 300, replace=False)
    _write(place / "audit.csv", "true_label", log.users[audited], log.items[audited], true[audited])
    users, items = np.divmod(random.choice(SHAPE[0] * SHAPE[1], 300, replace=False), SHAPE[1])
    _write(place / "survey.csv", "true_label", users, items, world.true_labels[users, items])
    return place


def _write(file, name, *columns):
    rows = (",".join(map(str, row)) for row in zip(*columns, strict=True))
    file.write_text("\n".join([f"user,item,{name}", *rows]) + "\n")


@pytest.fixture
def words(folder, tmp_path, monkeypatch):
    """Words of verbs, by verb, which write to `out` where they write; all parts are kept."""
    monkeypatch.setattr(pieces, "WORTH_KEEPING", 0.0)
    given = [str(folder / "log.csv")]
    for name in ("sharp", "blunt"):
        given += ["--predictions", f"{name}={folder / name}.npy"]
    stars = [str(folder / "stars.csv"), "--levels", "1,2,3,4,5", "--audit", str(folder / "audit.csv")]
    for name in ("stars", "other"):
        stars += ["--predictions", f"{name}={folder / name}.npy"]
    clicks = [str(folder / "clicks.csv"), "--clicks", *given[1:]]
    clicks += [f"--all-{side}={folder / side}.txt" for side in ("users", "items")]
    plan = ["--budget", "50", "--out", str(tmp_path / "out" / "plan.csv")]
    estimate = ["--json", "--checkpoint", str(tmp_path / "kept")]
    return {
        "assess": ["assess", *given, "--out", str(tmp_path / "out")],
        "plan": ["plan", *given, *plan],
        "plan of rates": ["plan", given[0], *plan],
        "estimate": ["estimate", *given, *estimate, "--rho01", ".2", "--rho10", ".1"],
        "bootstrap": ["estimate", *given[:3], *estimate, "--interval", "bootstrap"],
        "assess levels": ["assess", *stars, "--out", str(tmp_path / "out")],
        "estimate levels": ["estimate", *stars, *estimate, "--loss", "rmse"],
        "assess clicks": ["assess", *clicks, "--survey", str(folder / "survey.csv"), "--out", str(tmp_path / "out")],
        "plan clicks": ["plan", *clicks, *plan],
        "estimate clicks": ["estimate", *clicks, *estimate, "--gamma", "1"],
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
    assert re.search(r"^verirec: going on from an earlier run: \d+ finished parts, \d+ s of work$", errors, re.M)
    assert files_of(out) == wanted
    assert not (out / ".parts").exists()


VERBS = ("assess", "plan", "plan of rates", "estimate", "bootstrap", "assess levels", "estimate levels")
VERBS += ("assess clicks", "plan clicks", "estimate clicks")


@pytest.mark.parametrize("verb", VERBS)
def test_a_killed_verb_goes_on_in_another_process(watched, words, tmp_path, verb):
    *undisturbed, whole, _, _ = watched(*words[verb], stop="never")
    wanted = files_of(tmp_path)
    assert undisturbed[0] == 0, undisturbed
    for file in wanted:
        (tmp_path / file).unlink()
    assert watched(*words[verb], stop=whole // 2 or "end")[0] == -9
    reusable = count_of(tmp_path)
    code, _, errors, kept, reused, lost = watched(*words[verb], stop="end")
    assert (code, lost) == (-9, 0)
    assert told_in(errors) == reused == reusable > 0
    assert kept < whole
    reusable = count_of(tmp_path)
    code, output, errors, kept, reused, lost = watched(*words[verb], stop="never")
    # Models that several pieces go by stay beside these, which nobody asks for any more.
    assert told_in(errors) == reusable >= reused > 0
    assert (kept, lost) == (0, 0)
    told = [line for line in errors.splitlines() if "going on from an earlier run: " not in line]
    assert [code, output, told] == [*undisturbed[:2], undisturbed[2].splitlines()]
    assert files_of(tmp_path) == wanted


def count_of(folder):
    """How many pieces there are."""
    return len(list(folder.rglob("*.piece")))


def told_in(errors):
    """How many pieces a verb says it reuses."""
    (told,) = re.findall(r"^verirec: going on from an earlier run: (\d+) finished parts?, ", errors, re.M)
    return int(told)


def test_a_stopped_verb_says_that_it_goes_on(run, words, monkeypatch):
    with monkeypatch.context() as patched:
        stop_after(2, patched)
        code, output, errors = run(*words["plan"])
    assert (code, output) == (130, "")
    assert errors.endswith(GO_ON)
    assert run(*words["plan"])[0] == 0


def test_a_stop_while_the_page_is_written_loses_nothing(run, words, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("verirec.assessment.page.assessment_page", lambda *_: _stop())
        assert run(*words["assess"])[::2] == (130, GO_ON)
    monkeypatch.setattr("verirec.nuisance.label_model.LabelModel.fit", lambda *_: pytest.fail("worked out again"))
    with monkeypatch.context() as patched:
        patched.setattr("verirec.assessment.run.propose", lambda *_: _stop())
        assert run(*words["assess"])[0] == 130
    assert (tmp_path / "out" / "report.html").exists()


def _stop(*_):
    raise KeyboardInterrupt


def test_a_ranking_by_clicks_is_a_part(run, words, monkeypatch):
    wanted = run(*words["estimate clicks"])
    with monkeypatch.context() as patched:
        patched.setattr(pieces.Pieces, "remove", _stop)
        assert run(*words["estimate clicks"])[0] == 130
    monkeypatch.setattr("verirec.cli.judging.estimate_click_ranking", lambda *_, **__: pytest.fail("worked out again"))
    assert run(*words["estimate clicks"])[:2] == wanted[:2]


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
