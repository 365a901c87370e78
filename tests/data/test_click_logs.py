"""Reading clicks: rows that say who clicked what, and nothing more."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import ColumnError, DataError, DroppedRowsWarning, ParameterError

FRAME = pd.DataFrame(
    {
        "user": ["ann", "ann", "bob", "bob"],
        "item": ["tea", "rum", "tea", "tea"],
        "when": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-02-03", "2024-02-04"]),
    }
)


@pytest.fixture
def file(tmp_path):
    FRAME.to_csv(tmp_path / "clicks.csv", index=False)
    return tmp_path / "clicks.csv"


def test_each_pair_is_a_click_and_the_first_one_counts(file):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logs = [
            vr.FeedbackLog.from_frame(FRAME, clicks=True, timestamp="when"),
            vr.read_log(file, clicks=True, timestamp="when"),
            vr.scan_log(file, clicks=True, timestamp="when"),
        ]
    for log in logs:
        assert log.labels.tolist() == [1, 1, 1]
        assert log.equals(logs[1]) or log is logs[0]
        assert pd.Timestamp(log.timestamps[-1]) == pd.Timestamp("2024-02-03")


def test_another_policy_for_repeated_clicks_is_kept(file):
    log = vr.read_log(file, clicks=True, timestamp="when", duplicates="latest")
    assert pd.Timestamp(log.timestamps[-1]) == pd.Timestamp("2024-02-04")


def test_a_column_of_ratings_is_not_looked_at(tmp_path):
    frame = FRAME.assign(rating=["a", "b", "c", "d"])
    assert vr.FeedbackLog.from_frame(frame, clicks=True).labels.tolist() == [1, 1, 1]


def test_rows_without_a_user_are_left_out(tmp_path):
    frame = FRAME.assign(user=["ann", None, "bob", "bob"])
    with pytest.warns(DroppedRowsWarning):
        assert len(vr.FeedbackLog.from_frame(frame, clicks=True, drop_missing=True)) == 2


def test_a_file_without_ratings_is_told_of_clicks(file):
    check_refusal(lambda: vr.read_log(file), ColumnError, "clicks=True if each row is a click")
    found = vr.check_file(file, clicks=True)
    assert not found.faults
    assert len(found.log) == 3


@pytest.mark.parametrize(
    "more", [{"rating": "when"}, {"positive_from": 3}, {"levels": [1, 2]}, {"scale": (1, 5)}, {"clicks": "yes"}]
)
def test_clicks_have_no_ratings(file, more):
    check_refusal(lambda: vr.read_log(file, **({"clicks": True} | more)), ParameterError, "clicks")


BAD_TIMES = [
    ("soon", "must hold numbers, dates or ISO text"),
    ("2024-13-01", "must hold numbers, dates or ISO text"),
    ("", "missing"),
]


@pytest.mark.parametrize(("time", "message"), BAD_TIMES)
def test_times_that_are_none_are_refused(tmp_path, time, message):
    path = tmp_path / "clicks.csv"
    path.write_text(f"user,item,when\nann,tea,2024-01-01\nbob,tea,{time}\n")
    check_refusal(lambda: vr.read_log(path, clicks=True, timestamp="when"), DataError, message)


@pytest.mark.parametrize("chance", [0, -0.1, 1.5])
def test_exposure_propensities_outside_of_0_and_1_are_refused(chance):
    frame = pd.DataFrame({"user": [1, 2], "item": [1, 1], "click": [0, 1], "shown": [0.5, chance]})
    check_refusal(lambda: vr.FeedbackLog.from_frame(frame, propensity="shown"), DataError, "above 0 and at most 1")
