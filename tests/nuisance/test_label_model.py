"""A model of what people say: the likelihood that it maximises, and that it never sees what it is asked about."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verirec as vr
from plain_formulas import label_model as plain
from refusals import check_refusal
from verirec.exceptions import EmptyLogError, ParameterError
from verirec.nuisance.label_model import parts_by_score
from verirec.progress import shown_to

N_USERS, N_ITEMS = 6, 7


def small(seed=0, rows=30):
    random = np.random.default_rng(seed)
    users, items = np.divmod(random.choice(N_USERS * N_ITEMS, rows, replace=False), N_ITEMS)
    labels = (random.random(rows) < 0.3 + 0.4 * (users % 2)).astype(int)
    return vr.FeedbackLog.from_arrays(users, items, labels, n_users=N_USERS, n_items=N_ITEMS), random.uniform(
        1, 9, rows
    )


def rows_of(log):
    return list(zip(log.users.tolist(), log.items.tolist(), log.labels.tolist(), strict=True))


def constants_of(fitted):
    return np.array([fitted.level, *fitted.users, *fitted.items])


def loss_at(constants, rows, weights, penalty):
    parts = constants.tolist()
    return plain.penalised_loss(rows, weights, penalty, parts[0], parts[1 : 1 + N_USERS], parts[1 + N_USERS :])


def gradient(constants, rows, weights, penalty, step=1e-5):
    return np.array(
        [
            (loss_at(constants + one, rows, weights, penalty) - loss_at(constants - one, rows, weights, penalty))
            / (2 * step)
            for one in step * np.eye(len(constants))
        ]
    )


@given(seed=st.integers(0, 1_000), penalty=st.sampled_from([0.1, 2.0, 10.0]))
def test_the_penalised_loss_never_rises_from_sweep_to_sweep(seed, penalty):
    log, weights = small(seed)
    scaled = weights / weights.mean()
    losses = [
        loss_at(constants_of(vr.LabelModel(penalty, sweeps).fit(log, weights)), rows_of(log), scaled, penalty)
        for sweeps in range(1, 12)
    ]
    assert (np.diff(losses) <= 1e-10).all()
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("penalty", [0.5, 10.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_after_many_sweeps_the_penalised_likelihood_is_stationary(seed, penalty):
    log, weights = small(seed)
    fitted = vr.LabelModel(penalty, 3_000, tolerance=0).fit(log, weights)
    slopes = gradient(constants_of(fitted), rows_of(log), weights / weights.mean(), penalty)
    assert np.abs(slopes).max() < 1e-6


@pytest.mark.parametrize("rates", [None, vr.NoiseRates(0.2, 0.1)])
def test_sweeps_end_within_the_tolerance_of_where_they_lead(rates):
    world = vr.simulate.world(200, 300, observed=0.1, noise_rates=vr.NoiseRates(0.2, 0.1), random_state=0)
    ones = np.ones(len(world.log))
    far = constants_of(vr.LabelModel(sweeps=2_000, tolerance=0).fit(world.log, ones, rates))
    errors = [
        np.abs(constants_of(vr.LabelModel(sweeps=2_000, tolerance=one).fit(world.log, ones, rates)) - far).max()
        for one in (1e-2, 1e-4, 1e-6)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert (np.array(errors) < [2e-2, 2e-4, 2e-6]).all()


def test_a_fit_tells_how_far_it_has_come():
    log, weights = small()
    heard = []
    with shown_to(lambda task: heard.append((task.what, task.unit, task.done, task.total))):
        vr.LabelModel(sweeps=5, tolerance=0).fit(log, weights)
    assert [one for one in heard if one[1] == "sweeps"] == [
        ("Fitting a label model", "sweeps", done, 5) for done in (0, 1, 2, 3, 4, 5, 5)
    ]


def test_only_the_ratios_of_weights_matter():
    log, weights = small()
    one, other = (constants_of(vr.LabelModel().fit(log, times * weights)) for times in (1, 50))
    np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)


def test_a_weight_of_two_is_a_row_twice_with_the_penalty_in_rows_of_average_weight():
    log, _ = small()
    weights = np.where(np.arange(len(log)) % 3 == 0, 2.0, 1.0)
    fitted = vr.LabelModel(3.0, 3_000, tolerance=0).fit(log, weights)
    repeated = [row for row, weight in zip(rows_of(log), weights, strict=True) for _ in range(int(weight))]
    slopes = gradient(constants_of(fitted), repeated, [1.0] * len(repeated), 3.0 * weights.mean())
    assert np.abs(slopes).max() < 1e-6


def test_a_row_without_weight_is_as_good_as_absent():
    log, weights = small()
    weights[::4] = 0
    there = np.flatnonzero(weights)
    with_it = vr.LabelModel(3.0, 3_000, tolerance=0).fit(log, weights)
    share = len(there) / len(log)
    # Fewer rows have a larger average weight: the same penalty in weight is another one in rows.
    without = vr.LabelModel(3.0 * share, 3_000, tolerance=0).fit(log.select(there), weights[there])
    np.testing.assert_allclose(constants_of(without), constants_of(with_it), atol=1e-6)


def test_users_and_items_without_a_row_have_no_constant_of_their_own():
    log = vr.FeedbackLog.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 0, 1], n_users=3, n_items=4)
    fitted = vr.LabelModel().fit(log, np.ones(4))
    assert fitted.users[2] == fitted.items[2] == fitted.items[3] == 0
    assert fitted.at([2], [3])[0] == pytest.approx(1 / (1 + np.exp(-fitted.level)))


@pytest.mark.parametrize("label", [0, 1])
def test_labels_of_one_class_leave_probabilities_inside(label):
    log = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [label, label], n_users=2, n_items=2)
    values = vr.LabelModel().fit(log, np.ones(2)).block([0, 1], [0, 1])
    assert ((values > 0) & (values < 1)).all()


def test_a_large_penalty_leaves_the_weighted_mean():
    log, weights = small()
    values = vr.LabelModel(1e9, 300, tolerance=0).fit(log, weights).block(np.arange(N_USERS), np.arange(N_ITEMS))
    np.testing.assert_allclose(values, np.average(log.labels, weights=weights), atol=1e-6)


def flipped(log, row):
    labels = log.labels.copy()
    labels[row] = 1 - labels[row]
    return vr.FeedbackLog.from_arrays(log.users, log.items, labels, n_users=log.n_users, n_items=log.n_items)


@given(row=st.integers(0, 29), folds=st.integers(2, 40), seed=st.integers(0, 20))
def test_a_cross_fitted_value_does_not_know_its_own_label(row, folds, seed):
    log, weights = small()
    before = vr.LabelModel().cross_fit(log, weights, folds, seed)
    after = vr.LabelModel().cross_fit(flipped(log, row), weights, folds, seed)
    assert after[row] == before[row]
    assert (after != before).any()


def test_with_as_many_folds_as_rows_each_is_left_out_alone():
    log, weights = small()
    values = vr.LabelModel().cross_fit(log, weights, 1_000, 0)
    for row in (0, 7, 29):
        others = np.delete(np.arange(len(log)), row)
        alone = vr.LabelModel().fit(log.select(others), weights[others])
        assert values[row] == alone.at(log.users[[row]], log.items[[row]])[0]


def test_cross_fitting_goes_by_its_random_state():
    log, weights = small()
    first, again, other = (vr.LabelModel().cross_fit(log, weights, 5, state) for state in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


LOG, WEIGHTS = small()
NEEDED = "^a model of labels needs rows and a finite weight of at least 0 for each; "
BAD_WEIGHTS = [
    "too few",
    "too many",
    "all zero",
    "negative",
    "NaN",
    "infinite",
    "text",
    "none",
    "matrix",
    "no rows",
    "no log",
]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vr.LabelModel(penalty=0).fit(LOG, WEIGHTS), "^penalty must be a finite number above 0; got 0$"),
        (lambda: vr.LabelModel(penalty=np.inf).fit(LOG, WEIGHTS), "^penalty must be a finite number above 0; got inf$"),
        (lambda: vr.LabelModel(sweeps=0).fit(LOG, WEIGHTS), "^sweeps must be a whole number of at least 1; got 0$"),
        (
            lambda: vr.LabelModel(tolerance=-1).fit(LOG, WEIGHTS),
            "^tolerance must be a finite number .*at least 0; got -1$",
        ),
        (lambda: vr.LabelModel(sweeps=1.5).fit(LOG, WEIGHTS), "^sweeps must be a whole number .*; got 1.5$"),
        (lambda: vr.LabelModel().cross_fit(LOG, WEIGHTS, 1, 0), "^folds must be a whole number of at least 2; got 1$"),
        (lambda: vr.LabelModel().cross_fit(LOG, WEIGHTS, 5, "x"), "^random_state must be "),
    ],
)
def test_bad_options_are_refused(call, message):
    check_refusal(call, ParameterError, message)


@pytest.mark.parametrize(
    ("log", "weights", "message"),
    [
        (LOG, np.ones(3), NEEDED + r"got 30 rows and weights of shape \(3,\)$"),
        (LOG, np.ones(31), NEEDED + r"got 30 rows and weights of shape \(31,\)$"),
        (LOG, np.zeros(30), NEEDED),
        (LOG, -np.ones(30), NEEDED),
        (LOG, np.full(30, np.nan), NEEDED),
        (LOG, np.full(30, np.inf), NEEDED),
        (LOG, "equal", "^weights must be numbers; got <U5$"),
        (LOG, None, "^weights must be numbers; got object$"),
        (LOG, np.ones((30, 1)), r"^weights must be a flat array; got shape \(30, 1\)$"),
        (LOG.select([]), np.ones(0), NEEDED + r"got 0 rows and weights of shape \(0,\)$"),
        ("log.csv", WEIGHTS, "^a FeedbackLog is needed; got str$"),
    ],
    ids=BAD_WEIGHTS,
)
def test_bad_weights_are_refused_by_name(log, weights, message):
    check_refusal(lambda: vr.LabelModel().fit(log, weights), ParameterError, message)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), NEEDED + r"got 30 rows and weights of shape \(3,\)$"),
        (np.ones(31), NEEDED + r"got 30 rows and weights of shape \(31,\)$"),
        (np.zeros(30), NEEDED),
        (-np.ones(30), NEEDED),
        (np.full(30, np.nan), NEEDED),
        (np.full(30, np.inf), NEEDED),
        ("equal", "^weights must be numbers; got <U5$"),
        (None, "^weights must be numbers; got object$"),
    ],
    ids=["too few", "too many", "all zero", "negative", "NaN", "infinite", "text", "none"],
)
def test_bad_weights_are_refused_by_cross_fitting_too(weights, message):
    check_refusal(lambda: vr.LabelModel().cross_fit(LOG, weights, 5, 0), ParameterError, message)


@pytest.mark.parametrize("rows", [0, 1])
def test_cross_fitting_needs_two_rows(rows):
    check_refusal(
        lambda: vr.LabelModel().cross_fit(LOG.select(np.arange(rows)), np.ones(rows), 5, 0),
        EmptyLogError,
        f"^cross-fitting needs a log of at least 2 rows; it has {rows}$",
    )


def test_cross_fitting_needs_a_log():
    check_refusal(
        lambda: vr.LabelModel().cross_fit("log.csv", WEIGHTS, 5, 0),
        ParameterError,
        "^a FeedbackLog is needed; got str$",
    )


# Parts by score


@given(seed=st.integers(0, 10_000), count=st.integers(1, 12), distinct=st.integers(1, 60))
def test_parts_by_score_are_those_of_sorting(seed, count, distinct):
    random = np.random.default_rng(seed)
    scores = random.integers(distinct, size=50) / distinct
    ends = np.sort(random.integers(0, 51, size=count))
    parts = parts_by_score(scores, ends, random)
    assert np.bincount(parts, minlength=count + 1).tolist() == np.diff(ends, prepend=0, append=50).tolist()
    by_part = [scores[parts == part] for part in range(count + 1) if (parts == part).any()]
    assert all(low.max() <= high.min() for low, high in pairwise(by_part))


def test_rows_that_tie_are_parted_by_chance():
    parts = parts_by_score(np.zeros(4_000), [1_000], np.random.default_rng(0))
    assert abs(np.flatnonzero(parts == 0).mean() - 2_000) < 4 * 4_000 / np.sqrt(12 * 1_000)
