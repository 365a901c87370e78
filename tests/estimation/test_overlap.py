"""Warnings of pairs that are hardly ever logged, whichever rows were drawn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import verirec as vr
from held import HALF_A_NUMBER, held_a_row
from verirec.estimation import overlap
from verirec.estimation.overlap import reach_of
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import OverlapWarning

SHAPE, RATES = (100, 150), vr.NoiseRates(0.2, 0.1)
SAID = "of all pairs, of which .* rows are to be expected, make up half of the variance"


def world(seed, rarely, *, share=0.1):
    """Draw a world of which a part, disliked more, is logged with another propensity."""
    random = np.random.default_rng(seed)
    rare = random.random(SHAPE) < share
    p = np.where(rare, rarely, 0.1)
    truth = (random.random(SHAPE) < np.where(rare, 0.15, 0.5)).astype(int)
    users, items = np.nonzero(random.random(SHAPE) < p)
    said = np.where(random.random(SHAPE) < np.where(truth, 0.2, 0.1), 1 - truth, truth)
    log = vr.FeedbackLog.from_arrays(users, items, said[users, items], n_users=SHAPE[0], n_items=SHAPE[1])
    return log, p, truth, rare


def judged(seed, rarely):
    """Return whether the interval of ome-dr holds the truth, and whether there was a warning of overlap."""
    log, p, truth, _ = world(seed, rarely)
    f = np.full(SHAPE, 0.3)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        low, high = vr.estimate(f, log, propensities=p, noise_rates=RATES, estimators="ome-dr")["ome-dr"].interval
    true = float(np.where(truth, -np.log(0.3), -np.log(0.7)).mean())
    return low <= true <= high, any(one.category is OverlapWarning for one in told)


@pytest.mark.parametrize("rarely", [0.05, 1e-5])
def test_where_intervals_fail_there_is_a_warning_and_where_they_hold_there_is_none(rarely):
    held, warned = np.mean([judged(seed, rarely) for seed in range(40)], axis=0)
    if rarely == 0.05:
        assert held >= 0.85
        assert warned == 0
    else:
        assert held < 0.8
        assert warned == 1


def test_estimate_compare_and_ranking_warn_once_and_alike():
    log, p, _, _ = world(0, 1e-5)
    f, g = np.full(SHAPE, 0.3), np.random.default_rng(0).uniform(0.2, 0.6, SHAPE)
    for call in (
        lambda: vr.estimate(f, log, propensities=p),
        lambda: vr.compare(f, g, log, propensities=p),
        lambda: vr.estimate_ranking(g, log, propensities=p, k=50),
    ):
        with pytest.warns(OverlapWarning, match=SAID) as told:
            call()
        assert len(told) == 1
    # Nobody is concerned who uses no propensities.
    vr.estimate(f, log, propensities=p, estimators="naive")


def test_leaving_the_rare_pairs_out_helps():
    log, p, _, rare = world(0, 1e-5)
    rows = rare[log.users, log.items]
    assert not rows.any()
    vr.estimate(np.full(SHAPE, 0.3), log, propensities=p, exclude=np.nonzero(rare))


def test_a_floor_that_is_thinned_is_seen_through():
    log, p, _, _ = world(0, 1e-5)
    floored = vr.GivenPropensity(p, floor=0.02)
    for given in (floored, floored.thinned(0.5), floored.thinned(0.5).apart_from(1.0)):
        assert reach_of(LoggedPairs(log, given)).coverage < 0.5


def test_noise_hides_differences():
    log, p, _, _ = world(0, 1e-5, share=0.01)
    pairs = LoggedPairs(log, vr.GivenPropensity(p))
    assert reach_of(pairs).coverage < reach_of(pairs, RATES).coverage


def test_rows_alone_tell_what_is_missing_of_all_pairs():
    log, p, _, rare = world(0, 1e-6, share=0.3)
    users, items = log.users, log.items
    own = vr.FeedbackLog.from_arrays(
        users, items, log.labels, n_users=SHAPE[0], n_items=SHAPE[1], propensities=p[users, items]
    )
    assert not rare[users, items].any()
    assert reach_of(LoggedPairs(own, vr.LoggedPropensity(own))).coverage < 0.5


def with_own(log, of_rows):
    given = {
        "n_users": log.n_users,
        "n_items": log.n_items,
        "propensities": of_rows(np.random.default_rng(1), len(log)),
    }
    return vr.FeedbackLog.from_arrays(log.users, log.items, log.labels, **given)


OWN = {
    "any": lambda random, rows: random.uniform(0.05, 1, rows),
    "skewed": lambda random, rows: np.exp(-random.exponential(2, rows)),
    "few rare ones": lambda random, rows: np.where(random.random(rows) < 1e-3, 1e-3, 0.5),
    "two": lambda random, rows: np.where(random.random(rows) < 0.5, 0.1, 0.7),
    "one": lambda random, rows: np.full(rows, 0.25),
}


@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
@pytest.mark.parametrize("floor", [0.0, 0.02])
def test_classes_of_rows_tell_what_all_rows_do(own, floor, monkeypatch):
    users, items = np.divmod(np.arange(40_000), 400)
    log = with_own(vr.FeedbackLog.from_arrays(users, items, users % 2, n_users=200, n_items=400), own)
    pairs = LoggedPairs(log, vr.LoggedPropensity(log, floor=floor))
    exact = reach_of(pairs)
    monkeypatch.setattr(overlap, "MOST_ROWS", 1_000)
    monkeypatch.setattr(overlap, "SAMPLE", 2_000)
    found = reach_of(pairs)
    assert found.coverage == pytest.approx(exact.coverage, abs=1e-6)
    assert found.share == pytest.approx(exact.share, rel=0.1)
    assert found.rows == pytest.approx(exact.rows, rel=0.1)


def test_how_far_a_log_reaches_by_its_own_propensities_is_not_told_by_all_rows_at_once(in_small_parts, monkeypatch):
    monkeypatch.setattr(overlap, "SAMPLE", 8_192)
    monkeypatch.setattr(overlap, "_PIECES", 1)

    def work(log):
        own = with_own(log, OWN["any"])
        pairs = LoggedPairs(own, vr.LoggedPropensity(own))
        _ = pairs.p, pairs.weights
        return lambda: reach_of(pairs)

    assert held_a_row(work) < HALF_A_NUMBER
