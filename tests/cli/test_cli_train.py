"""verirec train, evaluate, recommend, methods: files in, files out; what is stopped goes on; mistakes are one line."""

from __future__ import annotations

import csv
import json
import re
import shutil
import signal
import socket
import warnings

import numpy as np
import pandas as pd
import pytest

import verirec as vr
from verirec.methods.search import Search
from verirec.training.checkpoints import read_tensors, write_tensors
from verirec.training.saving import FACTS, TENSORS

RATES = vr.NoiseRates(0.2, 0.1)
SHAPE = (60, 80)
GIVEN = ("--rho01", 0.2, "--rho10", 0.1)
QUICK = ("--set", "epochs=5")
USERS = {"strings": [f"u{user:02d}" for user in range(SHAPE[0])], "integers": [100 + user for user in range(SHAPE[0])]}
ITEMS = {"strings": [f"i{item:02d}" for item in range(SHAPE[1])], "integers": [10 * item for item in range(SHAPE[1])]}
KINDS = tuple(USERS)


def write_csv(file, names, *columns):
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows([names, *zip(*columns, strict=True)])


def read_csv(file):
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.3, noise_rates=RATES, random_state=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, world):
    place = tmp_path_factory.mktemp("train")
    log = world.log
    for kind in KINDS:
        users, items = np.array(USERS[kind])[log.users], np.array(ITEMS[kind])[log.items]
        write_csv(place / f"{kind}.csv", ["user", "item", "label"], users, items, log.labels)
        truth = world.at(log.users[:300], log.items[:300]).true_labels
        write_csv(place / f"audit_{kind}.csv", ["user", "item", "true_label"], users[:300], items[:300], truth)
        u, i = np.divmod(np.random.default_rng(0).permutation(SHAPE[0] * SHAPE[1])[:1_000], SHAPE[1])
        known = np.isin(u, log.users) & np.isin(i, log.items)
        u, i = u[known], i[known]
        truth = world.at(u, i).true_labels
        names = ["user", "item", "label"]
        write_csv(place / f"test_{kind}.csv", names, np.array(USERS[kind])[u], np.array(ITEMS[kind])[i], truth)
    strings = read_csv(place / "strings.csv")
    columns = [[row[name] for row in strings] for name in ("user", "item", "label")]
    write_csv(place / "ones.csv", ["user", "item", "label"], *columns[:2], [1] * len(strings))
    write_csv(place / "other.csv", ["who", "what", "rating"], *columns[:2], [int(one) * 3 + 1 for one in columns[2]])
    write_csv(place / "strange.csv", ["user", "item", "label"], ["new", "new"], ["x", "y"], [1, 0])
    write_csv(place / "new.csv", ["user", "item", "label"], ["new", "new", "newer"], ["i03", "i05", "x"], [1, 0, 1])
    u, i = np.divmod(np.random.default_rng(1).permutation(SHAPE[0] * SHAPE[1])[:400], SHAPE[1])
    known = np.flatnonzero(np.isin(u, log.users) & np.isin(i, log.items))[:150]
    u, i = u[known], i[known]
    named = np.array(USERS["strings"])[u], np.array(ITEMS["strings"])[i]
    write_csv(place / "survey.csv", ["user", "item", "true_label"], *named, world.at(u, i).true_labels)
    write_csv(place / "disliked.csv", ["user", "item", "true_label"], *named, np.zeros(150, int))
    colours, ages = np.array(["red", "blue", "green"])[np.arange(SHAPE[0]) % 3], np.arange(SHAPE[0]) + 20
    write_csv(place / "people.csv", ["user", "age", "colour"], USERS["strings"], ages, colours)
    tags = [("new|cheap", "cheap", "")[item % 3] for item in range(SHAPE[1])]
    write_csv(place / "things.csv", ["item", "tags"], ITEMS["strings"], tags)
    write_csv(place / "some_people.csv", ["user", "age"], USERS["strings"][:5], ages[:5])
    write_csv(place / "odd_people.csv", ["user", "age"], USERS["strings"], [*ages[1:].tolist(), "old"])
    write_csv(place / "new_people.csv", ["user", "age", "colour"], ["new", "newer"], [30, 40], ["red", "purple"])
    (place / "users.txt").write_text("u01\n\nu02 \n")
    (place / "empty.txt").write_text("\n")
    (place / "latin.txt").write_bytes("\xe9va\n".encode("latin-1"))
    (place / "taken").write_text("mine")
    (place / "nothing").mkdir()
    return place


@pytest.fixture
def here(run, folder, monkeypatch):
    """Run `verirec` among the files; the empty line before errors has a test of its own."""

    def here(*arguments):
        monkeypatch.chdir(folder)
        code, output, errors = run(*arguments)
        return code, output, errors

    return here


@pytest.fixture(scope="module")
def model(tmp_path_factory, folder):
    """Give the folder of a trained model of string ids."""
    log = vr.read_log(folder / "strings.csv")
    return vr.methods.OMEDR(epochs=5).fit(log, noise_rates=RATES).save(tmp_path_factory.mktemp("model"))


def tensors_of(folder):
    return {name: value.numpy() for name, value in read_tensors(folder / TENSORS)[0].items()}


def same_tensors(one, other):
    first, second = tensors_of(one), tensors_of(other)
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


# Files in, files out


def test_training_says_a_line_a_minute_of_the_epoch_in_a_pipe(here, tmp_path, monkeypatch):
    monkeypatch.setattr("verirec.cli.speech.MINUTE", 0.0001)
    errors = here("train", "strings.csv", "--method", "ome-dr", *GIVEN, "--out", tmp_path, "--set", "epochs=30")[2]
    lines = [line.removeprefix("verirec: Training ome-dr: ") for line in errors.splitlines()]
    first = r"epoch \d+ of at most 30, validation error 0\.\d{4}, \d\.\d s each"
    assert any(re.match(first, line) for line in lines)
    assert any(line.startswith("once more, on all rows, epoch ") for line in lines)
    before = {line.removeprefix("verirec: ").partition(":")[0] for line in errors.splitlines()}
    assert {"Reading the log", "Training ome-dr"} <= before


# The models are judged on rows that they were trained on.
@pytest.mark.filterwarnings("ignore::verirec.exceptions.TrainedRowsWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_from_a_file_to_a_model_its_figures_its_lists_and_its_assessment(here, folder, tmp_path, kind):
    out = tmp_path / "model"
    code, output, errors = here("train", f"{kind}.csv", "--method", "ome-dr", *GIVEN, "--out", out, *QUICK)
    assert (code, errors) == (0, "")
    lines = output.splitlines()
    assert re.fullmatch(r"Validation error by ome-dr: 0\.\d{4}", lines[1])
    assert lines[2] == "Noise rates: rho01 0.200, rho10 0.100"
    assert lines[-1].startswith("The model: ")
    assert sorted(file.name for file in out.iterdir()) == [FACTS, TENSORS]

    log = vr.read_log(folder / f"{kind}.csv")
    propensities = vr.LogisticPropensity().fit(log)
    own = vr.methods.OMEDR(epochs=5).fit(log, noise_rates=RATES, propensities=propensities)
    assert same_tensors(out, own.save(tmp_path / "own"))
    assert lines[0] == f"ome-dr: the state of epoch {own.report_.best_epoch} of 5 is kept (all 5 epochs)"

    code, output, errors = here("evaluate", out, f"test_{kind}.csv", "-k", 3, "--json")
    assert (code, errors) == (0, "")
    test = vr.read_log(folder / f"test_{kind}.csv")
    scores = own.predict(test.user_ids.ids(test.users), test.item_ids.ids(test.items))
    assert json.loads(output) == pytest.approx(vr.metrics.evaluate((test.users, test.items, scores), test, k=3))

    asked = USERS[kind][:3]
    wanted = own.recommend(asked, 4, exclude=log).to_frame()
    names = ",".join(map(str, asked))
    arguments = (
        "recommend",
        out,
        "--users",
        names,
        "-k",
        4,
        "--exclude",
        f"{kind}.csv",
        "--out",
        tmp_path / "list.csv",
    )
    assert here(*arguments) == (0, f"The list: {tmp_path / 'list.csv'}\n", "")
    rows = read_csv(tmp_path / "list.csv")
    assert [(row["user"], int(row["rank"]), row["item"]) for row in rows] == [
        (str(row.user), row.rank, str(row.item)) for row in wanted.itertuples()
    ]
    for column in ("logit", "probability"):
        assert [float(row[column]) for row in rows] == pytest.approx(wanted[column].tolist())

    code, _, errors = here("assess", f"{kind}.csv", "--predictions", f"mine={out}", *GIVEN, "--out", tmp_path / "page")
    assert (code, errors) == (0, "")
    shown = json.loads((tmp_path / "page" / "summary.json").read_text())["recommenders"]["mine"]["ome-dr"]["value"]
    estimates = vr.estimate(own.predictions, log, propensities=propensities, noise_rates=RATES, estimators="ome-dr")
    assert shown == pytest.approx(estimates["ome-dr"].value)


def test_training_says_nothing_on_stderr_where_there_is_no_terminal(run, folder, tmp_path):
    assert run("train", folder / "strings.csv", "--method", "mf", "--out", tmp_path, *QUICK)[2] == ""


# The models are judged on rows that they were trained on.
@pytest.mark.filterwarnings("ignore::verirec.exceptions.TrainedRowsWarning")
def test_tables_are_shown_where_no_file_is_asked_for(here, model):
    code, output, errors = here("recommend", model, "--users-file", "users.txt", "-k", 2)
    assert (code, errors) == (0, "")
    assert re.findall(r"(u\d\d) *│ (\d)", output) == [("u01", "1"), ("u01", "2"), ("u02", "1"), ("u02", "2")]
    code, output, errors = here("evaluate", model, "test_strings.csv")
    assert (code, errors) == (0, "")
    assert {"auc", "ndcg@5", "recall@5", "log_loss"} <= set(output.split())


def test_a_log_of_other_columns_can_be_left_out(here, model, folder):
    options = ("--user", "who", "--item", "what")
    code, output, errors = here("recommend", model, "--users", "u01", "-k", 3, "--exclude", "other.csv", *options)
    assert (code, errors) == (0, "")
    rated = {row["item"] for row in read_csv(folder / "strings.csv") if row["user"] == "u01"}
    found = re.findall(r"i\d\d", output)
    assert len(found) == 3
    assert rated.isdisjoint(found)


def test_pairs_are_left_out_whatever_they_were_rated_and_however_often(here, model, folder, tmp_path):
    rated = [
        (row["user"], row["item"], stars)
        for row in read_csv(folder / "strings.csv")
        for stars in (2, 3 * int(row["label"]) + 1)
    ]
    write_csv(tmp_path / "twice.csv", ["user", "item", "rating"], *zip(*rated, strict=True))
    write_csv(tmp_path / "pairs.csv", ["user", "item"], *list(zip(*rated, strict=True))[:2])
    prepared = (
        "prepare",
        tmp_path / "twice.csv",
        "--positive-from",
        4,
        "--duplicates",
        "last",
        "--out",
        tmp_path / "log",
    )
    assert here(*prepared)[0] == 0
    lists = [
        here("recommend", model, "--users", "u01", "-k", 3, "--exclude", given)
        for given in ("strings.csv", *(tmp_path / name for name in ("twice.csv", "pairs.csv", "log")))
    ]
    assert all(one == lists[0] and one[0] == 0 for one in lists)


def test_a_model_that_gives_all_users_the_same_list_is_said_to(here, folder, tmp_path):
    given = "train", "strings.csv", "--method", "mf", *QUICK, "--force", "--out", tmp_path / "model"
    assert "users that were looked at get the same 10 items" in here(*given, "--set", "penalty_factors=10")[1]
    own = "--set", "penalty_factors=0.0001", "--set", "epochs=50"
    assert "get the same" not in here(*given[:4], *own, *given[-3:])[1]


def test_noise_rates_may_come_from_an_audit(here, tmp_path, folder):
    arguments = ("strings.csv", "--method", "ome-ips", "--audit", "audit_strings.csv", "--out", tmp_path, *QUICK)
    assert here("train", *arguments)[0] == 0
    log = vr.read_log(folder / "strings.csv")
    audit = vr.AuditSample.from_file(folder / "audit_strings.csv", log)
    own = vr.methods.OMEIPS(epochs=5).fit(log, audit=audit, propensities=vr.LogisticPropensity().fit(log))
    rates = vr.load(tmp_path).noise_rates
    assert (rates.rho01, rates.rho10) == (own.noise_rates_.rho01, own.noise_rates_.rho10)
    assert 0 < rates.rho01 < 0.5


@pytest.mark.parametrize(
    ("given", "parameters"),
    [
        (("dim=3",), {"dim": 3}),
        (("learning_rate=1e-3", "constants=false"), {"learning_rate": 0.001, "constants": False}),
        (("constants=False", "patience=None"), {"constants": False, "patience": None}),
        (("patience=null", "model=constants"), {"patience": None, "model": "constants"}),
        (('model="ncf"', "loss=squared", "dim=2"), {"model": "ncf", "loss": "squared", "dim": 2}),
        (("dim=3", "dim=4"), {"dim": 4}),
        (("penalty_factors=.3", "learning_rate=1.E-2"), {"penalty_factors": 0.3, "learning_rate": 0.01}),
        (("batch_size=1e3", "penalty_users=5.", "dim=+2"), {"batch_size": 1_000, "penalty_users": 5.0, "dim": 2}),
    ],
    ids=str,
)
def test_parameters_are_read_as_json_or_as_text(here, tmp_path, given, parameters):
    sets = [part for one in given for part in ("--set", one)]
    code, _, errors = here("train", "strings.csv", "--method", "mf", "--out", tmp_path, *QUICK, *sets, "--seed", 4)
    assert (code, errors) == (0, "")
    found = vr.load(tmp_path).report.parameters
    assert {name: found[name] for name in parameters} == parameters
    assert (found["epochs"], found["random_state"]) == (5, 4)


def test_people_who_rated_nothing_have_a_list_and_a_word(here, tmp_path, folder):
    everyone = tmp_path / "all.txt"
    everyone.write_text("\n".join([*USERS["strings"], "new"]))
    out = tmp_path / "model"
    assert here("train", "strings.csv", "--method", "mf", "--out", out, *QUICK, "--all-users", everyone)[0] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, output, errors = here("recommend", out, "--users", "new", "-k", 2)
    assert code == 0
    assert re.fullmatch(r"verirec: warning: 1 of these users and 0 of these items had no ratings .*\n", errors)
    assert output.count("new") == 2


def test_the_methods_are_those_of_the_catalogue(here):
    code, output, errors = here("methods", "--json")
    assert (code, errors) == (0, "")
    shown = json.loads(output)
    assert [one["name"] for one in shown] == list(vr.methods.catalogue)
    assert {one["name"] for one in shown if one["corrects_noise"]} == {"ome", "ome-eib", "ome-ips", "ome-dr"}
    assert all(one["summary"] and one["paper"] for one in shown)
    table = here("methods")[1]
    assert all(name in table for name in vr.methods.catalogue)


@pytest.mark.parametrize("verb", ["train", "evaluate", "recommend", "methods"])
def test_the_help_has_an_example(here, verb):
    code, output, _ = here(verb, "--help")
    assert code == 0
    assert f"Example: verirec {verb} " in " ".join(output.split())


def test_the_logs_column_of_labels_is_never_taken_for_the_truth(here, tmp_path, folder):
    """A plan has both: what the log says, and what people said."""
    rows = read_csv(folder / "audit_strings.csv")
    said = {(row["user"], row["item"]): row["label"] for row in read_csv(folder / "strings.csv")}
    logged = [said[row["user"], row["item"]] for row in rows]
    columns = [[row[name] for row in rows] for name in ("user", "item", "true_label")]
    write_csv(tmp_path / "plan.csv", ["user", "item", "label", "true_label"], *columns[:2], logged, columns[2])
    for name, audit in (("short", "audit_strings.csv"), ("long", tmp_path / "plan.csv")):
        options = ("--rating", "label", "--audit", audit, "--out", tmp_path / name)
        assert here("train", "strings.csv", "--method", "ome-dr", *options, *QUICK)[0] == 0
    assert vr.load(tmp_path / "long").noise_rates.rho01 == vr.load(tmp_path / "short").noise_rates.rho01 > 0


def test_a_survey_puts_the_level_right(here, folder, tmp_path):
    out = tmp_path / "model"
    code, output, errors = here(
        "train", "strings.csv", "--method", "mf", "--survey", "survey.csv", "--out", out, *QUICK
    )
    assert (code, errors) == (0, "")
    assert re.search(r"^By the survey: slope \d\.\d\d, mean logit from -?\d\.\d\d to -?\d\.\d\d$", output, re.MULTILINE)
    log = vr.read_log(folder / "strings.csv")
    survey = vr.SurveySample.from_file(folder / "survey.csv", log)
    own = vr.methods.MF(epochs=5).fit(log, survey=survey, propensities=vr.LogisticPropensity().fit(log))
    assert vr.load(out).calibration == own.recommender_.calibration
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        more = ("--survey", "disliked.csv", "--out", tmp_path / "other", *QUICK)
        code, _, errors = here("train", "strings.csv", "--method", "mf", *more)
    assert code == 0
    assert re.fullmatch(r"verirec: warning: all \d+ surveyed pairs are disliked: they tell the level alone.*\n", errors)


def test_a_model_is_not_written_over_without_force(here, tmp_path, monkeypatch):
    arguments = ("train", "strings.csv", "--method", "mf", "--out", tmp_path / "model", *QUICK)
    assert here(*arguments)[0] == 0
    with monkeypatch.context() as patch:
        patch.setattr("verirec.read_log", lambda *_, **__: pytest.fail("the log was read"))
        code, output, errors = here(*arguments)
    assert (code, output) == (2, "")
    assert re.fullmatch(r"verirec: '.*model' holds a model already: name another folder, .* --force\n", errors)
    assert here(*arguments, "--force", "--seed", 3)[0] == 0
    assert vr.load(tmp_path / "model").report.parameters["random_state"] == 3


def test_workers_train_the_same_model_and_methods_that_they_cannot_are_refused(here, tmp_path):
    arguments = ("train", "strings.csv", "--method", "ips", "--set", "solver=sweep", *QUICK, "--out")
    assert here(*arguments, tmp_path / "here")[0] == 0
    assert here(*arguments, tmp_path / "there", "--engine", "processes", "--workers", 1)[0] == 0
    assert same_tensors(tmp_path / "here", tmp_path / "there")
    code, output, errors = here(
        "train", "strings.csv", "--method", "tdr", "--engine", "processes", "--out", tmp_path / "x"
    )
    assert (code, output, (tmp_path / "x" / "model.json").exists()) == (2, "", False)
    assert re.fullmatch(r"verirec: tdr is trained on one machine, --engine serial; on many workers: mf, .*\n", errors)


def test_an_address_that_does_not_answer_is_said_before_the_work(here, tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    code, output, errors = here(
        "train", "strings.csv", "--method", "ips", "--engine", f"ray:{address}", "--out", tmp_path / "x"
    )
    assert (code, output, (tmp_path / "x" / "model.json").exists()) == (2, "", False)
    assert re.fullmatch(rf"verirec: no Ray cluster answers at {address} \(.*\)\n", errors)


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_lists_of_all_users_are_written_by_their_ending(here, model, tmp_path, ending):
    file = tmp_path / f"list.{ending}"
    assert here("recommend", model, "--all-users", "-k", 2, "--out", file) == (0, f"The list: {file}\n", "")
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "json": pd.read_json}[ending]
    expected = vr.load(model).recommend(USERS["strings"], 2).to_frame()
    found = read(file)
    assert found.columns.tolist() == ["user", "rank", "item", "logit", "probability"]
    assert found["item"].tolist() == expected["item"].tolist()
    np.testing.assert_allclose(found["probability"], expected["probability"], rtol=1e-5)


def test_new_users_are_folded_in(here, model, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, output, errors = here("recommend", model, "--fold-in", "new.csv", "-k", 2)
    assert code == 0
    lines = errors.splitlines()
    assert re.fullmatch(r"verirec: warning: 1 of 3 ratings are of items that the model does not know .*", lines[0])
    assert re.fullmatch(r"verirec: warning: 1 of these users .* had no ratings .*", lines[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = vr.read_log(folder / "new.csv")
        expected = vr.load(model).fold_in(log).recommend(["new", "newer"], 2, exclude=log).to_frame()
    assert re.findall(r"(newer|new) *│ \d +│ (i\d\d)", output) == list(
        zip(expected["user"], expected["item"], strict=True)
    )


def test_features_that_the_model_does_not_look_at_are_said_to_be_unused(here, folder, tmp_path):
    files = ("--user-features", "people.csv", "--item-features", "things.csv")
    for more, said in ((("--set", "model=features"), False), ((), True)):
        given = ("train", "strings.csv", *files, "--method", "mf", *more, *QUICK, "--out", tmp_path / str(said))
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            errors = here(*given)[2]
        assert ("features are not looked at by" in errors) is said


def test_features_come_from_files_and_new_users_bring_theirs(here, folder, tmp_path):
    out, files = tmp_path / "model", ("--user-features", "people.csv", "--item-features", "things.csv")
    more = ("--set", "model=features", *QUICK)
    assert here("train", "strings.csv", "--method", "mf", "--out", out, *files, *more)[::2] == (0, "")
    log = vr.read_log(folder / "strings.csv", user_features=folder / "people.csv", item_features=folder / "things.csv")
    assert log.user_feature_names == ("age", "colour=blue", "colour=green", "colour=red")
    assert log.item_feature_names == ("tags=cheap", "tags=new")
    own = vr.methods.MF(model="features", epochs=5).fit(log, propensities=vr.LogisticPropensity().fit(log))
    assert same_tensors(out, own.save(tmp_path / "own"))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        new = ("--fold-in", "new.csv", "--user-features", "new_people.csv")
        code, _, errors = here("recommend", out, *new, "-k", 2)
    assert code == 0
    assert "verirec: warning: user_features has levels that were not there in training" in errors
    assert "colour=purple" in errors


# What is stopped goes on


LONG = [
    part
    for one in ("solver=gradient", "epochs=300", "batch_size=128", "patience=null", "dim=4")
    for part in ("--set", one)
]


@pytest.fixture(scope="module")
def long_log(tmp_path_factory):
    log = vr.simulate.world(50, 60, observed=0.25, noise_rates=RATES, random_state=5).log
    file = tmp_path_factory.mktemp("long") / "log.csv"
    write_csv(file, ["user", "item", "label"], log.users, log.items, log.labels)
    return file


def long_run(log, out):
    return ["train", str(log), "--method", "ome-dr", *map(str, GIVEN), "--out", str(out), *LONG]


@pytest.fixture(scope="module")
def uninterrupted(long_log, tmp_path_factory):
    """Give the model that the long run leaves when nothing stops it."""
    log = vr.read_log(long_log)
    method = vr.methods.OMEDR(solver="gradient", epochs=300, batch_size=128, patience=None, dim=4)
    method.fit(log, noise_rates=RATES, propensities=vr.LogisticPropensity().fit(log))
    return method.save(tmp_path_factory.mktemp("uninterrupted"))


AFTER_EPOCH = """
import os, signal, sys
def killed(epoch):
    import verirec as vr
    fit = vr.methods.OMEDR.fit
    def stop(done, epochs, value):
        if done == epoch:
            os.kill(os.getpid(), signal.SIGKILL)
    vr.methods.OMEDR.fit = lambda self, log, **options: fit(self, log, **options | {"progress": stop})
killed(%d)
"""


@pytest.mark.parametrize("epoch", [1, 137], ids=["before any checkpoint", "after one"])
def test_a_killed_run_goes_on_to_the_same_bits(run, spawn, long_log, uninterrupted, tmp_path, epoch):
    out = tmp_path / "out"
    assert spawn(*long_run(long_log, out), start=AFTER_EPOCH % epoch)[0] == -signal.SIGKILL
    checkpoint = out / "checkpoint.safetensors"
    assert not (out / FACTS).exists()
    assert checkpoint.exists() == (epoch > 1)
    if epoch > 1:
        assert 0 < read_tensors(checkpoint)[1]["done"] <= epoch
    assert run(*long_run(long_log, out), "--resume")[0] == 0
    assert same_tensors(out, uninterrupted)
    assert vr.load(out).report.history == vr.load(uninterrupted).report.history
    assert not checkpoint.exists()


def done_of(folder):
    """How many epochs a checkpoint has."""
    return read_tensors(folder / "checkpoint.safetensors")[1]["done"]


@pytest.fixture
def stopped(monkeypatch, here, tmp_path):
    """Leave a checkpoint, as Ctrl-C does."""
    from verirec.methods.base import Method

    fit = Method.fit

    def interrupted(self, log, **options):
        def stop(epoch, epochs, value):
            if epoch >= 3:
                raise KeyboardInterrupt

        return fit(self, log, **options | {"progress": stop})

    with monkeypatch.context() as patch:
        patch.setattr(Method, "fit", interrupted)
        code, output, errors = here(
            "train", "strings.csv", "--method", "mf", "--out", tmp_path, "--set", "epochs=70", "--set", "patience=null"
        )
    assert (code, output, errors.splitlines()[-1]) == (
        130,
        "",
        f"verirec: stopped; --resume goes on from epoch {done_of(tmp_path)}",
    )
    assert (tmp_path / "checkpoint.safetensors").exists()
    return tmp_path


def test_a_checkpoint_of_other_parameters_is_not_gone_on_from(here, stopped):
    code, _, errors = here("train", "strings.csv", "--method", "mf", "--out", stopped, "--set", "epochs=80", "--resume")
    assert code == 2
    assert re.fullmatch(r"verirec: .*checkpoint.safetensors is of another run: .*\n", errors)


def test_a_damaged_checkpoint_is_told_in_one_line(here, stopped):
    file = stopped / "checkpoint.safetensors"
    file.write_bytes(file.read_bytes()[:-7])
    code, _, errors = here(
        *("train", "strings.csv", "--method", "mf", "--out", stopped, "--set", "epochs=70"),
        *("--set", "patience=null", "--resume"),
    )
    assert code == 2
    assert re.fullmatch(r"verirec: .*checkpoint.safetensors: not a file of verirec's, or a damaged one .*\n", errors)


def test_what_a_stopped_run_left_is_begun_anew_by_force_alone(here, stopped):
    again = "train", "strings.csv", "--method", "mf", "--out", stopped, *QUICK
    left = (stopped / "checkpoint.safetensors").read_bytes()
    code, output, errors = here(*again)
    assert (code, output) == (2, "")
    told = "has what a stopped run left: --resume goes on from it, --force begins anew"
    assert re.fullmatch(rf"verirec: '.*' {told}\n", errors)
    assert (stopped / "checkpoint.safetensors").read_bytes() == left
    code, _, errors = here(*again, "--force")
    assert (code, errors) == (0, "")
    assert len(vr.load(stopped).report.history) == 5
    assert not (stopped / "checkpoint.safetensors").exists()


# Mistakes


TRAIN_MISTAKES = [
    (("strings.csv", "--method", "nope"), "--method must be one of akb-dr, .*tdr; got 'nope'"),
    (("strings.csv", "--set", "nope=1"), "MF has no parameter 'nope'; it has model, dim, "),
    (("strings.csv", "--set", "dim"), "--set must be NAME=VALUE; got 'dim'"),
    (("strings.csv", "--set", "=3"), "--set must be NAME=VALUE; got '=3'"),
    (("strings.csv", "--set", "dim=-1"), "dim must be .*; got -1"),
    (("strings.csv", "--set", "dim=2.5"), "dim must be .*; got 2.5"),
    (("strings.csv", "--set", "epochs=0"), "epochs must be .*; got 0"),
    (("strings.csv", "--set", "learning_rate=fast"), "learning_rate must be .*fast"),
    (("strings.csv", "--set", "penalty_factors=NaN"), "penalty_factors must be .*nan"),
    (("strings.csv", "--set", "validation=1"), "validation must be .*; got 1"),
    (("strings.csv", "--set", "loss=hinge"), "loss must be one of log, squared; got 'hinge'"),
    (("strings.csv", "--set", "model=deep"), "model must be \"mf\", .*; got 'deep'"),
    (("strings.csv", "--set", "model=[1]"), 'model must be "mf", '),
    (("strings.csv", "--set", "device=nowhere"), "device.*nowhere"),
    (("strings.csv", "--set", "validation_estimator=nope"), "validation_estimator must be one of "),
    (("strings.csv", "--set", "validation_estimator=ome-dr"), "ome-dr.* needs noise_rates or an audit"),
    (("ones.csv",), "both classes"),
    (("nope.csv",), "no file 'nope.csv'"),
    (("strings.csv", "--rho01", 0.6, "--rho10", 0.5), "rho01 [+] rho10 must be below 1"),
    (("strings.csv", "--rho01", 0.2), "--rho01 and --rho10 go together; give both"),
    (("strings.csv", *GIVEN, "--audit", "audit_strings.csv"), "give --rho01 and --rho10, or --audit"),
    (("strings.csv", "--audit", "nope.csv"), "no file 'nope.csv'"),
    (("strings.csv", "--survey", "nope.csv"), "no file 'nope.csv'"),
    (("strings.csv", "--user-features", "nope.csv"), "no file 'nope.csv'"),
    (("strings.csv", "--user-features", "things.csv"), "things.csv, must have the id column 'user'; it has item, tags"),
    (("strings.csv", "--user-features", "some_people.csv"), "column 'user' has ids that user_features lacks"),
    (("strings.csv", "--user-features", "odd_people.csv"), "'age' must hold numbers, as most .* has 'old'"),
    (("strings.csv", "--survey", "strange.csv"), "strange.csv: "),
    (("strings.csv", "--audit", "audit_integers.csv"), "audit_integers.csv: "),
    (("strings.csv", "--propensity", "nope"), "--propensity must be one of"),
    (("strings.csv", "--rating", "nope"), "nope"),
    (("other.csv", "--user", "who", "--item", "what"), "--positive-from"),
    (("strings.csv", "--seed", -1), "seed"),
]


@pytest.mark.parametrize(("arguments", "message"), TRAIN_MISTAKES, ids=[message[:40] for _, message in TRAIN_MISTAKES])
def test_a_mistake_in_training_is_one_line_and_leaves_no_model(here, tmp_path, arguments, message):
    method = () if "--method" in arguments else ("--method", "mf")
    code, output, errors = here("train", *arguments, *method, "--out", tmp_path / "out")
    assert (code, output) == (2, "")
    assert re.fullmatch(rf"verirec: .*{message}.*\n", errors), errors
    assert not (tmp_path / "out" / FACTS).exists()


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("r-mf", "beta=x"),
        ("lcd-mf", "memory=x"),
        ("cvib", "alpha=x"),
        ("cvib", "gamma=x"),
        ("mr", "imputation_penalty=x"),
    ],
)
def test_a_parameter_of_a_method_that_is_no_number_is_told_in_one_line(here, tmp_path, method, given):
    code, _, errors = here("train", "strings.csv", "--method", method, "--out", tmp_path, *QUICK, "--set", given)
    assert (code, errors.count("\n")) == (2, 1)


@pytest.mark.parametrize("place", ["taken", "taken/below"])
def test_a_folder_that_cannot_be_is_told_before_any_work(here, folder, monkeypatch, place):
    monkeypatch.setattr("verirec.read_log", lambda *_, **__: pytest.fail("the log was read"))
    code, output, errors = here("train", "strings.csv", "--method", "mf", "--out", place)
    assert (code, output) == (2, "")
    assert re.fullmatch(r"verirec: .*taken.*\n", errors)
    assert (folder / "taken").read_text() == "mine"


def test_options_are_checked_before_any_work(here, monkeypatch, tmp_path):
    monkeypatch.setattr("verirec.read_log", lambda *_, **__: pytest.fail("the log was read"))
    for arguments in (("--method", "nope"), ("--method", "mf", "--set", "nope=1"), ("--method", "mf", "--rho01", 0.2)):
        assert here("train", "strings.csv", *arguments, "--out", tmp_path / "out")[0] == 2
        assert not (tmp_path / "out").exists()


RECOMMEND_MISTAKES = [
    (("--users", "nobody"), "users are not all in the catalogue: .*'nobody'"),
    (("--users", "u01,,nobody"), "users are not all in the catalogue: .*'nobody'"),
    (("--users", ","), "no user was named"),
    (("--users-file", "empty.txt"), "no user was named"),
    (("--users-file", "nope.txt"), "nope.txt"),
    (("--users", "u01", "-k", 1_000), "k must be at most the number of items, .*; got 1,000"),
    (("--users", "u01", "-k", 0), "k"),
    ((), "give --users, --users-file, --all-users or --fold-in"),
    (("--users", "u01", "--users-file", "users.txt"), "give --users, --users-file, --all-users or --fold-in"),
    (("--users", "u01", "--all-users"), "give --users, --users-file, --all-users or --fold-in"),
    (("--fold-in", "nope.csv"), "no file 'nope.csv'"),
    (("--users", "u01", "--user-features", "people.csv"), "--user-features are those of the users of --fold-in"),
    (("--fold-in", "new.csv", "--user-features", "things.csv"), "things.csv, must have the id column 'user'"),
    (("--fold-in", "strange.csv"), r"the model knows none of the 2 ratings' items .first: 'x'"),
    (("--fold-in", "integers.csv"), "integers .* where the catalogue has strings"),
    (("--fold-in", "strings.csv", "--users", "nobody"), "users are not all in the catalogue: .*'nobody'"),
    (("--users", "u01", "--out", "list.xlsx"), "a table must end in .csv, .parquet or .json; got 'list.xlsx'"),
    (("--users", "u01", "--exclude", "nope.csv"), "no file 'nope.csv'"),
    (("--users", "u01", "--exclude", "other.csv"), "other.csv: cannot tell which column is the user"),
    (("--users", "u01", "--exclude", "integers.csv"), "integers .* where the catalogue has strings"),
    (("--users", "u01", "--out", "taken/list.csv"), "taken"),
    (("--users", "u01", "--out", "nothing"), "nothing"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), RECOMMEND_MISTAKES, ids=[message[:40] for _, message in RECOMMEND_MISTAKES]
)
def test_a_mistake_in_recommending_is_one_line(here, model, arguments, message):
    code, output, errors = here("recommend", model, *arguments)
    assert (code, output) == (2, "")
    assert re.fullmatch(rf"verirec: .*{message}.*\n", errors), errors


def test_a_users_file_that_is_not_utf_8_is_told_in_one_line(here, model):
    code, _, errors = here("recommend", model, "--users-file", "latin.txt")
    assert (code, errors.count("\n")) == (2, 1)


def test_whole_number_ids_must_be_such(here, tmp_path):
    assert here("train", "integers.csv", "--method", "mf", "--out", tmp_path, *QUICK)[0] == 0
    expected = "verirec: the model's users are whole numbers; got 'ann'\n"
    assert here("recommend", tmp_path, "--users", "101,ann") == (2, "", expected)


EVALUATE_MISTAKES = [
    (("nope.csv",), "no file 'nope.csv'"),
    (("integers.csv",), "integers .* where the catalogue has strings"),
    (("other.csv", "--user", "who", "--item", "what"), "--positive-from"),
    (("strings.csv", "-k", 0), "k"),
    (("audit_strings.csv",), "cannot tell which column is the rating"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), EVALUATE_MISTAKES, ids=[message[:40] for _, message in EVALUATE_MISTAKES]
)
def test_a_mistake_in_evaluating_is_one_line(here, model, arguments, message):
    code, output, errors = here("evaluate", model, *arguments)
    assert (code, output) == (2, "")
    assert re.fullmatch(rf"verirec: .*{message}.*\n", errors), errors


@pytest.mark.filterwarnings("ignore::verirec.exceptions.TrainedRowsWarning")
def test_rows_that_the_model_does_not_know_are_left_out_with_a_word(here, model, folder, tmp_path):
    rows = read_csv(folder / "test_strings.csv")
    columns = [[row[name] for row in rows] for name in ("user", "item", "label")]
    columns[0][:2] = ["stranger", "another"]
    write_csv(tmp_path / "more.csv", ["user", "item", "label"], *columns)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, output, errors = here("evaluate", model, tmp_path / "more.csv", "--json")
    assert code == 0
    assert re.match(r"verirec: warning: 2 of .* left out\n", errors)
    write_csv(tmp_path / "fewer.csv", ["user", "item", "label"], *(column[2:] for column in columns))
    assert json.loads(here("evaluate", model, tmp_path / "fewer.csv", "--json")[1]) == json.loads(output)
    columns[0] = ["stranger"] * len(rows)
    columns[1] = [f"i{row}" for row in range(1_000, 1_000 + len(rows))]
    write_csv(tmp_path / "strange.csv", ["user", "item", "label"], *columns)
    code, _, errors = here("evaluate", model, tmp_path / "strange.csv")
    assert code == 2
    assert re.fullmatch(r"verirec: the model knows none of the .* test pairs' users and items\n", errors)


def tampered_text(folder):
    text = (folder / FACTS).read_text()
    (folder / FACTS).write_text(text.replace('"ome-dr"', '"mf"'))


def tampered_tensors(folder):
    content = bytearray((folder / TENSORS).read_bytes())
    content[-1] ^= 1
    (folder / TENSORS).write_bytes(bytes(content))


def cut_short(folder):
    (folder / TENSORS).write_bytes((folder / TENSORS).read_bytes()[:-10])


def without_tensors(folder):
    (folder / TENSORS).unlink()


def without_facts(folder):
    (folder / FACTS).unlink()


def newer(folder):
    from verirec.training import checkpoints

    tensors, facts = read_tensors(folder / TENSORS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "FORMAT", 99)
        write_tensors(folder / TENSORS, tensors, facts)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (tampered_text, "changed after it was written"),
        (tampered_tensors, "changed after it was written"),
        (cut_short, "a damaged one"),
        (without_tensors, "there is no such file"),
        (without_facts, "is no model folder: it has no model.json"),
        (newer, "written by a newer verirec"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
@pytest.mark.parametrize("verb", ["evaluate", "recommend", "assess"])
def test_a_model_that_is_none_is_told_in_one_line(here, model, tmp_path, damage, message, verb):
    copy = tmp_path / "model"
    shutil.copytree(model, copy)
    damage(copy)
    arguments = {
        "evaluate": (copy, "test_strings.csv"),
        "recommend": (copy, "--users", "u01"),
        "assess": ("strings.csv", "--predictions", f"mine={copy}", *GIVEN, "--out", tmp_path / "page"),
    }
    code, output, errors = here(verb, *arguments[verb])
    assert (code, output) == (2, "")
    assert re.fullmatch(rf"verirec: .*{message}.*\n", errors), errors


@pytest.mark.parametrize("place", ["nowhere", "nothing", "taken"])
def test_a_folder_that_is_no_model_is_said_to_be_none(here, place):
    code, output, errors = here("evaluate", place, "test_strings.csv")
    assert (code, output, errors) == (2, "", f"verirec: {place} is no model folder: it has no model.json\n")


# Without torch


TORCHLESS = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Without())
"""


def test_without_torch_the_command_names_the_extra(spawn, folder, tmp_path):
    code, output, errors = spawn(
        "train", folder / "strings.csv", "--method", "mf", "--out", tmp_path / "out", start=TORCHLESS
    )
    assert (code, output, errors) == (2, "", "verirec: training needs torch: pip install 'verirec[train]'\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("before", ["", TORCHLESS], ids=["with torch", "without"])
def test_all_but_training_takes_no_torch(python, before):
    names = "import sys, verirec as vr; [getattr(vr, name) for name in vr.__all__]; assert 'torch' not in sys.modules"
    python(f"{before}\n{names}")


def test_a_finished_model_is_not_trained_over_by_resuming(here, tmp_path):
    out = tmp_path / "model"
    assert here("train", f"{KINDS[0]}.csv", "--method", "mf", "--out", out, *QUICK)[0] == 0
    code, _, errors = here("train", f"{KINDS[0]}.csv", "--method", "ome-dr", *GIVEN, "--out", out, *QUICK, "--resume")
    assert code == 2
    assert "holds a finished model and no checkpoint: there is nothing to resume" in errors
    assert vr.load(out).report.method == "mf"


# tune


def test_a_stopped_search_says_how_many_trials_it_goes_on_from(run, folder, tmp_path, monkeypatch):
    given = ("tune", folder / "strings.csv", "--method", "mf", *QUICK, "--trials", 3, "--folds", 2, "--out", tmp_path)
    judged = Search._judged

    def stopping(self, *given):
        if len(self.trials) == 2:
            raise KeyboardInterrupt
        return judged(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Search, "_judged", stopping)
        assert run(*given)[::2] == (130, "verirec: stopped; --resume goes on from 2 finished trials\n")
    assert "has what a stopped run left" in run(*given)[2]
    assert run(*given, "--resume")[0] == 0


def test_a_stop_before_the_first_checkpoint_is_only_a_stop(here, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("verirec.methods.base.prepare", stop)
    assert here("train", "strings.csv", "--method", "mf", "--out", tmp_path)[::2] == (130, "verirec: stopped\n")


def test_tune_keeps_a_model_that_is_there(run, folder, tmp_path):
    given = ("tune", folder / "strings.csv", "--trials", 1, "--folds", 2, "--out", tmp_path / "tuned")
    assert run(*given)[0] == 0
    code, _, errors = run(*given)
    assert (code, "holds a model already" in errors) == (2, True)
    assert run(*given, "--force")[0] == 0


def test_tune_searches_and_lists_what_it_tried(run, folder, tmp_path):
    out = tmp_path / "tuned"
    code, output, errors = run("tune", folder / "strings.csv", "--trials", 3, "--folds", 2, "--out", out)
    assert (code, errors) == (0, "")
    assert "Tried 3 (after 3 trials), judged by 1 - AUC of held-out rows, 2 folds" in output
    assert "penalty_users" in output
    assert len(vr.load(out).report.search["trials"]) == 3
    assert sorted(file.name for file in out.iterdir()) == [FACTS, TENSORS]


def test_tune_takes_any_method_and_train_takes_auto(run, folder, tmp_path):
    given = (folder / "strings.csv", *GIVEN)
    code, output, _ = run(
        "tune", *given, "--method", "ome-dr", *QUICK, "--trials", 2, "--folds", 2, "--out", tmp_path / "one"
    )
    assert code == 0
    assert "The best is better than where it started by" in output
    code, output, _ = run(
        "train", *given, "--method", "auto", "--set", "trials=2", "--set", "folds=2", "--out", tmp_path / "two"
    )
    assert code == 0
    assert "Chosen: mf: model constants" in output
    assert (
        "\nChosen by held-out rows of the log, which people chose to rate: only a survey of random pairs can" in output
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--trials", 0), "trials must be a whole number from 1"),
        (("--seconds", 0), "seconds must be"),
        (("--method", "mf", "--trials", 0), "trials must be a whole number"),
        (("--objective", "fame"), "objective must be one of"),
    ],
)
def test_tune_refuses_in_one_line(run, folder, tmp_path, more, message):
    code, _, errors = run("tune", folder / "strings.csv", *more, "--out", tmp_path / "no")
    assert code == 2
    assert message in errors
    assert errors.count("\n") == 1


def test_a_cache_folder_that_cannot_be_written_costs_one_line(spawn, folder, tmp_path):
    pytest.importorskip("numba")
    (tmp_path / "cache").write_text("a file")
    made = ("--method", "mf", "--out", tmp_path / "model", "--set", "solver=sweep", *QUICK)
    code, _, errors = spawn("train", folder / "strings.csv", *made, VERIREC_CACHE=tmp_path / "cache")
    assert code == 0
    place = str(tmp_path / "cache" / "kernels" / vr.__version__)
    assert errors.splitlines() == [
        f"verirec: warning: compiled functions cannot be kept in {place!r} "
        "(Not a directory): each process compiles them again; $VERIREC_CACHE names another folder"
    ]
