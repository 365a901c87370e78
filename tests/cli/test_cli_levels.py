"""verirec estimate, train and evaluate with --levels: stars and distributions, from files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import verirec as vr

SHAPE = (40, 50)


def write(file, users, items, values, name):
    table = pd.DataFrame({"user": users, "item": items, name: values})
    table.drop_duplicates(["user", "item"]).to_csv(file, index=False)


@pytest.fixture(scope="module")
def world():
    return vr.simulate.stars(*SHAPE, propensities=(0.3,) * 5, random_state=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, world):
    place, log = tmp_path_factory.mktemp("levels"), world.log
    write(place / "ratings.csv", log.users, log.items, log.label_values, "rating")
    write(place / "audit.csv", *world.audit(300, random_state=0), "true_label")
    write(place / "survey.csv", *world.survey(200, random_state=1), "true_label")
    users, items = (side.ravel() for side in np.indices(SHAPE))
    stars = 2.5 + 0.3 * world.true_values
    write(place / "mine.csv", users, items, stars.ravel(), "score")
    near = np.exp(-((stars[..., None] - np.arange(1, 6)) ** 2))
    np.save(place / "near.npy", near / near.sum(axis=-1, keepdims=True))
    return place


def asked(folder, *more, predictions="mine.csv", loss="rmse"):
    log = [folder / "ratings.csv", "--levels", "1,2,3,4,5", "--propensity", "constant"]
    return ["estimate", *log, "--predictions", f"mine={folder / predictions}", "--loss", loss, *more]


def test_stars_are_judged_as_in_python(run, folder, world):
    true = ["--audit", folder / "audit.csv", "--survey", folder / "survey.csv"]
    code, out, errors = run(*asked(folder, *true, "--json"))
    assert (code, errors) == (0, "")
    found = json.loads(out)
    log = vr.read_log(folder / "ratings.csv", levels=world.levels)
    audit, survey = (
        kind.from_file(folder / f"{name}.csv", log)
        for kind, name in ((vr.AuditSample, "audit"), (vr.SurveySample, "survey"))
    )
    expected = vr.estimate(
        vr.read_predictions(folder / "mine.csv", log),
        log,
        propensities=vr.ConstantPropensity().fit(log),
        audit=audit,
        survey=survey,
        loss="rmse",
    )
    for name, one in expected.items():
        assert found["recommenders"]["mine"][name]["value"] == pytest.approx(one.value), name
    assert found["noise_rates"]["form"] in ("band", "ordinal", "symmetric", "free")
    assert np.shape(found["noise_rates"]["transitions"]) == (5, 5)
    assert found["ranking"] == {"mine": {}}


def test_distributions_are_judged_and_shown(run, folder):
    code, out, errors = run(*asked(folder, "--audit", folder / "audit.csv", predictions="near.npy", loss="rps"))
    assert (code, errors) == (0, "")
    assert "ranked probability score, smaller is better" in out
    assert "of levels kept on average (an audit of 300 rows" in out
    assert "audited-dr" in out


@pytest.mark.filterwarnings("ignore:the log does not bound:verirec.exceptions.NoiseRateWarning")
def test_a_region_of_noise_between_levels_makes_ranges(run, folder):
    code, out, _ = run(*asked(folder, "--region", "--json"))
    assert code == 0
    found = json.loads(out)
    assert found["noise_rates"]["form"] == "ordinal"
    assert 0 < found["noise_rates"]["wrong"][1] < 1
    assert found["noise_rates"]["cut_off"]
    assert "the log allows more" in found["noise_rates"]["source"]
    assert "all of" not in found["noise_rates"]["source"]
    (one,) = found["recommenders"].values()
    assert one["ome-dr"]["value"] is None
    assert one["ome-dr"]["low"] <= one["ome-dr"]["high"]


BAD = {
    "rates of two classes": (["--rho01", ".1", "--rho10", ".1"], "binary labels are needed here; the log has 5 levels"),
    "calibration": (["--calibrate", "platt"], "binary labels are needed here"),
    "rankings": (["--ranking-only"], "is judged by levels, which rankings cannot use yet"),
    "a clip that leaves nothing": (["--clip", "3"], "clip must be"),
}


@pytest.mark.parametrize(("more", "message"), BAD.values(), ids=BAD)
def test_what_levels_refuse_in_a_line(run, folder, more, message):
    code, out, errors = run(*asked(folder, *more))
    assert (code, out) == (2, "")
    assert message in errors
    assert errors.count("\n") == 1


def test_stars_are_not_judged_by_a_loss_of_distributions(run, folder):
    code, _, errors = run(*asked(folder, loss="log"))
    assert code == 2
    assert "(stars are judged by rmse, mae, squared or absolute)" in errors


TRUTHS = {
    "a level that is none": ("0,0,6\n", "must be one of the levels 1, 2, 3, 4, 5; 1 of 1 rows are not: 6"),
    "a word": ("0,0,good\n", "it is no number in 1 of 1 rows"),
    "two answers": ("0,0,3\n0,0,4\n", "answers to one pair contradict each other"),
}


@pytest.mark.parametrize(("rows", "message"), TRUTHS.values(), ids=TRUTHS)
def test_what_is_no_file_of_true_levels(run, folder, tmp_path, rows, message):
    file = tmp_path / "survey.csv"
    file.write_text(f"user,item,true_label\n{rows}")
    code, _, errors = run(*asked(folder, "--survey", file))
    assert code == 2
    assert message in errors


def test_answers_that_agree_are_merged_and_commas_read(world, tmp_path):
    log = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [0.5, 1], n_users=2, n_items=2, levels=[0.5, 1])
    file = tmp_path / "survey.csv"
    file.write_text("user;item;true_label\n0;0;0,5\n0;0;0,5\n1;0;1\n")
    with pytest.warns(vr.exceptions.AnswersWarning, match="1 rows repeat"):
        found = vr.SurveySample.from_file(file, log)
    assert found.label_values.tolist() == [0.5, 1]


def test_verbs_of_binary_labels_refuse_levels_in_the_words_of_the_command_line(run, folder, tmp_path):
    predictions = "--predictions", f"mine={folder / 'mine.csv'}"
    code, _, errors = run("plan", asked(folder)[1], "--levels", "1,2,3,4,5", *predictions, "--out", tmp_path / "out")
    assert code == 2
    assert "--positive-from ... in place of --levels ..., makes it binary" in errors


def test_assess_writes_the_page_of_stars(run, folder, world, tmp_path):
    _, *given = asked(folder, "--survey", folder / "survey.csv", "--out", tmp_path / "out")
    given = [one for one in given if one not in ("--loss", "rmse")]
    code, out, errors = run("assess", *given)
    assert (code, errors) == (0, "")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    log = vr.read_log(folder / "ratings.csv", levels=world.levels)
    survey = vr.SurveySample.from_file(folder / "survey.csv", log)
    mine = vr.read_predictions(folder / "mine.csv", log)
    expected = vr.estimate(mine, log, survey=survey, loss="rmse")["survey-ppi"].to_dict()
    assert summary["headline"]["mine"] == {"estimator": "survey-ppi"} | expected
    assert out.startswith("- The true RMSE is")
    assert "How noisy the labels are" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--loss", "brier"), "brier"),
        (("--calibrate", "platt"), "keeps its levels has none"),
        (("--rho01", 0.2, "--rho10", 0.1), "must be a TransitionMatrix"),
    ],
)
def test_what_levels_do_not_have_is_told_in_a_line(run, folder, tmp_path, more, message):
    given = asked(folder)[1], "--levels", "1,2,3,4,5", "--out", tmp_path / "out"
    code, _, errors = run("assess", *given, *more)
    assert code == 2
    assert message in errors
    assert errors.count("\n") == 1


def test_no_panel_of_the_help_is_named_in_python(run):
    assert "vr." not in run("assess", "--help")[1]


def trained(run, folder, place, *more):
    log = [folder / "ratings.csv", "--levels", "1,2,3,4,5", "--propensity", "constant"]
    return run("train", *log, "--set", "epochs=5", "--set", "dim=2", "--out", place, *more)


@pytest.mark.filterwarnings("ignore::verirec.exceptions.TrainedRowsWarning")
@pytest.mark.parametrize(("head", "told"), [((), "stars"), (("--head", "ordinal"), "ordinal")])
def test_a_model_of_stars_is_trained_evaluated_and_recommends(run, folder, tmp_path, head, told):
    code, _, errors = trained(run, folder, tmp_path / "model", "--method", "mf", *head)
    assert (code, errors) == (0, "")
    recommender = vr.load(tmp_path / "model")
    assert recommender.head.name == told
    code, out, _ = run("evaluate", tmp_path / "model", folder / "ratings.csv", "--levels", "1,2,3,4,5", "--json")
    log = vr.read_log(folder / "ratings.csv", levels=[1, 2, 3, 4, 5])
    assert code == 0
    assert json.loads(out)["rmse"] == pytest.approx(vr.metrics.evaluate(recommender, log)["rmse"])
    code, out, _ = run("recommend", tmp_path / "model", "--users", "0", "-k", "2", "--json")
    assert (code, [sorted(row) for row in json.loads(out)]) == (0, [["item", "rank", "stars", "user"]] * 2)


def test_noise_between_levels_is_corrected_by_an_audits_file(run, folder, tmp_path):
    audit = "--audit", folder / "audit.csv"
    code, out, errors = trained(run, folder, tmp_path / "model", "--method", "ome", *audit, "--json")
    assert (code, errors) == (0, "")
    assert json.loads(out)["noise_rates"] is None
    assert isinstance(vr.load(tmp_path / "model").noise_rates, vr.TransitionMatrix)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--method", "tdr"), "tdr is trained on 0/1 labels; the log has levels 1, 2, 3, 4, 5"),
        (("--method", "ome"), "ome corrects for noise between levels"),
        (("--method", "mf", "--head", "other"), "head must be one of"),
        (
            ("--method", "ome", "--rho01", ".2", "--rho10", ".1"),
            "must be a TransitionMatrix or a TransitionRegion; got NoiseRates",
        ),
    ],
)
def test_what_cannot_be_trained_on_levels_is_refused_in_one_line(run, folder, tmp_path, more, told):
    code, _, errors = trained(run, folder, tmp_path / "model", *more)
    assert code == 2
    assert told in errors
    assert len(errors.strip().splitlines()) == 1


def test_who_errs_by_strata_of_the_score(run, folder):
    code, out, _ = run(*asked(folder, "--audit", folder / "audit.csv", "--rates-by", "score", "--json"))
    assert code == 0
    groups = json.loads(out)["who_errs"]["groups"]
    assert len(groups) == 25
    assert {row["true_label"] for row in groups} == {1, 2, 3, 4, 5}
