"""verirec plan for recommenders: the list that Python makes, filled in by a spreadsheet, comes back as a survey."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import verirec as vr


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(
        90, 100, observed=0.25, selectivity=2, noise_rates=vr.NoiseRates(0.1, 0.05), random_state=1
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory, world):
    place = tmp_path_factory.mktemp("plan")
    log = world.log
    columns = {"user": [f"u{user:02}" for user in log.users], "item": log.items, "label": log.labels}
    pd.DataFrame(columns | {"p": world.at(log.users, log.items).propensities}).to_csv(place / "log.csv", index=False)
    np.save(place / "sharp.npy", 0.1 + 0.8 * world.preferences)
    np.save(place / "blunt.npy", 0.4 + 0.2 * world.preferences)
    np.save(place / "ones.npy", np.ones((90, 100)))
    np.save(place / "stars.npy", 1 + 4 * np.random.default_rng(0).random((90, 100)))
    (place / "pilot.csv").write_text(
        "user,item,true_label\n"
        + "".join(f"u{7 * k % 90:02},{k},{world.true_labels[7 * k % 90, k]}\n" for k in range(100))
    )
    return place


@pytest.fixture
def plan(run, folder, tmp_path, monkeypatch):
    def plan(*arguments):
        monkeypatch.chdir(folder)
        return run("plan", "log.csv", *arguments, "--out", tmp_path / "plan.csv")

    return plan


SHARP, BOTH = ("--predictions", "sharp=sharp.npy"), ("--predictions", "sharp=sharp.npy", "--predictions", "b=blunt.npy")


@pytest.mark.parametrize(
    ("arguments", "options", "names"),
    [
        ((*BOTH, "--budget", 60), {"budget": 60, "purpose": "difference"}, ["sharp", "b"]),
        ((*SHARP, "--budget", 60), {"budget": 60, "purpose": "level"}, ["sharp"]),
        ((*BOTH, "--half-width", 0.1, "--purpose", "level"), {"half_width": 0.1, "purpose": "level"}, ["sharp", "b"]),
        ((*SHARP, "--budget", 60, "--purpose", "ndcg@5"), {"budget": 60, "purpose": "ndcg@5"}, ["sharp"]),
        ((*SHARP, "--budget", 60, "--purpose", "precision@5"), {"budget": 60, "purpose": "precision@5"}, ["sharp"]),
        ((*SHARP, "--budget", 60, "--one-per-user"), {"budget": 60, "one_per_user": True}, ["sharp"]),
        ((*SHARP, "--half-width", 0.1, "--loss", "squared"), {"half_width": 0.1, "loss": "squared"}, ["sharp"]),
        ((*SHARP, "--budget", 60, "--seed", 4), {"budget": 60, "random_state": 4}, ["sharp"]),
        ((*SHARP, "--budget", 60, "--pilot", "pilot.csv"), {"budget": 60, "pilot": True}, ["sharp"]),
        (
            (*SHARP, "--budget", 60, "--propensity-column", "p", "--rho01", 0.02, "--rho10", 0.01),
            {"budget": 60, "propensities": True, "guess": vr.NoiseRates(0.02, 0.01)},
            ["sharp"],
        ),
    ],
)
def test_a_plan_is_the_one_of_python(plan, folder, tmp_path, arguments, options, names):
    code, output, errors = plan(*arguments)
    assert (code, errors) == (0, "")
    log = vr.read_log(folder / "log.csv", propensity="p" if "propensities" in options else None)
    if options.pop("propensities", False):
        options["propensities"] = vr.LoggedPropensity(log)
    if options.pop("pilot", False):
        options["pilot"] = vr.SurveySample.from_file(folder / "pilot.csv", log)
    given = {name: np.load(folder / f"{'blunt' if name == 'b' else name}.npy") for name in names}
    alone = vr.plan_labels(log, given, **options)
    written = pd.read_csv(tmp_path / "plan.csv")
    assert list(written.columns) == ["kind", "user", "item", "label", "true_label", "probability"]
    frame = alone.to_frame()
    for column in ("kind", "user", "item"):
        assert written[column].tolist() == frame[column].tolist()
    np.testing.assert_allclose(written["probability"], frame["probability"])
    assert written["true_label"].isna().all()
    logged = int(alone.logged.sum())
    kinds = f"{logged} logged" if logged else f"{len(alone)} {alone.kind}"
    assert f"{len(alone)} pairs to ask about ({kinds}" in output
    assert f"Chosen at random it would take {alone.simple:,}." in output
    assert f"Expected half-widths: {', '.join(f'{w:.3f} of {n}' for n, w in alone.half_widths.items())}" in output


@pytest.mark.parametrize("saved_as", ["commas", "semicolons"])
def test_a_plan_that_a_spreadsheet_filled_in_is_a_survey(plan, run, folder, tmp_path, world, saved_as, monkeypatch):
    assert plan(*BOTH, "--budget", 300)[0] == 0
    file = tmp_path / "plan.csv"
    table = pd.read_csv(file)
    users = table["user"].str[1:].astype(int).to_numpy()
    table["true_label"] = world.true_labels[users, table["item"].to_numpy()]
    if saved_as == "semicolons":
        table.to_csv(file, index=False, sep=";", decimal=",", encoding="utf-8-sig", lineterminator="\r\n")
    else:
        table.to_csv(file, index=False)
    monkeypatch.chdir(folder)
    code, output, errors = run("estimate", "log.csv", *BOTH, "--survey", file, "--json")
    assert code == 0, errors
    log = vr.read_log(folder / "log.csv")
    sharp, blunt = (np.load(folder / f"{one}.npy") for one in ("sharp", "blunt"))
    alone = vr.plan_labels(log, [sharp, blunt], budget=300, purpose="difference")
    survey = alone.survey(world.true_labels[alone.users, alone.items])
    found = vr.estimate(sharp, log, survey=survey)["survey-ppi"]
    assert f"{found.value:.6g}"[:6] in output


MISTAKES = [
    ((*SHARP, "--budget", 60, "--half-width", 0.1), "one of the two"),
    ((*SHARP, "--budget", 5), "budget must be a whole number of at least 10"),
    ((*SHARP, "--purpose", "difference"), "a difference takes two recommenders or more; got 1"),
    ((*SHARP, "--purpose", "ndcg@"), "purpose must be one of"),
    ((*SHARP, "--half-width", 0.0001), "more than the 9,000 that there are"),
    (("--predictions", "ones=ones.npy"), "--clip 1e-6 would keep them inside"),
    (("--predictions", "stars=stars.npy"), "stars: its scores are not probabilities"),
    (("--predictions", "stars=stars.npy"), "plan for its ranking, --purpose ndcg@5, or make"),
    (("--predictions", "sharp"), "--predictions must be NAME=FILE"),
    ((*SHARP, "--pilot", "nope.csv"), "no file 'nope.csv'"),
    (("--budget", "many"), "Invalid value for '--budget'"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[message[:30] for _, message in MISTAKES])
def test_a_mistake_is_told_in_one_line_and_nothing_is_written(plan, tmp_path, arguments, message):
    code, output, errors = plan(*arguments)
    assert (code, output) == (2, "")
    assert re.search(re.escape(message), errors)
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []
