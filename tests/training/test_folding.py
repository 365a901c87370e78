"""New users in a trained model: as if they had been in training, against a plain minimiser, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import (
    ColdStartWarning,
    ColumnError,
    FeatureWarning,
    ParameterError,
    UnknownIdError,
    UnknownIdWarning,
)

SHAPE = (50, 40)
RATES = vr.NoiseRates(0.2, 0.1)


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.3, noise_rates=RATES, random_state=4)


def trained(world, model="mf", **more):
    """Trained to the very minimum, on all rows."""
    settings = {"validation": 0, "solver": "sweep", "epochs": 3_000, "dim": 2, "penalty_factors": 3.0, "model": model}
    return vr.methods.MF(**settings | more).fit(world.log).recommender_


@pytest.mark.parametrize("model", ["mf", "constants"])
def test_users_of_the_training_log_come_out_as_they_were_trained(world, model):
    recommender = trained(world, model)
    folded = recommender.fold_in(world.log)
    np.testing.assert_allclose(matrix(folded), matrix(recommender), atol=2e-3)


def matrix(recommender):
    users, items = recommender.shape
    return recommender.predict(np.repeat(np.arange(users), items), np.tile(np.arange(items), users)).reshape(-1, items)


@pytest.mark.parametrize("kind", ["mf", "constants", "plain factors", "corrected", "calibrated"])
def test_a_new_user_is_a_small_regression(world, kind):
    """By a general minimiser, from the model's own numbers."""
    settings = {"epochs": 10, "dim": 3, "constants": kind != "plain factors"}
    settings["model"] = "constants" if kind == "constants" else "mf"
    method = vr.methods.OME(**settings) if kind == "corrected" else vr.methods.MF(**settings)
    recommender = method.fit(world.log, noise_rates=RATES).recommender_
    if kind == "calibrated":
        users, items = np.divmod(np.arange(0, 2_000, 7), SHAPE[1])
        recommender = recommender.calibrated(vr.SurveySample(users, items, world.true_labels[users, items]))
    state = {name: value.double().numpy() for name, value in recommender.model.state_dict().items()}
    items, labels = np.array([3, 8, 20, 31]), np.array([1, 0, 1, 1])
    new = vr.FeedbackLog.from_arrays([0] * 4, items, labels, n_users=1, n_items=SHAPE[1], user_ids=["ann"])
    targets = (labels - 0.1) / 0.7 if kind == "corrected" else labels
    offset = state.get("item_constants", np.zeros(SHAPE[1])) + state.get("constant", 0.0)
    factors = state.get("item_factors", np.zeros((SHAPE[1], 0)))
    has_constant, penalty = "constant" in state, recommender.report.penalty_factors

    def logits(own):
        return offset + (own[0] if has_constant else 0.0) + factors @ own[1 : 1 + factors.shape[1]]

    def loss(own):
        z = logits(own)[items]
        return (np.logaddexp(0, z) - targets * z).sum() + 4 * own[0] ** 2 / 2 + penalty * (own[1:] ** 2).sum() / 2

    expected = logits(minimize(loss, np.zeros(1 + factors.shape[1]), method="BFGS", options={"gtol": 1e-9}).x)
    folded = recommender.fold_in(new)
    if kind == "calibrated":
        expected = recommender.calibration.logits(expected)
    np.testing.assert_allclose(folded.predict(["ann"] * SHAPE[1], np.arange(SHAPE[1])), expit(expected), atol=1e-5)
    best = folded.recommend(["ann"], 3, exclude=new)
    left = np.setdiff1d(np.argsort(-expected, kind="stable"), items, assume_unique=True)
    assert best.positions[0].tolist() == left[:3].tolist()


def test_a_folded_recommender_is_saved_like_any_other(world, tmp_path):
    recommender = trained(world, epochs=5)
    new = vr.FeedbackLog.from_arrays([0, 1], [1, 2], [1, 0], n_users=2, n_items=SHAPE[1], user_ids=["ann", "bob"])
    folded = recommender.fold_in(new)
    assert repr(folded) == "Recommender(mf, 2 users x 40 items)"
    again = vr.load(folded.save(tmp_path))
    np.testing.assert_array_equal(again.predict(["bob"], [3]), folded.predict(["bob"], [3]))
    assert recommender.shape == SHAPE


def test_who_has_no_rating_gets_what_is_typical(world):
    recommender = trained(world, epochs=5)
    new = vr.FeedbackLog.from_arrays([0], [1], [1], n_users=2, n_items=SHAPE[1], user_ids=["ann", "nobody"])
    folded = recommender.fold_in(new)
    state = recommender.model.state_dict()
    torch.testing.assert_close(folded.model.state_dict()["user_constants"][1], state["user_constants"].mean())
    torch.testing.assert_close(folded.model.state_dict()["user_factors"][1], state["user_factors"].mean(0))
    with pytest.warns(ColdStartWarning, match="1 of these users"):
        folded.predict(["nobody"], [3])


def test_features_of_new_users_are_average(world):
    log, random = world.log, np.random.default_rng(0)
    featured = vr.FeedbackLog.from_arrays(
        log.users,
        log.items,
        log.labels,
        n_users=SHAPE[0],
        n_items=SHAPE[1],
        user_features=random.normal(size=(SHAPE[0], 2)),
        item_features=random.normal(size=(SHAPE[1], 3)),
    )
    recommender = vr.methods.MF(model="features", epochs=5, penalty_constants=1e6, dim=1, penalty_factors=1e6)
    recommender.fit(featured, propensities=world.propensities)
    new = vr.FeedbackLog.from_arrays([0], [1], [1], n_users=1, n_items=SHAPE[1])
    found = recommender.fold_in(new).predict([0] * SHAPE[1], np.arange(SHAPE[1]))
    model = recommender.recommender_.model
    expected = torch.sigmoid(model.constant + model.of_items()).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_features_of_new_users_come_with_their_ratings(world, tmp_path):
    log, random = world.log, np.random.default_rng(0)
    ages, colours = random.normal(size=SHAPE[0]), random.choice(["red", "blue"], SHAPE[0])
    frame = pd.DataFrame({"user": log.users, "item": log.items, "label": log.labels})
    people = pd.DataFrame({"user": np.arange(SHAPE[0]), "age": ages, "colour": colours})
    featured = vr.FeedbackLog.from_frame(frame, user_features=people, all_items=range(SHAPE[1]))
    method = vr.methods.MF(model="features", epochs=400, validation=0, dim=1, solver="sweep", penalty_features=0.1)
    recommender = vr.load(method.fit(featured, propensities=world.propensities).save(tmp_path))
    # The same person, as a new one: same features, same ratings.
    rows = frame[frame["user"] == 3].assign(user="ann")
    new = pd.DataFrame({"user": ["ann"], "age": ages[3:4], "colour": colours[3:4]})
    folded = recommender.fold_in(vr.FeedbackLog.from_frame(rows, user_features=new))
    items = np.arange(SHAPE[1])
    expected = recommender.predict([3] * SHAPE[1], items)
    np.testing.assert_allclose(folded.predict(["ann"] * SHAPE[1], items), expected, atol=5e-3)
    with pytest.warns(FeatureWarning, match="levels that were not there in training, .*colour=green"):
        recommender.fold_in(vr.FeedbackLog.from_frame(rows, user_features=new.assign(colour="green")))
    check_refusal(
        lambda: recommender.fold_in(vr.FeedbackLog.from_frame(rows, user_features=new.drop(columns="age"))),
        ColumnError,
        "user_features' column 'age' is missing; the columns were: age, colour",
    )


def test_unknown_items_are_left_out_with_a_word_and_none_at_all_is_an_error(world):
    recommender = trained(world, epochs=5)
    given = {"n_users": 1, "n_items": 3, "user_ids": ["ann"]}
    mixed = vr.FeedbackLog.from_arrays([0, 0], [0, 1], [1, 0], item_ids=[5, 77, 6], **given)
    with pytest.warns(
        UnknownIdWarning, match=r"^1 of 2 ratings are of items that the model does not know \(first: 77\)"
    ):
        found = recommender.fold_in(mixed)
    known = vr.FeedbackLog.from_arrays([0], [0], [1], item_ids=[5, 6, 7], **given)
    np.testing.assert_array_equal(found.predict(["ann"], [9]), recommender.fold_in(known).predict(["ann"], [9]))
    strange = vr.FeedbackLog.from_arrays([0], [0], [1], item_ids=[50, 60, 70], **given)
    named = vr.FeedbackLog.from_arrays([0], [0], [1], item_ids=["a", "b", "c"], **given)
    for log, error, message in (
        (strange, UnknownIdError, r"the model knows none of the 1 ratings' items \(first: 50\)"),
        (named, UnknownIdError, "items: strings .* where the catalogue has integers"),
        ([1, 2], ParameterError, "a FeedbackLog is needed; got list"),
    ):
        check_refusal(lambda log=log: recommender.fold_in(log), error, message)


def test_models_without_parameters_of_users_are_refused(world):
    neural = vr.methods.MF(model="ncf", epochs=1).fit(world.log)
    check_refusal(
        lambda: neural.fold_in(world.log),
        ParameterError,
        "fold_in needs a model of factors and constants; got a Neural",
    )
    groups = vr.GroupedNoiseRates((RATES, RATES), user_groups=np.arange(SHAPE[0]) % 2)
    by_group = vr.methods.OME(epochs=1).fit(world.log, noise_rates=groups)
    check_refusal(lambda: by_group.fold_in(world.log), ParameterError, "fold_in cannot tell new users' noise rates")
