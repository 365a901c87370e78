"""verirec estimate: the numbers of the Python call on the same files, JSON, and mistakes told in one line."""

from __future__ import annotations

import json
import os
import re
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import verirec as vr
from verirec.estimation.calibration import apart_for_calibration
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import ScoreWarning

SHAPE = (50, 40)


class Bomb:
    """Makes a folder where it is unpickled."""

    def __init__(self, place):
        self.place = str(place)

    def __reduce__(self):
        return os.mkdir, (self.place,)


def write_table(file, names, *columns):
    delimiter = "\t" if file.suffix == ".tsv" else ","
    lines = [names, *zip(*columns, strict=True)]
    file.write_text("".join(delimiter.join(map(str, line)) + "\n" for line in lines))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a log by ids, an audit, and predictions in every form."""
    place = tmp_path_factory.mktemp("estimate")
    world = vr.simulate.world(*SHAPE, observed=0.4, selectivity=1, random_state=3)
    log, random = world.log, np.random.default_rng(0)
    user_ids, item_ids = np.array([f"u{user:02d}" for user in range(SHAPE[0])]), 10 * np.arange(SHAPE[1])
    rows = user_ids[log.users], item_ids[log.items], log.labels, world.at(log.users, log.items).propensities
    write_table(place / "log.csv", ["user", "item", "label", "p"], *rows)
    write_table(place / "log.tsv", ["user", "item", "label", "p"], *rows)
    write_table(place / "stars.csv", ["who", "what", "stars"], *rows[:2], log.labels * 3 + 1)
    pq.write_table(pa.table(dict(zip(["user", "item", "label", "p"], rows, strict=True))), place / "log.parquet")
    f = 0.1 + 0.7 * world.preferences
    np.save(place / "matrix.npy", f)
    np.save(place / "flat.npy", np.full(SHAPE, 0.4))
    users, items = (side.ravel() for side in np.indices(SHAPE))
    order = random.permutation(len(users))
    every = user_ids[users[order]], item_ids[items[order]], f[users[order], items[order]]
    write_table(place / "scores.csv", ["user", "item", "score"], *every)
    write_table(place / "scores.tsv", ["user", "item", "score"], *every)
    pq.write_table(pa.table(dict(zip(["user", "item", "score"], every, strict=True))), place / "scores.parquet")
    write_table(place / "logged.csv", ["user", "item", "score"], *rows[:2], f[log.users, log.items])
    parts = {"user_factors": random.normal(0, 0.4, (SHAPE[0], 3)), "item_factors": random.normal(0, 0.4, (SHAPE[1], 3))}
    full = parts | {"user_constants": random.normal(0, 0.2, SHAPE[0]), "constant": -0.2, "link": "logistic"}
    np.savez(place / "factors.npz", **parts, link="logistic")
    np.savez(place / "unlinked.npz", **parts)
    np.savez(place / "full.npz", **full)
    shuffled = random.permutation(SHAPE[0])
    by_id = {name: full[name][shuffled] for name in ("user_factors", "user_constants")}
    np.savez(place / "by_id.npz", **full | by_id, user_ids=user_ids[shuffled])
    fewer = {name: part[3:] for name, part in by_id.items()}
    np.savez(place / "fewer.npz", **full | fewer, user_ids=user_ids[shuffled[3:]])
    audited = random.choice(len(log), 300, replace=False)
    truth = world.at(log.users, log.items).true_labels
    names = ["user", "item", "true_label"]
    write_table(place / "audit.csv", names, rows[0][audited], rows[1][audited], truth[audited])
    negatives = audited[truth[audited] == 0]
    write_table(place / "negatives.csv", names, rows[0][negatives], rows[1][negatives], truth[negatives])
    return place


@pytest.fixture
def estimate(run, folder, monkeypatch):
    """Run `verirec estimate` inside the folder of files."""

    def estimate(log, *arguments):
        monkeypatch.chdir(folder)
        return run("estimate", log, *arguments)

    return estimate


@pytest.fixture
def figures(estimate):
    """Run with --json and give what was printed, which must be strict JSON."""

    def figures(log, *arguments):
        code, output, errors = estimate(log, *arguments, "--json")
        assert (code, errors) == (0, "")

        def refuse(constant):
            raise AssertionError(f"{constant} is not JSON")

        return json.loads(output, parse_constant=refuse)

    return figures


def numbers(result):
    """Give Python's estimates as the command writes them."""
    shown = {}
    for name, one in result.items():
        ends = {"low": one.interval[0], "high": one.interval[1]}
        if isinstance(one, vr.EstimateRange):
            shown[name] = {"value": None, "range": list(one.range)} | ends
        else:
            shown[name] = {"value": one.value, "standard_error": one.standard_error} | ends
    return shown


def by_python(folder, log="log.csv", predictions="matrix.npy", **options):
    table = vr.read_log(folder / log)
    options = {"propensities": vr.LogisticPropensity().fit(table)} | options
    return numbers(vr.estimate(vr.read_predictions(folder / predictions, table), table, **options))


# The numbers are those of the Python call


@pytest.mark.parametrize("log", ["log.csv", "log.tsv", "log.parquet"])
@pytest.mark.parametrize("predictions", ["matrix.npy", "scores.parquet"])
def test_every_format_of_log_gives_what_python_gives(figures, folder, log, predictions):
    shown = figures(log, "--predictions", f"mine={predictions}")
    assert shown["recommenders"] == {"mine": by_python(folder, log, predictions)}


@pytest.mark.parametrize(
    "predictions",
    ["scores.csv", "scores.tsv", "scores.parquet", "matrix.npy", "factors.npz", "full.npz", "by_id.npz"],
)
def test_every_format_of_predictions_gives_what_python_gives(figures, folder, predictions):
    shown = figures("log.csv", "--predictions", f"mine={predictions}", "--rho01", 0.2, "--rho10", 0.1)
    expected = by_python(folder, predictions=predictions, noise_rates=vr.NoiseRates(0.2, 0.1))
    assert shown["recommenders"]["mine"] == expected


@pytest.mark.parametrize(("one", "other"), [("scores.csv", "matrix.npy"), ("by_id.npz", "full.npz")])
def test_forms_of_the_same_predictions_give_the_same_numbers(figures, one, other):
    shown = figures("log.csv", "--predictions", f"a={one}", "--predictions", f"b={other}")["recommenders"]
    for name, numbers_of_a in shown["a"].items():
        assert shown["b"][name] == pytest.approx(numbers_of_a, rel=1e-9)


OPTIONS = [
    (["--estimators", "all"], {"estimators": "all"}),
    (["--estimators", "naive, snips,mrdr"], {"estimators": ["naive", "snips", "mrdr"]}),
    (["--loss", "squared"], {"loss": "squared"}),
    (["--imputation", "model", "--seed", 5], {"imputation": "model", "random_state": 5}),
    (["--confidence", 0.8], {"confidence": 0.8}),
    (["--clip", 0.11], {"clip": 0.11}),
    (["--sample", 500, "--seed", 2], {"sample": 500, "random_state": 2}),
    (["--interval", "bootstrap", "--seed", 4], {"interval": "bootstrap", "random_state": 4}),
]


@pytest.mark.parametrize(("arguments", "options"), OPTIONS, ids=[" ".join(map(str, case[0])) for case in OPTIONS])
def test_an_option_means_what_it_means_in_python(figures, folder, arguments, options):
    shown = figures("log.csv", "--predictions", "mine=matrix.npy", *arguments)
    assert shown["recommenders"]["mine"] == by_python(folder, **options)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("logistic", vr.LogisticPropensity()),
        ("constant", vr.ConstantPropensity()),
        ("popularity", vr.PopularityPropensity()),
    ],
)
def test_the_propensity_is_chosen_by_name(figures, folder, name, model):
    log = vr.read_log(folder / "log.csv")
    shown = figures("log.csv", "--predictions", "mine=matrix.npy", "--propensity", name)
    assert shown["recommenders"]["mine"] == by_python(folder, propensities=model)
    assert shown["propensity"] == json.loads(json.dumps(model.fit(log).diagnostics(log).to_dict()))


@pytest.mark.parametrize("also", [[], ["--propensity", "logged"]])
def test_a_column_of_propensities_is_used(figures, folder, also):
    shown = figures("log.csv", "--predictions", "mine=matrix.npy", "--propensity-column", "p", *also)
    log = vr.read_log(folder / "log.csv", propensity="p")
    expected = numbers(vr.estimate(np.load(folder / "matrix.npy"), log, propensities=vr.LoggedPropensity(log)))
    assert shown["recommenders"]["mine"] == expected
    assert shown["propensity"]["calibration"] == []


def test_columns_and_the_rule_for_labels_can_be_named(figures):
    named = ["--user", "who", "--item", "what", "--rating", "stars", "--positive-from", 3]
    shown = figures("stars.csv", "--predictions", "mine=matrix.npy", *named)
    assert shown == figures("log.csv", "--predictions", "mine=matrix.npy")


@pytest.mark.parametrize(
    ("policy", "newest_first"), [("latest", True), ("latest", False), ("first", True), ("last", False)]
)
def test_of_rows_that_name_a_pair_again_the_policy_keeps_one(figures, estimate, folder, policy, newest_first):
    _, *lines = (folder / "log.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines]
    new = [[user, item, label, 2_000] for user, item, label, _ in rows]
    old = [[user, item, 1 - int(label), 1_000] for user, item, label, _ in rows]
    both = new + old if newest_first else old + new
    write_table(folder / "again.csv", ["user", "item", "label", "when"], *zip(*both, strict=True))
    shown = figures("again.csv", *GIVEN, "--timestamp", "when", "--duplicates", policy)
    assert shown == figures("log.csv", *GIVEN)
    check_mistake(estimate("again.csv", *GIVEN, "--timestamp", "when"), "pairs occur with both labels")
    if policy == "latest":
        check_mistake(estimate("again.csv", *GIVEN, "--duplicates", policy), "timestamp")


# Noise rates


def test_without_rates_nothing_is_corrected(figures):
    shown = figures("log.csv", "--predictions", "mine=matrix.npy")
    assert shown["noise_rates"] == {"source": "not corrected"}
    assert list(shown["recommenders"]["mine"]) == ["naive", "ips", "dr"]


def test_given_rates_are_reported(figures):
    shown = figures("log.csv", "--predictions", "mine=matrix.npy", "--rho01", 0.2, "--rho10", 0)
    assert shown["noise_rates"] == {"source": "given", "rho01": 0.2, "rho10": 0.0, "covariance": None}
    assert list(shown["recommenders"]["mine"]) == ["naive", "ips", "dr", "ome-ips", "ome-dr"]


def test_an_audit_gives_the_rates_and_their_uncertainty(figures, folder):
    shown = figures("log.csv", "--predictions", "mine=matrix.npy", "--audit", "audit.csv")
    log = vr.read_log(folder / "log.csv")
    rates = vr.AuditNoiseRates().fit(log, audit=vr.AuditSample.from_file(folder / "audit.csv", log))
    assert shown["noise_rates"] == {
        "source": "an audit of 300 pairs",
        "rho01": rates.rho01,
        "rho10": rates.rho10,
        "covariance": [list(row) for row in rates.covariance],
    }
    audit = vr.AuditSample.from_file(folder / "audit.csv", log)
    assert shown["recommenders"]["mine"] == by_python(folder, noise_rates=rates, audit=audit)
    assert list(shown["recommenders"]["mine"])[-1] == "audited-dr"
    ranked = vr.estimate_ranking(np.load(folder / "matrix.npy"), log, noise_rates=rates, audit=audit)
    assert shown["ranking"]["mine"] == {name: one.to_dict() | {"source": "audit"} for name, one in ranked.items()}


def test_an_audits_own_labels_are_what_to_go_by(estimate, figures):
    given = ("log.csv", "--predictions", "mine=matrix.npy", "--audit", "audit.csv")
    assert "Go by audited-dr, which has the audit's own labels in it" in estimate(*given)[1]
    assert list(figures(*given, "--estimators", "audited-dr")["recommenders"]["mine"]) == ["audited-dr"]
    # Not where it is not in the table.
    assert "Go by" not in estimate(*given, "--estimators", "ome-dr")[1]


def test_what_is_calibrated_is_judged_by_the_audited_ones_of_the_other_rows(figures, folder, stars):
    given = ("--audit", "audit.csv", "--calibrate", "platt", "--seed", 3)
    shown = figures("log.csv", "--predictions", stars, *given)["recommenders"]["stars"]
    log = vr.read_log(folder / "log.csv")
    p, audit = vr.LogisticPropensity().fit(log), vr.AuditSample.from_file(folder / "audit.csv", log)
    rates = vr.AuditNoiseRates().fit(log, audit=audit)
    apart, rest = apart_for_calibration(LoggedPairs(log, p), random_state=3)
    among = np.isin(audit.users * SHAPE[1] + audit.items, rest.log.users * SHAPE[1] + rest.log.items)
    assert 0 < among.sum() < len(audit)
    expected = vr.estimate(
        vr.calibrate(np.load(folder / "scores.npy"), apart),
        rest.log,
        propensities=rest.propensities,
        noise_rates=rates,
        audit=audit.select(among),
        random_state=3,
    )
    assert shown["audited-dr"]["value"] == pytest.approx(expected["audited-dr"].value, rel=1e-9)


def test_answers_with_columns_of_their_own(figures, estimate, folder, tmp_path):
    lines = (folder / "audit.csv").read_text().splitlines()[1:]
    (tmp_path / "fragen.csv").write_text("\n".join(["kunde;artikel;mag", *(line.replace(",", ";") for line in lines)]))
    plain = figures("log.csv", "--predictions", "m=matrix.npy", "--audit", "audit.csv")
    given = ["log.csv", "--predictions", "m=matrix.npy", "--audit", tmp_path / "fragen.csv"]
    assert figures(*given, "--answer-columns", "kunde, artikel,mag")["recommenders"] == plain["recommenders"]
    assert "name them: --answer-columns USER,ITEM,ANSWER; the columns are: kunde, artikel, mag" in estimate(*given)[2]
    told = estimate(*given, "--answer-columns", "kunde,artikel")[2]
    assert "--answer-columns must be three names, USER,ITEM,ANSWER; got 'kunde,artikel'" in told


def test_second_answers_give_the_rates_and_their_uncertainty(figures, tmp_path):
    world = vr.simulate.world(100, 150, observed=0.3, selectivity=1, random_state=0)
    users, items = world.log.users, world.log.items
    again = vr.NoiseRates(0.2, 0.1).observe(
        world.at(users, items).true_labels, np.random.default_rng(0).random(len(users))
    )
    write_table(tmp_path / "log.csv", ["user", "item", "label"], users, items, world.log.labels)
    write_table(tmp_path / "again.csv", ["user", "item", "answer"], users[:2_000], items[:2_000], again[:2_000])
    np.save(tmp_path / "f.npy", np.full((100, 150), 0.4))
    shown = figures(tmp_path / "log.csv", "--predictions", f"mine={tmp_path}/f.npy", "--reask", tmp_path / "again.csv")
    log = vr.read_log(tmp_path / "log.csv")
    rates = vr.ReaskNoiseRates().fit(log, reask=vr.ReaskSample.from_file(tmp_path / "again.csv", log))
    assert shown["noise_rates"] == {
        "source": "second answers to 2,000 pairs",
        "rho01": rates.rho01,
        "rho10": rates.rho10,
        "covariance": [list(row) for row in rates.covariance],
    }
    assert "ome-dr" in shown["recommenders"]["mine"]


def test_a_region_gives_ranges(figures, folder):
    shown = figures("log.csv", "--predictions", "mine=matrix.npy", "--region")
    region = vr.identified_region(vr.read_log(folder / "log.csv"))
    assert shown["noise_rates"] == {
        "source": "all that the log allows",
        "rho01": [0.0, region.rho01_most],
        "rho10": [0.0, region.rho10_most],
    }
    assert shown["recommenders"]["mine"] == by_python(folder, noise_rates=region)
    assert shown["recommenders"]["mine"]["ome-dr"]["value"] is None


# What is printed


def test_json_has_its_parts_and_every_recommender_in_order(figures):
    shown = figures("log.csv", *(f"--predictions={name}=matrix.npy" for name in ("b", "a")))
    assert list(shown) == [
        *("noise_rates", "who_errs", "propensity", "recommenders", "calibrated", "calibrated_by_survey", "ranking"),
        "ranking_difference",
    ]
    assert list(shown["recommenders"]) == ["b", "a"]
    assert shown["recommenders"]["a"] == shown["recommenders"]["b"]


def test_the_table_shows_the_figures_of_the_json(estimate, figures):
    arguments = ["--predictions", "mine=matrix.npy", "--predictions", "flat=flat.npy", "--rho01", 0.2, "--rho10", 0.1]
    shown = figures("log.csv", *arguments)["recommenders"]
    code, output, errors = estimate("log.csv", *arguments)
    assert (code, errors) == (0, "")
    for name in shown["mine"]:
        (row,) = (line for line in output.splitlines() if re.match(rf"│ {name} +│", line))
        expected = [shown[who][name][part] for who in ("mine", "flat") for part in ("value", "low", "high")]
        assert re.findall(r"\d+\.\d{4}", row) == [f"{number:.4f}" for number in expected]
    assert "Noise rates: rho01 0.200, rho10 0.100 (given)" in output
    assert f"{SHAPE[0]} users x {SHAPE[1]} items" in output
    assert "95% intervals" in output


def test_the_table_of_a_region_shows_ranges(estimate, figures):
    arguments = ["--predictions", "mine=matrix.npy", "--region"]
    one = figures("log.csv", *arguments)["recommenders"]["mine"]["ome-dr"]
    output = estimate("log.csv", *arguments)[1]
    assert f"{one['range'][0]:.4f} to {one['range'][1]:.4f} [{one['low']:.4f}, {one['high']:.4f}]" in output
    assert "(all that the log allows)" in output


def test_an_audits_rates_are_shown_with_their_intervals(estimate):
    output = estimate("log.csv", "--predictions", "mine=matrix.npy", "--audit", "audit.csv")[1]
    assert re.search(
        r"Noise rates: rho01 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\], rho10 0\.\d{3} \[.*\] \(an audit of 300 pairs\)", output
    )


def test_without_rates_the_table_says_how_to_give_them(estimate):
    output = estimate("log.csv", "--predictions", "mine=matrix.npy")[1]
    assert "Noise rates: not corrected" in output
    assert "give --rho01 and --rho10, --audit, --reask or --region" in output


@pytest.mark.parametrize("name", ["[old]", "[/b]", "two words", "é"])
def test_a_recommenders_name_is_shown_as_it_is(estimate, figures, name):
    assert name in estimate("log.csv", "--predictions", f"{name}=matrix.npy")[1]
    assert list(figures("log.csv", "--predictions", f"{name}=matrix.npy")["recommenders"]) == [name]


def test_no_figure_is_cut_however_many_recommenders_there_are(estimate, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    output = estimate("log.csv", *(f"--predictions=recommender-{n}=flat.npy" for n in range(9)))[1]
    assert "…" not in output
    assert max(map(len, output.splitlines()[3:-1])) <= 80


def test_two_recommenders_stand_side_by_side_and_more_below_each_other(estimate, figures):
    names = ["mine", "flat", "other"]
    arguments = [f"--predictions={name}={'flat' if name == 'flat' else 'matrix'}.npy" for name in names]
    rates = ["--rho01", 0.2, "--rho10", 0.1]
    shown = figures("log.csv", *arguments, *rates)["recommenders"]

    def cells(count):
        lines = estimate("log.csv", *arguments[:count], *rates)[1].splitlines()
        return [[cell.strip() for cell in re.split("[│┃]", line)[1:-1]] for line in lines if line[0] in "│┃"]

    def figure(name, estimator):
        one = shown[name][estimator]
        return f"{one['value']:.4f} [{one['low']:.4f}, {one['high']:.4f}]"

    estimators = list(shown["mine"])
    assert cells(2)[: len(estimators) + 1] == [
        ["Estimator", "mine", "flat"],
        *([estimator, figure("mine", estimator), figure("flat", estimator)] for estimator in estimators),
    ]
    assert cells(3)[: 3 * len(estimators) + 1] == [
        ["Recommender", "Estimator", "Estimate [interval]"],
        *([name, estimator, figure(name, estimator)] for name in names for estimator in estimators),
    ]


@pytest.mark.parametrize("random", [["--interval", "bootstrap"], ["--sample", 300], ["--imputation", "model"]])
def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(estimate, random):
    first, again, other = (
        estimate("log.csv", "--predictions", "mine=matrix.npy", *random, "--seed", seed, "--json")[1]
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_the_installed_command_prints_json_and_nothing_else(spawn, folder):
    code, output, errors = spawn(
        "estimate", folder / "log.csv", "--predictions", f"mine={folder / 'scores.csv'}", "--json"
    )
    assert (code, errors) == (0, "")
    assert json.loads(output)["recommenders"]["mine"] == by_python(folder, predictions="scores.csv")


def test_estimators_of_logged_pairs_need_no_others(figures, folder):
    shown = figures("log.csv", "--predictions", "mine=logged.csv", "--estimators", "naive,ips,snips")
    expected = by_python(folder, estimators=["naive", "ips", "snips"])
    for name, one in shown["recommenders"]["mine"].items():
        assert one == pytest.approx(expected[name], rel=1e-9)


@pytest.mark.filterwarnings("always::verirec.exceptions.ColdStartWarning")
def test_a_file_that_lacks_users_is_told_the_option_that_scores_them(estimate, folder):
    given = ("log.csv", "--predictions", "mine=fewer.npz", "--json")
    code, _, errors = estimate(*given)
    assert (code, errors.count("\n")) == (2, 1)
    assert f"fewer.npz: user_ids lack 3 of the log's {SHAPE[0]} users (first: " in errors
    assert "--missing-predictions mean scores them as its mean user" in errors
    code, output, errors = estimate(*given, "--missing-predictions", "mean")
    assert code == 0
    assert "they are scored as its mean user" in errors
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = vr.read_log(folder / "log.csv")
        read = vr.read_predictions(folder / "fewer.npz", table, missing="mean")
        expected = numbers(vr.estimate(read, table, propensities=vr.LogisticPropensity().fit(table)))
    assert json.loads(output)["recommenders"]["mine"] == expected
    code, _, errors = estimate(*given, "--missing-predictions", "zero")
    assert (code, "--missing-predictions must be one of error, mean" in errors) == (2, True)


@pytest.fixture(params=["all logged pairs", "some of them"])
def logged_only(request, folder, tmp_path):
    """Write scores of logged pairs and of no others; give their file and how many they are."""
    header, *lines = (folder / "logged.csv").read_text().splitlines()
    kept = lines if request.param == "all logged pairs" else lines[::2]
    file = tmp_path / "some.csv"
    file.write_text("\n".join([header, *kept, ""]))
    return file, len(kept), len(lines)


@pytest.mark.filterwarnings("always::verirec.exceptions.ScoreWarning")
def test_estimate_and_assess_read_the_same_scores_of_logged_pairs(run, folder, logged_only, tmp_path):
    file, kept, rows = logged_only
    given = (folder / "log.csv", "--predictions", f"mine={file}", "--rho01", 0.2, "--rho10", 0.1)
    code, output, errors = run("estimate", *given, "--json")
    assert code == 0
    assert (f"mine has scores of {kept:,} of the {rows:,} logged pairs: judged on these" in errors) == (kept < rows)
    assert list(json.loads(output)["recommenders"]["mine"]) == ["naive", "ips", "ome-ips"]
    assert run("assess", *given, "--out", tmp_path / "page")[0] == 0
    assessed = json.loads((tmp_path / "page" / "summary.json").read_text())["recommenders"]["mine"]
    names = "naive,snips,ome-snips"
    estimated = json.loads(run("estimate", *given, "--json", "--estimators", names)[1])["recommenders"]["mine"]
    for name in names.split(","):
        assert estimated[name]["value"] == pytest.approx(assessed[name]["value"], rel=1e-12)


def test_estimators_that_need_all_pairs_are_left_blank_beside_those_that_do_not(estimate):
    code, output, _ = estimate("log.csv", "--predictions", "all=scores.csv", "--predictions", "some=logged.csv")
    assert code == 0
    cells = {line.split("│")[1].strip(): line.split("│")[2:4] for line in output.splitlines() if line.startswith("│")}
    assert {name: [bool(cell.strip()) for cell in row] for name, row in cells.items()} == {
        "naive": [True, True], "ips": [True, True], "dr": [True, False],
        **{name: [True, False] for name in ("auc", "ndcg@5", "precision@5", "recall@5")},
    }  # fmt: skip


def test_the_logs_own_columns_are_found_in_predictions_and_audits(figures, tmp_path, folder):
    scores = (folder / "scores.csv").read_text().replace("user,item", "who,what", 1)
    (tmp_path / "scores.csv").write_text(scores)
    audit = (folder / "audit.csv").read_text().replace("user,item", "who,what", 1)
    (tmp_path / "audit.csv").write_text(audit)
    columns = ("--user", "who", "--item", "what", "--positive-from", 3)
    found = figures(
        "stars.csv", "--predictions", f"x={tmp_path}/scores.csv", *columns, "--audit", tmp_path / "audit.csv"
    )
    usual = figures("log.csv", "--predictions", "x=scores.csv", "--audit", "audit.csv")
    assert found["recommenders"] == usual["recommenders"]


@pytest.mark.parametrize(
    ("delimiter", "given"), [(";", ";"), ("\t", "\\t"), ("\t", "\t")], ids=["semicolon", "t", "tab"]
)
def test_a_log_may_be_parted_by_another_character(figures, tmp_path, folder, delimiter, given):
    (tmp_path / "log.txt").write_text((folder / "log.csv").read_text().replace(",", delimiter))
    found = figures(tmp_path / "log.txt", "--predictions", "x=scores.csv", "--delimiter", given)
    assert found == figures("log.csv", "--predictions", "x=scores.csv")


@pytest.fixture
def part(folder, tmp_path):
    """Write a log without the users of the last ten ids, and a file of all ids."""
    lines = (folder / "log.csv").read_text().splitlines()
    (tmp_path / "part.csv").write_text("\n".join(line for line in lines if not line.startswith("u4")))
    (tmp_path / "users.txt").write_text("".join(f"u{user:02d}\n" for user in range(SHAPE[0])))
    return tmp_path


def test_users_that_the_log_does_not_have_are_left_out_and_told_in_one_line(estimate, part):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, _, errors = estimate(part / "part.csv", "--predictions", "x=scores.csv", "--json")
    assert code == 0
    assert re.fullmatch(
        r"verirec: warning: scores\.csv: 400 of 2,000 rows are left out, of 10 users \(first: 'u4\d', 'u4\d', 'u4\d'\) "
        r"that the log does not have; to have them counted, read the log with --all-users \.\.\.\n",
        errors,
    )


def test_all_users_and_items_are_counted_where_they_are_named(figures, part):
    """The error-imputation-based estimator goes over all pairs."""
    options = ("--predictions", "x=scores.csv", "--estimators", "eib", "--propensity", "constant")
    found = figures(part / "part.csv", *options, "--all-users", part / "users.txt")
    log = vr.read_log(part / "part.csv", all_users=part / "users.txt")
    assert log.n_users == SHAPE[0]
    alone = vr.estimate(
        vr.read_predictions("scores.csv", log),
        log,
        propensities=vr.ConstantPropensity().fit(log),
        estimators="eib",
    )
    assert found["recommenders"]["x"] == numbers(alone)


@pytest.mark.parametrize("verb", ["assess", "estimate", "plan"])
def test_the_verbs_on_a_log_read_it_by_the_same_options(run, verb):
    listed = set(re.findall(r"--[\w-]+", run(verb, "--help")[1]))
    reading = {
        "user",
        "item",
        "rating",
        "positive-from",
        "timestamp",
        "duplicates",
        "delimiter",
        "all-users",
        "all-items",
    }
    assert {f"--{name}" for name in reading} <= listed


def test_a_column_that_cannot_be_told_is_named_with_its_file_and_option(estimate, tmp_path):
    (tmp_path / "odd.csv").write_text("user,item,f\nu01,10,0.5\n")
    errors = estimate("log.csv", "--predictions", f"x={tmp_path}/odd.csv")[2]
    assert errors.startswith(
        "verirec: odd.csv: cannot tell which column is the score (none has a usual name); name it: "
    )
    assert "name it: --score-column ...;" in errors


@pytest.mark.parametrize(("file", "clip"), [("hard.npy", 0.01), ("matrix.npy", 0.3)])
def test_predictions_of_zero_and_one_can_be_clipped_and_where_that_changes_many_it_warns(estimate, folder, file, clip):
    np.save(folder / "hard.npy", (np.load(folder / "matrix.npy") > 0.5).astype(float))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, output, errors = estimate("log.csv", "--predictions", f"mine={file}", "--clip", clip, "--json")
    log, f = vr.read_log(folder / "log.csv"), np.load(folder / file)
    logged = f[log.users, log.items]
    changed = int(((logged < clip) | (logged > 1 - clip)).sum())
    assert changed > 0.1 * len(log)
    assert (code, errors) == (
        0,
        f"verirec: warning: --clip {clip:g} changed the predictions of {changed:,} of {len(log):,} logged pairs: what "
        "is judged are the changed ones\n",
    )
    with pytest.warns(ScoreWarning, match=f"^clip={clip:g} changed the predictions of {changed:,} of "):
        expected = by_python(folder, predictions=file, clip=clip)
    assert json.loads(output)["recommenders"]["mine"] == expected


# Rankings, and scores that are not probabilities


def ranked_by_python(folder, predictions="matrix.npy", **options):
    log = vr.read_log(folder / "log.csv")
    given = vr.read_predictions(folder / predictions, log)
    found = vr.estimate_ranking(given, log, propensities=vr.LogisticPropensity().fit(log), **options)
    return {name: one | {"source": "log"} for name, one in numbers(found).items()}


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {}),
        (["-k", 3, "--confidence", 0.8], {"k": 3, "confidence": 0.8}),
        (["--k", 7, "--rho01", 0.2, "--rho10", 0.1], {"k": 7, "noise_rates": vr.NoiseRates(0.2, 0.1)}),
    ],
)
def test_rankings_are_what_python_gives_and_stand_beside_the_losses(figures, estimate, folder, arguments, options):
    shown = figures("log.csv", *GIVEN, *arguments)
    expected = ranked_by_python(folder, **options)
    assert shown["ranking"] == {"mine": expected}
    assert shown["recommenders"]["mine"]
    output = estimate("log.csv", *GIVEN, *arguments)[1]
    for name, one in expected.items():
        found = f"{one['value']:.4f} [{one['low']:.4f}, {one['high']:.4f}]" in output
        assert found or name.startswith("dcg")


def test_rankings_over_a_region_are_ranges(figures, folder):
    shown = figures("log.csv", *GIVEN, "--region")
    region = vr.identified_region(vr.read_log(folder / "log.csv"))
    assert shown["ranking"]["mine"] == ranked_by_python(folder, noise_rates=region)


def test_scores_of_logged_pairs_rank_nothing(figures):
    assert figures("log.csv", "--predictions", "mine=logged.csv")["ranking"] == {"mine": {}}


@pytest.fixture
def stars(folder):
    """Write scores from 1 to 5 that rank as the matrix does."""
    np.save(folder / "scores.npy", 1 + 4 * np.load(folder / "matrix.npy"))
    return "stars=scores.npy"


def test_scores_that_are_not_probabilities_are_ranked_alone(figures, estimate, folder, stars):
    shown = figures("log.csv", "--predictions", stars, "--ranking-only")
    assert shown["recommenders"] == {"stars": {}}
    assert shown["ranking"]["stars"] == ranked_by_python(folder, "scores.npy") == ranked_by_python(folder)
    output = estimate("log.csv", "--predictions", stars, "--ranking-only")[1]
    assert "How well all items are ranked" in output
    assert "inaccuracy" not in output


@pytest.mark.parametrize("method", ["platt", "isotonic"])
@pytest.mark.parametrize("loss", ["log", "squared"])
def test_scores_are_calibrated_on_rows_apart(figures, folder, stars, method, loss):
    shown = figures("log.csv", "--predictions", stars, "--calibrate", method, "--loss", loss, "--seed", 3)
    log = vr.read_log(folder / "log.csv")
    rest, apart = vr.split(log, 0.2, random_state=3)
    probabilities = vr.calibrate(np.load(folder / "scores.npy"), apart, method=method)
    p = vr.LogisticPropensity().fit(log).thinned(len(rest) / len(log))
    assert shown["recommenders"]["stars"] == numbers(vr.estimate(probabilities, rest, propensities=p, loss=loss))
    assert shown["ranking"]["stars"] == ranked_by_python(folder)


def test_probabilities_are_not_calibrated_and_those_that_were_are_named(figures, estimate, folder, stars):
    both = "log.csv", "--predictions", stars, "--predictions", "mine=matrix.npy", "--calibrate", "platt"
    shown = figures(*both)
    assert (
        shown["recommenders"]["mine"] == figures("log.csv", "--predictions", "mine=matrix.npy")["recommenders"]["mine"]
    )
    rows = len(vr.split(vr.read_log(folder / "log.csv"), 0.2, random_state=0)[1])
    assert shown["calibrated"] == {"stars": rows}
    assert f"stars's scores are not probabilities; {rows:,} rows made them such" in estimate(*both)[1]


def test_a_clip_makes_no_probabilities_and_the_error_names_the_recommender(estimate, stars):
    code, output, errors = estimate("log.csv", "--predictions", stars, "--clip", 1e-6)
    assert (code, output) == (2, "")
    assert re.fullmatch(r"verirec: stars: --clip 1e-06 is for probabilities that are 0 or 1; these [^\n]+\n", errors)


@pytest.mark.filterwarnings("always::verirec.exceptions.ScoreWarning")
def test_factors_without_a_link_are_calibrated_as_scores_are_and_otherwise_warned_of(figures, estimate, folder):
    given = "log.csv", "--predictions", "mine=unlinked.npz"
    shown = figures(*given, "--calibrate", "platt")
    np.savez(folder / "scores.npz", **np.load(folder / "unlinked.npz"), link="identity")
    same = figures("log.csv", "--predictions", "mine=scores.npz", "--calibrate", "platt")
    assert shown["calibrated"] == same["calibrated"] != {}
    assert shown["recommenders"]["mine"]["dr"]["value"] == pytest.approx(same["recommenders"]["mine"]["dr"]["value"])
    code, _, errors = estimate(*given)
    assert code == 0
    assert re.search("these factors name no link and are taken for logits.*--calibrate platt", errors)


def test_scores_of_logged_pairs_can_be_calibrated(figures, folder, tmp_path):
    header, *lines = (folder / "logged.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines]
    write_table(
        tmp_path / "some.csv", header.split(","), *zip(*([u, i, 9 * float(s)] for u, i, s in rows), strict=True)
    )
    shown = figures("log.csv", "--predictions", f"mine={tmp_path}/some.csv", "--calibrate", "platt")
    assert list(shown["recommenders"]["mine"]) == ["naive", "ips"]
    assert shown["recommenders"]["mine"]["naive"]["value"] < 0.7


# Surveys


@pytest.fixture
def survey(folder):
    """Write true labels of random pairs; give what Python makes of them."""
    random, world = np.random.default_rng(0), vr.simulate.world(*SHAPE, observed=0.4, selectivity=1, random_state=3)
    users, items = random.integers(SHAPE[0], size=400), random.integers(SHAPE[1], size=400)
    pairs = np.unique(users * SHAPE[1] + items)
    users, items = np.divmod(pairs, SHAPE[1])
    labels = world.at(users, items).true_labels
    columns = np.array([f"u{user:02d}" for user in users]), 10 * items, labels
    write_table(folder / "survey.csv", ["user", "item", "true_label"], *columns)
    return vr.SurveySample(users, items, labels)


def test_a_survey_gives_what_python_gives(figures, estimate, folder, survey):
    shown = figures("log.csv", *GIVEN, "--survey", "survey.csv")
    log, f = vr.read_log(folder / "log.csv"), np.load(folder / "matrix.npy")
    expected = numbers(vr.estimate(f, log, survey=survey))
    assert list(expected) == ["naive", "ips", "dr", "survey", "survey-ppi"]
    assert shown["recommenders"]["mine"] == {name: pytest.approx(one) for name, one in expected.items()}
    ranked = vr.estimate_ranking(f, log, survey=survey)
    assert {name: one["source"] for name, one in shown["ranking"]["mine"].items()} == {
        name: one.diagnostics["source"] for name, one in ranked.items()
    }
    assert shown["ranking"]["mine"]["auc"]["value"] == pytest.approx(ranked["auc"].value)
    output = estimate("log.csv", *GIVEN, "--survey", "survey.csv")[1]
    assert "Go by survey-ppi" in output
    alone = estimate("log.csv", *GIVEN, "--survey", "survey.csv", "--estimators", "naive,survey")[1]
    assert "Go by survey, which rests on the survey's own labels." in alone
    assert "survey-ppi" not in alone
    assert "Labels are taken as true" not in output


def test_what_rests_on_the_log_beside_a_survey_is_said(estimate, survey, folder, tmp_path):
    lines = (folder / "survey.csv").read_text().splitlines()
    (tmp_path / "few.csv").write_text("\n".join([lines[0], *lines[1::4], ""]))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        _, output, errors = estimate("log.csv", *GIVEN, "--survey", tmp_path / "few.csv", "-k", 1)
    assert "ndcg@1 (log)" in output
    assert "auc (log)" not in output
    assert "too few pairs of the right kind for dcg@1" in errors


def test_rows_shown_at_random_are_a_survey_and_no_rows_of_the_log(figures, folder, tmp_path):
    header, *lines = (folder / "log.csv").read_text().splitlines()
    marks = [int(place % 4 == 0) for place in range(len(lines))]
    rows = [f"{line},{mark}" for line, mark in zip(lines, marks, strict=True)]
    (tmp_path / "marked.csv").write_text("\n".join([f"{header},random", *rows, ""]))
    rates = ("--rho01", 0.2, "--rho10", 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shown = figures(tmp_path / "marked.csv", *GIVEN, *rates, "--unbiased", "random")
    assert "survey-ppi" in shown["recommenders"]["mine"]
    assert shown["ranking"]["mine"]["auc"]["source"] == "survey"


# Mistakes

GIVEN = ["--predictions", "mine=matrix.npy"]

MISTAKES = [
    (["log.csv", *GIVEN, "--calibrate", "magic"], r"--calibrate must be one of isotonic, platt; got 'magic'"),
    (["log.csv", *GIVEN, "--calibrate", "platt", "--ranking-only"], r"give one of the two"),
    (["log.csv", *GIVEN, "-k", 0], r"Invalid value for '-k'"),
    (
        ["log.csv", "--predictions", "a=logged.csv", "--ranking-only"],
        r"a has no scores of all pairs: there is no ranking",
    ),
    (["no.csv", *GIVEN], r"no file '?no\.csv'?"),
    (["log.xlsx", *GIVEN], r"a log must end in \.csv"),
    (["log.csv"], r"Missing option '--predictions'"),
    (["log.csv", "--predictions", "matrix.npy"], r"--predictions must be NAME=FILE; got 'matrix\.npy'"),
    (["log.csv", "--predictions", "=matrix.npy"], r"--predictions must be NAME=FILE"),
    (["log.csv", "--predictions", "mine="], r"--predictions must be NAME=FILE"),
    (["log.csv", *GIVEN, *GIVEN], r"--predictions names 'mine' twice"),
    (["log.csv", "--predictions", "mine=no.csv"], r"no file '?no\.csv'?"),
    (["log.csv", *GIVEN, "--propensity", "magic"], r"--propensity must be one of .*logistic.*; got 'magic'"),
    (["log.csv", *GIVEN, "--propensity", "logged"], r"the log has no column of propensities"),
    (["log.csv", *GIVEN, "--propensity-column", "q"], r"no column 'q' \(for propensity\); the columns are: user"),
    (["log.csv", *GIVEN, "--propensity-column", "p", "--estimators", "tdr"], r"tdr .*needs the propensities of all"),
    (["log.csv", *GIVEN, "--estimators", "magic"], r"estimators must be among naive, .*; got 'magic'"),
    (["log.csv", *GIVEN, "--estimators", ""], r"estimators must be among .*; got ''"),
    (["log.csv", *GIVEN, "--estimators", "naive,,dr"], r"estimators must be among .*; got ''"),
    (
        ["log.csv", *GIVEN, "--estimators", "ome-dr"],
        r"noise_rates must be given for estimators that correct for noise: ome-dr",
    ),
    (["log.csv", *GIVEN, "--loss", "hinge"], r"loss must be one of absolute, log, squared.*; got 'hinge'"),
    (["log.csv", *GIVEN, "--imputation", "magic"], r"--imputation must be one of constant, model; got 'magic'"),
    (["log.csv", *GIVEN, "--interval", "magic"], r"interval must be one of bootstrap, delta; got 'magic'"),
    (["log.csv", *GIVEN, "--confidence", 95], r"confidence must be .*below 1; got 95"),
    (["log.csv", *GIVEN, "--clip", 0.5], r"clip must be .*below 0\.5; got 0\.5"),
    (["log.csv", *GIVEN, "--sample", 0], r"sample must be a whole number from 10 to 1,000,000,000; got 0"),
    (["log.csv", *GIVEN, "--duplicates", "magic"], r"duplicates must be one of .*; got 'magic'"),
    (["log.csv", *GIVEN, "--timestamp", "when"], r"no column 'when' \(for timestamp\); the columns are: user"),
    (["log.csv", *GIVEN, "--seed", -1], r"Invalid value for '--seed'"),
    (["log.csv", *GIVEN, "--rho01", 0.2], r"--rho01 and --rho10 go together; give both"),
    (["log.csv", *GIVEN, "--rho10", 0.2], r"--rho01 and --rho10 go together; give both"),
    (["log.csv", *GIVEN, "--rho01", 0.6, "--rho10", 0.4], r"rho01 \+ rho10 must be below 1.*; got 0\.6 \+ 0\.4"),
    (["log.csv", *GIVEN, "--rho01", -0.1, "--rho10", 0.4], r"rho01 must be a number of at least 0 and below 1"),
    (["log.csv", *GIVEN, "--rho01", "nan", "--rho10", 0.4], r"rho01 must be a number of at least 0 and below 1"),
    (["log.csv", *GIVEN, "--rho01", "x", "--rho10", 0.4], r"Invalid value for '--rho01'"),
    (
        ["log.csv", *GIVEN, "--rho01", 0.1, "--rho10", 0.1, "--region"],
        r"--audit, or --reask, or --region: one of the four",
    ),
    (["log.csv", *GIVEN, "--audit", "audit.csv", "--region"], r"one of the four"),
    (["log.csv", *GIVEN, "--audit", "audit.csv", "--reask", "audit.csv"], r"one of the four"),
    (["log.csv", *GIVEN, "--reask", "nope.csv"], r"no file 'nope.csv'"),
    (["log.csv", *GIVEN, "--audit", "audit.csv", "--rho01", 0.1], r"one of the four"),
    (["log.csv", *GIVEN, "--audit", "no.csv"], r"no file '?no\.csv'?"),
    (["log.csv", *GIVEN, "--audit", "negatives.csv"], r"an audit without a true positive cannot tell rho01"),
    (["log.csv", *GIVEN, "--positive-from", 2], r"--positive-from 2 makes all [\d,]+ labels 0"),
    (["stars.csv", *GIVEN], r"cannot tell which column is the user"),
    (["stars.csv", *GIVEN, "--user", "who", "--item", "what"], r"stars'? must be 0/1, or needs a rule"),
    (
        ["log.csv", "--predictions", "mine=logged.csv", "--estimators", "naive,dr"],
        r"dr need predictions for all 2,000 pairs; got [\d,]+\. Those that need the logged pairs only: naive",
    ),
]


def check_mistake(outcome, message):
    code, output, errors = outcome
    assert (code, output) == (2, "")
    assert re.fullmatch(rf"verirec: [^\n]*{message}[^\n]*\n", errors)


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[" ".join(map(str, case[0])) for case in MISTAKES])
def test_a_mistake_ends_in_one_line(estimate, arguments, message):
    check_mistake(estimate(*arguments), message)


BAD_LOGS = [
    ("", r"bad\.csv is empty"),
    ("user,item,label\n", r"the log is empty"),
    ("user,item,label\nu00,0,1\nu01,0,1\n", r"all 2 .*positive"),
    ("user,item,label\nu00,0,0\nu01,0,0\n", r"all 2 .*negative"),
    ("user,item,label\nu00,0,1\n", r"at least 2 rows"),
    ("user,item,label\nu00,0,1\nu00,0,0\n", r"1 user-item pairs occur with both labels"),
]


@pytest.mark.parametrize(("content", "message"), BAD_LOGS)
def test_a_bad_log_ends_in_one_line(estimate, folder, content, message):
    (folder / "bad.csv").write_text(content)
    (folder / "any.csv").write_text("user,item,score\nu00,0,0.5\n")
    constant = ["--propensity", "constant", "--estimators", "naive"]
    check_mistake(estimate("bad.csv", "--predictions", "mine=any.csv", *constant), message)


def with_value(value):
    matrix = np.full(SHAPE, 0.4)
    matrix[3, :2] = value
    return matrix


BAD_PREDICTIONS = [
    ("new.csv", "user,item,score\nnobody,0,0.5\n", r"new\.csv: user .*the first is 'nobody'"),
    ("new.csv", "user,item,score\nu00,7,0.5\n", r"new\.csv: item .*the first is 7"),
    ("text.csv", "user,item,score\nu00,0,high\n", r"text\.csv: score must be numbers; got string"),
    ("nan.csv", "user,item,score\nu00,0,nan\n", r"nan\.csv: score has missing values in 1 of 1 row"),
    ("inf.csv", "user,item,score\nu00,0,inf\n", r"inf\.csv: score has 1 values that are not finite"),
    ("twice.csv", "user,item,score\nu00,0,0.5\nu00,0,0.5\n", r"score 1 pairs more than once"),
    ("columns.csv", "user,item\nu00,0\n", r"cannot tell which column is the score"),
    ("empty.csv", "user,item,score\n", r"empty\.csv is empty"),
    ("cut.csv", "user,item,score\nu00\n", r"cut\.csv is not a readable csv file"),
    ("cut.npy", b"\x93NUMPY", r"cut\.npy is not a readable npy file"),
    ("text.npz", "user,item,score\n", r"text\.npz is not a readable npz file"),
    ("nan.npy", with_value(np.nan), r"nan\.npy has 2 scores that are not finite"),
    (
        "one.npy",
        with_value(1.0),
        r"probabilities strictly between 0 and 1; 2 of 2,000 predictions are not \(first: 1, 1\); --clip 1e-6 would",
    ),
    ("high.npy", with_value(3.5), r"strictly between 0 and 1; 2 of 2,000 predictions are not \(first: 3\.5, 3\.5\)"),
    ("shape.npy", np.full((SHAPE[0], SHAPE[1] + 1), 0.4), r"must have shape \(50, 40\); got \(50, 41\)"),
    ("flat.npy", np.full(SHAPE[0] * SHAPE[1], 0.4), r"must have shape \(50, 40\); got \(2000,\)"),
    ("words.npy", np.full(SHAPE, "high"), r"words\.npy must be a matrix of numbers; got <U4"),
    ("part.npz", {"user_factors": np.ones((SHAPE[0], 2))}, r"part\.npz must have user_factors and item_factors"),
    (
        "few.npz",
        {"user_factors": np.ones((9, 2)), "item_factors": np.ones((SHAPE[1], 2))},
        r"user_factors must have shape \(50, 2\); got \(9, 2\)",
    ),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD_PREDICTIONS, ids=[case[0] for case in BAD_PREDICTIONS])
def test_bad_predictions_end_in_one_line(estimate, tmp_path, name, content, message):
    file = tmp_path / name
    if isinstance(content, dict):
        np.savez(file, **content)
    elif isinstance(content, np.ndarray):
        np.save(file, content)
    else:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    check_mistake(estimate("log.csv", "--predictions", f"mine={file}"), message)


def test_a_later_recommenders_mistake_prints_nothing_of_the_earlier(estimate):
    check_mistake(estimate("log.csv", *GIVEN, "--predictions", "other=no.csv"), r"no file '?no\.csv'?")


@pytest.mark.parametrize("name", ["bomb.npy", "bomb.npz"])
def test_pickled_objects_are_refused_and_not_run(estimate, tmp_path, name):
    bomb = np.array([[Bomb(tmp_path / "exploded")]], dtype=object)
    if name.endswith("z"):
        np.savez(tmp_path / name, user_factors=bomb, item_factors=bomb)
    else:
        np.save(tmp_path / name, bomb)
    check_mistake(estimate("log.csv", "--predictions", f"mine={tmp_path / name}"), r"is not a readable np[yz] file")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("arguments", [["no.csv", *GIVEN], ["log.csv", *GIVEN, "--rho01", "1.5", "--rho10", "0"]])
def test_the_installed_command_shows_no_traceback(spawn, folder, arguments):
    log, *others = arguments
    code, output, errors = spawn("estimate", folder / log, *others)
    assert (code, output) == (2, "")
    assert re.fullmatch(r"verirec: [^\n]+\n", errors)


def test_warnings_are_lines_of_their_own(spawn, folder):
    lines = (folder / "log.csv").read_text().splitlines()
    (folder / "few.csv").write_text("\n".join(lines[:20]) + "\n")
    rows = [line.split(",")[:2] for line in lines[1:20]]
    write_table(folder / "few_scores.csv", ["user", "item", "score"], *zip(*rows, strict=True), [0.5] * len(rows))
    options = ["--propensity", "constant", "--estimators", "ips", "--json"]
    code, output, errors = spawn(
        "estimate", folder / "few.csv", "--predictions", f"mine={folder / 'few_scores.csv'}", *options
    )
    assert code == 0
    assert json.loads(output)["recommenders"]["mine"]
    assert all(line.startswith("verirec: warning: ") for line in errors.splitlines())
    assert "equally weighted" in errors


def test_the_help_names_every_option(run):
    output = run("estimate", "--help")[1]
    for option in ("--predictions", "--rho01", "--audit", "--region", "--propensity", "--clip", "--json"):
        assert option in output
