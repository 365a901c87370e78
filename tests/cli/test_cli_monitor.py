"""verirec monitor: a page, a picture and a table of each month; mistakes are told in one line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import verirec as vr

SHAPE = 60, 50


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("monitor")
    world = vr.simulate.world(*SHAPE, observed=0.5, selectivity=1, random_state=2)
    random = np.random.default_rng(0)
    frame = world.log.to_frame()
    frame["when"] = np.datetime64("2024-01-01") + random.integers(60, size=len(frame))
    frame.to_csv(home / "ratings.csv", index=False)
    frame.assign(when=np.arange(len(frame))).to_csv(home / "numbers.csv", index=False)
    frame.assign(when="soon").to_csv(home / "soon.csv", index=False)
    users, items = (one.ravel() for one in np.indices(SHAPE))
    for name, slope in (("mine", 0.8), ("theirs", 0.2)):
        given = 0.5 + slope * (world.preferences.ravel() - 0.5)
        pd.DataFrame({"user": users, "item": items, "score": given}).to_csv(home / f"{name}.csv", index=False)
    pairs = random.choice(users.size, 400, replace=False)
    asked = pd.DataFrame({"user": users[pairs], "item": items[pairs], "true_label": world.true_labels.ravel()[pairs]})
    asked[:200].to_csv(home / "january.csv", index=False)
    asked[200:].to_csv(home / "february.csv", index=False)
    return home


def options(folder):
    given = [f"--predictions={name}={folder / name}.csv" for name in ("mine", "theirs")]
    surveys = (f"--survey=2024-0{at}={folder / name}.csv" for at, name in ((1, "january"), (2, "february")))
    return ["--rating", "label", "--timestamp", "when", *given, *surveys]


def test_a_page_a_picture_and_a_table_are_written(run, folder, tmp_path):
    code, out, _ = run("monitor", folder / "ratings.csv", *options(folder), "--out", tmp_path / "out")
    assert code == 0
    assert "mine or theirs: mine is better in 2024-01, 2024-02." in out
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [one["period"] for one in summary["periods"]] == ["2024-01", "2024-02"]
    assert pd.read_csv(tmp_path / "out" / "monitoring.csv")["mine_or_theirs"].tolist() == ["mine", "mine"]
    assert (tmp_path / "out" / "monitoring.png").read_bytes().startswith(b"\x89PNG")
    assert "verirec monitor" in (tmp_path / "out" / "report.html").read_text()


def test_json_is_the_summary(run, folder, tmp_path):
    more = ["--every", "year", "--out", tmp_path / "out", "--json"]
    code, out, _ = run("monitor", folder / "ratings.csv", *options(folder)[:4], *more)
    assert code == 0
    assert json.loads(out) == json.loads((tmp_path / "out" / "summary.json").read_text())


BAD = [
    (["ratings.csv"], "name their column, --timestamp"),
    (["soon.csv", "--timestamp", "when"], "column 'when' must hold numbers, dates or ISO text"),
    (["numbers.csv", "--timestamp", "when"], "must be dates, or seconds or smaller units since 1970"),
    (["ratings.csv", "--timestamp", "when", "--every", "moon"], "every must be one of"),
    (["ratings.csv", "--timestamp", "when", "--survey", "january.csv"], "--survey must be PERIOD=FILE"),
    (["ratings.csv", "--timestamp", "when", "--survey", "2023-01=january.csv"], "names of periods, from 2024-01"),
    (["ratings.csv", "--timestamp", "when", "--reask", "january.csv"], "--reask is for one log"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_mistakes_are_told_in_one_line(run, folder, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    code, _, errors = run("monitor", *words, "--rating", "label", "--out", tmp_path / "out")
    assert code == 2
    assert message in errors
    assert errors.count("\n") == 1
    assert not (tmp_path / "out").exists()
