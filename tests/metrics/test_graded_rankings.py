"""NDCG with gains: against a plain loop, and of 0/1 gains against the binary metric."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import DataError, PredictionError
from verirec.metrics import GradedRankings, UserRankings


def drawn(seed=0, n=200):
    random = np.random.default_rng(seed)
    return random.integers(12, size=n), random.integers(5, size=n), random.normal(size=n)


def plain_ndcg(users, gains, scores, k):
    """One user after the other; no score ties."""
    found = []
    for user in np.unique(users):
        own, order = gains[users == user], np.argsort(-scores[users == user])
        discounts = 1 / np.log2(np.arange(2, min(k, len(own)) + 2))
        ideal = np.sort(own)[::-1][:k] @ discounts
        found.append(own[order][:k] @ discounts / ideal if ideal > 0 else 1.0)
    return np.mean(found)


@pytest.mark.parametrize("k", [1, 3, 50])
def test_ndcg_with_gains_by_a_plain_loop(k):
    users, places, scores = drawn()
    gains = 2.0**places - 1
    assert GradedRankings(users, gains, scores).ndcg(k) == pytest.approx(plain_ndcg(users, gains, scores, k))


@pytest.mark.parametrize("convention", ["paper", "usual"])
def test_gains_of_0_and_1_are_labels(convention):
    users, places, scores = drawn(1)
    labels, rounded = (places > 3).astype(int), np.round(scores, 1)  # With ties.
    binary = UserRankings(users, labels, rounded).ndcg(4, convention=convention)
    assert GradedRankings(users, labels, rounded).ndcg(4, convention=convention) == pytest.approx(binary)


def test_levels_are_evaluated_with_gains():
    log = vr.FeedbackLog.from_arrays([0, 0, 1], [0, 1, 1], [5, 2, 3], n_users=2, n_items=2, levels=[1, 2, 3, 4, 5])
    found = vr.metrics.evaluate([[3.0, 4.0], [1.0, 3.5]], log, k=2)
    user = (1 + 15 / np.log2(3)) / (15 + 1 / np.log2(3))
    assert found["ndcg@2"] == pytest.approx((user + 1) / 2)
    assert found["rmse"] == pytest.approx(np.sqrt((4 + 4 + 0.25) / 3))
    assert found["mae"] == pytest.approx(4.5 / 3)
    assert set(found) == {"ndcg@2", "rmse", "mae"}


@pytest.mark.parametrize(
    ("gains", "error", "message"),
    [
        ([1, -1], DataError, "gains must be at least 0; 1 are not"),
        ([1, np.nan], PredictionError, "gains must be finite"),
        ([1, 2, 3], DataError, "must be of one length"),
    ],
)
def test_what_are_no_gains(gains, error, message):
    check_refusal(lambda: GradedRankings([0, 0], gains, [0.1, 0.2]), error, message)
