"""Suspect labels: Bayes's rule row by row, honest in number, and far better than guessing at the top of the list."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import EmptyLogError, NoiseRateError, ParameterError, PredictionError

RATES = vr.NoiseRates(0.2, 0.1)


def wrong_labels(world):
    return world.at(world.log.users, world.log.items).true_labels != world.log.labels


def said(world, rates=RATES):
    """P(r = 1) of every pair, as the world draws it."""
    return rates.rho10 + rates.kappa * world.preferences


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(80, 100, observed=0.3, selectivity=1, noise_rates=RATES, random_state=2)


def by_loops(log, h, rates_of):
    """P(label is wrong) of each row, from the joint probabilities of preference and label."""
    probabilities = []
    for user, item, label in zip(log.users, log.items, log.labels, strict=True):
        rho01, rho10 = rates_of(user, item)
        liked = min(max((h[user, item] - rho10) / (1 - rho01 - rho10), 0), 1)
        joint = {
            (1, 1): liked * (1 - rho01),
            (1, 0): liked * rho01,
            (0, 1): (1 - liked) * rho10,
            (0, 0): (1 - liked) * (1 - rho10),
        }
        among = joint[1, label] + joint[0, label]
        probabilities.append(joint[1 - label, label] / among if among else 0.0)
    return np.array(probabilities)


def in_row_order(suspects):
    probabilities = np.empty(len(suspects))
    probabilities[suspects.rows] = suspects.probabilities
    return probabilities


@pytest.mark.parametrize("rates", [RATES, vr.NoiseRates(0, 0.3), vr.NoiseRates(0.4, 0), vr.NoiseRates(0, 0)])
def test_probabilities_are_bayess_rule(world, rates):
    h = np.random.default_rng(0).uniform(0, 1, world.preferences.shape)
    found = vr.find_suspect_labels(world.log, rates, h=h)
    expected = by_loops(world.log, h, lambda user, item: (rates.rho01, rates.rho10))
    np.testing.assert_allclose(in_row_order(found), expected, atol=1e-12)


def test_no_probability_is_above_1(world):
    found = vr.find_suspect_labels(world.log, RATES, h=np.full(world.preferences.shape, 0.999))
    assert (found.probabilities <= 1).all()


@pytest.mark.parametrize("side", ["user", "item"])
def test_each_group_has_its_own_rates(world, side):
    rates = (vr.NoiseRates(0.05, 0.02), vr.NoiseRates(0.3, 0.2))
    size = world.log.n_users if side == "user" else world.log.n_items
    groups = np.arange(size) % 2
    grouped = vr.GroupedNoiseRates(rates, **{f"{side}_groups": groups})
    h = np.random.default_rng(0).uniform(0.2, 0.7, world.preferences.shape)

    def rates_of(user, item):
        of = rates[groups[user if side == "user" else item]]
        return of.rho01, of.rho10

    found = vr.find_suspect_labels(world.log, grouped, h=h)
    np.testing.assert_allclose(in_row_order(found), by_loops(world.log, h, rates_of), atol=1e-12)


def test_the_most_suspect_come_first_and_every_row_comes_once(world):
    found = vr.find_suspect_labels(world.log, RATES)
    assert sorted(found.rows.tolist()) == list(range(len(world.log)))
    assert (np.diff(found.probabilities) <= 0).all()
    assert len(found) == len(world.log)


def test_with_the_right_h_as_many_are_wrong_as_it_says(world):
    """In tenths of the list, and in total."""
    observed, expected, variance = np.zeros(10), np.zeros(10), np.zeros(10)
    for seed in range(8):
        world = vr.simulate.world(80, 100, observed=0.3, selectivity=1, noise_rates=RATES, random_state=seed)
        found = vr.find_suspect_labels(world.log, RATES, h=said(world))
        wrong = wrong_labels(world)[found.rows]
        for tenth, part in enumerate(np.array_split(np.arange(len(found)), 10)):
            p = found.probabilities[part]
            observed[tenth] += wrong[part].sum()
            expected[tenth] += p.sum()
            variance[tenth] += (p * (1 - p)).sum()
    assert (np.abs(observed - expected) < 4 * np.sqrt(variance)).all()
    assert abs(observed.sum() - expected.sum()) < 4 * np.sqrt(variance.sum())


def test_learning_h_from_the_log_the_expected_number_of_wrong_labels_is_about_right():
    for seed in range(5):
        world = vr.simulate.world(150, 200, observed=0.2, selectivity=1, noise_rates=RATES, random_state=seed)
        found = vr.find_suspect_labels(world.log, RATES)
        assert found.probabilities.sum() == pytest.approx(wrong_labels(world).sum(), rel=0.1)


@pytest.mark.parametrize(("knows", "factor"), [("h", 4.0), ("log", 2.5)])
def test_the_top_hundredth_is_wrong_far_more_often_than_a_random_row(knows, factor):
    precision, random = [], []
    for seed in range(5):
        world = vr.simulate.world(200, 300, observed=0.2, selectivity=1, noise_rates=RATES, random_state=seed)
        found = vr.find_suspect_labels(world.log, RATES, h=said(world) if knows == "h" else None)
        wrong = wrong_labels(world)
        precision.append(wrong[found.rows[: len(found) // 100]].mean())
        random.append(wrong.mean())
    assert np.mean(precision) > factor * np.mean(random)


def test_no_noise_no_suspects(world):
    found = vr.find_suspect_labels(world.log, vr.NoiseRates(0, 0))
    assert found.probabilities.sum() == 0


def test_the_frame_has_the_ids_labels_and_probabilities_of_the_rows():
    log = vr.FeedbackLog.from_arrays(
        [0, 0, 1], [0, 1, 1], [1, 0, 1], n_users=2, n_items=2, user_ids=["ann", "<b>"], item_ids=[10, 20]
    )
    found = vr.find_suspect_labels(log, RATES, h=np.array([[0.2, 0.3], [0.5, 0.6]]))
    frame = found.to_frame(2)
    assert list(frame.columns) == ["user", "item", "label", "probability_wrong"]
    assert frame[["user", "item", "label"]].to_numpy().tolist() == [["ann", 10, 1], ["ann", 20, 0]]
    assert frame["probability_wrong"].tolist() == found.probabilities[:2].tolist()
    assert found.to_frame()["user"].tolist() == ["ann", "ann", "<b>"]
    assert "<b>" not in found._repr_html_()
    assert repr(found).startswith("SuspectLabels(3 rows, 1 wrong labels expected)")


def test_the_same_seed_gives_the_same_list_and_folds_matter(world):
    one, again, other = (vr.find_suspect_labels(world.log, RATES, random_state=seed) for seed in (1, 1, 2))
    assert (one.rows == again.rows).all()
    assert (one.probabilities == again.probabilities).all()
    assert (one.probabilities != other.probabilities).any()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"noise_rates": (0.2, 0.1)}, ParameterError, "noise_rates must be NoiseRates or GroupedNoiseRates; got tuple"),
        ({"noise_rates": vr.NoiseRegion(0.2, 0.1)}, ParameterError, "got NoiseRegion"),
        ({"noise_rates": None}, ParameterError, "got NoneType"),
        ({"h": np.full((2, 2), 0.5)}, PredictionError, "shape"),
        ({"h": np.full((80, 100), np.nan)}, PredictionError, "finite"),
        ({"folds": 1}, ParameterError, "folds must be a whole number"),
        ({"log": "log"}, ParameterError, "a FeedbackLog is needed; got str"),
    ],
)
def test_bad_input_is_told_in_one_line(world, change, error, message):
    given = {"log": world.log, "noise_rates": RATES} | change
    check_refusal(lambda: vr.find_suspect_labels(**given), error, message)


def test_a_log_without_rows_is_refused(world):
    check_refusal(lambda: vr.find_suspect_labels(world.log.select([]), RATES), EmptyLogError, "at least 2 rows")


@pytest.mark.parametrize("count", [30, 200])
def test_groups_of_another_grid_are_refused(world, count):
    rates = vr.GroupedNoiseRates((RATES, RATES), user_groups=np.arange(count) % 2)
    check_refusal(lambda: vr.find_suspect_labels(world.log, rates), NoiseRateError, "the group of all 80 users")


def test_an_h_that_is_no_probability_is_refused(world):
    h = np.full((80, 100), 7.0)
    check_refusal(lambda: vr.find_suspect_labels(world.log, RATES, h=h), PredictionError, "h")


@pytest.mark.parametrize("most", ["x", -1, 2.5, True])
def test_how_many_to_show_is_a_whole_number(small_log, most):
    found = vr.find_suspect_labels(small_log, vr.NoiseRates(0.2, 0.1), h=np.full((3, 4), 0.5))
    check_refusal(lambda: found.to_frame(most), ParameterError, "most must be a whole number of at least 0; got")
    assert [len(found.to_frame(count)) for count in (0, 4, 100, None)] == [0, 4, 6, 6]
