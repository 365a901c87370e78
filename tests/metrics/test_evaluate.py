"""All metrics at once: every form of scores, both conventions, and the known floors and ceilings of Coat."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from plain_formulas import ranking as plain
from refusals import check_refusal
from verirec import Factors, FeedbackLog, load_dataset
from verirec.exceptions import OneClassWarning, ParameterError, PredictionError, ScoreWarning
from verirec.metrics import auc, brier_score, calibration_error, evaluate, log_loss

HALF = np.full((12, 20), 0.5)
PROPER = ("log_loss", "brier", "calibration_error")


@pytest.fixture(scope="module")
def log():
    random = np.random.default_rng(0)
    users, items = np.divmod(random.choice(12 * 20, 90, replace=False), 20)
    return FeedbackLog.from_arrays(users, items, random.random(90) < 0.3, n_users=12, n_items=20)


@pytest.fixture(scope="module")
def factors():
    random = np.random.default_rng(1)
    return random.normal(size=(12, 3)), random.normal(size=(20, 3)), random.normal(size=12), random.normal(size=20)


@pytest.fixture(scope="module")
def matrix(factors):
    u, v, c, d = factors
    return 1 / (1 + np.exp(-(u @ v.T + c[:, None] + d)))


def test_each_metric_is_what_its_own_function_gives(log, matrix):
    scores = matrix[log.users, log.items]
    result = evaluate(matrix, log, k=3)
    rows = (log.users.tolist(), log.labels.tolist(), scores.tolist())
    expected = {"auc": auc(log.labels, scores)} | {
        f"{name}@3": plain.mean_over_users(metric, *rows, 3, "paper") for name, metric in plain.METRICS.items()
    }
    proper = zip(PROPER, (log_loss, brier_score, calibration_error), strict=True)
    expected |= {name: metric(log.labels, scores) for name, metric in proper}
    assert result == pytest.approx(expected, rel=1e-12)
    assert list(result) == ["auc", "ndcg@3", "recall@3", "precision@3", "f1@3", *PROPER]


def test_all_forms_of_scores_agree(log, matrix, factors):
    rows = np.random.default_rng(2).permutation(len(log))
    forms = {
        "dense": matrix,
        "function": lambda users, items: matrix[users, items],
        "triples": (log.users[rows], log.items[rows], matrix[log.users, log.items][rows]),
        "tuple of factors": factors,
        "factors": Factors(*factors),
    }
    expected = evaluate(matrix, log, k=(1, 5))
    for name, form in forms.items():
        assert evaluate(form, log, k=(1, 5)) == pytest.approx(expected, rel=1e-10), name


def test_the_order_of_the_rows_does_not_matter_even_under_ties(log, matrix):
    coarse = np.round(matrix, 1)
    order = np.random.default_rng(3).permutation(len(log))
    shuffled = FeedbackLog.from_arrays(
        log.users[order], log.items[order], log.labels[order], n_users=log.n_users, n_items=log.n_items
    )
    for scores in (coarse, np.full_like(coarse, 0.3)):
        assert evaluate(scores, shuffled) == evaluate(scores, log)


def test_several_depths_are_those_one_by_one(log, matrix):
    together = evaluate(matrix, log, k=iter([1, 5, 10]))
    for depth in (1, 5, 10):
        alone = evaluate(matrix, log, k=depth)
        assert {name: together[name] for name in alone} == alone
    assert evaluate(matrix, log) == evaluate(matrix, log, k=5)


def test_the_convention_is_on_record_and_concerns_users_without_positives_only(log, matrix):
    paper, usual = evaluate(matrix, log), evaluate(matrix, log, convention="usual")
    assert (paper.convention, usual.convention) == ("paper", "usual")
    without = set(log.users.tolist()) - set(log.users[log.labels == 1].tolist())
    share = len(without) / len(set(log.users.tolist()))
    assert 0 < share < 1
    assert paper["ndcg@5"] == pytest.approx(share + (1 - share) * usual["ndcg@5"])
    for name in ("recall@5", "precision@5", "f1@5"):
        assert paper[name] == pytest.approx((1 - share) * usual[name])
    for name in ("auc", *PROPER):
        assert paper[name] == usual[name]


def test_a_frame_of_the_result_has_one_row_a_metric(log, matrix):
    result = evaluate(matrix, log, convention="usual")
    frame = result.to_frame()
    assert dict(zip(frame["metric"], frame["value"], strict=True)) == result
    assert set(frame["convention"]) == {"usual"}
    assert "ndcg@5" in result._repr_html_()


@pytest.mark.parametrize("shift", [-0.5, 0.5, 3.0])
def test_scores_that_are_not_probabilities_are_warned_of_and_only_ranked(log, matrix, shift):
    with pytest.warns(ScoreWarning, match=r"scores go from .* to .*not probabilities.*log_loss.*NaN") as caught:
        result = evaluate(matrix + shift, log)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "\n" not in str(caught[0].message)
    assert all(math.isnan(result[name]) for name in PROPER)
    expected = evaluate(matrix, log)
    ranking = [name for name in result if name not in PROPER]
    assert {name: result[name] for name in ranking} == pytest.approx({name: expected[name] for name in ranking})


def test_probabilities_of_exactly_zero_and_one_are_probabilities(log):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = evaluate((log.users, log.items, log.labels), log)
    assert result["brier"] == 0
    assert result["calibration_error"] == 0


def test_a_log_of_one_class_has_no_auc_and_everything_else():
    log = FeedbackLog.from_arrays([0, 1], [0, 0], [0, 0], n_users=2, n_items=1)
    with pytest.warns(OneClassWarning, match="all 2 labels are 0"):
        paper, usual = (evaluate([[0.2], [0.4]], log, convention=convention) for convention in ("paper", "usual"))
    assert math.isnan(paper["auc"])
    assert (paper["ndcg@5"], paper["recall@5"]) == (1, 0)
    assert math.isnan(usual["ndcg@5"])
    assert paper["brier"] == pytest.approx((0.04 + 0.16) / 2)


# Coat: what a perfect and what a random order reach, in the paper's convention.


@pytest.fixture
def coat(real_data):
    return load_dataset("coat", data_home=real_data("coat")).test


def test_a_perfect_order_of_coats_test_set_reaches_its_known_ceiling(coat):
    result = evaluate((coat.users, coat.items, coat.labels), coat)
    assert (result["auc"], result["ndcg@5"]) == (1, pytest.approx(1, abs=1e-12))
    assert result["recall@5"] == pytest.approx(0.751, abs=0.0005)


FLOOR = {"auc": 0.499, "ndcg@5": 0.458, "recall@5": 0.297}
"""One random order's figures, as an independent reproduction measured them."""


def test_a_constant_score_is_the_mean_over_random_orders_of_coats_test_set_and_its_known_floor_one_of_them(coat):
    random = np.random.default_rng(0)
    constant = evaluate(np.full(coat.shape, 0.4), coat)
    drawn = [evaluate((coat.users, coat.items, random.random(len(coat))), coat) for _ in range(200)]
    for name, known in FLOOR.items():
        values = np.array([result[name] for result in drawn])
        assert abs(values.mean() - constant[name]) < 3.5 * values.std() / np.sqrt(len(drawn)), name
        assert abs(known - constant[name]) < 2 * values.std() < 0.03, name


def test_a_constant_score_recalls_five_in_sixteen_of_each_coat_users_positives(coat):
    with_positives = len(np.unique(coat.users[coat.labels == 1])) / 290
    constant = np.full(coat.shape, 0.4)
    assert evaluate(constant, coat)["auc"] == 0.5
    assert evaluate(constant, coat)["recall@5"] == pytest.approx(with_positives * 5 / 16)
    assert evaluate(constant, coat, convention="usual")["recall@5"] == pytest.approx(5 / 16)


@pytest.mark.parametrize(
    ("scores", "options", "error", "message"),
    [
        ([0.5] * 90, {}, PredictionError, r"must have shape \(12, 20\); got \(90,\): scores of some pairs"),
        (["high"] * 90, {}, PredictionError, "must be a dense array of numbers"),
        (np.zeros((20, 12)), {}, PredictionError, r"must have shape \(12, 20\); got \(20, 12\)"),
        (np.full((12, 20), np.nan), {}, PredictionError, "must be finite"),
        (None, {}, PredictionError, "must be a dense array .*got NoneType"),
        (([0], [0], [0.5]), {}, PredictionError, "do not cover"),
        (lambda users, items: 0.5, {}, PredictionError, "one number a pair"),
        ((np.zeros((12, 2)), np.zeros((20, 3))), {}, PredictionError, "item_factors must have shape"),
        (HALF, {"k": 0}, ParameterError, "k must be a whole number of at least 1; got 0"),
        (HALF, {"k": [5, 2.5]}, ParameterError, "k must be a whole number of at least 1; got 2.5"),
        (HALF, {"k": "5"}, ParameterError, "k must be a whole number of at least 1; got '5'"),
        (HALF, {"k": None}, ParameterError, "k must be a whole number of at least 1; got None"),
        (HALF, {"convention": "field"}, ParameterError, "convention must be one of paper, usual; got 'field'"),
        ([[0.5], [0.5, 1]], {}, PredictionError, "scores|predictions"),
    ],
)
def test_bad_input_is_refused_in_one_line(log, scores, options, error, message):
    check_refusal(lambda: evaluate(scores, log, **options), error, message)


def test_the_result_shows_its_convention_and_names_the_metrics_it_has(small_log):
    result = evaluate(np.linspace(0, 1, 12).reshape(3, 4), small_log, k=2, convention="usual")
    assert "convention='usual'" in repr(result)
    check_refusal(lambda: result["ndcg@5"], KeyError, "^no metric 'ndcg@5'; there are: auc, ndcg@2")
    assert evaluate(np.linspace(0, 1, 12).reshape(3, 4), small_log, k=np.array(2)).keys() == result.keys()


@pytest.mark.parametrize("k", [[], 2**60, 10**400])
def test_depths_that_are_none_or_no_float_are_refused(small_log, k):
    with pytest.raises(ParameterError, match=r"^k must"):
        evaluate(np.linspace(0, 1, 12).reshape(3, 4), small_log, k=k)


def test_what_is_not_a_log_is_refused():
    with pytest.raises(ParameterError, match=r"^a FeedbackLog is needed; got NoneType$"):
        evaluate([0.5], None)
