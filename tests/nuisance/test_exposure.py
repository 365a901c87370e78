"""Covariates of what was rated: against loops, with each pair's own rating left out, in any catalogue."""

from __future__ import annotations

import numpy as np
import pytest

from held import held_a_row
from plain_formulas import exposure as plain
from verirec import FeedbackLog
from verirec.nuisance import exposure
from verirec.nuisance.exposure import CoRatings, RatingLogits, rated_pairs

SHAPE = N_USERS, N_ITEMS = 40, 12


def a_log(seed=0, shape=SHAPE, share=0.35, features=False, cold=False):
    random = np.random.default_rng(seed)
    taste = random.normal(size=(shape[0], 2)) @ random.normal(size=(2, shape[1]))
    rated = random.random(shape) < share * (1 + np.tanh(taste))
    if cold:
        rated[-1], rated[:, -1] = False, False
    users, items = np.nonzero(rated)
    sides = {}
    if features:
        sides = {"user_features": random.normal(size=(shape[0], 2)), "item_features": random.normal(size=(shape[1], 3))}
    labels = random.integers(0, 2, len(users))
    return FeedbackLog.from_arrays(users, items, labels, n_users=shape[0], n_items=shape[1], **sides)


def whole(covariate):
    return covariate.block(np.arange(covariate.shape[0]), np.arange(covariate.shape[1]))


def standardised(values, log):
    of_rows = values[log.users, log.items]
    return (values - of_rows.mean()) / of_rows.std()


def test_co_ratings_are_those_of_a_model_without_the_pair():
    log = a_log()
    rated = rated_pairs(log).toarray()
    expected = [[plain.co_rating(rated, user, item, 3.0) for item in range(N_ITEMS)] for user in range(N_USERS)]
    found, warm = whole(CoRatings.fit(log, ridge=3.0)), rated.any(1)
    np.testing.assert_allclose(found[warm], standardised(np.array(expected), log)[warm], rtol=1e-3, atol=1e-4)
    assert not found[~warm].any()


def test_rating_logits_are_near_those_of_a_model_without_the_pair():
    log = a_log(shape=(60, 50))
    rated = rated_pairs(log).toarray()
    rows = np.arange(0, len(log), 37)
    covariate = RatingLogits.fit(log)
    exact = np.array([plain.rating_logit(rated, log.users[row], log.items[row]) for row in rows])
    mean, scale = covariate.arrays["scale"]
    found = covariate.at(log.users[rows], log.items[rows]) * scale + mean
    with_itself = covariate._made("logit").cells(log.users[rows], log.items[rows])
    assert np.abs(found - exact).max() < 0.1 * np.abs(with_itself - exact).min()


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("kind", [RatingLogits, CoRatings])
def test_pairs_are_the_rectangle_and_rows_are_standardised(kind, features):
    log = a_log(features=features)
    covariate = kind.fit(log)
    users, items = np.divmod(np.arange(N_USERS * N_ITEMS), N_ITEMS)
    np.testing.assert_allclose(covariate.at(users, items).reshape(SHAPE), whole(covariate), rtol=1e-6, atol=1e-4)
    of_rows = covariate.at(log.users, log.items)
    assert (of_rows.mean(), of_rows.std()) == pytest.approx((0, 1), abs=1e-4)


def test_few_pairs_of_many_are_found_as_all_are(monkeypatch):
    log = a_log()
    covariate = CoRatings.fit(log)
    expected = whole(covariate)
    monkeypatch.setattr(exposure, "_AT_ONCE", 16)
    random = np.random.default_rng(1)
    users, items = random.integers(0, N_USERS, 9), random.integers(0, N_ITEMS, 9)
    np.testing.assert_allclose(covariate.at(users, items), expected[users, items], atol=1e-4)
    users, items = np.divmod(np.arange(N_USERS * N_ITEMS), N_ITEMS)
    np.testing.assert_allclose(covariate.at(users, items), expected.ravel(), atol=1e-4)
    np.testing.assert_allclose(whole(CoRatings.fit(log)), expected, rtol=1e-4, atol=1e-5)


def test_labels_do_not_matter():
    log = a_log()
    other = log.with_labels(1 - log.labels)
    for kind in (RatingLogits, CoRatings):
        np.testing.assert_array_equal(whole(kind.fit(log)), whole(kind.fit(other)))


@pytest.mark.parametrize("kind", [RatingLogits, CoRatings])
def test_of_those_who_are_never_rated_nothing_is_known(kind):
    found = whole(kind.fit(a_log(cold=True)))
    assert np.isfinite(found).all()
    assert not found[-1].any()
    assert not found[:, -1].any()


def test_of_large_catalogues_the_most_rated_items_are_kept():
    log = a_log()
    counts = np.bincount(log.items, minlength=N_ITEMS)
    covariate = CoRatings.fit(log, most_items=5)
    assert covariate.arrays["precision"].shape == (5, 5)
    assert counts[covariate.known_items].min() >= counts[~covariate.known_items].max()
    assert not whole(covariate)[:, ~covariate.known_items].any()
    few = log.select(covariate.known_items[log.items])
    np.testing.assert_allclose(whole(covariate), whole(CoRatings.fit(few)), atol=1e-5)


def test_where_nothing_sets_pairs_apart_there_is_no_covariate():
    users, items = np.divmod(np.arange(12), 4)
    log = FeedbackLog.from_arrays(users, items, users % 2, n_users=3, n_items=4)
    for kind in (RatingLogits, CoRatings):
        assert np.abs(whole(kind.fit(log))).max() < 1e-3


def test_a_pairs_own_rating_does_not_leak():
    """Trained rows and fresh ones, held out at random, have covariates of one mean; with the pair left in, not."""
    gaps, leaks = [], []
    for seed in range(6):
        log = a_log(seed, (150, 60), 0.2)
        held = np.random.default_rng(seed).random(len(log)) < 0.1
        train, rest = log.select(~held), log.select(held)
        covariate = CoRatings.fit(train, ridge=10.0)
        gaps.append(covariate.at(train.users, train.items).mean() - covariate.at(rest.users, rest.items).mean())
        precision = covariate.arrays["precision"]
        scores = rated_pairs(train).toarray() @ (np.eye(len(precision)) - precision / precision.diagonal())
        scale = covariate.arrays["scale"][1]
        leaks.append((scores[train.users, train.items].mean() - scores[rest.users, rest.items].mean()) / scale)
    error = np.std(gaps, ddof=1) / len(gaps) ** 0.5
    assert abs(np.mean(gaps)) < 3 * error + 0.05
    assert np.mean(leaks) > 0.5


def test_the_matrix_of_rated_pairs_takes_a_number_a_row_and_no_copy_of_the_users():
    assert held_a_row(lambda log: lambda: rated_pairs(log)) < 6
