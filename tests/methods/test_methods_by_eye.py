"""Worlds that anybody can judge: two kinds of users, two kinds of items, each liking its own."""

from __future__ import annotations

import numpy as np
import pytest
from method_worlds import EVERY, SOME, fit, matrix
from method_worlds import validate_often as validate_often
from sklearn.metrics import roc_auc_score

import verirec as vr

pytestmark = pytest.mark.filterwarnings("ignore:learnt noise rates came out at max_rate")
"""These worlds are too small to tell rates."""


OPTIONS = {"epochs": 60, "batch_size": 128, "learning_rate": 0.05, "dim": 3, "penalty_factors": 0.6}


def kinds(n_users, n_items):
    return np.arange(n_users) % 2, np.arange(n_items) % 2


@pytest.fixture(scope="module")
def blocks():
    users, items = kinds(40, 44)
    truth = (users[:, None] == items[None, :]).astype(int)
    seen = np.random.default_rng(0).random(truth.shape) < 0.35
    where = np.nonzero(seen)
    log = vr.FeedbackLog.from_arrays(users=where[0], items=where[1], labels=truth[where], n_users=40, n_items=44)
    return truth, log


@pytest.fixture(scope="module")
def learnt(blocks):
    return fit("mf", blocks[1], **OPTIONS)


def test_mf_finds_the_blocks(blocks, learnt):
    assert roc_auc_score(blocks[0].ravel(), matrix(learnt).ravel()) > 0.95


def test_everybody_is_recommended_their_own_kind(blocks, learnt):
    for exclude in (None, blocks[1]):
        found = learnt.recommend(np.arange(40), k=5, exclude=exclude)
        assert (found.positions % 2 == np.arange(40)[:, None] % 2).all()


def test_items_are_like_those_of_their_own_kind(learnt):
    for item in range(44):
        found = learnt.similar_items(item, k=10)
        assert (found.positions % 2 == item % 2).all()
        assert (found.scores > 0).all()


RUN_AWAY = pytest.mark.filterwarnings("ignore:.* diverged in epoch .* is kept")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=RUN_AWAY) if name in ("ome", "ome-ips") else name
        for name in dict.fromkeys((*EVERY, *SOME))
    ],
)
def test_every_method_finds_the_blocks(blocks, name):
    """With so small a penalty sweeps of corrected labels run away in the end: what is kept has found them before."""
    truth, log = blocks
    options = OPTIONS | {"epochs": 20, "batch_size": 250, "learning_rate": 0.1}
    method = fit(name, log, patience=None, fit={"propensities": np.full(truth.shape, 0.35)}, **options)
    assert roc_auc_score(truth.ravel(), matrix(method).ravel()) > 0.9


def clean_log_loss(method, truth):
    f = np.clip(matrix(method), 1e-3, 1 - 1e-3)
    return float(-(truth * np.log(f) + (1 - truth) * np.log(1 - f)).mean())


def mean_losses(names, rates, seeds, solver):
    """Mean log loss on the true labels of all pairs, in worlds where likes are logged up to twenty times as often."""
    users, items = kinds(150, 200)
    preferences = np.where(users[:, None] == items[None, :], 0.9, 0.05)
    options = {"epochs": 60, "batch_size": 1_500, "grid_cells": 1_000, "learning_rate": 0.03, "dim": 2}
    options["solver"] = solver
    found = {name: [] for name in names}
    for seed in range(seeds):
        world = vr.simulate.on_matrix(
            preferences, noise_rates=rates, observed=0.3, selectivity=3.0, random_state=seed
        )  # fmt: skip
        given = {"propensities": world.propensities, "noise_rates": rates}
        for name in names:
            method = fit(name, world.log, fit=dict(given), penalty_factors=2.0, patience=None, **options)
            found[name].append(clean_log_loss(method, world.true_labels))
    return {name: np.mean(losses) for name, losses in found.items()}


@pytest.mark.parametrize(("solver", "margin"), [("gradient", 0.05), ("sweep", 0.03)])
def test_under_selection_and_noise_ome_dr_is_nearer_to_the_truth_than_mf(solver, margin):
    """The penalty is below its bound, where sweeps have fewer states to choose from than steps."""
    means = mean_losses(["mf", "ome-dr"], vr.NoiseRates(0.3, 0.1), 2, solver)
    assert means["ome-dr"] < means["mf"] - margin, means


@pytest.mark.long
def test_under_selection_and_noise_both_corrections_help():
    means = mean_losses(["mf", "ome", "ips", "ome-ips", "dr-jl", "ome-dr"], vr.NoiseRates(0.2, 0.1), 10, "gradient")
    for plain, corrected in (("ips", "ome-ips"), ("dr-jl", "ome-dr"), ("ome", "ome-ips"), ("mf", "ome-dr")):
        assert means[corrected] < means[plain], means
