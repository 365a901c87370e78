"""verirec estimate and assess with --rates-by: who errs, from files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import verirec as vr

SHAPE = (50, 60)
# One pair of rates does not fit bots and people: that is what is told here in more detail.
pytestmark = pytest.mark.filterwarnings("ignore::verirec.exceptions.NoiseRateWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("errs")
    world = vr.simulate.world(*SHAPE, observed=0.3, bots=0.4, random_state=1)
    log = world.log
    rows = np.random.default_rng(1).choice(len(log), 300, replace=False)
    pairs = log.users[rows], log.items[rows]
    users, items = (side.ravel() for side in np.indices(SHAPE))
    for name, at, column, values in (
        ("ratings", (log.users, log.items), "rating", log.labels),
        ("audit", pairs, "true_label", world.at(*pairs).true_labels),
        ("mine", (users, items), "score", (0.2 + 0.5 * world.preferences).ravel()),
    ):
        pd.DataFrame({"user": at[0], "item": at[1], column: values}).to_csv(place / f"{name}.csv", index=False)
    channel = np.where(world.bot_users, "api", "app")
    pd.DataFrame({"user": np.arange(SHAPE[0]), "channel": channel}).to_csv(place / "users.csv", index=False)
    return place


def asked(folder, verb, *more):
    log = [folder / "ratings.csv", "--positive-from", "1", "--predictions", f"mine={folder / 'mine.csv'}"]
    return [verb, *log, "--propensity", "constant", *more]


def audited(folder, *more):
    return ["--audit", folder / "audit.csv", *more]


def test_groups_of_a_column_make_the_audit_more_precise(run, folder):
    known = ["--user-features", folder / "users.csv", "--json"]
    widths = []
    for more in ([], ["--rates-by", "channel"]):
        code, out, _ = run(*asked(folder, "estimate", *known, *audited(folder, *more)))
        assert code == 0
        found = json.loads(out)
        one = found["recommenders"]["mine"]["audited-dr"]
        widths.append(one["high"] - one["low"])
    assert widths[1] < widths[0]
    assert {row["group"] for row in found["who_errs"]["groups"]} == {"api", "app"}
    assert found["who_errs"]["test"]["p_value"] < 0.05


@pytest.mark.parametrize(("by", "shown"), [("score", "along the score"), ("propensity", "Who errs (p = ")])
def test_tables_of_who_errs(run, folder, by, shown):
    code, out, _ = run(*asked(folder, "estimate", *audited(folder, "--rates-by", by)))
    assert code == 0
    assert shown in out


def test_an_assessment_shows_groups_or_the_curve(run, folder, tmp_path):
    code, *_ = run(*asked(folder, "assess", *audited(folder), "--out", tmp_path / "curve"))
    assert code == 0
    assert set(json.loads((tmp_path / "curve" / "summary.json").read_text())["who_errs"]) == {
        "scores",
        "rho01",
        "rho10",
    }
    page = (tmp_path / "curve" / "report.html").read_text()
    assert "Who errs" in page
    assert "along a score of the pair" in page
    known = ["--user-features", folder / "users.csv"]
    more = ["--rates-by", "channel", "--out", tmp_path / "groups"]
    code, *_ = run(*asked(folder, "assess", *known, *audited(folder, *more)))
    assert code == 0
    page = (tmp_path / "groups" / "report.html").read_text()
    assert "Groups differ (p = " in page


BAD = {
    "no audit": (["--rates-by", "score"], "--rates-by needs the true labels of an audit"),
    "no such column": (["--audit", "audit.csv", "--rates-by", "city"], "no features with names"),
}


@pytest.mark.parametrize(("more", "message"), BAD.values(), ids=BAD)
def test_what_is_refused_in_a_line(run, folder, more, message):
    more = [folder / one if str(one).endswith(".csv") else one for one in more]
    code, out, errors = run(*asked(folder, "estimate", *more))
    assert (code, out) == (2, "")
    assert message in " ".join(errors.split())
