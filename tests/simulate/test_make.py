"""Worlds on top of known matrices, levels and completed ratings, and what every maker refuses."""

from __future__ import annotations

import numpy as np
import pytest

from draws import fits, z_scores
from refusals import check_refusal
from verirec import FeedbackLog, NoiseRates, load_dataset, simulate
from verirec.exceptions import DataError, EmptyLogError, NoiseRateError, ParameterError

ALIASED = (0.0625, 0.0625, 0.125, 0.25, 0.125)
TRUTH = np.random.default_rng(0).integers(2, size=(50, 70))
LEVELS = np.random.default_rng(1).integers(1, 6, size=(50, 70))


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint8, bool, np.float32, np.float64])
def test_a_matrix_of_labels_is_the_worlds_truth(kind):
    world = simulate.on_matrix(TRUTH.astype(kind), random_state=0)
    np.testing.assert_array_equal(world.true_labels, TRUTH)
    np.testing.assert_array_equal(world.preferences, TRUTH)


def test_a_matrix_of_probabilities_is_what_labels_are_drawn_from():
    gamma = np.random.default_rng(2).random((120, 150))
    world = simulate.on_matrix(gamma, random_state=0)
    np.testing.assert_array_equal(world.preferences, gamma)
    assert fits(z_scores(world.true_labels, gamma, np.indices(gamma.shape)[0]))


def test_changing_the_matrix_afterwards_does_not_change_the_world():
    for make, given in ((simulate.on_matrix, TRUTH.astype(float)), (simulate.on_levels, LEVELS.astype(np.int8))):
        mine = given.copy()
        world, untouched = make(mine, random_state=0), make(given, random_state=0)
        mine[...] = 1
        np.testing.assert_array_equal(world.preferences, untouched.preferences)
        np.testing.assert_array_equal(world.propensities, untouched.propensities)


def test_kuairecs_complete_block_is_kept_as_the_truth(real_data):
    block = load_dataset("kuairec", data_home=real_data("kuairec")).complete
    assert block.shape == (1_411, 3_327)
    world = simulate.on_matrix(block, observed=0.02, selectivity=3, random_state=0)
    np.testing.assert_array_equal(world.true_labels, block)
    assert world.log.density == pytest.approx(0.02, rel=0.02)
    truly_liked = block[world.log.users, world.log.items]
    assert truly_liked.mean() > 2 * block.mean()
    flip_rate = np.where(truly_liked == 1, 0.2, 0.1)
    assert fits(z_scores(world.log.labels != truly_liked, flip_rate, truly_liked))


def test_levels_have_their_probability_and_their_propensity_exactly():
    world = simulate.on_levels(LEVELS, random_state=0)
    np.testing.assert_array_equal(world.levels, LEVELS)
    for level, gamma, p in zip(range(1, 6), (0.1, 0.3, 0.5, 0.7, 0.9), simulate.level_propensities(), strict=True):
        assert (world.preferences[level == LEVELS] == gamma).all()
        assert (world.propensities[level == LEVELS] == p).all()


def test_levels_are_drawn_with_the_probabilities_and_propensities_that_are_given():
    gamma, p = (0.0, 0.2, 0.6, 0.8, 1.0), (0.9, 0.0, 0.3, 1.0, 0.5)
    world = simulate.on_levels(LEVELS, probabilities=gamma, propensities=p, random_state=0)
    index = LEVELS - 1
    assert fits(z_scores(world.true_labels, np.array(gamma)[index], index))
    assert fits(z_scores(world.observed, np.array(p)[index], index))
    assert not world.observed[LEVELS == 2].any()
    assert world.observed[LEVELS == 4].all()
    assert (world.true_labels[LEVELS == 1] == 0).all()
    assert (world.true_labels[LEVELS == 5] == 1).all()


def test_only_worlds_of_levels_have_levels():
    assert simulate.on_matrix(TRUTH, random_state=0).levels is None
    assert simulate.world(20, 30, random_state=0).levels is None


@pytest.fixture
def movielens(real_data):
    return load_dataset("movielens-100k", data_home=real_data("movielens-100k")).train


@pytest.mark.parametrize(("propensities", "share"), [(None, 0.093125), (ALIASED, 0.085625)])
def test_completed_movielens_has_the_papers_levels_and_its_observed_share(movielens, propensities, share):
    world = simulate.on_completed(movielens, propensities=propensities, random_state=0)
    cells = 943 * 1_682
    counts = np.bincount(world.levels.ravel(), minlength=6)[1:]
    assert np.abs(counts - np.array([0.53, 0.24, 0.14, 0.07, 0.02]) * cells).max() <= 1
    assert world.propensities.mean() == pytest.approx(share, abs=1e-5)
    assert abs(world.log.density - share) < 3.9 * np.sqrt(share * (1 - share) / cells)


@pytest.fixture(scope="module")
def ratings_log():
    random = np.random.default_rng(0)
    users, items = np.divmod(random.choice(600, 200, replace=False), 30)
    return FeedbackLog.from_arrays(users, items, random.integers(1, 6, 200), n_users=20, n_items=30, positive_from=3)


def test_a_completed_world_is_the_world_of_its_levels(ratings_log):
    completed = simulate.on_completed(ratings_log, random_state=3)
    levels = simulate.levels_by_rank(simulate.complete_ratings(ratings_log))
    of_levels = simulate.on_levels(levels, random_state=3)
    np.testing.assert_array_equal(completed.levels, levels)
    for field in ("preferences", "propensities", "true_labels", "observed", "noisy_labels"):
        np.testing.assert_array_equal(getattr(completed, field), getattr(of_levels, field))


def test_the_seed_changes_the_draws_of_a_completed_world_and_not_its_levels(ratings_log):
    first, second = (simulate.on_completed(ratings_log, random_state=seed) for seed in (0, 1))
    np.testing.assert_array_equal(first.levels, second.levels)
    assert (first.observed != second.observed).any()


def test_the_shares_of_a_completed_world_can_be_chosen(ratings_log):
    world = simulate.on_completed(ratings_log, proportions=(0.2,) * 5, random_state=0)
    assert np.bincount(world.levels.ravel())[1:].tolist() == [120] * 5


@pytest.mark.parametrize(
    "make",
    [
        lambda **rest: simulate.world(20, 30, **rest),
        lambda **rest: simulate.on_matrix(TRUTH, **rest),
        lambda **rest: simulate.on_levels(LEVELS, **rest),
    ],
)
@pytest.mark.parametrize(
    ("option", "error", "message"),
    [
        ({"memory_budget": 0}, ParameterError, "memory_budget must be a whole number of at least 1; got 0"),
        ({"memory_budget": 1e9}, ParameterError, "memory_budget must be a whole number"),
        ({"random_state": -1}, ParameterError, "random_state must be a whole number of at least 0.*got -1"),
        ({"random_state": "today"}, ParameterError, "random_state must be .*got 'today'"),
        ({"noise_rates": (0.2, 0.1)}, ParameterError, "noise_rates"),
    ],
)
def test_every_maker_refuses_bad_options_in_one_line(make, option, error, message):
    check_refusal(lambda: make(**option), error, message)


def with_cell(value):
    matrix = TRUTH.astype(float)
    matrix[3, 4] = value
    return matrix


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: simulate.world(0, 30), ParameterError, "n_users must be a whole number from 1 .*got 0"),
        (lambda: simulate.world(20, 2**31), ParameterError, "n_items must be a whole number from 1 to 2,147,483,647"),
        (lambda: simulate.world(20.0, 30), ParameterError, "n_users must be a whole number"),
        (lambda: simulate.world(20, 30, observed=0), ParameterError, "observed must be .*above 0 and below 1; got 0"),
        (lambda: simulate.world(20, 30, observed=1), ParameterError, "observed must be .*above 0 and below 1; got 1"),
        (lambda: simulate.world(20, 30, observed="8%"), ParameterError, "observed must be .*got '8%'"),
        (lambda: simulate.world(20, 30, selectivity=21), ParameterError, "selectivity must be .*at most 20; got 21"),
        (lambda: simulate.world(20, 30, selectivity=np.nan), ParameterError, "selectivity must be .*got nan"),
        (lambda: simulate.world(20, 30, rank=0), ParameterError, "rank must be a whole number from 1 to 10,000; got 0"),
        (lambda: simulate.world(20, 30, noise_rates=NoiseRates(0.6, 0.5)), NoiseRateError, "must be below 1"),
        (
            lambda: simulate.world(1, 1, observed=0.001, random_state=0),
            EmptyLogError,
            "no pair of the 1 x 1 grid was observed; raise the observed share",
        ),
        (lambda: simulate.world(20, 30, observed=1e-40, random_state=0), (EmptyLogError, ParameterError), "observed"),
        (lambda: simulate.world(20, 30, weak_separability="no"), ParameterError, "weak_separability must be"),
        (lambda: simulate.on_matrix([0, 1]), ParameterError, r"must be a matrix; got shape \(2,\)"),
        (lambda: simulate.on_matrix([[]]), ParameterError, r"users in rows .*got shape \(1, 0\)"),
        (lambda: simulate.on_matrix([["yes"]]), ParameterError, "must be numbers; got <U3"),
        (lambda: simulate.on_matrix(None), ParameterError, "must be numbers; got object"),
        (lambda: simulate.on_matrix(with_cell(1.5)), ParameterError, "within 0 and 1; 1 of 3,500 cells are not"),
        (lambda: simulate.on_matrix(with_cell(np.nan)), ParameterError, "within 0 and 1; 1 of 3,500 cells are not"),
        (lambda: simulate.on_matrix(-TRUTH), ParameterError, f"within 0 and 1; {TRUTH.sum():,} of 3,500 cells"),
        (lambda: simulate.on_matrix(TRUTH, observed=2), ParameterError, "observed must be .*got 2"),
        (lambda: simulate.on_matrix(TRUTH, selectivity="high"), ParameterError, "selectivity must be .*got 'high'"),
        (lambda: simulate.on_matrix([[1], [1, 0]]), ParameterError, "preferences must be an array"),
        (lambda: simulate.on_levels([[0, 1]]), ParameterError, "levels must be integers from 1 to 5"),
        (lambda: simulate.on_levels([[0.5]]), ParameterError, "levels must be integers from 1 to 5"),
        (lambda: simulate.on_levels(LEVELS, propensities=(0.1,) * 4), ParameterError, "propensities must be 5 .*got 4"),
        (lambda: simulate.on_levels(LEVELS, propensities=(2,) * 5), ParameterError, "propensities must be .*got 2"),
        (lambda: simulate.on_levels(LEVELS, probabilities=(-1,) * 5), ParameterError, "probabilities must be .*got -1"),
        (lambda: simulate.on_levels(LEVELS, propensities=(0,) * 5), EmptyLogError, "50 x 70 grid was observed"),
        (lambda: simulate.on_levels(LEVELS, probabilities=0.5), ParameterError, "probabilities must be a flat array"),
        (
            lambda: simulate.on_completed(simulate.world(20, 30, random_state=0).log),
            DataError,
            "must carry ratings to complete",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(call, error, message):
    check_refusal(call, error, message)


def test_completing_refuses_wrong_shares_in_one_line(ratings_log):
    check_refusal(
        lambda: simulate.on_completed(ratings_log, proportions=(0.5, 0.5)), ParameterError, "5 shares that add up to 1"
    )
