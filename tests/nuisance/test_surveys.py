"""Surveys: what is accepted, what is refused, and what they say of themselves."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import ParameterError, PositionError, SurveyError

GOOD = {"users": [0, 1, 1], "items": [3, 0, 2], "labels": [1, 0, 0]}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"users": [0, 1]}, SurveyError, "one length; got 2, 3 and 3"),
        ({"labels": [1, 0]}, SurveyError, "one length; got 3, 3 and 2"),
        ({"users": [0, -1, 1]}, PositionError, "the survey's users must be positions.*row 1 has -1"),
        ({"users": [0, 1.5, 1]}, PositionError, "users must be integers"),
        ({"items": ["a", "b", "c"]}, PositionError, "items must be integers"),
        ({"items": [[3], [0], [2]]}, PositionError, "flat"),
        ({"users": [], "items": [], "labels": []}, SurveyError, "needs pairs with labels; got none"),
        ({"labels": [1, 2, 0]}, SurveyError, "0/1; 1 are not"),
        ({"labels": [1, np.nan, 0]}, SurveyError, "labels"),
        ({"labels": ["yes", "no", "no"]}, SurveyError, "labels"),
        ({"probabilities": [0.1, 0, 0.2]}, SurveyError, r"above 0; 1 of 3 are not \(row 1 has 0\)"),
        ({"probabilities": [0.1, 0.1, -0.2]}, SurveyError, "row 2 has -0.2"),
        ({"probabilities": [np.nan, 0.1, 0.2]}, SurveyError, "probabilities"),
        ({"probabilities": [np.inf, 0.1, 0.2]}, SurveyError, "probabilities"),
        ({"probabilities": [0.1, 0.2]}, SurveyError, r"one entry a pair, 3; got shape \(2,\)"),
        ({"probabilities": 0.1}, SurveyError, "probabilities"),
        ({"probabilities": ["a", "b", "c"]}, SurveyError, "probabilities"),
        ({"clusters": [0, 1]}, SurveyError, "clusters must have one entry a pair"),
        ({"noisy": "yes"}, SurveyError, "noisy must be True or False; got 'yes'"),
        ({"frame": [0]}, SurveyError, "frame must have all its users; 2 pairs are of others"),
        ({"frame": [0, -1]}, PositionError, "the survey's frame"),
        (
            {"users": [1, 1, 1], "items": [0, 0, 2]},
            SurveyError,
            r"must agree; 1 pairs have both \(first: user 1, item 0\)",
        ),
    ],
)
def test_bad_surveys(changes, error, message):
    check_refusal(lambda: vr.SurveySample(**GOOD | changes), error, message)


def test_what_is_kept():
    survey = vr.SurveySample(**GOOD, probabilities=[1, 2, 4], clusters=[7, 5, 5], frame=[1, 0, 1])
    assert survey.labels.dtype == np.int8
    assert survey.probabilities.tolist() == [1, 2, 4]
    assert survey.clusters.tolist() == [1, 0, 0]
    assert survey.frame.tolist() == [0, 1]
    assert len(survey) == 3
    assert repr(survey) == "SurveySample(3 pairs, 33.3% positive)"
    shown = survey._repr_html_()
    assert "with given probabilities" in shown
    assert "1 (33.3%)" in shown


def test_clusters_may_have_any_names():
    named = vr.SurveySample(**GOOD, clusters=np.array(["ann", "bob", "bob"]))
    numbered = vr.SurveySample(**GOOD, clusters=[4, 9, 9])
    assert named.clusters.tolist() == numbered.clusters.tolist()


def test_draws_of_one_pair_may_be_repeated_and_noisy_ones_may_differ():
    assert len(vr.SurveySample([0, 0], [1, 1], [1, 1])) == 2
    noisy = vr.SurveySample([0, 0], [1, 1], [1, 0], noisy=True)
    assert repr(noisy) == "SurveySample(2 pairs, 50.0% positive, noisy)"


def test_a_part_of_a_survey():
    survey = vr.SurveySample(**GOOD, probabilities=[1, 2, 4], clusters=[7, 5, 5], noisy=True, frame=[0, 1])
    for rows in (np.array([False, True, True]), np.array([1, 2])):
        part = survey.select(rows)
        assert part.users.tolist() == [1, 1]
        assert part.items.tolist() == [0, 2]
        assert part.probabilities.tolist() == [2, 4]
        assert part.clusters.tolist() == [0, 0]
        assert part.frame.tolist() == [0, 1]
        assert part.noisy
    plain = vr.SurveySample(**GOOD).select(np.array([0]))
    assert plain.probabilities is None
    assert plain.clusters is None
    check_refusal(lambda: survey.select(np.zeros(3, bool)), SurveyError, "got none")


def test_rows_shown_at_random_are_a_noisy_survey(small_log):
    survey = vr.SurveySample.from_unbiased(small_log)
    assert survey.noisy
    assert survey.users.tolist() == [0, 1]
    assert survey.items.tolist() == [0, 2]
    assert survey.labels.tolist() == [1, 0]


def test_a_log_without_such_rows():
    log = vr.FeedbackLog.from_arrays([0, 1], [0, 0], [1, 0], n_users=2, n_items=1, unbiased=[False, False])
    check_refusal(lambda: vr.SurveySample.from_unbiased(log), SurveyError, "no row of the log is marked as unbiased")


def test_from_a_file(tmp_path, small_log):
    file = tmp_path / "survey.csv"
    file.write_text("user,item,true_label\n0,3,1\n2,2,0\n1,0,\n")
    survey = vr.SurveySample.from_file(file, small_log)
    assert survey.users.tolist() == [0, 2]
    assert survey.items.tolist() == [3, 2]
    assert survey.labels.tolist() == [1, 0]
    check_refusal(
        lambda: vr.SurveySample.from_file(3, small_log), ParameterError, "path must be a string or a Path; got 3"
    )


def test_pairs_that_are_worth_little_establish_nothing():
    users, items, labels = np.arange(200), np.zeros(200, int), np.arange(200) % 2
    uneven = np.ones(200)
    uneven[0] = 1e-6
    assert vr.SurveySample(users, items, labels, np.full(200, 0.3)).lacking == ""
    assert "are worth 1 that are as likely" in vr.SurveySample(users, items, labels, uneven).lacking
    # Enough pairs in all, and next to none of one class.
    skewed = np.where(labels == 1, np.where(users == 1, 1e-3, 1.0), 0.05)
    assert "nothing is established" in vr.SurveySample(users, items, labels, skewed).lacking


def test_best_is_kept_and_must_be_a_truth_value():
    survey = vr.SurveySample([0, 1], [0, 1], [1, 0], best=True)
    assert survey.select(np.array([0])).best
    with pytest.raises(SurveyError, match="best must be True or False"):
        vr.SurveySample([0], [0], [1], best="yes")
