"""Imputed labels: a weighted mean or a ridge regression, blind to a row's own label, with derivatives that hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verirec as vr
from held import held
from plain_formulas import two_way_regression as plain
from verirec.nuisance.imputation import FOLDS, SHRINKAGE, impute_additive, impute_constant

N_USERS, N_ITEMS = 8, 9


def small(seed=0, rows=45):
    """A log, corrected labels (any numbers) and weights."""
    random = np.random.default_rng(seed)
    users, items = np.divmod(random.choice(N_USERS * N_ITEMS, rows, replace=False), N_ITEMS)
    labels = random.integers(2, size=rows)
    log = vr.FeedbackLog.from_arrays(users, items, labels, n_users=N_USERS, n_items=N_ITEMS)
    return log, (log.labels - 0.1) / 0.7, random.uniform(1, 9, rows)


def fitted_rows(imputed):
    """The rows that each fit was fitted to."""
    return [np.flatnonzero(one.weights(slice(None))) for one in imputed.fits]


def ridge_on(log, labels, weights, rows, penalty):
    users, items = log.users[rows], log.items[rows]
    return plain.ridge(users, items, labels[rows], weights[rows], penalty, log.n_users, log.n_items)


def check_ridge(log, labels, weights, imputed, tolerance=1e-7):
    """Hold each fold's own imputed labels, and the mean over folds elsewhere, against dense regressions.

    The penalty is in rows of the average weight that the rows of the fit have.
    """
    solved = []
    for rows in fitted_rows(imputed):
        penalty = SHRINKAGE * sum(weights[rows]) / len(rows)
        constant, by_user, by_item = ridge_on(log, labels, weights, rows, penalty)
        solved.append((constant, by_user, by_item))
        out = np.setdiff1d(np.arange(len(log)), rows)
        expected = constant + by_user[log.users[out]] + by_item[log.items[out]]
        np.testing.assert_allclose(imputed.rows[out], expected, atol=tolerance)
    assert imputed.elsewhere.constant == pytest.approx(np.mean([part[0] for part in solved]), abs=tolerance)
    np.testing.assert_allclose(imputed.elsewhere.users, np.mean([part[1] for part in solved], axis=0), atol=tolerance)
    np.testing.assert_allclose(imputed.elsewhere.items, np.mean([part[2] for part in solved], axis=0), atol=tolerance)


@given(seed=st.integers(0, 1_000))
def test_the_constant_is_the_weighted_mean(seed):
    log, labels, weights = small(seed)
    imputed = impute_constant(labels, log, weights)
    expected = sum(w * label for w, label in zip(weights, labels, strict=True)) / sum(weights)
    np.testing.assert_allclose(imputed.rows, expected)
    np.testing.assert_allclose(imputed.elsewhere.at(np.array([0, 7]), np.array([8, 3])), expected)


@given(seed=st.integers(0, 1_000), state=st.integers(0, 5))
def test_the_additive_labels_are_those_of_dense_ridge_regressions(seed, state):
    log, labels, weights = small(seed)
    imputed = impute_additive(labels, log, weights, state)
    check_ridge(log, labels, weights, imputed)


def test_each_row_is_held_out_of_one_fold():
    log, labels, weights = small()
    imputed = impute_additive(labels, log, weights, 0)
    assert len(imputed.fits) == FOLDS
    held_out = [np.setdiff1d(np.arange(len(log)), rows) for rows in fitted_rows(imputed)]
    assert sorted(np.concatenate(held_out).tolist()) == list(range(len(log)))
    assert max(map(len, held_out)) - min(map(len, held_out)) <= 1


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_a_log_of_fewer_rows_than_folds_leaves_out_one_at_a_time(rows):
    log, labels, weights = small(rows=rows)
    imputed = impute_additive(labels, log, weights, 0)
    assert len(imputed.fits) == rows
    check_ridge(log, labels, weights, imputed)


@pytest.mark.parametrize("kind", ["constant", "additive"])
def test_row_slopes_are_the_derivatives_by_each_label(kind):
    log, labels, weights = small()
    by_cell = np.random.default_rng(1).normal(size=(N_USERS, N_ITEMS))

    def imputed_with(given):
        if kind == "constant":
            return impute_constant(given, log, weights)
        return impute_additive(given, log, weights, 0)

    def total(given):
        fitted = imputed_with(given).elsewhere
        return sum(
            by_cell[user, item] * (fitted.constant + fitted.users[user] + fitted.items[item])
            for user in range(N_USERS)
            for item in range(N_ITEMS)
        )

    slopes = imputed_with(labels).row_slopes(by_cell.sum(axis=1), by_cell.sum(axis=0))(slice(None))
    for row, one in enumerate(np.eye(len(log))):
        assert slopes[row] == pytest.approx((total(labels + one) - total(labels - one)) / 2, abs=1e-7)


@given(row=st.integers(0, 44), state=st.integers(0, 20))
def test_an_additive_imputed_label_does_not_know_the_rows_own(row, state):
    log, labels, weights = small()
    changed = labels.copy()
    changed[row] += 3
    before, after = (impute_additive(given, log, weights, state) for given in (labels, changed))
    assert after.rows[row] == before.rows[row]
    assert (after.rows != before.rows).any()


def test_only_the_ratios_of_weights_matter():
    log, labels, weights = small()
    one, other = (impute_additive(labels, log, times * weights, 0) for times in (1, 40))
    np.testing.assert_allclose(other.rows, one.rows, atol=1e-9)


def test_folds_go_by_the_random_state():
    log, labels, weights = small()
    first, again, other = (impute_additive(labels, log, weights, state).rows for state in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_without_any_weight_all_rows_count_the_same_for_the_constant():
    log, labels, _ = small()
    assert impute_constant(labels, log, np.zeros(len(log))).rows == pytest.approx(np.full(len(log), labels.mean()))


def test_without_any_weight_all_rows_count_the_same_for_the_additive_labels():
    log, labels, _ = small(rows=20)
    assert len(np.unique(log.users)) < N_USERS or len(np.unique(log.items)) < N_ITEMS
    none = impute_additive(labels, log, np.zeros(len(log)), 0)
    equal = impute_additive(labels, log, np.ones(len(log)), 0)
    np.testing.assert_allclose(none.rows, equal.rows, atol=1e-7)


def test_in_a_balanced_log_where_the_constant_is_right_from_the_start_users_and_items_are_fitted_too():
    # Without any one fold each user and each item has four rows: fold k holds the pairs (u, u + k).
    size = 12
    users, steps = np.repeat(np.arange(size), FOLDS), np.tile(np.arange(FOLDS), size)
    labels = np.random.default_rng(1).integers(2, size=FOLDS * size)
    log = vr.FeedbackLog.from_arrays(users, (users + steps) % size, labels, n_users=size, n_items=size)

    class Drawn(np.random.Generator):
        def shuffle(self, rows):
            rows[:] = (log.items - log.users) % size + FOLDS * log.users

    imputed = impute_additive(log.labels.astype(float), log, np.ones(len(log)), Drawn(np.random.PCG64()))
    for rows in fitted_rows(imputed):
        assert set(np.bincount(log.users[rows])) == set(np.bincount(log.items[rows])) == {4}
    check_ridge(log, log.labels, np.ones(len(log)), imputed)


def test_users_without_rows_are_imputed_by_their_items():
    log = vr.FeedbackLog.from_arrays([0, 0, 1, 1, 2], [0, 1, 0, 1, 1], [1, 0, 1, 0, 0], n_users=4, n_items=3)
    imputed = impute_additive(log.labels.astype(float), log, np.ones(5), 0)
    assert imputed.elsewhere.users[3] == imputed.elsewhere.items[2] == 0
    assert imputed.elsewhere.at(np.array([3]), np.array([0]))[0] > imputed.elsewhere.at(np.array([3]), np.array([1]))[0]


def test_the_rows_are_neither_copied_nor_held(limited):
    """Each fold was a copy of four fifths of the log, with weights, labels and what is made of them."""
    kept = np.flatnonzero(np.random.default_rng(0).random(3_000_000) < 0.8)
    users, items = np.divmod(kept, 1_500)
    log = vr.FeedbackLog.from_arrays(users, items, users % 2, n_users=2_000, n_items=1_500)
    labels, weights = log.labels.astype(float), np.ones(len(log))
    found = []

    def work():
        imputed = impute_additive(labels, log, weights, 0)
        found.append(imputed.row_slopes(np.ones(2_000), np.ones(1_500))(slice(7)))

    # The order of the rows, while it is drawn, and parts of a million rows at most.
    assert held(work) < 5 * len(log) + 32e6 < 2.5 * 8 * len(log)
    assert len(found[0]) == 7
