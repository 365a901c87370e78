"""--exclude: pairs that were trained on are neither judged nor ranked, by whichever verb."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import verirec as vr

SHAPE = (60, 50)


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.4, random_state=1)


@pytest.fixture(scope="module")
def parts(world):
    """Two random parts of a log, the first to train on."""
    rows = np.random.default_rng(0).random(len(world.log)) < 0.5
    return world.log.select(rows), world.log.select(~rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, world, parts):
    place = tmp_path_factory.mktemp("exclude")
    for name, log in zip(("train", "test"), parts, strict=True):
        rows = [(f"u{u}", f"i{i}", label) for u, i, label in zip(log.users, log.items, log.labels, strict=True)]
        write(place / f"{name}.csv", ["user", "item", "label"], rows)
    # The other columns of a file to exclude are not looked at, nor are users that the log does not have.
    rows = [(f"i{i}", "a word", f"u{u}") for u, i in zip(parts[0].users, parts[0].items, strict=True)]
    write(place / "renamed.csv", ["what", "said", "who"], [*rows, ("i0", "", "stranger")])
    write(place / "strangers.csv", ["user", "item", "label"], [("x", "y", 1)])
    np.save(place / "mine.npy", in_file_order(0.1 + 0.8 * world.preferences, place / "test.csv"))
    return place


def write(file, names, rows):
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows([names, *rows])


def in_file_order(matrix, file):
    """Give a matrix by the ids' own order, as the file is read."""
    log = vr.read_log(file)
    users, items = ([int(one[1:]) for one in ids.ids()] for ids in (log.user_ids, log.item_ids))
    return matrix[np.ix_(users, items)]


@pytest.fixture
def figures(run, folder, monkeypatch):
    def figures(verb, *arguments):
        monkeypatch.chdir(folder)
        code, output, errors = run(verb, "test.csv", *arguments, "--predictions", "mine=mine.npy", "--json")
        assert code == 0, errors
        return json.loads(output)

    return figures


@pytest.fixture(scope="module")
def given(folder):
    """The log, the pairs to leave out, by its positions, and the predictions."""
    log, train = vr.read_log(folder / "test.csv"), vr.read_log(folder / "train.csv")
    users, items = (
        log.user_ids.find(train.user_ids.ids())[train.users],
        log.item_ids.find(train.item_ids.ids())[train.items],
    )
    known = (users >= 0) & (items >= 0)
    shape = {"n_users": log.n_users, "n_items": log.n_items}
    return (
        log,
        vr.FeedbackLog.from_arrays(users[known], items[known], users[known] * 0, **shape),
        np.load(folder / "mine.npy"),
    )


def test_estimate_gives_what_python_gives(figures, given):
    log, train, mine = given
    shown = figures("estimate", "--exclude", "train.csv")
    p = vr.LogisticPropensity().fit(log)
    losses = vr.estimate(mine, log, propensities=p, exclude=train)
    ranking = vr.estimate_ranking(mine, log, propensities=p, exclude=train)
    assert {name: one["value"] for name, one in shown["recommenders"]["mine"].items()} == {
        name: one.value for name, one in losses.items()
    }
    assert {name: one["value"] for name, one in shown["ranking"]["mine"].items()} == {
        name: one.value for name, one in ranking.items()
    }


def test_assess_gives_what_python_gives(figures, given, tmp_path):
    log, train, mine = given
    rates = vr.NoiseRates(0.2, 0.1)
    shown = figures("assess", "--exclude", "train.csv", "--rho01", 0.2, "--rho10", 0.1, "--out", tmp_path / "out")
    found = vr.assess(
        log, {"mine": mine}, noise_rates=rates, propensities=vr.LogisticPropensity().fit(log), exclude=train
    )
    assert shown == json.loads(json.dumps(found.summary))


def test_pairs_are_found_by_the_names_of_their_columns_and_others_are_passed_over(figures, run, folder):
    named = figures("estimate", "--exclude", "train.csv")
    code, _, errors = run("estimate", "test.csv", "--exclude", "renamed.csv", "--predictions", "mine=mine.npy")
    assert code == 2
    assert "renamed.csv" in errors
    lines = (folder / "renamed.csv").read_text().splitlines()
    (folder / "same.csv").write_text("\n".join(["item,said,user", *lines[1:]]))
    assert figures("estimate", "--exclude", "same.csv") == named


@pytest.mark.parametrize("verb", ["estimate", "assess", "plan"])
def test_a_file_without_pairs_of_the_log_is_told_in_one_line(run, folder, monkeypatch, tmp_path, verb):
    monkeypatch.chdir(folder)
    out = [] if verb == "estimate" else ["--out", tmp_path / "out.csv"]
    code, _, errors = run(verb, "test.csv", "--exclude", "strangers.csv", "--predictions", "mine=mine.npy", *out)
    assert (code, errors.count("\n")) == (2, 1)
    assert "strangers.csv: no row has both a user and an item of the log" in errors
