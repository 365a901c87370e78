"""What all propensities share: their floor, the total of weights, and the forms they may come in."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from inspect import isabstract

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plain_formulas import propensities as plain
from refusals import check_refusal
from verirec import (
    ConstantPropensity,
    FeedbackLog,
    GivenPropensity,
    LevelPropensity,
    LoggedPropensity,
    LogisticPropensity,
    NaiveBayesPropensity,
    NoiseRates,
    PopularityPropensity,
    Propensities,
    estimate,
    simulate,
)
from verirec.data.cells import DenseCells
from verirec.exceptions import MisfitWarning, ParameterError, PropensityError
from verirec.nuisance.propensities import as_propensities
from verirec.nuisance.propensities.base import default_floor

GRID = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]])
LOG = plain.log_of(GRID)
LOGGED = plain.log_of(GRID, propensities=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
MATRICES = st.lists(st.lists(st.floats(0.001, 1), min_size=4, max_size=4), min_size=3, max_size=3)


class ByUser(Propensities):
    """A model of one's own, which writes nothing but `unfloored`."""

    def unfloored(self, users, items):
        return np.broadcast_to((users + 1) / 10, np.broadcast_shapes(users.shape, items.shape))


def everywhere(propensities):
    return propensities.block(range(propensities.shape[0]), range(propensities.shape[1]))


@given(MATRICES, st.floats(0, 1))
def test_the_floor_raises_propensities_below_it(matrix, floor):
    propensities = GivenPropensity(matrix, floor=floor)
    assert everywhere(propensities).tolist() == [[max(p, floor) for p in row] for row in matrix]
    assert propensities.unfloored(LOG.users, LOG.items).tolist() == [
        matrix[user][item] for user, item in zip(LOG.users, LOG.items, strict=True)
    ]


@given(MATRICES, st.floats(0, 1))
def test_the_rows_that_the_floor_changed_are_counted(matrix, floor):
    changed = sum(matrix[user][item] < floor for user, item in zip(LOG.users, LOG.items, strict=True))
    assert GivenPropensity(matrix, floor=floor).count_floored(LOG) == changed


@given(MATRICES, st.floats(0, 1))
def test_the_total_of_weights_is_the_sum_over_all_cells(matrix, floor):
    expected = sum(1 / max(p, floor) for row in matrix for p in row)
    assert GivenPropensity(matrix, floor=floor).inverse_total == pytest.approx(expected, rel=1e-12)


def test_the_total_of_weights_goes_over_a_grid_of_many_blocks():
    by_user = ByUser((9, 250_000))
    assert by_user.inverse_total == pytest.approx(250_000 * sum(10 / (user + 1) for user in range(9)), rel=1e-12)


@pytest.mark.parametrize("model", [LogisticPropensity(floor=0), PopularityPropensity(floor=0)])
def test_a_floor_of_0_counts_nothing(model):
    assert model.fit(LOG).count_floored(LOG) == 0


def test_a_subclass_gets_floor_total_and_blocks_for_free():
    own = ByUser((3, 4), floor=0.15)
    assert own.at([0, 2], [0, 3]).tolist() == [0.15, 0.3]
    assert own.inverse_total == pytest.approx(4 * (1 / 0.15 + 1 / 0.2 + 1 / 0.3))
    assert own.count_floored(LOG) == 2
    assert own.variance_change(LOG, np.ones(6), np.ones(6)) == 0
    assert repr(own) == "ByUser(3 users x 4 items, floor 0.15)"
    assert repr(ByUser((3, 4000))) == "ByUser(3 users x 4,000 items)"


@pytest.mark.parametrize("floor", [-1e-9, 1 + 1e-9, "0", None, np.nan, True, float])
def test_a_floor_outside_the_unit_interval_is_refused(floor):
    message = r"^floor must be a finite number at least 0 and at most 1; got "
    check_refusal(lambda: ByUser((3, 4), floor=floor), ParameterError, message)


def test_the_floor_of_a_model_that_names_none_is_a_hundredth_of_the_density():
    assert default_floor(LOG, None) == pytest.approx(0.005)
    assert default_floor(LOG, 0) == 0
    assert default_floor(LOG, 1) == 1


def test_nothing_means_the_logs_column_or_else_the_logistic_model():
    assert isinstance(as_propensities(None, LOGGED), LoggedPropensity)
    assert as_propensities(None, LOGGED).at(LOG.users, LOG.items).tolist() == LOGGED.propensities.tolist()
    assert np.array_equal(everywhere(as_propensities(None, LOG)), everywhere(LogisticPropensity().fit(LOG)))


@pytest.mark.parametrize("model", [LogisticPropensity(l2=1), PopularityPropensity(), ConstantPropensity()])
def test_a_model_is_fitted_to_the_log(model):
    assert np.array_equal(everywhere(as_propensities(model, LOG)), everywhere(model.fit(LOG)))


@pytest.mark.parametrize(
    "fitted",
    [ConstantPropensity().fit(LOG), LoggedPropensity(LOGGED), GivenPropensity(np.full((3, 4), 0.5)), ByUser((3, 4))],
    ids=lambda fitted: type(fitted).__name__,
)
def test_fitted_propensities_stay_as_they_are(fitted):
    assert as_propensities(fitted, LOG) is fitted


@pytest.mark.parametrize(
    "values",
    [
        np.full((3, 4), 0.5),
        [[0.5] * 4] * 3,
        lambda users, items: np.full(len(users), 0.5),
        DenseCells(np.full((3, 4), 0.5)),
    ],
    ids=["matrix", "list", "function", "cells"],
)
def test_values_become_given_propensities_on_the_logs_grid(values):
    assert everywhere(as_propensities(values, LOG)).tolist() == [[0.5] * 4] * 3


def test_a_given_function_keeps_its_floor_on_the_logs_grid():
    half = GivenPropensity(lambda users, items: np.full(len(users), 0.1), floor=0.3)
    assert everywhere(as_propensities(half, LOG)).tolist() == [[0.3] * 4] * 3


OTHER_GRID = r"^propensities must be for the log's grid of \(3, 4\); got \(4, 3\)$"
NO_FORM = r"^propensities must be fitted ones, a model, a matrix or a function; got "


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.full((4, 3), 0.5), OTHER_GRID),
        (DenseCells(np.full((4, 3), 0.5)), OTHER_GRID),
        (GivenPropensity(np.full((4, 3), 0.5)), OTHER_GRID),
        (ConstantPropensity().fit(plain.log_of(np.ones((4, 3), int))), OTHER_GRID),
        (ConstantPropensity, NO_FORM + r"<class "),
        (LoggedPropensity, NO_FORM + r"<class "),
        (NaiveBayesPropensity, NO_FORM + r"<class "),
        ("logistic", NO_FORM + r"'logistic'$"),
        ("", NO_FORM + r"''$"),
        (0.5, r"^given propensities must be a matrix"),
        ([0.5, 0.5], r"^given propensities must be a matrix"),
        ({"a": 1}, r"^given propensities must be a matrix"),
        (np.zeros((3, 4)), r"^propensities must be above 0 and at most 1; 12 of 12 are not \(first: 0\)$"),
        (NaiveBayesPropensity(), r"^naive Bayes needs an unbiased sample"),
    ],
)
def test_what_gives_no_propensities_for_the_grid_is_refused(values, message):
    check_refusal(lambda: as_propensities(values, LOG), PropensityError, message)


@pytest.mark.parametrize("log", ["log", np.eye(3), 3, object])
@pytest.mark.parametrize(
    "given_",
    [
        ConstantPropensity(),
        None,
        np.full((3, 4), 0.5),
    ],
    ids=["model", "nothing", "matrix"],
)
def test_only_a_log_will_do(given_, log):
    check_refusal(lambda: as_propensities(given_, log), ParameterError, r"^a FeedbackLog is needed; got ")


class NoPropensities:
    """A model of one's own that gives something else."""

    def fit(self, log):
        return np.full((3, 4), 0.5)


def test_a_model_that_gives_no_propensities_is_refused():
    message = "^a propensity model's fit must give Propensities; got ndarray$"
    check_refusal(lambda: as_propensities(NoPropensities(), LOG), PropensityError, message)


@pytest.mark.parametrize("kind", [LogisticPropensity, PopularityPropensity])
def test_a_model_is_named_settings_that_stay_as_they_are(kind):
    with pytest.raises(TypeError, match="positional"):
        kind(0.1)
    with pytest.raises(FrozenInstanceError):
        kind().floor = 0.1
    assert kind(floor=0.1) == kind(floor=0.1) != kind()
    assert "floor=0.1" in repr(kind(floor=0.1))


# Held-out rows


@given(MATRICES, st.floats(0.01, 1), st.floats(0, 0.5))
def test_thinned_propensities_are_a_share_of_the_floored_ones(matrix, share, floor):
    whole = GivenPropensity(matrix, floor=floor)
    thinned = whole.thinned(share)
    expected = [[share * max(p, floor) for p in row] for row in matrix]
    assert everywhere(thinned).tolist() == expected
    assert thinned.count_floored(LOG) == whole.count_floored(LOG)
    assert thinned.inverse_total == pytest.approx(whole.inverse_total / share)


def test_thinned_propensities_know_and_change_what_the_whole_ones_do():
    random = np.random.default_rng(0)
    slopes, influence = random.normal(size=(2, len(LOG)))
    for whole in (ConstantPropensity().fit(LOG), LogisticPropensity(l2=1.0).fit(LOG)):
        change = whole.variance_change(LOG, slopes, influence)
        assert change != 0
        assert whole.thinned(0.3).variance_change(LOG, slopes, influence) == change
        assert (whole.thinned(0.3).known_everywhere, whole.thinned(0.3).depends_on_label) == (True, False)
    by_label = NaiveBayesPropensity(unbiased=LOG).fit(LOG).thinned(0.3)
    assert (by_label.known_everywhere, by_label.depends_on_label) == (False, True)


@given(MATRICES, st.floats(0.05, 0.95))
def test_apart_from_the_other_part_of_a_split(matrix, share):
    """P(held out | not trained on) by the three things that can happen to a pair."""
    thinned = GivenPropensity(matrix).thinned(share)
    found = everywhere(thinned.apart_from((1 - share) / share))
    expected = [[share * p / (1 - (1 - share) * p) for p in row] for row in matrix]
    np.testing.assert_allclose(found, np.minimum(expected, 1), rtol=1e-9)
    assert everywhere(thinned.apart_from(0)).tolist() == everywhere(thinned).tolist()


def test_what_estimating_propensities_changes_apart_from_the_other_part():
    random = np.random.default_rng(0)
    slopes, influence = random.normal(size=(2, len(LOG)))
    thinned = LogisticPropensity(l2=1.0).fit(LOG).thinned(0.3)
    apart = thinned.apart_from(7 / 3)
    t = thinned.at(LOG.users, LOG.items)
    steeper = slopes / (1 - 7 / 3 * t)
    assert apart.variance_change(LOG, slopes, influence) == pytest.approx(
        thinned.variance_change(LOG, steeper, influence)
    )
    assert apart.count_floored(LOG) == thinned.count_floored(LOG)
    check_refusal(lambda: thinned.apart_from(-1), ParameterError, "others")


def every_class(of=Propensities):
    return {of}.union(*(every_class(one) for one in of.__subclasses__() if one.__module__.startswith("verirec.")))


FEATURED = plain.log_of(GRID, user_features=[[0.5], [1.0], [-1.0]], item_features=[[1.0], [0.0], [2.0], [-1.0]])
GRADED = FeedbackLog.from_arrays([0, 1, 2], [0, 1, 2], [1, 2, 3], n_users=3, n_items=4, levels=[1, 2, 3])
FITTED = {
    "constant": ConstantPropensity().fit(LOG),
    "popularity": PopularityPropensity().fit(LOG),
    "naive Bayes": NaiveBayesPropensity(unbiased=LOG).fit(LOG),
    "logistic": LogisticPropensity(l2=1.0).fit(LOG),
    "with features": LogisticPropensity(l2=1.0).fit(FEATURED),
    "given": GivenPropensity(np.full(GRID.shape, 0.5)),
    "logged": LoggedPropensity(LOGGED),
    "one's own": ByUser(GRID.shape),
    "of levels": LevelPropensity([0.2, 0.4, 0.6]).fit(GRADED),
}
ASSUMPTIONS = {
    "constant": "every pair is as likely to be logged as any other",
    "popularity": "what gets logged depends on how popular an item is, and on nothing else",
    "naive Bayes": "what gets logged depends on what is said of it, and on nothing else",
    "logistic": (
        "what gets logged depends on how active a user and how popular an item is, and not on taste beyond that"
    ),
    "with features": (
        "what gets logged depends on the user, the item and their features, and not on taste beyond that"
    ),
    "given": "pairs are as likely to be logged as the propensities given say",
    "logged": "pairs are as likely to be logged as the propensities given say",
    "one's own": "pairs are as likely to be logged as the propensities given say",
    "of levels": "what gets logged depends on the true level as the propensities given say",
}


@pytest.mark.parametrize("name", FITTED)
def test_what_must_hold_is_said_and_stays_so_of_a_part_of_the_log(name):
    assert FITTED[name].assumption == ASSUMPTIONS[name]
    assert FITTED[name].thinned(0.3).assumption == ASSUMPTIONS[name]
    assert FITTED[name].thinned(0.3).thinned(0.5).assumption == ASSUMPTIONS[name]


def test_no_propensities_are_without_an_assumption():
    """Each class is fitted above, but for abstract ones and those that follow from others."""
    derived = FITTED["constant"].thinned(0.5), FITTED["constant"].apart_from(0.5)
    tried = {type(one) for one in (*FITTED.values(), *derived)}
    own = {one for one in every_class() if one.__module__.startswith("verirec.nuisance")}
    assert {one for one in own if not isabstract(one)} <= tried


@pytest.mark.parametrize("share", [0, -0.5, 1.1, np.nan, "half", None])
def test_a_share_that_is_none_is_refused(share):
    check_refusal(lambda: ConstantPropensity().fit(LOG).thinned(share), ParameterError, "^share must be ")


@pytest.mark.parametrize("model", [ConstantPropensity(), LogisticPropensity()], ids=["constant", "logistic"])
def test_held_out_rows_are_judged_with_the_whole_logs_propensities_thinned(model):
    world = simulate.world(60, 80, observed=0.4, selectivity=0, noise_rates=NoiseRates(0, 0), random_state=1)
    f = 0.1 + 0.7 * world.preferences
    # Each model is judged where it is right.
    p = np.full(f.shape, 0.4) if isinstance(model, ConstantPropensity) else world.propensities
    random, truth, found = np.random.default_rng(2), world.true_inaccuracy(f), []
    for _ in range(200):
        seen = random.random(p.shape) < p
        users, items = np.nonzero(seen)
        log = FeedbackLog.from_arrays(users, items, world.true_labels[seen], n_users=60, n_items=80)
        held_out = log.select(random.random(len(log)) < 0.3)
        thinned = model.fit(log).thinned(0.3)
        one = estimate(f, held_out, propensities=thinned, estimators="snips")["snips"]
        assert abs(one.diagnostics["mass"] - 1) < 0.2
        found.append((one.value, one.standard_error))
    values, errors = np.array(found).T
    assert abs(values.mean() - truth) < 3.5 * values.std(ddof=1) / np.sqrt(200)
    # The spread of 200 draws is itself within 5% (one standard error) of the truth.
    assert np.sqrt((errors**2).mean()) == pytest.approx(values.std(ddof=1), rel=0.17)
    with pytest.warns(MisfitWarning, match=r"^the rows' weights add up to 0\.[23]\d of all pairs"):
        estimate(f, held_out, propensities=model.fit(log), estimators="ips")
