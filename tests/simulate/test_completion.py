"""Completed ratings: good enough to rank by, reproducible, and what the stated objective gives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from refusals import check_refusal
from verirec import FeedbackLog, load_dataset
from verirec.exceptions import DataError, EmptyLogError, MemoryBudgetError, ParameterError
from verirec.simulate import complete_ratings


def log_of(users, items, ratings, shape):
    return FeedbackLog.from_arrays(users, items, ratings, n_users=shape[0], n_items=shape[1], positive_from=3)


@pytest.fixture
def random_log():
    random = np.random.default_rng(0)
    users, items = np.divmod(random.choice(20 * 30, 240, replace=False), 30)
    return log_of(users, items, random.integers(1, 6, 240), (20, 30))


def constants_by_ridge(log, penalty):
    """Solve for the mean, user and item constants alone, as one linear system."""
    ones, rows = np.ones(len(log)), np.arange(len(log))
    by_user = sparse.csr_array((ones, (rows, log.users)), shape=(len(log), log.n_users))
    by_item = sparse.csr_array((ones, (rows, log.items)), shape=(len(log), log.n_items))
    design = sparse.hstack([by_user, by_item], format="csr")
    mean = log.ratings.mean(dtype=np.float64)
    gram = (design.T @ design).toarray() + penalty * np.eye(design.shape[1])
    solved = np.linalg.solve(gram, design.T @ (log.ratings - mean))
    return mean + solved[: log.n_users, None] + solved[log.n_users :]


def test_held_out_ratings_are_predicted_better_than_by_user_and_item_constants(real_data):
    log = load_dataset("movielens-100k", data_home=real_data("movielens-100k")).train
    held_out = np.random.default_rng(0).random(len(log)) < 0.1
    train, test = log.select(~held_out), log.select(held_out)

    def rmse(completed):
        return np.sqrt(np.mean((completed[test.users, test.items] - test.ratings) ** 2))

    of_constants = min(rmse(constants_by_ridge(train, penalty)) for penalty in (2, 5, 10))
    assert rmse(complete_ratings(train)) < of_constants < 0.96


def test_under_a_strong_penalty_only_the_constants_are_left_and_they_solve_their_ridge_regression(random_log):
    completed = complete_ratings(random_log, penalty=60.0, sweeps=300)
    np.testing.assert_allclose(completed, constants_by_ridge(random_log, 60.0), atol=1e-8)


def test_a_matrix_of_low_rank_is_recovered_from_some_of_its_cells():
    random = np.random.default_rng(1)
    truth = 3 + random.normal(size=(60, 2)) @ random.normal(size=(2, 50))
    seen = random.random(truth.shape) < 0.6
    users, items = np.nonzero(seen)
    completed = complete_ratings(log_of(users, items, truth[seen], truth.shape), rank=2, penalty=1e-3, sweeps=200)
    assert np.abs(completed - truth)[~seen].max() < 0.05


def test_who_rated_nothing_is_predicted_by_the_items_alone_and_the_unrated_by_the_users_alone():
    log = log_of([0, 0, 1, 1], [0, 1, 0, 1], [5, 1, 4, 2], (3, 3))
    completed = complete_ratings(log, penalty=0.5)
    assert np.isfinite(completed).all()
    assert completed[2, 0] > completed[2, 1]
    assert completed[2, 2] == pytest.approx(log.ratings.mean())


def test_more_penalty_draws_predictions_towards_the_mean(random_log):
    spreads = [complete_ratings(random_log, penalty=penalty).std() for penalty in (0.5, 5, 50, 5e6)]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[-1] < 1e-3


def test_the_same_log_is_completed_the_same_way(random_log):
    first = complete_ratings(random_log, penalty=0.5)
    np.testing.assert_array_equal(first, complete_ratings(random_log, penalty=0.5))
    np.testing.assert_array_equal(first, complete_ratings(random_log, penalty=0.5, random_state=0))
    assert (first != complete_ratings(random_log, penalty=0.5, random_state=1)).any()


def test_rows_may_come_in_any_order(random_log):
    shuffled = random_log.select(np.random.default_rng(0).permutation(len(random_log)))
    np.testing.assert_allclose(complete_ratings(shuffled), complete_ratings(random_log), rtol=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank must be a whole number from 1 to 10,000; got 0"),
        ({"rank": 2.5}, "rank must be a whole number"),
        ({"sweeps": 0}, "sweeps must be a whole number of at least 1; got 0"),
        ({"penalty": 0}, "penalty must be a finite number above 0; got 0"),
        ({"penalty": float("nan")}, "penalty must be a finite number above 0; got nan"),
        ({"random_state": "today"}, "random_state must be .*got 'today'"),
    ],
)
def test_bad_options_are_refused_in_one_line(random_log, options, message):
    check_refusal(lambda: complete_ratings(random_log, **options), ParameterError, message)


def test_a_log_without_ratings_is_refused_in_one_line():
    log = FeedbackLog.from_arrays([0], [0], [1], n_users=1, n_items=1)
    check_refusal(lambda: complete_ratings(log), DataError, "must carry ratings.*positive_from")


def test_a_grid_beyond_the_budget_or_without_ratings_is_refused():
    log = FeedbackLog.from_arrays([0, 1], [0, 1], [5, 1], n_users=200_000, n_items=200_000, positive_from=3)
    with pytest.raises(MemoryBudgetError, match=r"would take 320.0 GB, above the memory_budget of 1.1 GB$"):
        complete_ratings(log)
    with pytest.raises(EmptyLogError, match="no rating"):
        complete_ratings(log.select([]))
