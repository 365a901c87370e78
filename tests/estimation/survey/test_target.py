"""The pairs that an answer speaks for, against sets of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verirec as vr
from refusals import check_refusal
from verirec.estimation.survey.target import Target, excluded_keys
from verirec.exceptions import ParameterError, PositionError, SurveyError

SHAPE = (4, 5)
PAIRS = [(user, item) for user in range(4) for item in range(5)]


@st.composite
def targets(draw):
    frame = draw(st.none() | st.sets(st.integers(0, 3), min_size=1))
    left_out = draw(st.lists(st.sampled_from(PAIRS), max_size=12))
    return frame, left_out


def plain_pairs(frame, left_out):
    return {(u, i) for u, i in PAIRS if (frame is None or u in frame) and (u, i) not in left_out}


def made(frame, left_out):
    exclude = tuple(np.array(side, int) for side in zip(*left_out, strict=True)) if left_out else None
    return Target.of(SHAPE, None if frame is None else np.array(sorted(frame), np.int32), exclude)


@given(targets())
def test_it_is_a_set_of_pairs(parts):
    wanted = plain_pairs(*parts)
    if not wanted:
        check_refusal(lambda: made(*parts), SurveyError, "exclude leaves no pair")
        return
    target = made(*parts)
    assert len(target) == len(wanted)
    users, items = (np.array(side) for side in zip(*PAIRS, strict=True))
    held = target.holds(users, items)
    assert {pair for pair, inside in zip(PAIRS, held, strict=True) if inside} == wanted
    mean, count = target.means(lambda u, i: [10.0 * u + i, np.ones(np.broadcast(u, i).shape)])
    assert mean == pytest.approx(np.mean([10 * u + i for u, i in wanted]))
    assert count == pytest.approx(1)
    drawn = set(zip(*(side.tolist() for side in target.sample(400, np.random.default_rng(0))), strict=True))
    assert drawn <= wanted


def test_its_sample_is_uniform():
    target = made({0, 2, 3}, [(0, 1), (2, 2)])
    users, items = target.sample(130_000, np.random.default_rng(1))
    counts = np.zeros(SHAPE)
    np.add.at(counts, (users, items), 1)
    each = len(users) / len(target)
    inside = np.array([counts[pair] for pair in plain_pairs({0, 2, 3}, [(0, 1), (2, 2)])])
    assert np.abs(inside - each).max() < 4.5 * np.sqrt(each)


def test_what_may_be_left_out():
    log = vr.FeedbackLog.from_arrays([0, 1], [2, 3], [1, 0], n_users=4, n_items=5)
    assert excluded_keys(None, SHAPE).tolist() == []
    assert excluded_keys(log, SHAPE).tolist() == [2, 8]
    assert excluded_keys(([0, 1], [2, 3]), SHAPE).tolist() == [2, 8]
    assert excluded_keys([log, (np.array([3]), np.array([4]))], SHAPE).tolist() == [2, 8, 19]


@pytest.mark.parametrize(
    ("exclude", "error", "message"),
    [
        ("train.csv", ParameterError, "a FeedbackLog or .users, items.; got str"),
        (3, ParameterError, "got int"),
        (([0], [1], [1]), ParameterError, "got 3 parts"),
        (([0, 1], [1]), ParameterError, "one length; got 2 and 1"),
        (([4], [0]), PositionError, "positions from 0 to 3"),
        (([0], [5]), PositionError, "positions from 0 to 4"),
        (([0.5], [0]), PositionError, "integers"),
        (
            vr.FeedbackLog.from_arrays([0], [0], [1], n_users=4, n_items=4),
            ParameterError,
            r"\(4, 5\); got a log of \(4, 4\)",
        ),
    ],
)
def test_what_may_not(exclude, error, message):
    check_refusal(lambda: excluded_keys(exclude, SHAPE), error, message)
