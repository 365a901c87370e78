"""Models of other libraries, given as they are: read as their library reads them, or refused in one line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix

import verirec as vr
from refusals import check_refusal
from verirec.adapters.catalogue import CATALOGUE, adapter_of
from verirec.data import as_predictions
from verirec.data.top_lists import TopLists
from verirec.exceptions import (
    AdapterError,
    AlignmentWarning,
    ColdStartWarning,
    ColumnError,
    NotFittedError,
    PredictionError,
    ScoreWarning,
    UnknownIdError,
)

implicit = pytest.importorskip("implicit", reason="implicit is not installed: pip install implicit")
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

# implicit says how its linear algebra would be faster.
pytestmark = pytest.mark.filterwarnings("ignore:OpenBLAS:RuntimeWarning", "ignore:Intel MKL:RuntimeWarning")

WORLD = vr.simulate.world(60, 40, observed=0.4, random_state=0)
LOG = WORLD.log
WITH_ZEROS = csr_matrix((LOG.labels.astype(np.float32), (LOG.users, LOG.items)), shape=LOG.shape)
MATRIX = WITH_ZEROS.copy()
MATRIX.eliminate_zeros()


def fitted(kind, matrix=MATRIX, **options):
    model = kind(factors=8, random_state=0, num_threads=1, **options)
    model.fit(matrix, show_progress=False)
    return model


@pytest.fixture(scope="module")
def als():
    return fitted(implicit.als.AlternatingLeastSquares)


MODELS = {
    "als": implicit.als.AlternatingLeastSquares,
    "bpr": implicit.bpr.BayesianPersonalizedRanking,
    "lmf": implicit.lmf.LogisticMatrixFactorization,
}


@pytest.mark.parametrize("name", MODELS)
def test_models_of_implicit_rank_as_implicit_does(name):
    model = fitted(MODELS[name])
    scores = as_predictions(vr.adapt(model, LOG), *LOG.shape).block(np.arange(60), np.arange(40))
    items, theirs = model.recommend(np.arange(60), MATRIX, N=40, filter_already_liked_items=False)
    assert np.take_along_axis(scores, items, axis=1) == pytest.approx(theirs, rel=1e-4, abs=1e-5)


def test_least_squares_that_ran_away_on_stored_zeros_are_told_of(als):
    with pytest.warns(ScoreWarning, match=r"from -\S+ to \S+, though it fits preferences .* eliminate_zeros\(\)"):
        vr.adapt(fitted(MODELS["als"], WITH_ZEROS), LOG)


def test_ids_of_a_models_rows_and_columns_are_matched_with_the_logs(als):
    users, items = np.random.default_rng(0).permutation(60), np.random.default_rng(1).permutation(40)
    shuffled = fitted(implicit.als.AlternatingLeastSquares)
    shuffled.user_factors, shuffled.item_factors = als.user_factors[users], als.item_factors[items]
    ours = as_predictions(vr.adapt(shuffled, LOG, user_ids=users, item_ids=items), *LOG.shape)
    assert ours.at(LOG.users, LOG.items) == pytest.approx(
        as_predictions(vr.adapt(als, LOG), *LOG.shape).at(LOG.users, LOG.items)
    )


def test_a_model_of_the_same_size_is_said_to_be_taken_in_the_order_of_a_log_with_names(als):
    named = vr.FeedbackLog.from_arrays(
        [0, 1], [0, 1], [1, 0], n_users=60, n_items=40, user_ids=[f"u{n:02}" for n in range(60)]
    )
    with pytest.warns(AlignmentWarning, match=r"Squares does not say whose its users are: .* 'u00' first; give user_"):
        vr.adapt(als, named)
    vr.adapt(als, named, user_ids=named.user_ids.ids())


def test_what_was_adapted_for_another_log_is_refused(als):
    named = {"n_users": 60, "n_items": 40, "item_ids": np.arange(40) + 7}
    other = vr.FeedbackLog.from_arrays(LOG.users, LOG.items, LOG.labels, **named)
    check_refusal(
        lambda: vr.estimate_ranking(vr.adapt(als, LOG), other),
        UnknownIdError,
        "AlternatingLeastSquares was adapted for a log of other items: adapt it for this log",
    )


def test_a_model_knows_users_that_the_log_does_not_have(als):
    part = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=50, n_items=40)
    found = vr.adapt(als, part, user_ids=np.arange(60), item_ids=np.arange(40))
    assert found.predictions.user_factors.tolist() == als.user_factors[:50].tolist()


def test_a_user_that_the_model_does_not_know_is_scored_as_its_mean_user(als):
    more = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=61, n_items=40)
    with pytest.warns(ColdStartWarning, match=r"Squares does not know 1 of the log's 61 users \(first: 60\)"):
        found = as_predictions(vr.adapt(als, more, user_ids=np.arange(60)), 61, 40).block(np.arange(61), np.arange(40))
    assert found[60] == pytest.approx(found[:60].mean(axis=0), rel=1e-4, abs=1e-6)


def test_estimate_calibrates_a_models_scores_by_rows_set_apart_and_says_so(als):
    with pytest.warns(ScoreWarning, match=r"AlternatingLeastSquares gives scores: .* by \d+ of the log's") as told:
        found = vr.estimate(als, LOG, propensities=WORLD.propensity_values, estimators="dr")
    assert len([one for one in told if one.category is ScoreWarning]) == 1
    rest, apart = vr.split(LOG, 0.2, random_state=int(np.random.default_rng(0).integers(2**32)))
    by_hand = vr.estimate(
        vr.calibrate(vr.adapt(als, LOG), apart),
        rest,
        propensities=lambda users, items: WORLD.propensity_values.at(users, items) * len(rest) / len(LOG),
        estimators="dr",
    )
    assert found["dr"].value == pytest.approx(by_hand["dr"].value, rel=1e-12)
    assert found["dr"].standard_error == pytest.approx(by_hand["dr"].standard_error, rel=1e-12)


def test_compare_judges_both_on_the_rows_that_are_left(als):
    half = np.full(LOG.shape, 0.5)
    with pytest.warns(ScoreWarning, match="gives scores"):
        found = vr.compare(als, half, LOG, propensities=WORLD.propensity_values)["dr"]
    with pytest.warns(ScoreWarning, match="gives scores"):
        one = vr.estimate(als, LOG, propensities=WORLD.propensity_values)["dr"].value
    assert found.value < 0
    # Of one half the log loss is ln 2, whatever the labels are.
    assert found.value == pytest.approx(one - np.log(2), rel=1e-9)


def test_assess_takes_models_and_lists_and_says_what_was_calibrated(als):
    lists = pd.DataFrame({"user": np.repeat(np.arange(60), 5), "item": np.tile(np.arange(5), 60)})
    found = vr.assess(
        LOG,
        {"als": als, "shown": lists.assign(rank=np.tile(np.arange(5), 60))},
        propensities=vr.GivenPropensity(WORLD.propensity_values),
    )
    assert found.calibrated.keys() == {"als"}
    assert found.recommenders["als"].estimates is not None
    assert found.recommenders["shown"].estimates is None
    assert {*found.recommenders["shown"].ranking} == {"dcg@5", "ndcg@5", "precision@5", "recall@5"}


def test_plans_and_metrics_take_models_too(als):
    assert len(vr.plan_labels(LOG, {"als": als, "half": np.full(LOG.shape, 0.5)}, budget=40)) == 40
    with pytest.warns(ScoreWarning, match="not probabilities"):
        evaluated = vr.metrics.evaluate(als, LOG)
    assert evaluated["auc"] > 0.8


FEATURES = np.random.default_rng(0).normal(size=(60, 3)), np.random.default_rng(1).normal(size=(40, 2))


def pair_features(users, items):
    return np.hstack([FEATURES[0][users], FEATURES[1][items]])


@pytest.mark.parametrize("kind", [LogisticRegression, lambda: make_pipeline(StandardScaler(), LogisticRegression())])
def test_classifiers_give_probabilities_of_pair_features(kind):
    model = kind().fit(pair_features(LOG.users, LOG.items), LOG.labels)
    found = vr.adapt(model, LOG, features=pair_features)
    own = model.predict_proba(pair_features(LOG.users, LOG.items))[:, 1]
    assert found.probabilities
    assert as_predictions(found, *LOG.shape).at(LOG.users, LOG.items) == pytest.approx(own)


def test_a_classifier_on_the_logs_own_features_is_given_as_it_is():
    log = vr.FeedbackLog.from_arrays(
        LOG.users, LOG.items, LOG.labels, n_users=60, n_items=40, user_features=FEATURES[0], item_features=FEATURES[1]
    )
    model = LogisticRegression().fit(pair_features(log.users, log.items), log.labels)
    given = vr.estimate(model, log, estimators="naive")["naive"].value
    assert given == vr.estimate(vr.adapt(model, log, features=pair_features), log, estimators="naive")["naive"].value


def test_a_classifier_without_probabilities_gives_scores():
    model = RidgeClassifier().fit(pair_features(LOG.users, LOG.items), LOG.labels)
    assert vr.adapt(model, LOG, features=pair_features).probabilities is False


class Surprising:
    """A model of a library that nobody adapts."""


class Changed(implicit.cpu.als.AlternatingLeastSquares):
    """What another version might have made of it."""

    def __init__(self):
        self.user_factors, self.item_factors = object(), object()


LISTS = pd.DataFrame({"user": [0, 1], "item": [1, 2], "rank": [1, 1]})
SMALL = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=40)
NAMED = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2, user_ids=["ann", "bob"])
STARS = LogisticRegression().fit(np.eye(3), [1, 2, 3])
REFUSED = {
    "not fitted": (
        lambda: vr.adapt(implicit.als.AlternatingLeastSquares(), LOG), NotFittedError,
        r"^implicit 0\.7\.\d's AlternatingLeastSquares is not fitted",
    ),
    "no factors": (
        lambda: vr.adapt(implicit.nearest_neighbours.CosineRecommender(), LOG), AdapterError,
        r"CosineRecommender has no factors: .* ALS, BPR and logistic",
    ),
    "another library": (
        lambda: vr.adapt(Surprising(), LOG), AdapterError,
        r"^there are adapters for implicit, scikit-learn, .*; got \S+'s Surprising",
    ),
    "another version": (
        lambda: vr.adapt(Changed(), LOG), AdapterError,
        r"'s Changed does not work as the adapter for implicit \(0\.7\) expects: TypeError",
    ),
    "another size": (
        lambda: vr.adapt(fitted(MODELS["als"]), SMALL), UnknownIdError,
        r"AlternatingLeastSquares has 60 users and the log 2: say whose they are, user_ids=",
    ),
    "too few ids": (
        lambda: vr.adapt(fitted(MODELS["als"]), SMALL, user_ids=[0, 1]), UnknownIdError, "has 60 users; got 2 user_ids"
    ),
    "ids of another kind": (
        lambda: vr.adapt(fitted(MODELS["als"]), NAMED, user_ids=np.arange(60)), UnknownIdError,
r"AlternatingLeastSquares: the log's user ids: strings \(first: 'ann'\) where the catalogue has integers",
    ),
    "other users": (
        lambda: vr.adapt(fitted(MODELS["als"]), NAMED, user_ids=list(map(str, range(60)))), UnknownIdError,
        r"Squares knows none of the log's 2 users: the first of its own is '0', of the log's 'ann'",
    ),
    "classifier not fitted": (lambda: vr.adapt(LogisticRegression(), LOG), NotFittedError, "^scikit-learn .* fit"),
    "regression": (
        lambda: vr.adapt(LinearRegression().fit([[1], [2]], [0, 1]), LOG), AdapterError, "LinearRegression is no class"
    ),
    "many classes": (lambda: vr.adapt(STARS, LOG), AdapterError, "must tell labels 0 from 1; its classes are 1, 2, 3"),
    "no features": (
        lambda: vr.adapt(LogisticRegression().fit(np.eye(2), [0, 1]), LOG), AdapterError, "the log has none: give feat"
    ),
    "other features": (
        lambda: vr.adapt(LogisticRegression().fit(np.eye(2), [0, 1]), LOG, features=pair_features), AdapterError,
        "does not work as the adapter for scikit-learn .* 5 features",
    ),
    "no columns": (lambda: vr.adapt(pd.DataFrame({"a": [1]}), LOG), ColumnError, "the user"),
    "a loss of lists": (
        lambda: vr.estimate(LISTS, LOG), PredictionError,
        "top-k lists have no probabilities",
    ),
    "calibrated lists": (
        lambda: vr.calibrate(vr.adapt(LISTS, LOG), LOG), PredictionError,
        "top-k lists have no scores",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_one_line_that_names_both_sides(case):
    act, error, message = REFUSED[case]
    check_refusal(act, error, message)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda columns: pl.DataFrame(columns).to_arrow()])
def test_frames_by_id_are_lists_with_a_rank_and_scores_without(make):
    pairs = {"user": [0, 0, 3], "item": [7, 2, 1]}
    lists = vr.adapt(make(pairs | {"rank": [1, 2, 1], "score": [0.9, 0.8, 0.4]}), LOG).predictions
    assert isinstance(lists, TopLists)
    assert lists.places(np.array([0, 0, 3, 3]), np.array([7, 2, 1, 7])).tolist() == [0, 1, 0, np.inf]
    users, items, scores = vr.adapt(make(pairs | {"score": [0.9, 0.8, 0.4]}), LOG).predictions
    assert (users.tolist(), items.tolist(), scores.tolist()) == ([0, 0, 3], [7, 2, 1], [0.9, 0.8, 0.4])


def test_a_dense_frame_stays_what_it_was():
    dense = pd.DataFrame(np.full(LOG.shape, 0.5))
    assert vr.estimate(dense, LOG, estimators="naive")["naive"].value == pytest.approx(np.log(2))


def test_no_library_is_imported_to_tell_its_models():
    assert adapter_of(object()) is None
    assert len({one.library for one in CATALOGUE}) == len(CATALOGUE)
