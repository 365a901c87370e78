"""Rows left out and ids tidied: only where that is asked for, and never without a word."""

from __future__ import annotations

import math

import pandas as pd
import pyarrow as pa
import pytest

from refusals import check_refusal
from verirec import FeedbackLog, read_log
from verirec.data.cleaning import MISSING_WORDS, clean_ids, is_missing, numbers_of
from verirec.exceptions import DroppedRowsWarning, EmptyLogError, IdError, LabelError, MissingValueError, ParameterError

MESSY = """user,item,rating,when
ann ,7.0,5,1
bob,7,five,2
,8,3,3
cat,8,99,4
cat,9,1,NA
dan,9,2
dan,10,2,7
"""


@pytest.fixture
def messy(tmp_path):
    file = tmp_path / "messy.csv"
    file.write_text(MESSY)
    return file


def test_rows_that_lack_something_are_left_out_and_counted(messy):
    with pytest.warns(DroppedRowsWarning) as warned:
        log = read_log(messy, positive_from=3, drop_missing=True, clean_ids=True, scale=(1, 5), timestamp="when")
    assert log.to_frame().values.tolist() == [["ann", 7, 1, 5, 1], ["dan", 10, 0, 2, 7]]
    assert [str(one.message) for one in warned] == [
        "messy.csv: 1 lines do not have as many fields as there are columns, and are left out (first: 'dan,9,2')",
        "4 of 6 rows are left out: column 'user' has no value in 1, column 'when' has no value in 1, column 'rating' "
        "is no number (first: 'five') in 1, column 'rating' is not within 1 and 5 in 1",
    ]


def test_a_column_that_is_not_read_may_lack_what_it_likes(messy):
    with pytest.warns(DroppedRowsWarning):
        log = read_log(messy, positive_from=3, drop_missing=True)
    assert log.ratings.tolist() == [5, 99, 1, 2]


def test_nothing_is_said_where_nothing_is_left_out():
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"], "rating": [1, 0]})
    plain = FeedbackLog.from_frame(frame)
    assert FeedbackLog.from_frame(frame, drop_missing=True, clean_ids=True, scale=(0, 1)).equals(plain)


def test_an_error_about_missing_values_names_the_option(tmp_path):
    (tmp_path / "log.csv").write_text("user,item,rating\nann,1,1\n,2,0\n")
    check_refusal(
        lambda: read_log(tmp_path / "log.csv"), MissingValueError, "column 'user' .* leave such rows out: drop_missing"
    )


@pytest.mark.parametrize("word", [*MISSING_WORDS, "NaN", " NULL ", "None", "\\N"])
def test_words_that_say_missing_are_missing(word):
    column = pa.chunked_array([["ann", word], [word]])
    assert is_missing(column).tolist() == [False, True, True]
    assert is_missing(column.dictionary_encode()).tolist() == [False, True, True]


def test_null_and_nan_are_missing_in_dictionaries_too():
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array(["a", None]))
    assert is_missing(pa.chunked_array([encoded])).tolist() == [False, True, True]
    assert is_missing(pa.chunked_array([[1.0, math.nan, None]])).tolist() == [False, True, True]


def test_frames_of_floats_with_gaps_have_whole_ids_after_cleaning():
    frame = pd.DataFrame({"user": [1.0, None, 3.0], "item": [1, 2, 3], "rating": [1, 0, 0]})
    check_refusal(lambda: FeedbackLog.from_frame(frame, clean_ids=True), MissingValueError, "column 'user' has missing")
    with pytest.warns(DroppedRowsWarning, match=r"1 of 3 rows are left out: column 'user' has no value in 1"):
        log = FeedbackLog.from_frame(frame, drop_missing=True, clean_ids=True)
    assert log.user_ids.ids().tolist() == [1, 3]


@pytest.mark.parametrize(
    ("ids", "clean"),
    [
        ([" ann", "b b ", "7.0", "-12.000 ", "7.5", "1.0.0"], ["ann", "b b", "7", "-12", "7.5", "1.0.0"]),
        ([1.0, 2.0, math.nan], [1, 2, None]),
        ([1.5, 2.0], [1.5, 2.0]),
        ([2.0**60], [2.0**60]),
        ([3, 4], [3, 4]),
    ],
    ids=str,
)
def test_ids_are_tidied_and_no_more(ids, clean):
    assert clean_ids(pa.chunked_array([ids])).to_pylist() == clean


def test_ids_that_tidying_makes_the_same_are_one(tmp_path):
    (tmp_path / "log.csv").write_text("user,item,rating\n12.0,a,1\n12,b,0\n 12,c,0\n")
    log = read_log(tmp_path / "log.csv", clean_ids=True)
    assert log.user_ids.ids().tolist() == [12]


def test_floats_that_are_no_whole_numbers_are_no_ids():
    frame = pd.DataFrame({"user": [1.5, 2.0], "item": [1, 2], "rating": [1, 0]})
    check_refusal(lambda: FeedbackLog.from_frame(frame, clean_ids=True), IdError, "floats")


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["4,5", "3", "two", "true"], [4.5, 3.0, None, 1.0]),
        (["+5", " 4 ", "-1"], [5, 4, -1]),
        (["1,234,5", "1e3", "inf", ""], [None, 1000.0, None, None]),
        ([True, False], [1, 0]),
    ],
    ids=str,
)
def test_numbers_are_read_as_people_write_them(given, read):
    assert numbers_of(pa.chunked_array([given])).to_pylist() == read


def test_decimal_commas_need_no_option(tmp_path):
    (tmp_path / "log.csv").write_text("user;item;rating\na;x;4,5\nb;x;2\n")
    assert read_log(tmp_path / "log.csv", delimiter=";", positive_from=3).ratings.tolist() == [4.5, 2]


def test_ratings_outside_of_the_scale_are_refused_by_row():
    frame = pd.DataFrame({"user": [1, 2, 3], "item": [1, 2, 3], "rating": [1, 5, -1]})
    check_refusal(
        lambda: FeedbackLog.from_frame(frame, scale=(1, 5), positive_from=3),
        LabelError,
        "column 'rating' must be within the scale from 1 to 5; it is not in 1 of 3 rows .*, where row 2 has -1",
    )


def test_a_log_of_which_nothing_is_left_is_refused():
    frame = pd.DataFrame({"user": [None, "b"], "item": ["x", None], "rating": [1, 0]})
    check_refusal(
        lambda: FeedbackLog.from_frame(frame, drop_missing=True),
        EmptyLogError,
        "the log is empty: 2 of 2 rows are left out: column 'user' has no value in 1, column 'item' has no value in 1",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop_missing": 1}, "drop_missing must be True or False; got 1"),
        ({"clean_ids": "yes"}, "clean_ids must be True or False; got 'yes'"),
        ({"scale": 5}, r"scale must be the lowest and the highest rating, such as \(1, 5\); got 5"),
        ({"scale": (5, 1)}, "scale must have its lowest rating first"),
        ({"scale": (1, math.inf)}, "scale must be a finite number"),
    ],
    ids=str,
)
def test_what_is_asked_for_is_checked(options, message):
    frame = pd.DataFrame({"user": [1], "item": [1], "rating": [1]})
    check_refusal(lambda: FeedbackLog.from_frame(frame, **options), ParameterError, message)


def test_files_in_other_encodings_are_read_where_they_are_named(tmp_path):
    (tmp_path / "log.csv").write_bytes("user,item,rating\nJosé,x,1\nann,x,0\n".encode("cp1252"))
    assert read_log(tmp_path / "log.csv", encoding="cp1252").user_ids.ids().tolist() == ["José", "ann"]
    check_refusal(lambda: read_log(tmp_path / "log.csv", encoding="x"), ParameterError, "encoding must be one that")
