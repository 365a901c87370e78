"""Factors alone: where they start, how large a penalty they bear, and what they say where nothing is left of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import verirec as vr
from verirec.exceptions import VanishedFactorsWarning
from verirec.models import FactorModel
from verirec.training.starting import factor_penalty, spread, start_factors, vanishing_penalty

RATES = vr.NoiseRates(0.2, 0.1)
WORLD = vr.simulate.world(200, 150, observed=0.15, noise_rates=RATES, selectivity=1.0, random_state=0)
LOG = WORLD.log
ONES, LABELS = np.ones(len(LOG)), LOG.labels.astype(float)


def alone(dim=4, seed=0):
    return FactorModel(*WORLD.log.shape, dim, constants=False, random=torch.Generator().manual_seed(seed))


def world_auc(recommender):
    users, items = np.divmod(np.arange(200 * 150), 150)
    return vr.metrics.auc(WORLD.at(users, items).true_labels, recommender.predict(users, items))


def test_the_vanishing_penalty_is_the_largest_singular_value_of_the_slopes_at_zero():
    slopes = np.zeros((200, 150))
    slopes[LOG.users, LOG.items] = 3.0 * (LABELS - 0.5)
    expected = 70 * np.linalg.norm(slopes, 2) / slopes.size
    assert vanishing_penalty(LOG, 3.0 * ONES, LABELS, rows=70) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("solver", ["sweep", "gradient"])
def test_above_the_vanishing_penalty_factors_are_nothing_and_say_so(solver):
    limit = vanishing_penalty(LOG, ONES / LOG.density, LABELS, rows=len(LOG))
    method = vr.methods.MF(constants=False, solver=solver, penalty_factors=1.5 * limit, learning_rate=0.03)
    method.set_params(patience=None, epochs=150)
    with pytest.warns(VanishedFactorsWarning, match="the factors of mf vanished.* take less"):
        # All epochs count: without held-out rows the last state is kept.
        method.set_params(validation=0).fit(LOG)
    assert spread(method.models_["prediction"]) < 0.01


def test_the_start_is_along_what_the_labels_agree_on():
    """On rows that are not trained on too, where random factors know nothing."""
    model = alone()
    start_factors(model, LOG, ONES, LABELS, None)
    users, items = np.divmod(np.arange(200 * 150), 150)
    with torch.no_grad():
        logits = model(torch.as_tensor(users), torch.as_tensor(items)).numpy()
    assert vr.metrics.auc(WORLD.at(users, items).true_labels, logits) > 0.55
    assert 0.01 < spread(model) < 4


def test_held_out_rows_choose_the_size_of_the_start():
    small, large = alone(), alone()
    start_factors(small, LOG, ONES, LABELS, lambda model: spread(model))
    start_factors(large, LOG, ONES, LABELS, lambda model: -spread(model))
    assert spread(large) == pytest.approx(8 * spread(small), rel=1e-4)


def test_rows_of_large_weights_do_not_decide_the_start_by_themselves():
    """Biwhitened: a hundredfold weight of one item's rows leaves the others' directions as they are."""
    heavy = np.where(LOG.items == 7, 100.0, 1.0)
    plain, weighted = alone(), alone()
    start_factors(plain, LOG, ONES, LABELS, None)
    start_factors(weighted, LOG, heavy, LABELS, None)
    users, items = np.divmod(np.arange(200 * 150), 150)
    pairs = torch.as_tensor(users[items != 7]), torch.as_tensor(items[items != 7])
    with torch.no_grad():
        found = np.corrcoef(plain(*pairs).numpy(), weighted(*pairs).numpy())[0, 1]
    assert found > 0.95


@pytest.mark.parametrize(
    ("given", "bound", "expected"), [(3.0, 50.0, 3.0), (None, 5.0, 8.0), (None, 20.0, 22.0), (0.0, 5.0, 0.0)]
)
def test_beside_constants_the_penalty_makes_sure_of_a_minimum(given, bound, expected):
    assert factor_penalty(given, bound, None, 100) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["mf", "ips", "dr-jl", "ome-dr", "eib", "ome-eib", "t-mf", "dr-v2"])
def test_no_default_of_the_papers_form_ends_at_even_odds(name):
    method = vr.methods.catalogue[name](constants=False, epochs=60)
    with warnings.catch_warnings():
        warnings.simplefilter("error", VanishedFactorsWarning)
        method.fit(LOG, noise_rates=RATES)
    assert spread(method.models_["prediction"]) > 0.05
    assert world_auc(method) > 0.55


@pytest.mark.parametrize("name", ["mf", "ome-ips", "dr-jl", "ome-dr", "ome-eib"])
def test_by_default_sweeps_are_what_one_gets(name):
    method = vr.methods.catalogue[name](epochs=10).fit(LOG, noise_rates=RATES)
    assert method.report_.solver == "sweep"
    assert method.report_.penalty_factors >= max(8, method.report_.penalty_bound)
    assert method.penalty_factors is None


def test_by_default_weights_know_users_and_items_and_no_features():
    users, items = np.random.default_rng(0).normal(size=(200, 3)), np.random.default_rng(1).normal(size=(150, 3))
    log = vr.FeedbackLog.from_arrays(
        LOG.users, LOG.items, LOG.labels, n_users=200, n_items=150, user_features=users, item_features=items
    )
    given = vr.LogisticPropensity(features=False, floor=LOG.density / 3)
    method = vr.methods.IPS(epochs=4)
    by_default, plain = method.fit(log).predict([0, 1], [2, 3]), method.fit(LOG, propensities=given)
    np.testing.assert_allclose(by_default, plain.predict([0, 1], [2, 3]), rtol=1e-5)


def test_a_path_by_adam_has_the_methods_own_patience():
    method = vr.methods.MF(solver="gradient", learning_rate=0.1, patience=3)
    path = vr.methods.fit_path(method, LOG, [1, 2])
    assert [one.report_.stopped_because for one in path.methods] == ["no better validation error for 3 validations"] * 2
