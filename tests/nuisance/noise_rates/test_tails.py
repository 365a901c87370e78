"""The log's most extreme rows: the region of rates that they allow, and the test of whether they are pure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binom, norm

import verirec as vr
from plain_formulas import noise_rates as plain
from refusals import check_refusal
from verirec.exceptions import EmptyLogError, NoiseRateError, ParameterError, PredictionError
from verirec.nuisance.noise_rates.tails import Tails, look_at_tails, tail_rates

N_USERS, N_ITEMS = 40, 50
SCORES = np.arange(N_USERS * N_ITEMS).reshape(N_USERS, N_ITEMS) / (N_USERS * N_ITEMS)
TRUE_RATES = vr.NoiseRates(0.2, 0.1)
TAIL = 200


def logged(labels):
    users, items = np.divmod(np.arange(N_USERS * N_ITEMS), N_ITEMS)
    return vr.FeedbackLog.from_arrays(users, items, labels, n_users=N_USERS, n_items=N_ITEMS)


def log_with_tails(seed, liked_low=0.0, liked_high=1.0):
    """Draw a log of all pairs, whose 200 lowest and 200 highest by `SCORES` are liked with these probabilities."""
    random = np.random.default_rng(seed)
    gamma = np.full(N_USERS * N_ITEMS, 0.5)
    gamma[:TAIL], gamma[-TAIL:] = liked_low, liked_high
    true_labels = (random.random(len(gamma)) < gamma).astype(int)
    return logged(TRUE_RATES.observe(true_labels, random.random(len(gamma))))


# The tails themselves


@given(seed=st.integers(0, 10_000), quantile=st.floats(0.01, 0.5, exclude_max=True))
def test_the_tails_shares_are_those_of_sorting_the_rows_by_hand(seed, quantile):
    random = np.random.default_rng(seed)
    scores = random.random(60)
    labels = (random.random(60) < scores).astype(int)
    on_top, at_bottom, count = plain.tails(labels.tolist(), scores.tolist(), quantile)
    tails = look_at_tails(labels, scores, quantile)
    assert isinstance(tails, Tails)
    assert (tails.negative_on_top, tails.positive_at_bottom) == pytest.approx((on_top, at_bottom))
    assert tails.rows == count
    assert tails.shares.tolist() == [tails.negative_on_top, tails.positive_at_bottom]
    for variance, share in zip(tails.variances, (on_top, at_bottom), strict=True):
        assert share * (1 - share) / count < variance <= (share * (1 - share) + 0.5 / count) / count * (1 + 1e-12)


@given(seed=st.integers(0, 10_000), quantile=st.floats(0.01, 0.5, exclude_max=True))
def test_the_anchor_rules_rates_are_the_tails_shares(seed, quantile):
    random = np.random.default_rng(seed)
    scores = random.choice([0.1, 0.2, 0.5, 0.7], 60)
    labels = (random.random(60) < scores).astype(int)
    tails = look_at_tails(labels, scores, quantile)
    assume(tails.shares.sum() < 0.9)
    rates = tail_rates(labels, scores, quantile)
    assert (rates.rho01, rates.rho10) == (tails.negative_on_top, tails.positive_at_bottom)
    assert rates.diagnostics == {"method": "anchor, tails", "rows_in_a_tail": tails.rows}
    assert rates.covariance == ((tails.variances[0], 0), (0, tails.variances[1]))


def test_where_scores_tie_the_order_of_the_rows_does_not_matter():
    labels = np.repeat([0, 1], 5_000)
    for ordered in (labels, labels[::-1]):
        tails = look_at_tails(ordered, np.zeros(10_000), 0.1)
        # Of 1,000 rows by chance; by row the shares would be 0 or 1.
        assert tails.shares.tolist() == pytest.approx([0.5, 0.5], abs=4 * 0.5 / np.sqrt(1_000))
        assert look_at_tails(ordered, np.zeros(10_000), 0.1) == tails


def test_tails_that_leave_no_signal_are_shares_but_no_rates():
    labels, scores = np.repeat([1, 0], 30), np.arange(60) / 60
    assert look_at_tails(labels, scores, 0.4) == Tails(negative_on_top=1.0, positive_at_bottom=1.0, rows=24)
    check_refusal(lambda: tail_rates(labels, scores, 0.4), NoiseRateError, "^rho01 must be a number of at least 0")


# The region


@pytest.mark.filterwarnings("ignore:kappa = 1:verirec.exceptions.NoiseRateWarning")
@pytest.mark.parametrize("separable", [True, False])
def test_the_region_contains_the_true_rates_of_simulated_worlds(separable):
    worlds = [
        vr.simulate.world(200, 300, observed=0.2, weak_separability=separable, random_state=seed) for seed in range(15)
    ]
    regions = [vr.identified_region(world.log) for world in worlds]
    inside = [region.rho01_most >= 0.2 and region.rho10_most >= 0.1 for region in regions]
    assert np.mean(inside) >= 0.93


@pytest.mark.parametrize("rates", [(0.3, 0.05), (0.0, 0.2)])
def test_the_region_contains_other_rates_as_well(rates):
    noise = vr.NoiseRates(*rates)
    for seed in range(4):
        world = vr.simulate.world(200, 300, noise_rates=noise, observed=0.2, random_state=seed)
        region = vr.identified_region(world.log)
        assert region.rho01_most >= noise.rho01
        assert region.rho10_most >= noise.rho10


def test_where_the_tails_are_pure_the_region_holds_at_its_confidence():
    regions = [vr.identified_region(log_with_tails(seed), scores=SCORES, quantile=0.1) for seed in range(600)]
    # 95%, less two standard errors of 600 draws.
    assert np.mean([region.rho01_most >= 0.2 and region.rho10_most >= 0.1 for region in regions]) >= 0.93


def test_where_the_tails_are_pure_the_bounds_are_near_to_the_rates():
    regions = [vr.identified_region(log_with_tails(seed), scores=SCORES, quantile=0.1) for seed in range(30)]
    assert np.mean([region.rho01_most for region in regions]) == pytest.approx(0.2, abs=0.09)
    assert np.mean([region.rho10_most for region in regions]) == pytest.approx(0.1, abs=0.09)


def test_the_bounds_are_the_tails_shares_and_their_one_sided_errors():
    log = log_with_tails(0)
    rho01, rho10, count = plain.tails(log.labels.tolist(), SCORES.ravel().tolist(), 0.05)
    region = vr.identified_region(log, scores=SCORES, quantile=0.05, confidence=0.9)
    for bound, share in ((region.rho01_most, rho01), (region.rho10_most, rho10)):
        assert bound == pytest.approx(share + norm.ppf(0.95) * np.sqrt(share * (1 - share) / count), abs=0.02)
        assert bound > share


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_the_bounds_are_those_of_clopper_and_pearson(seed, confidence):
    log = log_with_tails(seed)
    rho01, rho10, count = plain.tails(log.labels.tolist(), SCORES.ravel().tolist(), 0.05)
    region = vr.identified_region(log, scores=SCORES, quantile=0.05, confidence=confidence)
    for bound, share in ((region.rho01_most, rho01), (region.rho10_most, rho10)):
        # With a larger rate, so few wrong labels would have half the chance that is left.
        assert binom.cdf(round(share * count), count, bound) == pytest.approx((1 - confidence) / 2)


def test_a_tail_without_a_wrong_label_still_has_a_bound_above_0():
    labels = np.arange(N_USERS * N_ITEMS) % 2
    labels[:TAIL], labels[-TAIL:] = 0, 1
    region = vr.identified_region(logged(labels), scores=SCORES, quantile=0.1)
    # (1 - bound)^200 = .025
    expected = 1 - 0.025 ** (1 / TAIL)
    assert (region.rho01_most, region.rho10_most) == pytest.approx((expected, expected))


@pytest.mark.filterwarnings("ignore:kappa = 1:verirec.exceptions.NoiseRateWarning")
def test_bounds_that_leave_no_signal_together_are_a_region_all_the_same():
    labels = np.arange(N_USERS * N_ITEMS) % 2
    labels[:TAIL] = np.arange(TAIL) < 94  # 47% positive in the lowest, 50% negative in the highest
    region = vr.identified_region(logged(labels), scores=SCORES, quantile=0.1)
    assert region.rho01_most + region.rho10_most > 1
    assert len(region.corners) == 5


def test_scores_that_sort_the_wrong_way_round_leave_a_wide_region():
    region = vr.identified_region(log_with_tails(0), scores=-SCORES, quantile=0.1)
    assert region.rho01_most > 0.8
    assert region.rho10_most > 0.7


def test_scores_that_sort_the_wrong_way_round_find_no_anchors():
    found = vr.weak_separability_test(log_with_tails(0), TRUE_RATES, scores=-SCORES, quantile=0.1)
    assert found.p_value < 1e-3


def test_more_confidence_makes_the_region_wider():
    regions = [
        vr.identified_region(log_with_tails(0), scores=SCORES, quantile=0.1, confidence=confidence)
        for confidence in (0.5, 0.9, 0.99)
    ]
    assert (np.diff([region.rho01_most for region in regions]) > 0).all()
    assert (np.diff([region.rho10_most for region in regions]) > 0).all()


def test_the_corners_are_all_ends_of_both_ranges():
    region = vr.identified_region(log_with_tails(0), scores=SCORES, quantile=0.1)
    corners = {(corner.rho01, corner.rho10) for corner in region.corners}
    assert corners == {(a, b) for a in (0.0, region.rho01_most) for b in (0.0, region.rho10_most)}


def test_a_region_goes_into_an_estimate_as_a_range():
    log = log_with_tails(0)
    region = vr.identified_region(log, scores=SCORES, quantile=0.1)
    predictions = np.clip(SCORES, 0.1, 0.9)
    options = {"propensities": np.ones((N_USERS, N_ITEMS)), "estimators": ["ome-ips"]}
    low, high = vr.estimate(predictions, log, noise_rates=region, **options)["ome-ips"].range
    at_the_truth = vr.estimate(predictions, log, noise_rates=TRUE_RATES, **options)["ome-ips"].value
    assert low < at_the_truth < high


def test_the_region_goes_by_its_random_state():
    log = vr.simulate.world(200, 300, observed=0.2, random_state=0).log
    first, again, other = (vr.identified_region(log, random_state=state) for state in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_small_log_whose_tails_say_little_still_has_a_region():
    world = vr.simulate.world(150, 200, observed=0.2, weak_separability=False, random_state=0)
    region = vr.identified_region(world.log)
    assert region.rho01_most >= 0.2
    assert region.rho10_most >= 0.1


# The test of weak separability


def test_pure_tails_are_not_rejected_and_mixed_ones_are():
    for seed in range(10):
        pure = vr.weak_separability_test(log_with_tails(seed), TRUE_RATES, scores=SCORES, quantile=0.1)
        mixed = vr.weak_separability_test(log_with_tails(seed, 0.2, 0.8), TRUE_RATES, scores=SCORES, quantile=0.1)
        # The smallest of ten.
        assert pure.p_value > 0.05 / 10
        assert mixed.p_value < 1e-3
        assert pure.liked_in_lowest < 0.1
        assert pure.disliked_in_highest < 0.1


@pytest.mark.parametrize(("low", "high"), [(0.2, 1.0), (0.0, 0.8)])
def test_one_mixed_tail_is_enough(low, high):
    found = vr.weak_separability_test(log_with_tails(1, low, high), TRUE_RATES, scores=SCORES, quantile=0.1)
    assert found.p_value < 1e-3


def test_the_shares_of_wrong_pairs_in_the_tails_are_estimated():
    found = [
        vr.weak_separability_test(log_with_tails(seed, 0.2, 0.7), TRUE_RATES, scores=SCORES, quantile=0.1)
        for seed in range(40)
    ]
    assert np.mean([one.liked_in_lowest for one in found]) == pytest.approx(0.2, abs=0.03)
    assert np.mean([one.disliked_in_highest for one in found]) == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("known", [True, False], ids=["known rates", "estimated rates"])
def test_the_size_is_right_under_the_hypothesis(known):
    spread, rejected = np.array([0.03, 0.02]), 0
    for seed in range(500):
        rates = TRUE_RATES
        if not known:
            noise = np.random.default_rng(10_000 + seed).normal(size=2) * spread
            rates = vr.NoiseRates(0.2 + noise[0], 0.1 + noise[1], np.diag(spread**2))
        found = vr.weak_separability_test(log_with_tails(seed), rates, scores=SCORES, quantile=0.1)
        rejected += found.p_value < 0.05
    # 5% and two standard errors of 500 draws at most; the test may be somewhat shy.
    assert 0.01 < rejected / 500 < 0.07


def test_uncertain_rates_make_the_test_shyer():
    log = log_with_tails(0, 0.1, 0.9)
    sure, unsure = (
        vr.weak_separability_test(log, vr.NoiseRates(0.2, 0.1, covariance), scores=SCORES, quantile=0.1)
        for covariance in (None, np.diag([0.05, 0.05]) ** 2)
    )
    assert sure.p_value < unsure.p_value
    assert sure.liked_in_lowest == unsure.liked_in_lowest


def test_the_p_value_is_that_of_the_statistic():
    for seed, low, high in ((0, 0.1, 0.9), (0, 0.0, 1.0), (1, 0.0, 1.0), (2, 0.05, 1.0)):
        found = vr.weak_separability_test(log_with_tails(seed, low, high), TRUE_RATES, scores=SCORES, quantile=0.1)
        assert found.p_value == pytest.approx(min(1.0, 2 * (1 - norm.cdf(found.statistic))))


@pytest.mark.parametrize("covariance", [None, ((4e-4, 1e-4), (1e-4, 9e-4))], ids=["known rates", "estimated rates"])
@pytest.mark.parametrize("seed", range(4))
def test_the_statistic_is_the_larger_excess_in_standard_errors(seed, covariance):
    log, rates = log_with_tails(seed, 0.05, 0.97), vr.NoiseRates(0.2, 0.1, covariance)
    rho01, rho10, count = plain.tails(log.labels.tolist(), SCORES.ravel().tolist(), 0.1)
    expected = []
    for place, (share, rate) in enumerate(((rho01, 0.2), (rho10, 0.1))):
        variance = (share * (1 - share) + 0.5 / count) / count + (covariance[place][place] if covariance else 0.0)
        expected.append((share - rate) / np.sqrt(variance))
    found = vr.weak_separability_test(log, rates, scores=SCORES, quantile=0.1)
    assert found.statistic == pytest.approx(max(expected))


def test_tails_purer_than_the_rates_allow_are_chance():
    found = vr.weak_separability_test(log_with_tails(0), vr.NoiseRates(0.4, 0.3), scores=SCORES, quantile=0.1)
    assert found.statistic < 0
    assert (found.p_value, found.liked_in_lowest, found.disliked_in_highest) == (1.0, 0.0, 0.0)


def test_a_deficit_in_one_tail_does_not_speak_against_separability_beside_a_hair_of_excess_in_the_other():
    labels = np.ones(N_USERS * N_ITEMS, int)
    labels[:180] = 0
    labels[-40:] = 0
    # 10% positive in the lowest 200, 20% negative in the highest.
    found = vr.weak_separability_test(logged(labels), vr.NoiseRates(0.4, 0.0999), scores=SCORES, quantile=0.1)
    assert found.p_value > 0.5


LOG = log_with_tails(0)
SHORT = vr.FeedbackLog.from_arrays([0] * 39, np.arange(39), np.arange(39) % 2, n_users=1, n_items=39)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"quantile": 0}, ParameterError, "^quantile must be a finite number above 0 and below 0.5; got 0$"),
        ({"quantile": 0.5}, ParameterError, "^quantile must be .*; got 0.5$"),
        ({"scores": SCORES.T}, PredictionError, r"must have shape \(40, 50\)"),
        ({"random_state": -1}, ParameterError, "^random_state must be "),
        ({"log": "log.csv"}, ParameterError, "^a FeedbackLog is needed; got str$"),
    ],
)
@pytest.mark.parametrize("function", ["region", "test"])
def test_bad_input_is_refused(function, options, error, message):
    given = {"log": LOG} | options
    log = given.pop("log")
    if function == "region":
        check_refusal(lambda: vr.identified_region(log, **given), error, message)
    else:
        check_refusal(lambda: vr.weak_separability_test(log, TRUE_RATES, **given), error, message)


@pytest.mark.parametrize("confidence", [0, 1, 95, "high"])
def test_a_confidence_must_be_a_share(confidence):
    message = "^confidence must be a finite number above 0 and below 1"
    check_refusal(lambda: vr.identified_region(LOG, scores=SCORES, confidence=confidence), ParameterError, message)


@pytest.mark.parametrize(
    "rates", [None, (0.2, 0.1), vr.GroupedNoiseRates((TRUE_RATES,), user_groups=np.zeros(N_USERS, int))]
)
def test_the_test_needs_noise_rates(rates):
    check_refusal(lambda: vr.weak_separability_test(LOG, rates), ParameterError, "^rates must be a NoiseRates; got ")


def test_what_is_no_log_is_refused_with_scores_too():
    message = "^a FeedbackLog is needed; got str$"
    check_refusal(lambda: vr.identified_region("log.csv", scores=SCORES), ParameterError, message)


def too_short(count):
    return rf"^a log of {count} rows cannot tell .* at least 40; give the noise rates: rho01=\.\.\. and rho10=\.\.\.$"


def test_a_log_of_one_row_is_too_short():
    one = vr.FeedbackLog.from_arrays([0], [0], [1], n_users=1, n_items=1)
    check_refusal(lambda: vr.identified_region(one), EmptyLogError, too_short(1))
    check_refusal(lambda: vr.identified_region(one, scores=np.ones((1, 1))), EmptyLogError, too_short(1))


def test_a_log_that_has_no_two_tails_is_too_short():
    check_refusal(lambda: vr.identified_region(SHORT), EmptyLogError, too_short(39))
    message = "^two tails of 20 rows need a log of at least 40; it has 39$"
    check_refusal(lambda: vr.weak_separability_test(SHORT, TRUE_RATES), EmptyLogError, message)
