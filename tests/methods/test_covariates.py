"""What was rated as a covariate: in both solvers, saved and loaded, for cold users, learnt from training rows alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from method_worlds import featured_log, small_world

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import ParameterError
from verirec.methods import MF, OMEDR
from verirec.nuisance.exposure import CoRatings, RatingLogits

WORLD = vr.simulate.world(60, 50, observed=0.2, selectivity=2.0, random_state=0)
LOG = WORLD.log
LAST = {"validation": 0, "epochs": 100}


def matrix(method):
    return vr.data.predictions.as_predictions(method.predictions, *LOG.shape).block(*map(np.arange, LOG.shape))


@pytest.mark.parametrize("model", ["constants", "mf"])
def test_both_solvers_end_at_one_minimum(model):
    shared = {"model": model, "dim": 2, "covariates": "both", "penalty_factors": 50.0} | LAST
    swept = MF(solver="sweep", **shared).fit(LOG)
    by_gradient = MF(solver="gradient", batch_size=10**6, learning_rate=0.03, **shared).fit(LOG)
    weights = [one.recommender_.model.covariate_weights.detach().numpy() for one in (swept, by_gradient)]
    np.testing.assert_allclose(*weights, atol=5e-3)
    np.testing.assert_allclose(matrix(swept), matrix(by_gradient), atol=5e-3)


def test_a_covariate_that_decides_is_found():
    """Labels that follow from the covariate, and from nothing else."""
    covariate = CoRatings.fit(LOG)
    logits = 2 * covariate.at(LOG.users, LOG.items)
    labels = (np.random.default_rng(0).random(len(LOG)) < 1 / (1 + np.exp(-logits))).astype(np.int8)
    weights = MF(model="constants", covariates="both", **LAST).fit(LOG.with_labels(labels)).recommender_.model
    propensity, together = weights.covariate_weights.tolist()
    assert together > 1.2
    assert abs(propensity) < together / 2


def test_random_labels_give_no_weight():
    found = []
    for seed in range(8):
        labels = np.random.default_rng(seed).integers(0, 2, len(LOG)).astype(np.int8)
        model = MF(model="constants", covariates="both", **LAST).fit(LOG.with_labels(labels)).recommender_.model
        found.append(model.covariate_weights.tolist())
    error = np.std(found, axis=0, ddof=1) / 8**0.5
    assert (np.abs(np.mean(found, axis=0)) < 3.5 * error).all()


def test_covariates_are_learnt_from_training_rows_alone():
    method = MF(covariates="both", validation=0.3)
    prepared = method.prepare(LOG, noise_rates=None, audit=None, propensities=None)
    logits, together = prepared.side.covariates.columns
    rows = prepared.data.log
    assert len(rows) < len(LOG)
    users, items = LOG.users[:50], LOG.items[:50]
    np.testing.assert_array_equal(logits.at(users, items), RatingLogits.fit(rows).at(users, items))
    np.testing.assert_array_equal(together.at(users, items), CoRatings.fit(rows).at(users, items))
    whole = prepared.on_all_rows(*_settings(method))
    np.testing.assert_array_equal(
        whole.side.covariates.columns[1].at(users, items), CoRatings.fit(LOG).at(users, items)
    )


def _settings(method):
    from verirec.training.settings import TrainingSettings

    return TrainingSettings.of(method), None


def test_the_propensitys_logit_is_beside_features_by_default():
    log = featured_log()
    fitted = MF(model="features", epochs=3).fit(log)
    columns = fitted.recommender_.model.covariates.columns
    assert [one.name for one in columns] == ["propensity"]
    assert "logit_user_factors" in columns[0].arrays
    assert columns[0].arrays["logit_user_factors"].shape[1] > 0
    assert MF(model="features", covariates="none", epochs=3).fit(log).recommender_.model.covariates is None


@pytest.mark.parametrize("covariates", ["propensity", "co-rating", "both"])
def test_a_model_with_covariates_is_saved_and_loaded(covariates, tmp_path):
    fitted = OMEDR(covariates=covariates, epochs=4).fit(LOG, noise_rates=vr.NoiseRates(0.1, 0.1))
    fitted.save(tmp_path / "model")
    again = vr.load(tmp_path / "model")
    users, items = LOG.users[:40], LOG.items[:40]
    np.testing.assert_array_equal(again.predict(users, items), fitted.predict(users, items))
    np.testing.assert_array_equal(again.recommend([0, 1], k=7).positions, fitted.recommend([0, 1], k=7).positions)


def test_recommending_goes_by_the_whole_model():
    fitted = MF(covariates="both", epochs=10).fit(LOG)
    best = fitted.recommend(np.arange(60), k=50)
    expected = np.argsort(-matrix(fitted), axis=1, kind="stable")
    np.testing.assert_allclose(
        np.take_along_axis(matrix(fitted), best.positions, 1),
        np.take_along_axis(matrix(fitted), expected, 1),
        rtol=1e-5,
    )


def test_those_without_ratings_have_average_covariates():
    log = vr.FeedbackLog.from_arrays(LOG.users, LOG.items, LOG.labels, n_users=62, n_items=51)
    fitted = MF(model="constants", covariates="both", epochs=10).fit(log)
    model = fitted.recommender_.model
    cold = torch.tensor([61, 0]), torch.tensor([0, 50])
    assert not model.covariates.pairs(*cold).any()
    more = vr.FeedbackLog.from_arrays([0, 63], [0, 52], [1, 0], n_users=64, n_items=53)
    with pytest.warns(vr.exceptions.ColdStartWarning):
        strange = fitted.predictions_for(more)
    np.testing.assert_allclose(strange.block([63], [0]), fitted.predictions.block([61], [0]), rtol=1e-6)


def test_penalties_of_users_and_items_are_their_own():
    models = {}
    for name in ("penalty_users", "penalty_items"):
        models[name] = MF(model="constants", validation=0, **{name: 1e6}).fit(LOG).recommender_.model
    assert float(models["penalty_users"].user_constants.detach().abs().max()) < 0.01
    assert float(models["penalty_users"].item_constants.detach().abs().max()) > 0.1
    assert float(models["penalty_items"].item_constants.detach().abs().max()) < 0.01
    same = [MF(model="constants", validation=0, **one).fit(LOG) for one in (
        {"penalty_constants": 7.0}, {"penalty_users": 7.0, "penalty_items": 7.0}
    )]  # fmt: skip
    np.testing.assert_array_equal(*(matrix(one) for one in same))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"covariates": "popularity"}, "covariates must be one of both, co-rating, none, propensity"),
        ({"covariates": "both", "model": "ncf"}, 'covariates are for models "mf", "constants" and "features"'),
        ({"covariates": "both", "model": torch.nn.Linear(1, 1)}, "covariates are for models"),
        ({"model": "ncf", "dim": 0}, 'dim must be a whole number from 1 with model="ncf"'),
        ({"penalty_users": -1}, "penalty_users must be"),
        ({"refit": 1}, "refit must be True or False"),
    ],
)
def test_what_covariates_cannot_be(parameters, message):
    check_refusal(lambda: MF(**parameters).fit(small_world().log), ParameterError, message)


# Refit


@pytest.mark.parametrize("method", [MF(), MF(solver="gradient", epochs=30), OMEDR()], ids=["sweep", "adam", "ome-dr"])
def test_a_refit_is_a_fit_on_all_rows_for_as_many_epochs(method):
    rates = {"noise_rates": vr.NoiseRates(0.1, 0.1)}
    refitted = method.fit(LOG, **rates)
    plain = type(method)(**method.get_params() | {"validation": 0, "epochs": refitted.report_.best_epoch})
    plain.fit(LOG, **rates)
    np.testing.assert_allclose(matrix(refitted), matrix(plain), rtol=1e-6)
    first = type(method)(**method.get_params() | {"refit": False}).fit(LOG, **rates)
    assert refitted.report_.history == first.report_.history
    assert not np.array_equal(matrix(first), matrix(refitted))


@pytest.mark.filterwarnings("ignore:learnt noise rates came out at max_rate")
def test_learnt_rates_are_carried_over():
    refitted = OMEDR(epochs=12, refresh_after=2).fit(LOG)
    first = OMEDR(epochs=12, refresh_after=2, refit=False).fit(LOG)
    assert refitted.noise_rates_ == first.noise_rates_
