"""The factor model behind simulated preferences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from verirec import simulate
from verirec.simulate.preferences import LowRankPreferences

SHAPE = (300, 400)


def preferences(weak_separability, seed=0, rank=8):
    return LowRankPreferences(*SHAPE, rank, weak_separability, np.random.default_rng(seed))


def whole(values):
    return values.block(np.arange(SHAPE[0]), np.arange(SHAPE[1]))


@pytest.mark.parametrize("seed", range(5))
def test_weak_separability_makes_some_pairs_surely_liked_and_some_surely_not(seed):
    gamma = simulate.world(*SHAPE, weak_separability=True, random_state=seed).preferences
    assert gamma.min() == 0
    assert gamma.max() == 1
    assert ((gamma > 0) & (gamma < 1)).mean() > 0.5


@pytest.mark.parametrize("seed", range(5))
def test_without_weak_separability_preferences_stay_within_a_tenth_and_nine_tenths(seed):
    gamma = simulate.world(*SHAPE, weak_separability=False, random_state=seed).preferences
    assert gamma.min() >= 0.1
    assert gamma.max() <= 0.9
    assert gamma.min() < 0.15
    assert gamma.max() > 0.85


@pytest.mark.parametrize("weak_separability", [True, False])
def test_preferences_follow_the_stated_formula_of_the_logit(weak_separability):
    values = preferences(weak_separability)
    factors = values.logits
    logits = factors.user_factors @ factors.item_factors.T
    logits += factors.user_constants[:, None] + factors.item_constants - 0.5
    share = expit(logits)
    expected = np.clip((share - 0.05) / 0.9, 0, 1) if weak_separability else 0.1 + 0.8 * share
    np.testing.assert_allclose(whole(values), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("weak_separability", [True, False])
def test_about_four_in_ten_pairs_are_liked(weak_separability):
    means = [whole(preferences(weak_separability, seed)).mean() for seed in range(5)]
    assert np.mean(means) == pytest.approx(0.4, abs=0.04)


@pytest.mark.parametrize("rank", [1, 4, 32])
def test_the_spread_of_tastes_does_not_depend_on_the_rank(rank):
    spreads = []
    for seed in range(8):
        factors = preferences(True, seed, rank).logits
        spreads.append((factors.user_factors @ factors.item_factors.T).var())
    assert np.sqrt(np.mean(spreads)) == pytest.approx(1.2, rel=0.06)


def test_both_kinds_of_world_rank_pairs_alike():
    separable, narrow = whole(preferences(True)).ravel(), whole(preferences(False)).ravel()
    order = np.argsort(narrow)
    assert (np.diff(separable[order]) >= 0).all()
