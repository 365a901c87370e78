"""What `make torture` found, each as the smallest call that shows it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import (
    FileFormatError,
    IdError,
    ModelFileError,
    ParameterError,
    PositionError,
    SurveyError,
    VerirecError,
)


def in_itself():
    nested: list[object] = []
    nested.append(nested)
    return nested


LOG = vr.FeedbackLog.from_arrays([0, 1, 1, 2], [0, 1, 2, 0], [1, 0, 1, 0], n_users=3, n_items=3)
HALF = np.full((3, 3), 0.5)
AUDIT = vr.AuditSample([0, 1], [0, 1], [1, 0])
SURVEY = vr.SurveySample([0, 1], [0, 1], [1, 0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        # Arrow follows such a list down until the stack, and the process, ends.
        (lambda: vr.IdMap.of(in_itself()), IdError, "lists among them"),
        (lambda: vr.IdMap.of(pd.DataFrame({"a": [1]})), IdError, "must hold strings or integers"),
        (lambda: vr.IdMap.of(scipy.sparse.eye(3)), IdError, "must hold strings or integers"),
        (lambda: vr.IdMap([]), IdError, "by IdMap.of"),
        (lambda: vr.IdMap(1e-320), IdError, "by IdMap.of"),
        (lambda: AUDIT.rows_in((LOG,)), ParameterError, "a FeedbackLog is needed"),
        (lambda: AUDIT.select("=1+1"), PositionError, "rows must be"),
        (lambda: SURVEY.select([0.5]), PositionError, "rows must be"),
        (lambda: vr.PopularityPropensity(floor=0.01).fit(LOG).count_floored([]), ParameterError, "a FeedbackLog"),
        (lambda: vr.sensitivity({0: HALF}, LOG), ParameterError, "printable text"),
        (
            lambda: vr.estimate_ranking(HALF, LOG, noise_rates=vr.NoiseRegion(0, 0), survey="asked"),
            SurveyError,
            "must be a SurveySample",
        ),
        (lambda: LOG.to_frame(backend=pd.NA), ParameterError, "backend must be one of"),
        (lambda: vr.read_log("a.csv", columns=7), ParameterError, "columns must be"),
        (lambda: vr.LabelModel().fit(LOG, np.ones(4), rates=0.5), ParameterError, "rates must be NoiseRates"),
        (lambda: vr.plan_labels(LOG, HALF, half_width=0.5, confidence=1e-320), ParameterError, "confidence must be"),
        (lambda: vr.load("x" * 5000), ModelFileError, "no model folder"),
        (lambda: vr.estimate(HALF, LOG, confidence=pd.Series(0.5)), ParameterError, "confidence must be"),
        (lambda: vr.estimate_ranking(HALF, LOG, max_scores=-1), ParameterError, "max_scores must be a whole number"),
        (
            lambda: vr.estimate_ranking(HALF, LOG, survey=SURVEY, max_scores=0.5),
            ParameterError,
            "max_scores must be a whole number of at least 1; got 0.5",
        ),
        (
            lambda: vr.plan_labels(LOG, HALF, budget=20, one_per_user="yes"),
            ParameterError,
            "one_per_user must be True or False; got 'yes'",
        ),
        (lambda: vr.estimate(HALF, LOG, random_state=np.random.SeedSequence(1)), ParameterError, "random_state must"),
    ],
)
def test_odd_arguments_are_refused_in_one_line(call, error, message):
    check_refusal(call, error, message)


def test_estimators_may_be_an_array():
    assert list(vr.estimate(HALF, LOG, estimators=np.array(["naive"]))) == ["naive"]


def test_a_log_equals_nothing_else():
    assert not LOG.equals(None)
    assert not LOG.equals(vr.FeedbackLog.from_frame(LOG.to_frame().assign(time=[1, 2, 3, 4]), timestamp="time"))
    assert LOG.equals(LOG)


def test_a_message_is_one_line_whatever_is_in_it():
    text = str(VerirecError("a\n  b\u2028c" + "x" * 5000))
    assert text.startswith("a b cx")
    assert len(text) < 1000


def test_scores_that_are_not_finite_are_refused_when_they_are_read(tmp_path):
    np.save(tmp_path / "a.npy", np.full((3, 3), np.nan))
    (tmp_path / "a.csv").write_text("user,item,score\n0,0,inf\n1,1,.5\n")
    for name in ("a.npy", "a.csv"):
        check_refusal(lambda name=name: vr.read_predictions(tmp_path / name, LOG), FileFormatError, "not finite")


def test_ids_that_are_lists_are_refused_in_a_survey(tmp_path):
    pq.write_table(pa.table({"user": [["a"]], "item": ["b"], "true_label": [1]}), tmp_path / "a.parquet")
    check_refusal(lambda: vr.SurveySample.from_file(tmp_path / "a.parquet", LOG), FileFormatError, "must be text")
