"""Frames of pairs with true labels: taken as files are, by the log's own ids."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import (
    AuditError,
    ColumnError,
    DataError,
    EmptyLogError,
    PositionError,
    SurveyError,
    UnknownIdError,
)

LOG = vr.FeedbackLog.from_frame(
    pd.DataFrame({"user": ["ann", "bob", "cat"], "item": [7, 8, 9], "rating": [5, 2, 4]}), positive_from=3
)
FRAME = pd.DataFrame(
    {"user": ["cat", "ann", "bob"], "item": [7, 9, 8], "true_label": [1, 0, None], "weight": [2.0, 4, 4]}
)


@pytest.mark.parametrize("kind", [vr.SurveySample, vr.AuditSample])
@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME)], ids=["pandas", "polars"])
def test_a_frame_says_what_its_file_says(tmp_path, kind, frame):
    FRAME.to_csv(tmp_path / "asked.csv", index=False)
    of_file, of_frame = kind.from_file(tmp_path / "asked.csv", LOG), kind.from_frame(frame, LOG)
    assert len(of_frame) == 2
    for name, values in vars(of_file).items():
        assert np.array_equal(values, getattr(of_frame, name)), name


def test_columns_may_be_named_and_answers_be_stars():
    frame = FRAME.rename(columns={"user": "who", "item": "what"}).assign(stars=[5, 3, 1])
    found = vr.SurveySample.from_frame(frame, LOG, user="who", item="what", true_label="stars", positive_from=4)
    assert found.labels.tolist() == [1, 0, 0]


def test_levels_are_those_of_the_log():
    stars = vr.FeedbackLog.from_frame(
        pd.DataFrame({"user": ["ann", "bob", "cat"], "item": [7, 8, 9], "rating": [5, 2, 4]}), levels=[1, 2, 3, 4, 5]
    )
    found = vr.SurveySample.from_frame(FRAME.assign(true_label=[5, 3, 1]), stars)
    assert found.label_values.tolist() == [5, 3, 1]


def test_ids_that_mix_numbers_and_text_are_looked_up_as_text():
    mixed = pd.DataFrame({"user": [7, "7", 7.0, "m8", None], "item": [1, 2, 3, 1, 2], "rating": [1, 0, 1, 0, 1]})
    with pytest.warns(vr.exceptions.DroppedRowsWarning):
        log = vr.FeedbackLog.from_frame(mixed, clean_ids=True, drop_missing=True)
    assert log.user_ids.ids().tolist() == ["7", "m8"]
    asked = pd.DataFrame({"user": ["m8", 7], "item": [3, 1], "true_label": [1, 0]})
    assert vr.SurveySample.from_frame(asked, log).users.tolist() == [1, 0]


REFUSED = {
    "no frame": (lambda: vr.SurveySample.from_frame([1], LOG), DataError, "^the frame of a survey must be"),
    "no column": (lambda: vr.SurveySample.from_frame(FRAME[["user", "item"]], LOG), ColumnError, "the true_label"),
    "empty": (lambda: vr.AuditSample.from_frame(FRAME[:0], LOG), EmptyLogError, "^an audit's frame is empty"),
    "somebody else": (
        lambda: vr.SurveySample.from_frame(FRAME.replace("ann", "zoe"), LOG), UnknownIdError,
        "^a survey's frame: user is not in the log in 1 of 3 rows .* the first is 'zoe'",
    ),
    "stars": (
        lambda: vr.SurveySample.from_frame(FRAME.assign(true_label=5), LOG), SurveyError, "must be 0 or 1, yes or no"
    ),
    "stars audited": (
        lambda: vr.AuditSample.from_frame(FRAME.assign(true_label=5), LOG), AuditError, "must be 0 or 1, yes or no"
    ),
    "ids for positions": (
        lambda: vr.SurveySample(["ann"], [7], [1]), PositionError,
        r"must be integers \(positions\); .* log\.user_ids\.positions\(ids\) .* from_frame",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_taken_is_refused_in_one_line(case):
    act, error, message = REFUSED[case]
    check_refusal(act, error, message)
