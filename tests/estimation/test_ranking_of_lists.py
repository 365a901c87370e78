"""Ranking estimates of top-k lists: those of the scores that they come from, and of short lists those of loops."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import verirec as vr
from plain_formulas.ranking_estimates import gain_at
from refusals import check_refusal
from verirec.data.top_lists import TopLists
from verirec.exceptions import ParameterError, ScoreWarning

WORLD = vr.simulate.world(80, 50, observed=0.3, noise_rates=vr.NoiseRates(0.2, 0.1), random_state=1)
LOG, P, RATES = WORLD.log, WORLD.propensity_values, vr.NoiseRates(0.2, 0.1)
SCORES = np.random.default_rng(0).normal(size=LOG.shape) + WORLD.preferences
DEPTHS = (1, 3, 5)
METRICS = {f"{name}@{k}" for k in DEPTHS for name in ("dcg", "ndcg", "precision", "recall")}


def top(k, keep=None):
    """Return the k best of each user as a frame; with `keep`, as many of them as it says of each user."""
    items = np.argsort(-SCORES, axis=1)[:, :k]
    lists = pd.DataFrame(
        {"user": np.repeat(np.arange(80), k), "item": items.ravel(), "rank": np.tile(np.arange(1, k + 1), 80)}
    )
    return lists if keep is None else lists[lists["rank"] <= keep[lists["user"]]]


def survey(size=1500, seed=3):
    users, items = np.random.default_rng(seed).integers([[80], [50]], size=(2, size))
    return vr.SurveySample(users, items, WORLD.at(users, items).true_labels)


@pytest.mark.parametrize("by", ["log", "survey"])
def test_full_lists_tell_what_their_scores_tell_but_for_auc(by):
    options = {"propensities": P, "noise_rates": RATES, "k": DEPTHS, "survey": survey() if by == "survey" else None}
    lists, scores = vr.estimate_ranking(top(7), LOG, **options), vr.estimate_ranking(SCORES, LOG, **options)
    assert {*lists} == METRICS
    for name in METRICS:
        assert lists[name].diagnostics["source"] == by
        assert lists[name].value == pytest.approx(scores[name].value, rel=1e-9), name
        assert lists[name].standard_error == pytest.approx(scores[name].standard_error, rel=1e-9), name
        assert lists[name].interval == pytest.approx(scores[name].interval, rel=1e-9), name


def test_what_is_left_out_moves_up_what_stands_behind_it():
    users, items = np.random.default_rng(6).integers([[80], [50]], size=(2, 900))
    options = {"propensities": P, "noise_rates": RATES, "k": 3, "exclude": (users, items)}
    lists, scores = vr.estimate_ranking(top(50), LOG, **options), vr.estimate_ranking(SCORES, LOG, **options)
    assert lists["dcg@3"].value != pytest.approx(
        vr.estimate_ranking(SCORES, LOG, **options | {"exclude": None})["dcg@3"].value
    )
    for name in lists:
        assert lists[name].value == pytest.approx(scores[name].value, rel=1e-9), name


SHORT = np.random.default_rng(5).integers(0, 6, 80)


def true_value(name, keep):
    metric, k = name.split("@")
    lists = top(5, keep)
    liked = WORLD.true_labels[lists["user"], lists["item"]]
    gains = [gain_at(metric, rank - 1, int(k), 50) for rank in lists["rank"]]
    return float(liked @ np.array(gains)) / (WORLD.true_labels.sum() if metric == "recall" else (keep > 0).sum())


@pytest.mark.parametrize("by", ["log", "survey"])
def test_users_without_a_list_are_not_judged_and_empty_places_count_as_misses(by):
    """With everything seen, and every label true, estimates are the truth."""
    users, items = np.divmod(np.arange(80 * 50), 50)
    whole = vr.FeedbackLog.from_arrays(users, items, WORLD.true_labels.ravel(), n_users=80, n_items=50)
    asked = vr.SurveySample(users, items, WORLD.true_labels.ravel()) if by == "survey" else None
    none, short = int((SHORT == 0).sum()), int(((SHORT > 0) & (SHORT < 5)).sum())
    with (
        pytest.warns(ScoreWarning, match=f"{none} of 80 users have no list, and are not judged"),
        pytest.warns(ScoreWarning, match=f"{short} of 80 users have lists of fewer than 5 items: places"),
    ):
        found = vr.estimate_ranking(top(5, SHORT), whole, propensities=np.ones(LOG.shape), survey=asked, k=DEPTHS)
    assert {*found} == METRICS
    for name, one in found.items():
        assert one.diagnostics["source"] == by
        assert one.value == pytest.approx(true_value(name, SHORT), rel=1e-9), name


def test_lists_are_judged_as_deep_as_they_are():
    check_refusal(
        lambda: vr.estimate_ranking(top(3), LOG, propensities=P, k=5), ParameterError,
        "k must be at most 3, the length of the longest list; got 5",
    )  # fmt: skip


def test_estimates_of_short_lists_cover_the_truth():
    """Over 200 worlds' draws of what is logged, noise included: an error within 3 standard errors of the mean."""
    lists = TopLists(*(top(5, SHORT)[column].to_numpy() for column in ("user", "item", "rank")), LOG.shape)
    errors = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        seen = rng.random(LOG.shape) < P.block(np.arange(80), np.arange(50))
        users, items = np.nonzero(seen)
        labels = RATES.observe(WORLD.true_labels[users, items], rng.random(len(users)))
        log = vr.FeedbackLog.from_arrays(users, items, labels, n_users=80, n_items=50)
        with pytest.warns(ScoreWarning):
            found = vr.estimate_ranking(lists, log, propensities=P, noise_rates=RATES, k=5)
        errors.append([found[name].value - true_value(name, SHORT) for name in ("ndcg@5", "precision@5")])
    mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1) / np.sqrt(len(errors))
    assert (np.abs(mean) < 3 * spread).all()
