"""Scores in classes: exact for short logs, and close for long ones."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from verirec.estimation import score_classes
from verirec.estimation.ranking_formulas import auc, auc_by_rates
from verirec.estimation.rows import LoggedPairs, Rows
from verirec.estimation.score_classes import ScoreClasses

WORLD = vr.simulate.world(200, 300, observed=0.1, random_state=3)


@pytest.fixture(scope="module")
def pairs():
    return LoggedPairs(WORLD.log, vr.LogisticPropensity().fit(WORLD.log))


def rows(pairs, rates):
    nothing = np.zeros(len(pairs.log))
    return Rows(pairs, nothing, nothing, pairs.labels(rates))


def test_classes_of_a_long_log_keep_the_order_and_ties():
    scores = np.round(np.random.default_rng(0).normal(size=5_000), 2)
    exact = ScoreClasses.of(scores)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(score_classes, "EXACT_ROWS", 1_000)
        patch.setattr(score_classes, "_CLASSES", 64)
        coarse = ScoreClasses.of(scores)
    assert 32 <= len(np.unique(coarse.number)) <= coarse.size <= 128
    assert np.bincount(coarse.number).max() < 5_000 / 16
    order = np.argsort(exact.number, kind="stable")
    assert (np.diff(coarse.number[order]) >= 0).all()
    assert all(len(np.unique(coarse.number[exact.number == one])) == 1 for one in range(exact.size))


def test_the_auc_of_a_long_log_is_that_of_a_short_one_but_for_a_little(pairs, monkeypatch):
    scores = np.random.default_rng(1).normal(WORLD.log.labels, 1.0)
    exact = auc(rows(pairs, None), ScoreClasses.of(scores))
    monkeypatch.setattr(score_classes, "EXACT_ROWS", 1_000)
    monkeypatch.setattr(score_classes, "_CLASSES", 500)
    close = auc(rows(pairs, None), ScoreClasses.of(scores))
    assert close.value != exact.value
    assert close.value == pytest.approx(exact.value, abs=1e-4)
    assert np.linalg.norm(close.influence - exact.influence) < 0.01 * np.linalg.norm(exact.influence)


@pytest.mark.parametrize("rates", [vr.NoiseRates(0.0, 0.0), vr.NoiseRates(0.2, 0.1), vr.NoiseRates(0.05, 0.25)])
def test_the_auc_as_a_function_of_the_rates(pairs, rates):
    classes = ScoreClasses.of(np.random.default_rng(2).integers(0, 40, len(WORLD.log)) / 40)
    expected = auc(rows(pairs, rates), classes).value
    assert auc_by_rates(rows(pairs, None), classes)(rates) == pytest.approx(expected, rel=1e-12)
