"""Ranking metrics against their definitions, against scikit-learn, and against the order of the rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score, roc_auc_score

from plain_formulas import ranking as plain
from refusals import check_refusal
from verirec.exceptions import DataError, LabelError, OneClassWarning, ParameterError, PredictionError
from verirec.metrics import UserRankings, auc, ranking

CONVENTIONS = ("paper", "usual")
NAMES = tuple(plain.METRICS)
FEW_SCORES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@st.composite
def rated_rows(draw, most_items=5):
    """Draw rows (user, label, score) of a few users, in any order, with many ties."""
    row = st.tuples(st.integers(0, 1), FEW_SCORES)
    by_user = draw(st.lists(st.lists(row, min_size=1, max_size=most_items), min_size=1, max_size=4))
    rows = [(user, *own) for user, rows in enumerate(by_user) for own in rows]
    return tuple(map(list, zip(*draw(st.permutations(rows)), strict=True)))


def every_metric(users, labels, scores, k):
    rankings = UserRankings(users, labels, scores)
    return {
        (name, convention): getattr(rankings, name)(k, convention=convention)
        for name in NAMES
        for convention in CONVENTIONS
    } | {"auc": rankings.auc}


def same(left, right):
    return left == pytest.approx(right, rel=1e-12, abs=1e-14, nan_ok=True)


# Against the definitions.


@given(rated_rows(), st.integers(1, 7))
def test_every_metric_is_its_mean_over_all_orders_of_tied_items(rows, k):
    users, labels, scores = rows
    expected = {
        (name, convention): plain.mean_over_users(plain.METRICS[name], users, labels, scores, k, convention)
        for name in NAMES
        for convention in CONVENTIONS
    }
    assert same(every_metric(users, labels, scores, k), expected | {"auc": plain.auc(labels, scores)})


@pytest.mark.parametrize("rows", [1, 7, 100])
def test_how_many_rows_are_sorted_at_a_time_changes_nothing(monkeypatch, rows):
    random = np.random.default_rng(0)
    given_ = random.integers(40, size=500), random.integers(2, size=500), random.integers(9, size=500) / 8
    at_once = every_metric(*given_, 3)
    monkeypatch.setattr(ranking, "_AT_A_TIME", rows)
    assert every_metric(*given_, 3) == at_once


@pytest.mark.parametrize("k", [1, 3, 10, 40])
def test_without_ties_every_metric_is_the_loop_over_users(k):
    random = np.random.default_rng(0)
    users = random.integers(40, size=600).tolist()
    labels, scores = (random.random(600) < 0.2).astype(int).tolist(), random.permutation(600).tolist()
    computed = every_metric(users, labels, scores, k)
    for (name, convention), value in ((key, value) for key, value in computed.items() if key != "auc"):
        expected = plain.mean_over_users(plain.METRICS[name], users, labels, scores, k, convention)
        assert value == pytest.approx(expected, rel=1e-12), (name, convention)


# Against scikit-learn.


@given(st.lists(st.tuples(st.integers(0, 1), FEW_SCORES), min_size=2, max_size=40))
def test_auc_is_scikit_learns_with_ties(rows):
    labels, scores = map(list, zip(*rows, strict=True))
    assume(0 < sum(labels) < len(labels))
    assert auc(labels, scores) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)


@pytest.mark.parametrize("distinct", [1, 2, 5, 10**9])
def test_auc_of_many_pairs_is_scikit_learns(distinct):
    random = np.random.default_rng(distinct)
    scores = random.integers(distinct, size=20_000) - distinct / 2
    labels = random.random(20_000) < 0.3
    assert auc(labels, scores) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 1), FEW_SCORES), min_size=2, max_size=30).filter(
            lambda rows: any(label for label, _ in rows)
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 35),
)
def test_ndcg_is_the_mean_over_users_of_scikit_learns_with_ties(by_user, k):
    expected = np.mean([ndcg_score([[y for y, _ in rows]], [[s for _, s in rows]], k=k) for rows in by_user])
    rows = [(user, *row) for user, rows in enumerate(by_user) for row in rows]
    rankings = UserRankings(*map(list, zip(*rows, strict=True)))
    for convention in CONVENTIONS:
        assert rankings.ndcg(k, convention=convention) == pytest.approx(expected, abs=1e-12)


# What must not matter, and what must.


@given(rated_rows(most_items=12), st.integers(1, 6), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(rows, k, random):
    order = list(range(len(rows[0])))
    random.shuffle(order)
    shuffled = [[column[row] for row in order] for column in rows]
    assert same(every_metric(*shuffled, k), every_metric(*rows, k))


@given(rated_rows(), st.integers(1, 6))
def test_only_the_order_of_the_scores_matters(rows, k):
    users, labels, scores = rows
    stretched = [math.exp(5 * score) - 20 for score in scores]
    assert same(every_metric(users, labels, stretched, k), every_metric(*rows, k))


@pytest.mark.parametrize(
    "numbers",
    [
        [5, 9, 2],
        [-7, 0, 3],
        [-(2**40), 1, 2**40],
        [0, 2**62, 2**61],
    ],
)
def test_any_integers_can_number_the_users(numbers):
    users, labels = [0, 1, 2] * 4, [1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0]
    scores = [0.1, 0.2, 0.3, 0.4, 0.1, 0.2, 0.3, 0.4, 0.1, 0.2, 0.3, 0.4]
    renumbered = [numbers[user] for user in users]
    assert UserRankings(renumbered, labels, scores).n_users == 3
    assert same(every_metric(renumbered, labels, scores, 2), every_metric(users, labels, scores, 2))


@pytest.mark.parametrize("kind", [np.int8, np.uint32, np.int64])
def test_positions_of_any_integer_type_will_do(kind):
    users = np.array([0, 1, 0, 1], kind)
    assert UserRankings(users, [1, 0, 0, 1], [0.9, 0.8, 0.1, 0.2]).recall(1) == 0.5


def test_a_constant_score_gives_each_metric_its_expected_value_under_a_random_order():
    # Four items, two liked: any place is liked with probability one half.
    rankings = UserRankings([0] * 4, [1, 1, 0, 0], [0.3] * 4)
    discounts = [1, 1 / math.log2(3)]
    assert rankings.auc == 0.5
    assert rankings.precision(2) == 0.5
    assert rankings.recall(2) == 0.5
    assert rankings.f1(2) == 0.5
    assert rankings.ndcg(2) == pytest.approx(0.5 * sum(discounts) / sum(discounts))
    assert rankings.ndcg(1) == 0.5


def test_a_constant_score_is_worth_what_random_scores_are_on_average():
    random = np.random.default_rng(0)
    users, labels = random.integers(30, size=300), (random.random(300) < 0.3).astype(int)
    constant = every_metric(users, labels, np.zeros(300), 5)
    drawn = [every_metric(users, labels, random.random(300), 5) for _ in range(400)]
    for name, value in constant.items():
        values = np.array([metrics[name] for metrics in drawn])
        assert abs(values.mean() - value) < 4 * values.std() / np.sqrt(len(drawn)), name


def test_minus_zero_and_zero_tie():
    assert auc([1, 0], [-0.0, 0.0]) == 0.5


# Conventions and edges.


def test_a_user_without_positives_counts_one_for_ndcg_and_zero_elsewhere_in_the_paper_and_not_at_all_usually():
    rankings = UserRankings([0, 0, 1, 1], [1, 0, 0, 0], [0.1, 0.9, 0.5, 0.4])
    alone = UserRankings([0, 0], [1, 0], [0.1, 0.9])
    for name in NAMES:
        of_one = getattr(alone, name)(2)
        assert getattr(rankings, name)(2, convention="usual") == of_one
        of_other = 1 if name == "ndcg" else 0
        assert getattr(rankings, name)(2, convention="paper") == pytest.approx((of_one + of_other) / 2)


def test_if_nobody_has_a_positive_the_usual_mean_is_not_a_number_and_the_papers_is():
    rankings = UserRankings([0, 1], [0, 0], [0.1, 0.9])
    assert rankings.ndcg(1) == 1
    for name in NAMES:
        assert math.isnan(getattr(rankings, name)(1, convention="usual"))


@pytest.mark.parametrize("k", [3, 4, 1_000])
def test_beyond_the_end_of_the_list_only_precision_and_f1_go_on_falling(k):
    rankings = UserRankings([0, 0, 0], [1, 0, 1], [0.1, 0.5, 0.9])
    assert rankings.ndcg(k) == rankings.ndcg(3)
    assert rankings.recall(k) == 1
    assert rankings.precision(k) == pytest.approx(2 / k)
    assert rankings.f1(k) == pytest.approx(4 / (k + 2))


def test_a_depth_beyond_all_memory_is_the_end_of_the_list():
    assert UserRankings([0, 0], [1, 0], [0.1, 0.5]).ndcg(2**50) == pytest.approx(1 / math.log2(3))


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 1], [1], [0]])
def test_with_one_class_there_is_no_auc(labels):
    with pytest.warns(OneClassWarning, match="AUC compares two classes"):
        assert math.isnan(auc(labels, np.arange(len(labels))))
    assert math.isnan(UserRankings(range(len(labels)), labels, np.arange(len(labels))).auc)


def test_perfect_and_reversed_orders_are_the_ends_of_the_scale():
    users, labels = [0, 0, 0, 1, 1, 1], [1, 0, 0, 0, 1, 0]
    perfect, reverse = UserRankings(users, labels, labels), UserRankings(users, labels, [-y for y in labels])
    assert (perfect.auc, perfect.ndcg(1), perfect.recall(1), perfect.precision(1), perfect.f1(1)) == (1, 1, 1, 1, 1)
    assert (reverse.auc, reverse.ndcg(1), reverse.recall(1), reverse.precision(1), reverse.f1(1)) == (0, 0, 0, 0, 0)


BAD_ROWS = [
    ([0, 1], [1, 0], [0.5], PredictionError, r"one score a label, shape \(2,\); got \(1,\)"),
    ([0, 1], [1, 2], [0.5, 0.5], LabelError, "labels must be 0/1; 1 of 2 are not"),
    ([0, 1], [1, np.nan], [0.5, 0.5], LabelError, "labels must be 0/1; 1 of 2 are not"),
    ([0, 1], ["1", "0"], [0.5, 0.5], LabelError, "labels must be numbers; got <U1"),
    ([0, 1], [[1, 0]], [0.5, 0.5], LabelError, r"labels must be a flat array; got shape \(1, 2\)"),
    ([], [], [], LabelError, "must not be empty"),
    ([0, 1], [1, 0], [0.5, np.nan], PredictionError, "scores must be finite; 1 of 2 are NaN or infinite"),
    ([0, 1], [1, 0], [np.inf, -np.inf], PredictionError, "scores must be finite; 2 of 2 are NaN or infinite"),
    ([0, 1], [1, 0], ["a", "b"], PredictionError, "scores must be numbers; got <U1"),
    ([0, 1], [1, 0], [[0.5, 0.5]], PredictionError, r"scores must be a flat array; got shape \(1, 2\)"),
    ([0, 1], [1, 0], [1j, 1j], PredictionError, "scores must be numbers; got complex128"),
    ([0, 1], [1, 0], [[0.5], [0.5, 1]], PredictionError, "scores must be"),
]


@pytest.mark.parametrize(("users", "labels", "scores", "error", "message"), BAD_ROWS)
def test_bad_rows_are_refused_in_one_line(users, labels, scores, error, message):
    check_refusal(lambda: auc(labels, scores), error, message)
    check_refusal(lambda: UserRankings(users, labels, scores), error, message)


@pytest.mark.parametrize(
    ("users", "message"),
    [
        ([0], r"one user a label, shape \(2,\); got \(1,\)"),
        ([0.0, 1.0], "users must be integers; got float64"),
        (["ann", "bob"], "users must be integers; got <U3"),
    ],
)
def test_users_that_are_not_one_integer_a_row_are_refused_in_one_line(users, message):
    check_refusal(lambda: UserRankings(users, [1, 0], [0.5, 0.4]), DataError, message)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("k", "convention", "message"),
    [
        (0, "paper", "k must be a whole number of at least 1; got 0"),
        (-1, "usual", "k must be a whole number of at least 1; got -1"),
        (2.0, "paper", "k must be a whole number of at least 1; got 2.0"),
        (True, "paper", "k must be a whole number of at least 1; got True"),
        (1, "field", "convention must be one of paper, usual; got 'field'"),
    ],
)
def test_a_wrong_depth_or_convention_is_refused_in_one_line(name, k, convention, message):
    rankings = UserRankings([0, 1], [1, 0], [0.5, 0.4])
    check_refusal(lambda: getattr(rankings, name)(k, convention=convention), ParameterError, message)
