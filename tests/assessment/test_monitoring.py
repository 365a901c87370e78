"""Monitoring: periods by timestamps, the same assessment of each, and verdicts that allow for looking many times."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import verirec as vr
from refusals import check_refusal
from verirec.assessment.monitoring.findings import Change
from verirec.assessment.monitoring.levels import level_at
from verirec.data.periods import periods_of
from verirec.estimation import Estimate
from verirec.estimation.gathering import audit_within
from verirec.exceptions import DataError, ParameterError, PredictionError, SurveyError

SHAPE = 60, 50
FILES = ("report.html", "summary.json", "monitoring.csv", "monitoring.png")
MONTHS = ["2024-01", "2024-02", "2024-03", "2024-04"]


def dated(log, times, **more):
    return vr.FeedbackLog.from_arrays(
        log.users, log.items, log.labels, n_users=log.n_users, n_items=log.n_items, timestamps=times, **more
    )


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.5, selectivity=1, random_state=2)


@pytest.fixture(scope="module")
def log(world):
    months = np.random.default_rng(0).choice([0, 1, 3], size=len(world.log))
    return dated(world.log, np.array(MONTHS, "datetime64[M]")[months].astype("datetime64[D]") + 5)


@pytest.fixture(scope="module")
def given(world):
    return {"sharp": 0.1 + 0.8 * world.preferences, "blunt": 0.4 + 0.2 * world.preferences}


def asked(labels, seed, count=300):
    users, items = np.random.default_rng(seed).integers([[SHAPE[0]], [SHAPE[1]]], size=(2, count))
    return vr.SurveySample(users, items, labels[users, items])


@pytest.fixture(scope="module")
def surveys(world):
    return {name: asked(world.true_labels, seed) for seed, name in enumerate(MONTHS) if name != "2024-03"}


@pytest.fixture(scope="module")
def found(log, given, surveys):
    return vr.monitor(log, given, surveys=surveys)


# Periods


@pytest.mark.parametrize(
    ("every", "names", "of_rows"),
    [
        ("day", ["2023-12-31", "2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"], [0, 1, 4]),
        ("week", ["2023-12-25", "2024-01-01"], [0, 1, 1]),
        ("month", ["2023-12", "2024-01"], [0, 1, 1]),
        ("year", ["2023", "2024"], [0, 1, 1]),
    ],
)
@pytest.mark.parametrize("unit", ["date", "s", "ms", "us", "ns", "float"])
def test_periods_are_those_of_the_calendar(every, names, of_rows, unit):
    times = np.array(["2023-12-31T23:59", "2024-01-01T00:00", "2024-01-04T12:00"], "datetime64[ns]")
    if unit == "float":
        times = times.astype("datetime64[ms]").astype(np.int64) / 1000
    elif unit != "date":
        times = times.astype(f"datetime64[{unit}]").astype(np.int64)
    log = vr.FeedbackLog.from_arrays([0, 1, 2], [0, 0, 0], [1, 0, 1], n_users=3, n_items=1, timestamps=times)
    found = periods_of(log, every)
    assert found.names == names
    assert found.of_rows.tolist() == of_rows


def test_weeks_begin_on_mondays():
    days = np.arange("1969-12-20", "1970-02-01", dtype="datetime64[D]")
    log = vr.FeedbackLog.from_arrays(
        np.arange(len(days)), np.zeros(len(days), int), np.ones(len(days)), n_users=len(days), n_items=1,
        timestamps=days,
    )  # fmt: skip
    found = periods_of(log, "week")
    expected = [str((day - pd.Timedelta(days=day.weekday())).date()) for day in pd.to_datetime(days)]
    assert [found.names[number] for number in found.of_rows] == expected


TIMES = [
    (np.array([1, 2, 3]), "must be dates, or seconds or smaller units since 1970; they go from 1 to 3"),
    (np.array([0, 86_400, 1.7e9]), "more than 1,000: are they of the unit"),
    (None, "periods need timestamps"),
    (np.array([1e300, 1e300, 1e300]), r"must be dates, or seconds or smaller units since 1970; they go from 1e\+300"),
]


@pytest.mark.parametrize(("times", "message"), TIMES, ids=["no times", "too many days", "none", "too large"])
def test_times_that_make_no_periods_are_refused(times, message):
    log = vr.FeedbackLog.from_arrays([0, 1, 2], [0, 0, 0], [1, 0, 1], n_users=3, n_items=1, timestamps=times)
    check_refusal(lambda: periods_of(log, "day"), DataError, message)


# What is found


def test_each_period_is_the_assessment_of_its_rows(log, given, surveys, found):
    assert [one.name for one in found.periods] == MONTHS
    rows = log.select(periods_of(log, "month").of_rows == 1)
    alone = vr.assess(rows, given, survey=surveys["2024-02"])
    period = found.periods[1]
    assert period.rows == len(rows)
    for name in given:
        one, two = (each.recommenders[name].estimates["survey-ppi"] for each in (alone, period.found))
        assert (one.value, one.interval) == (two.value, two.interval)
    assert period.found.strength.value == alone.strength.value


def test_verdicts_rest_on_wider_intervals(found):
    period = found.periods[1]
    # Two recommenders: one comparison, and from the second period on two changes.
    assert period.level == level_at(2, 3, 0.95)
    usual, strict = period.found.comparisons[0].deciding, period.comparisons[0].deciding
    assert strict.value == usual.value
    assert strict.interval[0] < usual.interval[0] < usual.interval[1] < strict.interval[1]


def test_a_period_without_rows_is_told_and_counts_as_a_look(found):
    empty, last = found.periods[2:]
    assert (empty.found, empty.rows, empty.lacking) == (None, 0, "it has no rows")
    assert last.level == level_at(4, 3, 0.95)
    assert "1 of 4 periods was not assessed; 2024-03: it has no rows." in found.conclusions


def test_a_period_of_one_class_or_without_a_survey_is_told(log, given, surveys):
    number = periods_of(log, "month").of_rows
    kept = (number != 1) | (log.labels == 0)
    one = vr.monitor(log.select(kept), given, surveys={"2024-01": surveys["2024-01"]})
    assert "both classes" in one.periods[1].lacking
    # Without one, what decides is the range, which is not held against an estimate.
    assert one.periods[3].found.basis == "range"
    assert one.periods[3].changes == ()


def test_clicks_without_labels_in_any_period_are_refused(log, given):
    clicks = log.select(log.labels == 1)
    check_refusal(lambda: vr.monitor(clicks, given), DataError, "no period of 4 can be assessed; 2024-01: .*both class")


def test_a_change_is_found_where_there_is_one(world, log, given):
    turned = world.true_labels.copy()
    turned[:30] = 1 - turned[:30]
    now = {"2024-01": asked(world.true_labels, 1), "2024-02": asked(world.true_labels, 2), "2024-04": asked(turned, 3)}
    found = vr.monitor(log, {"sharp": given["sharp"]}, surveys=now)
    changes = [one for one in found.verdicts if one["kind"] == "change"]
    assert [(one["period"], one["change"]) for one in changes] == [("2024-02", None), ("2024-04", "worse")]
    assert changes[1]["low"] > 0
    assert found.conclusions[0].startswith(
        "sharp became worse: in 2024-04 its true log loss was higher than in 2024-01"
    )


def test_rates_of_an_audit_are_those_of_each_period(world, log, given):
    rows = np.random.default_rng(1).choice(len(log), 600, replace=False)
    audit = vr.AuditSample(log.users[rows], log.items[rows], world.true_labels[log.users[rows], log.items[rows]])
    found = vr.monitor(log, given, audit=audit)
    # What is not shown is not worked out: an assessment has a curve of errors along a score.
    rows = log.select(periods_of(log, "month").of_rows == 0)
    assert vr.assess(rows, audit=audit_within(audit, rows)).errors is not None
    assert all(one.found.errors is None for one in found.periods if one.found)
    frame = found.to_frame().set_index("period")
    assert frame["rho01"].notna().tolist() == [True, True, False, True]
    assert frame["rho01"].dropna().nunique() == 3


def test_exploration_traffic_is_the_survey_of_its_period(world, log, given):
    shown = np.random.default_rng(5).random(len(log)) < 0.3
    found = vr.monitor(dated(log, log.timestamps, unbiased=shown), given, noise_rates=world.noise_rates)
    assert {one.found.basis for one in found.periods if one.found} == {"survey"}


def test_logs_without_recommenders_have_rates_and_no_verdicts(log):
    found = vr.monitor(log)
    assert found.verdicts == []
    assert "positive" in found.to_frame()


def test_the_order_of_rows_changes_nothing(log, given, surveys, found):
    mixed = np.random.default_rng(0).permutation(len(log))
    other = vr.FeedbackLog.from_arrays(
        log.users[mixed], log.items[mixed], log.labels[mixed], n_users=SHAPE[0], n_items=SHAPE[1],
        timestamps=log.timestamps[mixed],
    )  # fmt: skip
    assert vr.monitor(other, given, surveys=surveys).summary == found.summary


def test_verdicts_stay_what_they_were_on_the_same_grid(log, given, surveys, found):
    early = periods_of(log, "month").of_rows < 2
    asked_then = {name: surveys[name] for name in MONTHS[:2]}
    then = vr.monitor(log.select(early), given, surveys=asked_then).verdicts
    assert then == [one for one in found.verdicts if one["period"] in MONTHS[:2]]


def test_users_who_come_later_are_in_the_grid_of_all_periods(log, given):
    late = np.r_[log.timestamps, np.datetime64("2024-04-20")]
    more = vr.FeedbackLog.from_arrays(
        np.r_[log.users, SHAPE[0]], np.r_[log.items, 0], np.r_[log.labels, 1], n_users=SHAPE[0] + 1, n_items=SHAPE[1],
        timestamps=late,
    )  # fmt: skip
    grown = {name: np.vstack([one, np.full((1, SHAPE[1]), 0.9)]) for name, one in given.items()}
    before, after = (
        vr.monitor(*one, noise_rates=vr.NoiseRates(0.2, 0.1)).to_frame()["sharp_low"][0]
        for one in ((log, given), (more, grown))
    )
    assert before != after


def test_the_files_say_what_was_found(found, tmp_path):
    page = found.save(tmp_path).read_text()
    assert {file.name for file in tmp_path.iterdir()} == {*FILES}
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["verdicts"] == json.loads(json.dumps(found.verdicts))
    assert all(sentence in page for sentence in ("sharp is better", "Not assessed: it has no rows"))
    # Users who come later are in the grid of all periods, so that verdicts may change.
    assert "a verdict does not change" not in page
    assert "if these bring no new users or items" in page
    table = pd.read_csv(tmp_path / "monitoring.csv")
    assert table["period"].tolist() == MONTHS
    assert table["sharp_or_blunt"].tolist()[0] == "sharp"


# Looking many times


def test_levels_add_up():
    spent = sum(3 * (1 - level_at(look, 3, 0.95)) for look in range(1, 2_000))
    assert 0.0499 < spent < 0.05


def test_the_chance_of_any_wrong_verdict_holds_over_all_looks():
    """Twelve looks at nothing: 95% intervals mislead somebody nearly half of the time, these at most one time in 20."""
    random = np.random.default_rng(0)
    draws = np.abs(random.normal(size=(20_000, 12)))
    needed = np.array([ndtri((1 + level_at(look, 1, 0.95)) / 2) for look in range(1, 13)])
    wrong, usual = (draws > needed).any(axis=1).mean(), (draws > 1.96).any(axis=1).mean()
    assert wrong < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 20_000)
    assert usual > 0.4


def nothing_changes(seed, periods=6):
    """Return whether monitoring is misled where two constants are equally wrong in all periods."""
    random = np.random.default_rng(seed)
    labels = random.permuted(np.arange(SHAPE[0] * SHAPE[1]) % 2).reshape(SHAPE)
    cells = random.choice(labels.size, 1_200, replace=False)
    users, items = np.divmod(cells, SHAPE[1])
    names = [f"2024-{month:02}" for month in range(1, periods + 1)]
    times = np.array(names, "datetime64[M]")[random.integers(periods, size=len(cells))]
    log = vr.FeedbackLog.from_arrays(
        users, items, labels[users, items], n_users=SHAPE[0], n_items=SHAPE[1], timestamps=times.astype("datetime64[D]")
    )
    given = {"low": np.full(SHAPE, 0.4), "high": np.full(SHAPE, 0.6)}
    surveys = {name: asked(labels, [seed, place], 200) for place, name in enumerate(names)}
    return any(one["established"] for one in vr.monitor(log, given, surveys=surveys).verdicts)


@pytest.mark.long
def test_monitoring_is_seldom_misled_where_nothing_changes():
    wrong = np.mean([nothing_changes(seed) for seed in range(300)])
    assert wrong <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_a_change_has_the_interval_of_a_difference():
    now, then = Estimate(0.6, 0.02, (0.55, 0.66), 0.99), Estimate(0.5, 0.03, (0.45, 0.54), 0.99)
    found = Change.of("a", "2024-01", now, then)
    assert found.value == pytest.approx(0.1)
    assert found.interval == pytest.approx((0.1 - np.hypot(0.05, 0.04), 0.1 + np.hypot(0.06, 0.05)))
    wider = Change.of("a", "2024-01", now, Estimate(0.5, 0.03, (0.45, 0.54), 0.95))
    assert wider.interval[0] < found.interval[0]


def test_names_of_recommenders_start_no_formula_in_the_table(log, given, tmp_path):
    vr.monitor(log, {"=1+1": given["sharp"], "blunt": given["blunt"]}).save(tmp_path)
    cells = [cell for row in csv.reader((tmp_path / "monitoring.csv").read_text().splitlines()) for cell in row]
    assert "'=1+1_value" in cells
    assert not [cell for cell in cells if cell.startswith("=")]


BAD = [
    ({"every": "fortnight"}, ParameterError, "every must be one of day, month, week, year"),
    ({"surveys": {"2025-01": vr.SurveySample([0], [0], [1])}}, ParameterError, "names of periods, from 2024-01"),
    ({"surveys": [1]}, ParameterError, "surveys"),
    ({"propensities": np.full(SHAPE, 0.5)}, ParameterError, "must be a model, which is fitted to each"),
    ({"confidence": 1.5}, ParameterError, "confidence"),
    ({"audit": 3}, ParameterError, "audit must be an AuditSample; got int"),
    ({"audit": vr.AuditSample([99], [0], [1])}, DataError, "the audit's users"),
    ({"progress": 3}, ParameterError, "progress must be a function"),
    (
        {"predictions": {"stars": np.full(SHAPE, 3.5)}},
        PredictionError,
        "^stars: its scores are not probabilities, so there is no log loss to follow over time",
    ),
    ({"surveys": {"2024-01": 3}}, SurveyError, "survey of 2024-01 must be a SurveySample; got int"),
    ({"surveys": {"2024-01": vr.SurveySample([99], [0], [1])}}, DataError, "the survey of 2024-01's users"),
    ({"surveys": {1: 3}}, ParameterError, "surveys must name periods by printable text"),
    ({"predictions": {"a": np.full((3, 3), 0.5)}}, PredictionError, "shape"),
    ({"predictions": {"a": np.full(SHAPE, 1.0)}}, PredictionError, "a: "),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD, ids=[str(case[0])[:30] for case in BAD])
def test_bad_input_is_told_in_one_line(log, given, change, error, message):
    check_refusal(lambda: vr.monitor(log, **({"predictions": given} | change)), error, message)
