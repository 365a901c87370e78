"""Classifiers that know their features by name get those, in their order, and scikit-learn has nothing to warn of."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import AdapterError, AlignmentWarning

linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")

WORLD = vr.simulate.world(60, 40, observed=0.4, random_state=0)
OF_USERS = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["age", "visits"])
OF_ITEMS = pd.DataFrame(np.random.default_rng(1).normal(size=(40, 2)), columns=["price", "length"])
LOG = vr.FeedbackLog.from_frame(
    WORLD.log.to_frame(),
    user_features=OF_USERS.rename_axis("user").reset_index(),
    item_features=OF_ITEMS.rename_axis("item").reset_index(),
)
PAIRS = pd.concat(
    [frame.iloc[at].reset_index(drop=True) for frame, at in ((OF_USERS, LOG.users), (OF_ITEMS, LOG.items))], axis=1
)
UNNAMED = vr.FeedbackLog.from_arrays(
    LOG.users, LOG.items, LOG.labels, n_users=60, n_items=40, user_features=OF_USERS, item_features=OF_ITEMS
)


def fitted(columns, pairs=PAIRS):
    return linear_model.LogisticRegression().fit(pairs[columns], LOG.labels)


@pytest.mark.parametrize("columns", [["price", "age", "length", "visits"], ["visits"]], ids=["swapped", "some"])
def test_features_are_found_by_name_in_the_models_own_order(columns):
    model = fitted(columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = vr.data.as_predictions(vr.adapt(model, LOG), *LOG.shape).at(LOG.users, LOG.items)
    assert found == pytest.approx(model.predict_proba(PAIRS[columns])[:, 1])


def test_an_array_of_features_bears_the_names_that_the_model_was_fitted_with():
    model = fitted(["age", "price"])

    def features(users, items):
        return np.column_stack([OF_USERS["age"].to_numpy()[users], OF_ITEMS["price"].to_numpy()[items]])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = vr.data.as_predictions(vr.adapt(model, LOG, features=features), *LOG.shape).at(LOG.users, LOG.items)
    assert found == pytest.approx(model.predict_proba(PAIRS[["age", "price"]])[:, 1])


def test_features_without_names_are_said_to_be_taken_in_the_models_order():
    with pytest.warns(AlignmentWarning, match="the log's have none: .* order, age, visits, price, length") as told:
        vr.estimate(fitted([*PAIRS]), UNNAMED, estimators="naive")
    assert len(told) == 1


def test_features_that_the_log_does_not_have_are_refused_in_a_line_that_names_both():
    model = fitted(["cost"], PAIRS.rename(columns={"price": "cost"}))
    check_refusal(
        lambda: vr.estimate(model, LOG),
        AdapterError,
        "was fitted on the features cost; the log has no 'cost' among its age, visits, price, length",
    )


def test_a_classifier_is_never_asked_about_no_pairs():
    model = fitted(["age", "price"])
    none = np.empty(0, np.int64)
    assert vr.data.as_predictions(vr.adapt(model, LOG), *LOG.shape).at(none, none).shape == (0,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = vr.compare(model, np.full(LOG.shape, 0.5), LOG)["dr"]
    assert np.isfinite(found.value)
