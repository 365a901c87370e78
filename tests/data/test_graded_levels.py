"""Logs that keep their levels: what they hold, what they refuse, and who refuses them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import DuplicatePairError, LabelError, ParameterError

STARS = [1, 2, 3, 4, 5]
PAIRS = {"users": [0, 0, 1, 1, 2, 2], "items": [0, 1, 1, 2, 0, 3], "n_users": 3, "n_items": 4}


def starred(ratings=(5, 1, 4, 2, 3, 1), **more):
    return vr.FeedbackLog.from_arrays(labels=ratings, **({"levels": STARS} | PAIRS | more))


def test_labels_are_places_among_the_levels():
    log = starred()
    assert log.levels == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert log.labels.dtype == np.int8
    assert log.labels.tolist() == [4, 0, 3, 1, 2, 0]
    assert log.label_values.tolist() == [5, 1, 4, 2, 3, 1]
    assert "5 levels with a mean of 2.67" in repr(log)


def test_half_stars_and_single_precision_are_read():
    halves = np.arange(0.5, 5.5, 0.5)
    log = starred(np.array([0.5, 5.0, 3.5, 2.0, 1.5, 4.5], np.float32), levels=halves)
    assert log.label_values.tolist() == [0.5, 5.0, 3.5, 2.0, 1.5, 4.5]
    assert starred(np.full(6, 3.1, np.float32), levels=[3.1, 3.2]).labels.tolist() == [0] * 6


def test_frames_and_files_keep_levels(tmp_path):
    frame = pd.DataFrame({"user": ["a", "a", "b"], "item": [1, 2, 1], "rating": [5, 2.5, 1]})
    log = vr.FeedbackLog.from_frame(frame, levels=[1, 2.5, 5])
    assert log.label_values.tolist() == [5, 2.5, 1]
    frame.to_csv(tmp_path / "ratings.csv", index=False)
    assert vr.read_log(tmp_path / "ratings.csv", levels=[1, 2.5, 5]).equals(log)
    assert log.to_frame()["rating"].tolist() == log.label_values.tolist()
    again = vr.FeedbackLog.from_frame(log.to_frame(), levels=log.levels)
    assert again.equals(log)


def test_copies_parts_and_other_labels_keep_levels():
    log = starred()
    for other in (copy.deepcopy(log), pickle.loads(pickle.dumps(log)), log.select(np.arange(6))):
        assert other.equals(log)
    assert vr.split(log, 0.5, random_state=0).train.levels == log.levels
    assert log.with_labels([1, 1, 2, 2, 5, 5]).label_values.tolist() == [1, 1, 2, 2, 5, 5]
    built = vr.FeedbackLog(log.users, log.items, log.labels, 3, 4, levels=(1, 2, 3, 4, 5))
    assert built.equals(log)


def test_a_binary_log_is_made_of_levels():
    log = starred().binary(positive_from=4)
    assert log.levels is None
    assert log.labels.tolist() == [1, 0, 1, 0, 0, 0]
    check_refusal(lambda: log.binary(positive_from=4), ParameterError, "binary already")


def test_repeated_pairs_with_different_levels_are_refused():
    twice = {"users": [0, 0, 1], "items": [0, 0, 1], "n_users": 2, "n_items": 2}
    check_refusal(
        lambda: vr.FeedbackLog.from_arrays(labels=[2, 4, 5], levels=STARS, **twice),
        DuplicatePairError,
        "1 user-item pairs occur with different labels",
    )
    log = vr.FeedbackLog.from_arrays(labels=[2, 4, 5], levels=STARS, duplicates="highest", **twice)
    assert log.label_values.tolist() == [4, 5]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"ratings": [5, 0, 4, 2, 3, 0]},
            LabelError,
            r"one of the levels 1, 2, 3, 4, 5; 2 of 6 rows are not: 0 \(2\)$",
        ),
        ({"ratings": [5.5, 1, 2, 3, 4, 4.5]}, LabelError, r"2 of 6 rows are not: 4.5 \(1\), 5.5 \(1\)$"),
        ({"positive_from": 4}, ParameterError, "levels or positive_from, not both"),
        ({"levels": [5, 4, 3]}, ParameterError, "ascending order"),
        ({"levels": [-1e308, 1e308]}, ParameterError, r"levels must be of at most 1e\+100"),
        ({"levels": [1, 1, 2]}, ParameterError, "ascending order"),
        ({"levels": [3]}, ParameterError, "at least 2"),
        ({"levels": "1,2"}, ParameterError, "levels must be"),
        ({"levels": [1, np.nan]}, ParameterError, "finite"),
    ],
)
def test_what_is_no_list_of_levels_or_none_of_them_is_refused(change, error, message):
    check_refusal(lambda: starred(**change), error, message)


BINARY_ONLY = {
    "estimate_ranking": lambda log: vr.estimate_ranking(np.zeros(log.shape), log),
    "sensitivity": lambda log: vr.sensitivity(np.full(log.shape, 0.5), log),
    "calibrate": lambda log: vr.calibrate(np.zeros(log.shape), log),
    "plan_labels": lambda log: vr.plan_labels(log, budget=10),
    "find_suspect_labels": lambda log: vr.find_suspect_labels(log, noise_rates=vr.NoiseRates(0.1, 0.1)),
    "identified_region": vr.identified_region,
    "AnchorNoiseRates": lambda log: vr.AnchorNoiseRates().fit(log),
    "AuditNoiseRates": lambda log: vr.AuditNoiseRates().fit(log, audit=vr.AuditSample([0], [0], [1])),
    "NaiveBayesPropensity": lambda log: vr.NaiveBayesPropensity(unbiased=log).fit(log),
    "LabelModel": lambda log: vr.LabelModel().fit(log, np.ones(len(log))),
    "selection_strength": lambda log: vr.selection_strength(log, vr.SurveySample([0], [0], [1])),
}


@pytest.mark.parametrize("name", BINARY_ONLY)
def test_what_is_binary_only_refuses_levels_in_a_line(name):
    check_refusal(
        lambda: BINARY_ONLY[name](starred()), LabelError, r"binary labels are needed here; the log has 5 levels"
    )
