"""Text files that are read part by part: the log does not tell how many parts there were, nor what came late."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from verirec import FeedbackLog, read_log
from verirec.data import text_files
from verirec.data.text_ids import TextIds, plain_integers
from verirec.exceptions import MissingValueError

ROWS = 200_000
"""Some three blocks of a megabyte each."""


@pytest.fixture(params=[1, 100_000, 1 << 20], ids=["a block a part", "some parts", "one part"])
def parts(request, monkeypatch):
    monkeypatch.setattr(text_files, "_PART_ROWS", request.param)


def columns(user, last_user=None):
    users = np.array([user(row) for row in np.random.default_rng(0).permutation(ROWS)], object)
    if last_user is not None:
        users[-1] = last_user
    return pd.DataFrame({"user": users, "item": [f"i{row % 700}" for row in range(ROWS)], "label": np.arange(ROWS) % 2})


def number(row):
    return str(row * 1_000_003 - 5_000)


def name(row):
    return f"u{row:07d}"


@pytest.mark.parametrize(
    ("user", "last", "whole_numbers"),
    [
        (number, None, True),
        (name, None, False),
        (number, "007", False),
        (number, "0x1234567890ABCDE", False),
        (number, "1000000000000000000", False),
        (number, "-0", False),
        (number, "ann", False),
        (name, "7", False),
    ],
)
def test_ids_are_what_they_are_in_the_whole_file(tmp_path, parts, user, last, whole_numbers):
    frame, file = columns(user, last), tmp_path / "log.csv"
    frame.to_csv(file, index=False)
    assert file.stat().st_size > 2.5 * 2**20
    expected = frame.assign(user=frame["user"].astype("int64")) if whole_numbers else frame
    assert read_log(file).equals(FeedbackLog.from_frame(expected))


@pytest.mark.parametrize("user", [number, name])
def test_a_missing_id_is_found_wherever_it_is(tmp_path, parts, user):
    file = tmp_path / "log.csv"
    columns(user, "").to_csv(file, index=False)
    with pytest.raises(MissingValueError, match=rf"column 'user' has missing values in .*{ROWS - 1}"):
        read_log(file)


def test_a_rating_that_turns_fractional_in_a_later_part_is_read(tmp_path, parts):
    frame, file = columns(number), tmp_path / "log.csv"
    text = frame["label"].astype(str)
    text.iloc[-1] = "4.5"
    frame.assign(label=text).to_csv(file, index=False)
    log = read_log(file, positive_from=1)
    assert log.ratings is not None
    assert log.ratings.max() == 4.5


def test_integers_of_a_file_are_found_in_a_catalogue_of_text(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("user,item,label\n7,1,1\n8,2,0\n")
    log = read_log(file, all_users=["7", "8", "x"])
    assert log.user_ids.ids(log.users).tolist() == ["7", "8"]


ODD = ["0", "-1", "7", "999999999999999999", "-999999999999999999", "1000000000000000000", "9223372036854775807"]
ODD += ["-9223372036854775808", "-0", "00", "+7", " 7", "7 ", "7.0", "1e3", "0x1F", "0XFFFFFFFFFFFF"]
ODD += ["", "x", "١", "1_0"]


@pytest.mark.parametrize("beside", ["12", "-345678", "100000000000000000"])
@pytest.mark.parametrize("text", ODD)
def test_plain_integers_are_those_whose_text_can_be_had_back(text, beside):
    column = pa.chunked_array([[beside], [text, beside]])
    found = plain_integers(column)
    assert (found is not None) == bool(re.fullmatch("0|-?[1-9][0-9]{0,17}", text, re.ASCII))
    if found is not None:
        assert found.cast(pa.string()).to_pylist() == column.to_pylist()


def test_a_sliced_part_counts_its_own_rows_only():
    column = pa.chunked_array([pa.array(["007", "12", "5"]).slice(1)])
    assert plain_integers(column).to_pylist() == [12, 5]


def test_no_rows_are_a_column_too():
    assert len(TextIds().column()) == 0
