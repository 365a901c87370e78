"""What a trained method can do: predict, recommend, find similar items, serve another log."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pandas as pd
import pytest
import torch
from method_worlds import fit, fitted, matrix, small_world
from method_worlds import validate_often as validate_often
from scipy.special import expit

import verirec as vr
from refusals import check_refusal
from verirec.data.pair_keys import NO_PAIRS
from verirec.data.predictions import as_predictions
from verirec.exceptions import ColdStartWarning, IdError, NotFittedError, ParameterError, UnknownIdError, VerirecError
from verirec.methods import MF, catalogue
from verirec.models import FactorModel
from verirec.training import recommendations
from verirec.training.recommendations import top_items

pytestmark = pytest.mark.filterwarnings("ignore:learnt noise rates came out at max_rate")
"""These worlds are too small to tell rates."""


LOG = small_world().log
USERS = np.array([f"u{n:02}" for n in range(30)])
ITEMS = np.array([f"i{n:02}" for n in range(40)])


def log_of(users, items, labels, **more):
    return vr.FeedbackLog.from_arrays(users=users, items=items, labels=labels, **more)


@pytest.fixture(scope="module")
def named():
    """The same log, its users and items by name."""
    frame = pd.DataFrame({"user": USERS[LOG.users], "item": ITEMS[LOG.items], "rating": LOG.labels})
    return vr.FeedbackLog.from_frame(frame)


@pytest.fixture(scope="module")
def by_name(named):
    return fit("mf", named)


@pytest.fixture(scope="module")
def with_cold():
    """Three users and five items at the end that nobody heard of."""
    log = log_of(LOG.users, LOG.items, LOG.labels, n_users=33, n_items=45)
    return fit("mf", log, fit={"propensities": np.full((33, 45), 0.2)})


def every_pair(method):
    n_users, n_items = method.recommender_.shape
    return np.repeat(np.arange(n_users), n_items), np.tile(np.arange(n_items), n_users)


# Predictions


@pytest.mark.parametrize("model", ["mf", "constants", "ncf"])
def test_predictions_are_those_of_the_model(model):
    method = fit("mf", model=model, epochs=2)
    state = {key: value.double().numpy() for key, value in method.recommender_.model.state_dict().items()}
    expected = state["constant"] + state["user_constants"][:, None] + state["item_constants"][None, :]
    if model == "mf":
        expected = expected + state["user_factors"] @ state["item_factors"].T
    if model == "ncf":
        for user in range(30):
            for item in range(40):
                both = np.concatenate([state["user_factors"][user], state["item_factors"][item]])
                hidden = np.maximum(both @ state["hidden"] + state["hidden_constant"], 0)
                expected[user, item] += hidden @ state["output"]
    expected = 1 / (1 + np.exp(-expected))
    np.testing.assert_allclose(matrix(method), expected, atol=1e-6)
    np.testing.assert_allclose(method.predict(*every_pair(method)).reshape(30, 40), expected, atol=1e-6)


def test_predict_takes_ids(by_name):
    users, items = np.array([7, 0, 29]), np.array([3, 3, 39])
    expected = matrix(by_name)[users, items]
    np.testing.assert_allclose(by_name.predict(USERS[users], ITEMS[items]), expected, atol=1e-6)
    np.testing.assert_allclose(by_name.predict(pd.Series(USERS[users]), list(ITEMS[items])), expected, atol=1e-6)
    assert by_name.predict([], []).shape == (0,)


def test_names_do_not_matter_to_what_is_learnt(by_name):
    unnamed = fit("mf", LOG)
    np.testing.assert_array_equal(matrix(by_name), matrix(unnamed))


@pytest.mark.parametrize(
    ("users", "items", "error", "message"),
    [
        (["u00", "nobody"], ["i00", "i00"], UnknownIdError, "users are not all in the catalogue.* 'nobody'"),
        (["u00"], ["nothing"], UnknownIdError, "items are not all in the catalogue"),
        ([3], ["i00"], UnknownIdError, "users: integers .*where the catalogue has"),
        (["u00", "u01"], ["i00"], ParameterError, "must have one length; got 2 and 1"),
        ("u00", "i00", IdError, "must be a sequence of ids"),
    ],
)
def test_predict_refuses(by_name, users, items, error, message):
    check_refusal(lambda: by_name.predict(users, items), error, message)


# Recommendations


@pytest.mark.parametrize("name", ["mf", "ome-dr", "dib"])
def test_recommendations_are_the_largest_predictions(name):
    method = fitted(name)
    wanted = [5, 0, 29, 5]
    found = method.recommend(wanted, k=7)
    order = np.argsort(-matrix(method)[wanted], axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(found.positions, order)
    np.testing.assert_array_equal(found.items.astype(int), order)
    logits = np.log(matrix(method) / (1 - matrix(method)))
    np.testing.assert_allclose(found.scores, np.take_along_axis(logits[wanted], order, 1), atol=1e-5)
    assert found.users.tolist() == wanted
    assert repr(found) == "Recommendations(4 x 7)"


def test_all_items_can_be_recommended():
    found = fitted("mf").recommend([3], k=40)
    assert sorted(found.items[0]) == list(range(40))
    assert (np.diff(found.scores[0]) <= 0).all()


def test_what_was_rated_can_be_left_out():
    method = fitted("mf")
    found = method.recommend(np.arange(30), k=40, exclude=LOG)
    dense = matrix(method).copy()
    dense[LOG.users, LOG.items] = -1
    for user in range(30):
        left = [item for item in found.positions[user] if item >= 0]
        order = [item for item in np.argsort(-dense[user], kind="stable") if dense[user, item] >= 0]
        assert left == order
        assert (found.positions[user][len(left) :] == -1).all()
        assert all(item is None for item in found.items[user][len(left) :])
    frame = found.to_frame()
    assert len(frame) == 1200 - len(LOG)
    assert not set(zip(frame["user"], frame["item"], strict=True)) & set(zip(LOG.users, LOG.items, strict=True))


def test_a_log_with_other_ids_leaves_out_what_both_know(by_name):
    other = log_of(
        [0, 0, 1], [0, 1, 2], [1, 0, 1], user_ids=["u03", "stranger"], item_ids=["i05", "novelty", "i07"],
        n_users=2, n_items=3,
    )  # fmt: skip
    found = by_name.recommend(["u03", "u04"], k=40, exclude=other)
    assert set(ITEMS) - set(found.items[0]) == {"i05"}
    assert set(ITEMS) == set(found.items[1])


def test_recommendations_as_a_table(by_name):
    found = by_name.recommend(["u03", "u01"], k=3)
    frame = found.to_frame()
    assert list(frame.columns) == ["user", "rank", "item", "logit", "probability"]
    assert frame["user"].tolist() == ["u03"] * 3 + ["u01"] * 3
    assert frame["rank"].tolist() == [1, 2, 3, 1, 2, 3]
    assert frame["item"].tolist() == found.items.ravel().tolist()
    np.testing.assert_array_equal(frame["logit"], found.scores.ravel())
    np.testing.assert_allclose(frame["probability"], expit(found.scores.ravel().astype(float)))
    assert "u03" in found._repr_html_()


def test_ids_are_escaped_in_a_page():
    found = vr.methods.Recommendations(
        np.array(["<b>"]), vr.IdMap.of(["<i>"]), np.zeros((1, 1), np.int64), np.ones((1, 1), np.float32)
    )
    assert "<b>" not in found._repr_html_()


def test_nobody_gets_no_recommendations():
    found = fitted("mf").recommend([], k=3)
    assert found.items.shape == (0, 3)
    assert len(found.to_frame()) == 0


@pytest.mark.parametrize("k", [1, 7, 150, 600])
def test_ties_go_to_the_first_item(k):
    random = np.random.default_rng(k)
    model = FactorModel(3, 600, 0, random=torch.Generator())
    levels = random.integers(4, size=600).astype(np.float32)
    with torch.no_grad():
        model.item_constants.copy_(torch.as_tensor(levels))
    found, _ = top_items(model, np.array([2, 0]), 600, k, NO_PAIRS)
    np.testing.assert_array_equal(found, np.tile(np.argsort(-levels, kind="stable")[:k], (2, 1)))


def test_many_users_are_served_in_parts(monkeypatch):
    whole = fitted("mf").recommend(np.arange(30), k=5, exclude=LOG)
    monkeypatch.setattr(recommendations, "_BLOCK", 170)
    parts = fitted("mf").recommend(np.arange(30), k=5, exclude=LOG)
    np.testing.assert_array_equal(whole.positions, parts.positions)
    np.testing.assert_allclose(whole.scores, parts.scores, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda method: method.recommend(["u00"], k=41), ParameterError, "k must be at most the number of items, 40"),
        (lambda method: method.recommend(["u00"], k=0), ParameterError, "k must be a whole number of at least 1"),
        (lambda method: method.recommend(["u00"], k=2.5), ParameterError, "k must be a whole number"),
        (lambda method: method.recommend(["u77"]), UnknownIdError, "users are not all in the catalogue"),
        (lambda method: method.recommend("u00"), IdError, "must be a sequence of ids"),
        (lambda method: method.similar_items("i77"), UnknownIdError, "not all in the catalogue"),
        (lambda method: method.similar_items("i00", k=40), ParameterError, "at most the number of other items, 39"),
        (lambda method: method.similar_items("i00", k=0), ParameterError, "k must be a whole number of at least 1"),
    ],
)
def test_wrong_wishes_are_refused(by_name, call, error, message):
    check_refusal(lambda: call(by_name), error, message)


@pytest.mark.parametrize(
    "call", [lambda method: method.recommend(["u00"], exclude=5), lambda method: method.predictions_for(None)]
)
def test_what_is_no_log_is_refused(by_name, call):
    check_refusal(lambda: call(by_name), VerirecError, "a FeedbackLog is needed")


# Similar items


@pytest.mark.parametrize("model", ["mf", "ncf"])
def test_similar_items_are_those_with_the_largest_cosines(model):
    method = fit("mf", model=model, epochs=2)
    factors = method.recommender_.model.item_factors.detach().numpy()
    cosines = [
        float(factors[8] @ one / np.linalg.norm(factors[8]) / np.linalg.norm(one)) if item != 8 else -np.inf
        for item, one in enumerate(factors)
    ]
    found = method.similar_items(8, k=39)
    np.testing.assert_array_equal(found.items[0], np.argsort(-np.array(cosines), kind="stable")[:39])
    np.testing.assert_allclose(found.scores[0], np.sort(cosines)[::-1][:39], atol=1e-6)
    assert 8 not in found.items


def test_similar_items_by_name(by_name):
    found = by_name.similar_items("i03", k=4)
    assert found.users.tolist() == ["i03"]
    assert set(found.items[0]) <= set(ITEMS) - {"i03"}
    assert len(found.to_frame()) == 4


def test_constants_alone_know_no_similar_items():
    method = fit("mf", model="constants", epochs=1)
    check_refusal(lambda: method.similar_items(3), ParameterError, "need a model with item factors")


def test_what_is_like_an_item_without_ratings_comes_with_a_warning(with_cold):
    with pytest.warns(ColdStartWarning):
        with_cold.similar_items(44, k=3)


# Users and items without ratings


def mean_logits(method):
    """Logits of everybody, those without ratings as the mean of the others."""
    state = {key: value.double().numpy() for key, value in method.recommender_.model.state_dict().items()}
    for side, cold in (("user", method.recommender_.cold_users), ("item", method.recommender_.cold_items)):
        for part in ("factors", "constants"):
            values = state[f"{side}_{part}"]
            np.testing.assert_allclose(
                values[cold], np.broadcast_to(values[~cold].mean(0), values[cold].shape), atol=1e-6
            )
            values[cold] = values[~cold].mean(0)
    constants = state["constant"] + state["user_constants"][:, None] + state["item_constants"]
    return constants + state["user_factors"] @ state["item_factors"].T


def test_cold_users_and_items_are_predicted_from_what_all_have_in_common(with_cold):
    assert np.flatnonzero(with_cold.recommender_.cold_users).tolist() == [30, 31, 32]
    assert np.flatnonzero(with_cold.recommender_.cold_items).tolist() == [40, 41, 42, 43, 44]
    expected = 1 / (1 + np.exp(-mean_logits(with_cold)))
    with pytest.warns(ColdStartWarning, match="1 of these users and 5 of these items had no ratings"):
        found = with_cold.predict([31] * 45, np.arange(45))
    np.testing.assert_allclose(found, expected[31], atol=1e-6)
    np.testing.assert_allclose(matrix(with_cold), expected, atol=1e-6)
    with pytest.warns(ColdStartWarning, match="0 of these users and 1 of these items"):
        found = with_cold.predict(np.arange(30), [42] * 30)
    np.testing.assert_allclose(found, expected[:30, 42], atol=1e-6)


def test_a_cold_user_is_recommended_what_most_like(with_cold):
    with pytest.warns(ColdStartWarning, match="1 of these users and 0 of these items"):
        found = with_cold.recommend([32, 1], k=5)
    order = np.argsort(-mean_logits(with_cold)[32], kind="stable")
    np.testing.assert_array_equal(found.items[0], order[:5])


def test_without_cold_users_there_is_no_warning(with_cold):
    with_cold.recommend([0, 1], k=5)
    with_cold.predict([0], [0])


@pytest.mark.parametrize("model", ["ncf", "constants"])
def test_other_models_predict_cold_users_all_alike(model):
    log = log_of(LOG.users, LOG.items, LOG.labels, n_users=33, n_items=45)
    method = fit("mf", log, model=model, epochs=2, fit={"propensities": np.full((33, 45), 0.2)})
    found = matrix(method)
    np.testing.assert_allclose(found[30], found[31], atol=1e-6)
    np.testing.assert_allclose(found[:, 40], found[:, 44], atol=1e-6)


def test_features_tell_cold_users_apart():
    features = np.random.default_rng(0).normal(size=(33, 2))
    log = log_of(LOG.users, LOG.items, LOG.labels, n_users=33, n_items=40, user_features=features)
    method = fit("mf", log, model="features", fit={"propensities": np.full((33, 40), 0.2)})
    assert np.abs(matrix(method)[30] - matrix(method)[31]).max() > 1e-4


def test_a_user_whose_ratings_are_all_held_out_is_cold():
    users = np.r_[LOG.users, np.arange(30, 60)]
    items = np.r_[LOG.items, np.arange(30)]
    labels = np.r_[LOG.labels, np.arange(30) % 2]
    log = log_of(users, items, labels, n_users=60, n_items=40)
    method = fit("mf", log, validation=0.3, epochs=2, fit={"propensities": np.full((60, 40), 0.2)})
    assert method.recommender_.cold_users.any()


# Other logs


def test_predictions_for_the_same_ids_are_the_same(by_name, named):
    assert np.array_equal(matrix(by_name, by_name.predictions_for(named)), matrix(by_name))


@pytest.mark.parametrize("model", ["mf", "constants", "ncf", "features"])
def test_predictions_for_another_log_go_by_id(model):
    features = {"user_features": np.random.default_rng(1).normal(size=(30, 2))} if model == "features" else {}
    log = log_of(
        LOG.users, LOG.items, LOG.labels, n_users=30, n_items=40,
        user_ids=list(USERS), item_ids=list(ITEMS), **features,
    )  # fmt: skip
    method = fit("mf", log, model=model, epochs=2)
    users, items = np.array([4, 17, 2]), np.array([39, 0, 12, 5])
    other = log_of([0, 1, 2], [0, 1, 3], [1, 0, 1], user_ids=list(USERS[users]), item_ids=list(ITEMS[items]),
                   n_users=3, n_items=4)  # fmt: skip
    cells = as_predictions(method.predictions_for(other), 3, 4)
    expected = matrix(method)[np.ix_(users, items)]
    np.testing.assert_allclose(cells.block(range(3), range(4)), expected, atol=1e-6)
    np.testing.assert_allclose(cells.at([2, 0], [3, 1]), expected[[2, 0], [3, 1]], atol=1e-6)


@pytest.mark.parametrize("constants", [True, False])
def test_predictions_for_ids_that_the_model_does_not_know_are_those_of_cold_ones(named, constants):
    method = fit("mf", named, constants=constants, solver="gradient", penalty_factors=0.1, penalty_constants=0.1)
    other = log_of([0, 1, 2], [0, 1, 1], [1, 0, 1], user_ids=["u05", "stranger", "u02"], item_ids=["new", "i09"],
                   n_users=3, n_items=2)  # fmt: skip
    with pytest.warns(ColdStartWarning, match="does not know 1 of the log's users and 1 of its items"):
        cells = as_predictions(method.predictions_for(other), 3, 2)
    state = {key: value.double().numpy() for key, value in method.recommender_.model.state_dict().items()}
    state = {"constant": 0.0, "user_constants": np.zeros(30), "item_constants": np.zeros(40)} | state
    assert np.abs(state["user_factors"].mean(0) @ state["item_factors"].mean(0)) > 1e-3
    sides = [
        [np.vstack([state[f"{side}_{part}"].reshape(n, -1), state[f"{side}_{part}"].reshape(n, -1).mean(0)])
         for part in ("factors", "constants")]
        for side, n in (("user", 30), ("item", 40))
    ]  # fmt: skip
    logits = state["constant"] + sides[0][0] @ sides[1][0].T + sides[0][1] + sides[1][1].T
    expected = expit(logits[np.ix_([5, 30, 2], [40, 9])])
    np.testing.assert_allclose(cells.block(range(3), range(2)), expected, atol=1e-6)
    np.testing.assert_allclose(cells.at([1, 0], [1, 0]), expected[[1, 0], [1, 0]], atol=1e-6)


STRANGERS = {
    "factors": {},
    "factors by gradient": {"solver": "gradient"},
    "factors without constants": {"constants": False, "solver": "gradient"},
    "constants": {"model": "constants"},
    "features": {"model": "features"},
    "features by gradient": {"model": "features", "solver": "gradient"},
    "ncf": {"model": "ncf"},
    "ncf without constants": {"model": "ncf", "constants": False},
}


@pytest.mark.parametrize("name", ["mf", "dr-jl"])
@pytest.mark.parametrize("kind", STRANGERS)
def test_whoever_has_no_ratings_is_predicted_as_whoever_is_not_known(kind, name):
    """The same bits: cold users and items have the typical user's parameters, and here the typical features."""
    options = {"penalty_factors": 0.5, "penalty_features": 0.5, "epochs": 3, **STRANGERS[kind]}
    features = {}
    if options.get("model") == "features":
        # Of mean 0, and 0 of those that are cold.
        signs = {"user": np.tile([1.0, -1.0], 15), "item": np.repeat([2.0, -2.0], 20)}
        features = {f"{side}_features": np.r_[of, 0.0][:, None] for side, of in signs.items()}
    log = log_of(
        LOG.users, LOG.items, LOG.labels, n_users=31, n_items=41,
        user_ids=[*USERS, "cold"], item_ids=[*ITEMS, "cold"], **features,
    )  # fmt: skip
    method = fit(name, log, fit={"propensities": np.full((31, 41), 0.2)}, **options)
    assert method.recommender_.cold_users.tolist() == [False] * 30 + [True]
    assert method.recommender_.cold_items.tolist() == [False] * 40 + [True]
    users, items = ["u03", "cold", "u07"], ["cold", "i02", "i30", "i04"]

    def predicted(users, items, warns):
        other = log_of([0, 1, 2], [0, 1, 3], [1, 0, 1], user_ids=users, item_ids=items, n_users=3, n_items=4)
        if not warns:
            return as_predictions(method.predictions_for(other), 3, 4)
        with pytest.warns(ColdStartWarning, match=f"does not know {warns[0]} of the log's users and {warns[1]} of its"):
            return as_predictions(method.predictions_for(other), 3, 4)

    known = predicted(users, items, None)
    found = known.block(range(3), range(4))
    assert np.abs(found - found[0, 0]).max() > 1e-4
    for replaced, warns in (
        (("nobody", "cold"), (1, 0)),
        (("cold", "nothing"), (0, 1)),
        (("nobody", "nothing"), (1, 1)),
    ):
        strange = predicted(["u03", replaced[0], "u07"], [replaced[1], *items[1:]], warns)
        np.testing.assert_array_equal(strange.block(range(3), range(4)), found)
        np.testing.assert_array_equal(strange.at([1, 1, 0], [0, 2, 0]), known.at([1, 1, 0], [0, 2, 0]))


def test_a_module_of_ones_own_does_not_guess_strangers(named):
    class Own(torch.nn.Module):
        def __init__(self, n_users, n_items):
            super().__init__()
            self.users = torch.nn.Parameter(torch.linspace(-1, 1, n_users))

        def forward(self, users, items):
            return self.users[users]

    method = fit("mf", named, model=Own, epochs=1)
    other = log_of([0, 1], [0, 0], [1, 0], user_ids=["u05", "stranger"], item_ids=["i09"], n_users=2, n_items=1)
    check_refusal(
        lambda: method.predictions_for(other), ParameterError, "cannot predict users or items that it has not seen"
    )


# What training leaves


def test_a_recommender_cannot_be_changed(by_name):
    recommender = by_name.recommender_
    for one in fields(recommender):
        with pytest.raises(FrozenInstanceError):
            setattr(recommender, one.name, None)
    for one in fields(recommender.report):
        with pytest.raises(FrozenInstanceError):
            setattr(recommender.report, one.name, None)


def test_a_recommender_does_not_depend_on_its_method(named):
    method = fit("mf", named, epochs=2)
    recommender, before = method.recommender_, matrix(method)
    method.set_params(random_state=9, dim=5).fit(named)
    assert method.recommender_ is not recommender
    np.testing.assert_array_equal(matrix(recommender), before)
    assert recommender.report.parameters["random_state"] == 0
    assert repr(recommender) == "Recommender(mf, 30 users x 40 items)"


def test_a_method_hands_over_to_its_recommender(by_name, named):
    recommender = by_name.recommender_
    np.testing.assert_array_equal(by_name.predict(["u03"], ["i01"]), recommender.predict(["u03"], ["i01"]))
    for call in (lambda one: one.recommend(["u03"], k=3, exclude=named), lambda one: one.similar_items("i03", k=3)):
        left, right = call(by_name), call(recommender)
        np.testing.assert_array_equal(left.positions, right.positions)
        np.testing.assert_array_equal(left.scores, right.scores)
    assert by_name.report_ is recommender.report
    assert by_name.noise_rates_ is recommender.noise_rates
    assert by_name.models_["prediction"] is recommender.model


def test_what_was_saved_knows_its_names(by_name, tmp_path):
    again = vr.methods.load(by_name.save(tmp_path / "model"))
    assert again.recommend(["u03"], k=3).items.tolist() == by_name.recommend(["u03"], k=3).items.tolist()
    np.testing.assert_array_equal(again.predict(["u03"], ["i01"]), by_name.predict(["u03"], ["i01"]))


def test_what_was_saved_knows_who_was_cold(with_cold, tmp_path):
    again = vr.methods.load(with_cold.save(tmp_path / "model"))
    with pytest.warns(ColdStartWarning, match="1 of these users"):
        again.recommend([32], k=2)


# Before training


@pytest.mark.parametrize(
    "call",
    [
        lambda method: method.predictions,
        lambda method: method.report_,
        lambda method: method.noise_rates_,
        lambda method: method.predict([0], [0]),
        lambda method: method.recommend([0]),
        lambda method: method.similar_items(0),
        lambda method: method.save("nowhere"),
    ],
)
@pytest.mark.parametrize("name", ["mf", "ome-dr"])
def test_an_untrained_method_says_so(name, call):
    check_refusal(lambda: call(catalogue[name]()), NotFittedError, "is not trained yet: call fit first")


def test_an_untrained_method_has_no_predictions_for_a_log():
    check_refusal(lambda: MF().predictions_for(LOG), NotFittedError, "is not trained yet")


@pytest.mark.filterwarnings("ignore::verirec.exceptions.TrainedRowsWarning")
def test_a_trained_method_and_its_recommender_are_predictions_by_themselves():
    log, method = small_world().log, fitted("mf")
    expected = vr.estimate(method.predictions, log)["naive"].value
    assert vr.estimate(method, log)["naive"].value == vr.estimate(method.recommender_, log)["naive"].value == expected
