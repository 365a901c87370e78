"""verirec assess and plan: a plan, filled in, comes back as rates; mistakes are told in one line."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

import verirec as vr
from parsed_page import Page, check_estimates_table
from verirec.assessment import assess, assessment_summary, conclusions
from verirec.exceptions import UnknownIdWarning
from verirec.pages.writing import write_table
from verirec.sole_writer import check_writable

RATES = vr.NoiseRates(0.2, 0.1)
SHAPE = (150, 200)
FILES = {"report.html", "summary.json"}


def write_csv(file, names, *columns):
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows([names, *zip(*columns, strict=True)])


def read_csv(file):
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.2, selectivity=1, noise_rates=RATES, random_state=3)


def ids_of(kind):
    """Ids of users and items; odd ones start as formulas do."""
    if kind == "plain":
        return [f"u{user:03d}" for user in range(SHAPE[0])], [10 * item for item in range(SHAPE[1])]
    starts = ("=cmd|", "@sum ", "+", "-", "'", 'a, "b" ', "")
    return (
        [f"{starts[user % len(starts)]}{user}x" for user in range(SHAPE[0])],
        [f"{starts[item % len(starts)]}i{item}" for item in range(SHAPE[1])],
    )


def write_log(file, world, kind):
    users, items = ids_of(kind)
    log = world.log
    write_csv(file, ["user", "item", "label"], [users[u] for u in log.users], [items[i] for i in log.items], log.labels)


def random_uniforms(count):
    return np.random.default_rng(0).random(count)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, world):
    place = tmp_path_factory.mktemp("assess")
    for kind in ("plain", "odd"):
        write_log(place / f"{kind}.csv", world, kind)
    users, items = ids_of("plain")
    log = world.log
    sharp, blunt = 0.1 + 0.8 * world.preferences, 0.4 + 0.2 * world.preferences
    np.save(place / "sharp.npy", sharp)
    np.save(place / "blunt.npy", blunt)
    rows = np.arange(2_000)
    pairs = [users[u] for u in log.users[rows]], [items[i] for i in log.items[rows]]
    write_csv(place / "part.csv", ["user", "item", "score"], *pairs, sharp[log.users[rows], log.items[rows]])
    truth = world.at(log.users[:300], log.items[:300]).true_labels
    names = ["user", "item", "true_label"]
    write_csv(place / "labels.csv", names, *(column[:300] for column in pairs), truth)
    logged = np.arange(1_500)
    again = RATES.observe(world.at(log.users[logged], log.items[logged]).true_labels, random_uniforms(1_500))
    write_csv(place / "reask.csv", ["user", "item", "answer"], *(column[:1_500] for column in pairs), again)
    write_csv(place / "strange.csv", names, ["nobody", *pairs[0][1:300]], pairs[1][:300], truth)
    write_csv(place / "twos.csv", names, *(column[:300] for column in pairs), truth + 1)
    write_csv(place / "empty.csv", names, *(column[:300] for column in pairs), [""] * 300)
    write_csv(place / "ones.csv", ["user", "item", "label"], *pairs, [1] * 2_000)
    (place / "broken.npy").write_bytes(b"nothing of the kind")
    (place / "taken").write_text("mine")
    small = vr.simulate.world(60, 50, observed=0.2, random_state=0)
    write_csv(place / "small.csv", [*names[:2], "label"], small.log.users, small.log.items, small.log.labels)
    return place


@pytest.fixture
def assessing(run, folder, tmp_path, monkeypatch):
    """Run `verirec assess` among the files, into a new folder; give (exit code, output, errors)."""

    def assessing(*arguments, out=tmp_path / "out"):
        monkeypatch.chdir(folder)
        return run("assess", *arguments, "--out", out)

    return assessing


@pytest.fixture
def plan(run, folder, tmp_path, monkeypatch):
    """Run `verirec plan` among the files."""

    def plan(*arguments, out=tmp_path / "plan.csv"):
        monkeypatch.chdir(folder)
        return run("plan", *arguments, "--out", out)

    return plan


def summary_in(folder):
    return json.loads((folder / "summary.json").read_text())


BOTH = ("--predictions", "sharp=sharp.npy", "--predictions", "blunt=blunt.npy")
GIVEN = ("--rho01", 0.2, "--rho10", 0.1)


# assess


def test_it_writes_page_and_summary_with_the_figures_of_the_python_call(assessing, tmp_path, folder):
    code, output, errors = assessing("plain.csv", *BOTH, *GIVEN)
    assert (code, errors) == (0, "")
    assert {file.name for file in (tmp_path / "out").iterdir()} == FILES
    log = vr.read_log(folder / "plain.csv")
    given = {name: vr.read_predictions(folder / f"{name}.npy", log) for name in ("sharp", "blunt")}
    found = assess(log, given, noise_rates=RATES, propensities=vr.LogisticPropensity().fit(log))
    summary = summary_in(tmp_path / "out")
    assert summary == json.loads(json.dumps(assessment_summary(found)))
    check_estimates_table(Page((tmp_path / "out" / "report.html").read_text()).tables["estimates"], summary)
    assert output == "".join(f"- {one}\n" for one in conclusions(found)) + f"The page: {tmp_path}/out/report.html\n"


def test_second_answers_give_noise_rates_and_no_true_labels(assessing, tmp_path):
    code, _, errors = assessing("plain.csv", *BOTH, "--reask", "reask.csv")
    assert code == 0, errors
    summary = summary_in(tmp_path / "out")
    assert summary["noise_rates"]["source"] == "second answers to 1,500 pairs"
    assert {one["basis"] for one in summary["verdicts"]} == {"range"}
    assert not any("audited-dr" in one for one in summary["recommenders"].values())


def test_the_summary_has_the_schema_of_the_interface(assessing, tmp_path):
    assessing("plain.csv", *BOTH, "--audit", "labels.csv")
    summary = summary_in(tmp_path / "out")
    assert {"truth", "noise_rates", "propensity", "recommenders"} <= set(summary)
    assert summary["truth"] is None
    assert summary["noise_rates"]["source"] == "an audit of 300 pairs"
    assert set(summary["recommenders"]) == {"sharp", "blunt"}
    for recommender in summary["recommenders"].values():
        for name, one in recommender.items():
            assert one["low"] <= one["high"]
            assert (one["value"] is None) == (name == "range")
    assert {one["estimator"] for one in summary["headline"].values()} == {"range"}
    assert [(one["established"], one["basis"]) for one in summary["verdicts"]] == [(False, "range")]


def test_without_true_labels_it_says_how_many_to_ask_about(assessing, tmp_path):
    code, output, errors = assessing("plain.csv", *BOTH)
    assert (code, errors) == (0, "")
    (asked,) = re.findall(r"A survey of ([\d,]+) pairs, chosen by verirec plan", output)
    assert int(asked.replace(",", "")) == summary_in(tmp_path / "out")["pairs_to_ask_about"] > 10
    assert summary_in(tmp_path / "out")["recommenders"]["sharp"]["ome-dr"]["value"] is None


def test_it_works_without_recommenders(assessing, tmp_path):
    assert assessing("plain.csv", *GIVEN)[0] == 0
    assert summary_in(tmp_path / "out")["recommenders"] == {}


def test_predictions_of_some_rows_are_said_to_be_such(assessing, tmp_path):
    assert assessing("plain.csv", "--predictions", "part=part.csv", *GIVEN)[0] == 0
    text = Page((tmp_path / "out" / "report.html").read_text()).text
    assert "The predictions of part cover some of the logged pairs, 2,000 of" in text


# Neither knows that some users rate more than others.
@pytest.mark.filterwarnings("ignore::verirec.exceptions.MisfitWarning")
@pytest.mark.parametrize("propensity", ["constant", "popularity"])
def test_the_propensities_are_those_asked_for(assessing, tmp_path, folder, propensity):
    assert assessing("plain.csv", "--predictions", "sharp=sharp.npy", *GIVEN, "--propensity", propensity)[0] == 0
    model = {"constant": vr.ConstantPropensity, "popularity": vr.PopularityPropensity}[propensity]
    log = vr.read_log(folder / "plain.csv")
    alone = vr.estimate(
        np.load(folder / "sharp.npy"), log, propensities=model().fit(log), noise_rates=RATES, estimators="ome-dr"
    )
    assert summary_in(tmp_path / "out")["recommenders"]["sharp"]["ome-dr"] == alone["ome-dr"].to_dict()


def test_the_same_seed_writes_the_same_bytes(assessing, tmp_path):
    for name in ("one", "again"):
        assessing("plain.csv", "--audit", "labels.csv", out=tmp_path / name)
    for file in FILES:
        one, again = ((tmp_path / name / file).read_text() for name in ("one", "again"))
        # The foot says which command was run, and that names the folder.
        assert one.replace("/one", "/again") == again


@pytest.mark.parametrize("name", ["[red]x[/red]", "[/x]", "a b"])
def test_a_name_is_printed_as_it_is(assessing, name):
    code, output, _ = assessing("plain.csv", "--predictions", f"{name}=sharp.npy", *BOTH[2:], *GIVEN)
    assert code == 0
    assert f"for {name} and between" in output


def test_a_small_log_without_true_labels_is_assessed_too(assessing, tmp_path):
    """589 rows."""
    assert assessing("small.csv")[0] == 0
    assert {file.name for file in (tmp_path / "out").iterdir()} == FILES


def test_a_name_that_is_no_unicode_is_told_in_one_line(assessing):
    code, _, errors = assessing("plain.csv", "--predictions", "\udcff=sharp.npy", *GIVEN)
    assert code in (0, 2)
    assert errors.count("\n") <= 1


@pytest.mark.filterwarnings("default")
def test_a_name_in_another_script_is_no_reason_for_noise(assessing):
    code, _, errors = assessing("plain.csv", "--predictions", "推荐=sharp.npy", *GIVEN)
    assert (code, errors) == (0, "")


# Mistakes


MISTAKES = [
    (("plain.csv", "--rho01", 0.2), "--rho01 and --rho10 go together; give both"),
    (("plain.csv", "--rho01", 0.6, "--rho10", 0.5), "rho01 + rho10 must be below 1"),
    (("plain.csv", "--rho01", -0.1, "--rho10", 0.5), "rho01 must be a number of at least 0"),
    (("plain.csv", "--rho01", "nan", "--rho10", 0.5), "rho01 must be a number of at least 0"),
    (("plain.csv", *GIVEN, "--audit", "labels.csv"), "give --rho01 and --rho10, or --audit"),
    (("nope.csv", *GIVEN), "no file 'nope.csv'"),
    (("plain.csv", *GIVEN, "--predictions", "x=nope.npy"), "nope.npy"),
    (("plain.csv", *GIVEN, "--predictions", "x=broken.npy"), "broken.npy"),
    (("plain.csv", *GIVEN, "--predictions", "sharp.npy"), "--predictions must be NAME=FILE"),
    (("plain.csv", *GIVEN, "--predictions", "=sharp.npy"), "--predictions must be NAME=FILE"),
    (("plain.csv", *GIVEN, *BOTH, *BOTH), "--predictions names 'sharp' twice"),
    (("plain.csv", "--audit", "nope.csv"), "no file 'nope.csv'"),
    (("plain.csv", "--audit", "strange.csv"), "strange.csv: user is not in the log in 1 of 300 rows .*nobody"),
    (
        ("plain.csv", "--audit", "twos.csv"),
        "twos.csv: true_label must be 0 or 1, yes or no, .*where row 0 has 2",
    ),
    (("plain.csv", "--audit", "empty.csv"), "empty.csv has no row with a true_label"),
    (("odd.csv", *GIVEN, "--predictions", "x=part.csv"), "part.csv: user is not in the log"),
    (("ones.csv", *GIVEN), "both classes"),
    (("plain.csv", *GIVEN, "--propensity", "nope"), "--propensity must be one of"),
    (("plain.csv", *GIVEN, "--propensity", "logged"), "propensit"),
    (("plain.csv", *GIVEN, *BOTH, "--loss", "nope"), "loss must be"),
    (("plain.csv", *GIVEN, "--confidence", 1), "confidence must be"),
    (("plain.csv", *GIVEN, "--duplicates", "nope"), "duplicates must be"),
    (("plain.csv", *GIVEN, "--user", "nope"), "nope"),
    (("plain.csv", *GIVEN, *BOTH, "--clip", 0.9), "clip must be"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[message[:40] for _, message in MISTAKES])
def test_a_mistake_is_told_in_one_line_and_nothing_is_written(assessing, tmp_path, arguments, message):
    code, output, errors = assessing(*arguments)
    assert (code, output) == (2, "")
    assert re.fullmatch(rf"verirec: .*{message.replace('+', '[+]')}.*\n", errors), errors
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("mistake", [("--loss", "nope"), ("--clip", 0.9), ("--sample", 0)], ids=lambda one: one[0])
def test_a_mistake_in_an_option_is_told_without_recommenders_too(assessing, mistake):
    assert assessing("plain.csv", *GIVEN, *mistake)[0] == 2


@pytest.mark.parametrize("place", ["taken", "taken/below"])
def test_a_folder_that_cannot_be_is_told_before_any_work(assessing, folder, place, monkeypatch):
    monkeypatch.setattr("verirec.read_log", lambda *_, **__: pytest.fail("the log was read"))
    code, output, errors = assessing("plain.csv", *GIVEN, out=folder / place)
    assert (code, output) == (2, "")
    assert re.fullmatch(r"verirec: cannot write to '.*taken.*': .*\n", errors)
    assert (folder / "taken").read_text() == "mine"


def test_rates_and_options_are_checked_before_any_work(assessing, monkeypatch):
    monkeypatch.setattr("verirec.read_log", lambda *_, **__: pytest.fail("the log was read"))
    for arguments in (("--rho01", 0.2), (*GIVEN, "--audit", "labels.csv"), ("--propensity", "nope")):
        assert assessing("plain.csv", *arguments)[0] == 2


def test_checking_a_folder_makes_none(tmp_path):
    check_writable(tmp_path / "a" / "b")
    check_writable(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_out_is_needed(run, folder):
    code, output, errors = run("assess", folder / "plain.csv")
    assert (code, output) == (2, "")
    assert "--out" in errors


# Interruptions


@pytest.mark.parametrize("name", ["summary.json", "report.html"])
def test_ctrl_c_while_writing_leaves_no_half_report(assessing, tmp_path, monkeypatch, name):
    replace = Path.replace

    def interrupted(self, target):
        if Path(target).name == name:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    code, output, errors = assessing("plain.csv", *GIVEN)
    assert (code, output, errors) == (130, "", "verirec: stopped\n")
    assert not (tmp_path / "out").exists()


def test_ctrl_c_leaves_the_older_report(assessing, tmp_path, monkeypatch):
    assessing("plain.csv", *GIVEN)
    before = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("verirec.assessment.page.assessment_page", interrupted)
    assert assessing("plain.csv", "--rho01", 0.1, "--rho10", 0.1)[0] == 130
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == before


# plan


def test_a_plan_is_the_one_of_python(plan, tmp_path, folder):
    code, output, errors = plan("plain.csv", *GIVEN, "--half-width", 0.04, "--seed", 3)
    assert (code, errors) == (0, "")
    log = vr.read_log(folder / "plain.csv")
    alone = vr.plan_labels(log, half_width=0.04, guess=RATES, random_state=3)
    rows, frame = read_csv(tmp_path / "plan.csv"), alone.to_frame()
    assert list(rows[0]) == ["kind", "user", "item", "label", "true_label", "probability"]
    assert [row["user"] for row in rows] == frame["user"].tolist()
    assert [int(row["item"]) for row in rows] == frame["item"].tolist()
    assert {row["true_label"] for row in rows} == {""}
    assert {row["kind"] for row in rows} == {"logged"}
    assert f"{len(alone):,} pairs to ask about ({len(alone):,} logged) are in {tmp_path}/plan.csv" in output
    assert f"Chosen at random it would take {alone.simple:,}." in output
    assert (
        f"Expected half-widths: {alone.half_widths['rho01']:.3f} of rho01, {alone.half_widths['rho10']:.3f} of rho10"
        in output
    )


def test_a_plan_says_what_rates_it_was_made_for(plan, folder):
    assert ", if they are about 0.20 and 0.10.\n" in plan("plain.csv", *GIVEN, "--half-width", 0.05)[1]
    assumes = vr.plan_labels(vr.read_log(folder / "plain.csv"), half_width=0.05).assumes
    assert assumes.startswith("if they are at most ")
    assert f", {assumes}.\n" in plan("plain.csv", "--half-width", 0.05)[1]


def fill_in(file, world, kind, keep=lambda place: True):
    """Write the true labels into a plan, as people would, with a spreadsheet's apostrophes kept; give their number."""
    users, items = ids_of(kind)
    of_user, of_item = ({str(id_): place for place, id_ in enumerate(ids)} for ids in (users, items))

    def find(written, ids):
        return ids[written] if written in ids else ids[written.removeprefix("'")]

    rows, filled = read_csv(file), 0
    for place, row in enumerate(rows):
        if keep(place):
            user, item = find(row["user"], of_user), find(row["item"], of_item)
            row["true_label"] = int(world.at([user], [item]).true_labels[0])
            filled += 1
    write_csv(file, list(rows[0]), *zip(*(row.values() for row in rows), strict=True))
    return filled


@pytest.mark.parametrize("kind", ["plain", "odd"])
@pytest.mark.parametrize("part", ["all", "two thirds"])
def test_a_plan_that_was_filled_in_is_read_back(plan, assessing, tmp_path, world, kind, part):
    assert plan(f"{kind}.csv", *GIVEN, "--half-width", 0.03)[0] == 0
    keep = (lambda place: True) if part == "all" else (lambda place: place % 3 > 0)
    filled = fill_in(tmp_path / "plan.csv", world, kind, keep)
    assert (filled == len(read_csv(tmp_path / "plan.csv"))) == (part == "all")
    code, _, errors = assessing(f"{kind}.csv", *BOTH, "--audit", tmp_path / "plan.csv")
    assert (code, errors) == (0, "")
    summary = summary_in(tmp_path / "out")
    assert summary["warnings"] == []
    rates = summary["noise_rates"]
    assert rates["source"] == f"an audit of {filled:,} pairs"
    for name in ("rho01", "rho10"):
        low, high = rates["intervals"][name]
        assert (high - low) / 2 < (0.034 if part == "all" else 0.045)
        assert abs(rates[name] - getattr(RATES, name)) < 1.5 * (high - low)


def test_a_filled_in_plan_of_odd_ids_gives_the_rates_of_the_same_pairs(plan, tmp_path, folder, world):
    """Ids of every start come back as the rows that were asked about."""
    plan("odd.csv", *GIVEN, "--half-width", 0.03)
    fill_in(tmp_path / "plan.csv", world, "odd")
    log = vr.read_log(folder / "odd.csv")
    asked = vr.plan_labels(log, half_width=0.03, guess=RATES)
    sample = vr.AuditSample.from_file(tmp_path / "plan.csv", log)
    assert sample.users.tolist() == asked.users.tolist()
    assert sample.items.tolist() == asked.items.tolist()
    starts = {str(row["user"])[0] for row in asked.to_frame().to_dict("records")}
    assert {"=", "@", "+", "-", "'"} <= starts


def test_nothing_in_a_plan_starts_as_a_formula_does(plan, tmp_path):
    plan("odd.csv", *GIVEN)
    for row in read_csv(tmp_path / "plan.csv"):
        assert not row["user"].startswith(("=", "+", "-", "@", "\t", "\r"))
        assert not row["item"].startswith(("=", "+", "-", "@", "\t", "\r"))


def test_ids_that_differ_by_an_apostrophe_are_told_apart(tmp_path):
    log = vr.FeedbackLog.from_arrays(
        [0, 1], [0, 0], [1, 0], n_users=2, n_items=1, user_ids=["=x", "'=x"], item_ids=["i"]
    )
    frame = log.to_frame().assign(true_label=[1, 0])
    write_table(tmp_path / "plan.csv", frame)
    sample = vr.AuditSample.from_file(tmp_path / "plan.csv", log)
    assert sample.users.tolist() == [0, 1]


def test_an_apostrophe_in_a_file_of_predictions_is_part_of_the_id(tmp_path):
    log = vr.FeedbackLog.from_arrays([0, 1], [0, 0], [1, 0], n_users=2, n_items=1, user_ids=["a", "b"], item_ids=["i"])
    write_csv(tmp_path / "scores.csv", ["user", "item", "score"], ["'a", "b"], ["i", "i"], [0.5, 0.5])
    with pytest.warns(UnknownIdWarning):
        assert vr.read_predictions(tmp_path / "scores.csv", log)[0].tolist() == [1]


PLAN_MISTAKES = [
    (("plain.csv", "--rho01", 0.2), "--rho01 and --rho10 go together; give both"),
    (("plain.csv", "--rho01", 0.6, "--rho10", 0.5), "rho01 [+] rho10 must be below 1"),
    (("plain.csv", "--half-width", 0), "half_width must be"),
    (("plain.csv", "--half-width", 0.5), "half_width must be"),
    (("plain.csv", "--half-width", 0.0001), "ask for a larger half_width"),
    (("plain.csv", "--confidence", 1), "confidence must be"),
    (("nope.csv",), "no file 'nope.csv'"),
    (("plain.csv", "--rating", "nope"), "nope"),
]


@pytest.mark.parametrize(("arguments", "message"), PLAN_MISTAKES, ids=[message[:40] for _, message in PLAN_MISTAKES])
def test_a_mistake_in_planning_is_told_in_one_line_and_nothing_is_written(plan, tmp_path, arguments, message):
    code, output, errors = plan(*arguments)
    assert (code, output) == (2, "")
    assert re.fullmatch(rf"verirec: .*{message}.*\n", errors), errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["taken/plan.csv", "."])
def test_a_plan_that_cannot_be_written_is_told_in_one_line(plan, folder, place):
    before = {file.name for file in folder.iterdir()}
    code, output, errors = plan("plain.csv", *GIVEN, out=folder / place)
    assert (code, output) == (2, "")
    assert re.fullmatch(r"verirec: cannot write (to )?'.*': .*\n", errors)
    assert {file.name for file in folder.iterdir()} == before


@pytest.mark.parametrize("place", ["taken/plan.csv", "."])
def test_a_plan_that_cannot_be_written_is_told_before_any_work(plan, folder, monkeypatch, place):
    monkeypatch.setattr("verirec.read_log", lambda *_, **__: pytest.fail("the log was read"))
    assert plan("plain.csv", *GIVEN, out=folder / place)[0] == 2


def test_the_folder_of_a_plan_is_made_if_need_be(plan, tmp_path):
    code, _, errors = plan("plain.csv", *GIVEN, out=tmp_path / "new" / "newer" / "plan.csv")
    assert (code, errors) == (0, "")
    assert len(read_csv(tmp_path / "new" / "newer" / "plan.csv")) > 100


def test_ctrl_c_leaves_the_older_plan(plan, tmp_path, monkeypatch):
    plan("plain.csv", *GIVEN)
    before = (tmp_path / "plan.csv").read_bytes()

    def interrupted(self, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    assert plan("plain.csv", "--rho01", 0.1, "--rho10", 0.1)[0] == 130
    assert (tmp_path / "plan.csv").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["plan.csv"]


@pytest.mark.parametrize("link", [False, True])
def test_a_plan_does_not_take_the_place_of_its_log(plan, folder, tmp_path, link):
    place = tmp_path / "log.csv"
    place.write_bytes((folder / "plain.csv").read_bytes())
    out = tmp_path / "link.csv" if link else place
    if link:
        out.symlink_to(place)
    before = place.read_bytes()
    code, output, errors = plan(place, *GIVEN, out=out)
    assert (code, output) == (2, "")
    assert re.fullmatch(r"verirec: --out '.*' is a file that is read: name another one\n", errors)
    assert place.read_bytes() == before


def test_a_plan_does_not_take_the_place_of_a_list_of_ids(plan, folder, tmp_path):
    (tmp_path / "users.txt").write_text("\n".join(ids_of("plain")[0]))
    before = (tmp_path / "users.txt").read_bytes()
    assert plan("plain.csv", *GIVEN, "--all-users", tmp_path / "users.txt", out=tmp_path / "users.txt")[0] == 2
    assert (tmp_path / "users.txt").read_bytes() == before


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(("filled", "told"), [(1, "1 true label filled in"), (40, "40 true labels filled in")])
def test_a_plan_with_true_labels_is_not_written_over(plan, tmp_path, filled, told, delimiter):
    """Whoever filled them in may have used a spreadsheet that parts fields in its own way."""
    file = tmp_path / "plan.csv"
    assert plan("plain.csv", *GIVEN)[0] == 0
    rows = read_csv(file)
    for row in rows[-filled:]:
        row["true_label"] = 0
    with file.open("w", newline="", encoding="utf-8-sig") as opened:
        writer = csv.DictWriter(opened, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    before = file.read_bytes()
    code, output, errors = plan("plain.csv", *GIVEN)
    assert (code, output) == (2, "")
    assert re.fullmatch(
        rf"verirec: --out '.*plan.csv' has {told}, which would be lost: name another file, .*\n", errors
    )
    assert file.read_bytes() == before


@pytest.mark.parametrize("content", ["user,item,true_label\na,b,\na,c, \n", "nothing of the kind", "", "true_label"])
def test_a_file_without_true_labels_is_written_over(plan, tmp_path, content):
    (tmp_path / "plan.csv").write_text(content)
    assert plan("plain.csv", *GIVEN)[0] == 0
    assert len(read_csv(tmp_path / "plan.csv")) > 100


HALF_FILLED = [
    ("u000,10,1\nu001,10,\nu002,10,2", "file.csv: true_label must be 0 or 1, .*where row 2 has 2"),
    ("u000,10,1\nu001,10,\nu002,10,-1", "file.csv: true_label must be 0 or 1, .*where row 2 has -1"),
    ("u000,10,1\nu001,10,\nu002,10,inf", "file.csv: true_label must be 0 or 1, .*where row 2 has inf"),
    ("u000,10,1\nu001,10,\nu002,10,maybe", "file.csv: true_label must be 0 or 1, .*where row 2 has 'maybe'"),
    ("u000,10,1\nu001,10,\n,10,1", r"file.csv: user is missing in 1 of 3 rows \(first: 2, .*fill it in"),
    ("u000,10,1\nu001,10,\nu002,,1", r"file.csv: item is missing in 1 of 3 rows \(first: 2, .*fill it in"),
    ("u000,10,1\nu001,10,\nno,10,1", r"file.csv: user is not in the log in 1 of 3 rows \(first: 2, .*'no'"),
    ("u000,10,1\nu001,10,\nu000,10,0", r"file.csv: answers to one pair contradict each other in 2 of 3 rows "),
]


@pytest.mark.parametrize(("lines", "message"), HALF_FILLED, ids=[lines.split("\n")[-1] for lines, _ in HALF_FILLED])
def test_a_mistake_in_a_list_filled_in_by_half_is_told_by_the_files_own_rows(assessing, tmp_path, lines, message):
    (tmp_path / "file.csv").write_text(f"user,item,true_label\n{lines}\n")
    code, output, errors = assessing("plain.csv", "--audit", tmp_path / "file.csv")
    assert (code, output) == (2, "")
    assert re.fullmatch(rf"verirec: {message}.*\n", errors), errors


@pytest.mark.parametrize("verb", ["assess", "plan"])
def test_a_log_too_small_to_tell_its_noise_is_told_what_to_do_and_that_helps(run, tmp_path, verb):
    log = vr.simulate.world(60, 50, observed=0.2, random_state=0).log.select(np.arange(0, 570, 15))
    write_csv(tmp_path / "log.csv", ["user", "item", "label"], log.users, log.items, log.labels)
    out = tmp_path / "out.csv"
    code, output, errors = run(verb, tmp_path / "log.csv", "--out", out)
    assert (code, output) == (2, "")
    assert errors == (
        "verirec: a log of 38 rows cannot tell how noisy its labels may be, which takes at least 40; give the noise "
        "rates: --rho01 ... and --rho10 ...\n"
    )
    width = ("--half-width", 0.4) if verb == "plan" else ()
    assert run(verb, tmp_path / "log.csv", "--out", out, *GIVEN, *width)[0] == 0


@pytest.mark.parametrize("verb", ["assess", "plan"])
def test_the_help_names_every_option(run, verb):
    code, output, _ = run(verb, "--help")
    assert code == 0
    assert {"--out", "--positive-from", "--rho01", "--seed"} <= set(re.findall(r"--[\w-]+", output))
