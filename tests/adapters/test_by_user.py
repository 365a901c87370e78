"""Models that score users' items: kept or asked again, and what they do not know."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from verirec.adapters import by_user
from verirec.data import as_predictions
from verirec.exceptions import ColdStartWarning, UnknownIdError

LOG = vr.FeedbackLog.from_arrays([0, 1, 5], [0, 1, 3], [1, 0, 1], n_users=6, n_items=4)
SCORES = np.random.default_rng(0).normal(size=LOG.shape)


@pytest.mark.parametrize("most", [1_000, 1])
def test_grids_of_any_size_have_the_models_scores(monkeypatch, most):
    monkeypatch.setattr(by_user, "MOST_STORED", most)
    found = as_predictions(by_user.scores_by_user(lambda users: SCORES[users], LOG, "a model"), *LOG.shape)
    assert found.block(np.arange(6), np.arange(4)) == pytest.approx(SCORES)
    assert found.at([5, 0, 5], [1, 2, 0]) == pytest.approx(SCORES[[5, 0, 5], [1, 2, 0]])


@pytest.mark.parametrize("most", [1_000, 1])
def test_what_is_not_known_gets_the_mean(monkeypatch, most):
    monkeypatch.setattr(by_user, "MOST_STORED", most)
    holes = SCORES.copy()
    holes[2], holes[:, 1] = np.nan, np.nan
    with pytest.warns(ColdStartWarning, match=r"9 of 24 pairs \(1 users and 1 items"):
        found = as_predictions(by_user.scores_by_user(lambda users: holes[users], LOG, "a model"), *LOG.shape)
    assert found.at([2, 0], [0, 1]) == pytest.approx(np.full(2, np.nanmean(holes)))


def test_a_model_that_knows_nothing_is_refused():
    with pytest.raises(UnknownIdError, match=r"a model scores no pair of the log: .* users \(first: 0\)"):
        by_user.scores_by_user(lambda users: np.full((len(users), 4), np.nan), LOG, "a model")


@pytest.mark.parametrize("lacking", [2, 5])
def test_users_that_a_model_says_it_lacks_are_counted_on_large_grids_too(monkeypatch, lacking):
    monkeypatch.setattr(by_user, "MOST_STORED", 1)
    monkeypatch.setattr(by_user, "_LOOKED_AT", 1)
    holes, known = SCORES.copy(), np.ones(6, bool)
    holes[6 - lacking :], known[6 - lacking :] = np.nan, False
    with pytest.warns(ColdStartWarning, match=rf"{4 * lacking} of 24 pairs \({lacking} users and 0 items"):
        found = by_user.scores_by_user(lambda users: holes[users], LOG, "a model", known)
    values = as_predictions(found, *LOG.shape)
    assert values.at([5, 0], [0, 1]) == pytest.approx([SCORES[0].mean(), SCORES[0, 1]])


def test_the_first_user_that_a_large_model_turns_out_to_lack_is_told_once(monkeypatch, recwarn):
    monkeypatch.setattr(by_user, "MOST_STORED", 1)
    monkeypatch.setattr(by_user, "_LOOKED_AT", 1)
    holes = SCORES.copy()
    holes[3:] = np.nan
    values = as_predictions(by_user.scores_by_user(lambda users: holes[users], LOG, "a model"), *LOG.shape)
    assert not recwarn.list
    for user in (1, 4, 5):
        values.at([user], [0])
    assert [str(one.message) for one in recwarn.list] == [
        "a model does not score some users of the log (first: 4), which it may not know: they get its mean score"
    ]
