"""Anchor noise rates: where each rule looks, what it needs to be true, and that it always says so."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verirec as vr
from plain_formulas import noise_rates as plain
from refusals import check_refusal
from verirec.data.predictions import as_predictions
from verirec.exceptions import EmptyLogError, NoiseRateError, NoiseRateWarning, ParameterError, PredictionError
from verirec.nuisance.noise_rates.anchor import grid_quantiles

N_USERS, N_ITEMS = 60, 80
RULES = ["extremes", "quantiles", "tails", "batches"]
WORLD = vr.simulate.world(N_USERS, N_ITEMS, observed=0.3, random_state=0)
LOG, PROPENSITIES = WORLD.log, WORLD.propensity_values
H = 0.1 + 0.7 * np.random.default_rng(0).random((N_USERS, N_ITEMS))
# What a recommender may have learnt from the same log: near to a fitted h, so that both find the same ends.
F = vr.LabelModel(sweeps=5).fit(LOG, np.ones(len(LOG))).block(np.arange(N_USERS), np.arange(N_ITEMS))


def fit(log=LOG, *, h=None, predictions=None, propensities=PROPENSITIES, **options):
    """Fit, and hold it against the rule that no fit is without its warning."""
    with pytest.warns(NoiseRateWarning, match=r"^anchor noise rates \(\w+\) assume that some pairs are surely liked"):
        return vr.AnchorNoiseRates(**options).fit(log, propensities=propensities, h=h, predictions=predictions)


def both_rates(rates):
    return rates.rho01, rates.rho10


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("own", [True, False], ids=["own h", "fitted h"])
def test_every_rule_names_its_assumption_in_a_warning_that_points_here(rule, own):
    with pytest.warns(NoiseRateWarning, match=rf"^anchor noise rates \({rule}\) assume ") as caught:
        rates = vr.AnchorNoiseRates(rule=rule, refits=2).fit(
            LOG, propensities=PROPENSITIES, h=0.1 + 0.7 * F if own else None, predictions=F
        )
    assert caught[0].filename == __file__
    assert rates.diagnostics["method"] == f"anchor, {rule}"


# Extremes


@given(seed=st.integers(0, 1_000))
def test_extremes_are_the_grids_smallest_and_largest_h(seed):
    h = np.random.default_rng(seed).random((N_USERS, N_ITEMS))
    assert both_rates(fit(h=h)) == plain.extremes(h.tolist())


def test_extremes_are_looked_for_on_the_whole_of_a_large_grid():
    log = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [0, 1], n_users=1_100, n_items=1_000)
    h = np.full((1_100, 1_000), 0.5)
    h[1_099, 998], h[1_099, 999] = 0.85, 0.05
    assert both_rates(fit(log, h=h, propensities=lambda users, items: np.full(len(users), 0.5))) == (1 - 0.85, 0.05)


def levels_world(probabilities, seed=0):
    levels = vr.simulate.levels_by_rank(np.random.default_rng(seed).random((N_USERS, N_ITEMS)))
    return vr.simulate.on_levels(levels, probabilities=probabilities, random_state=seed)


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [((0, 0.25, 0.5, 0.75, 1), (0.2, 0.1)), ((0.1, 0.3, 0.5, 0.7, 0.9), (0.27, 0.17))],
    ids=["separable", "not separable"],
)
def test_a_perfect_h_gives_the_true_rates_only_under_weak_separability(probabilities, expected):
    world = levels_world(probabilities)
    h = 0.1 + world.noise_rates.kappa * world.preferences
    rates = fit(world.log, h=h, propensities=world.propensity_values)
    assert both_rates(rates) == pytest.approx(expected)
    assert both_rates(world.noise_rates) == (0.2, 0.1)


def test_a_fitted_h_is_that_of_the_label_model():
    weights = 1 / PROPENSITIES.at(LOG.users, LOG.items)
    model = vr.LabelModel(penalty=3.0, sweeps=12)
    h = model.fit(LOG, weights).block(np.arange(N_USERS), np.arange(N_ITEMS))
    assert both_rates(fit(model=model)) == pytest.approx(plain.extremes(h.tolist()))


# Quantiles


def check_quantiles(values, low, high, quantile):
    ordered = np.sort(values, axis=None)
    for found, share in ((low, quantile), (high, 1 - quantile)):
        exact = np.quantile(ordered, share)
        place = int(share * (ordered.size - 1))
        spacing = np.diff(ordered[max(place - 1, 0) : place + 3]).max()
        assert abs(found - exact) <= 1 / 65_536 + spacing


@given(seed=st.integers(0, 1_000), quantile=st.floats(0.001, 0.4))
def test_quantiles_are_numpys_to_a_65536th_and_the_values_spacing(seed, quantile):
    h = np.random.default_rng(seed).beta(2, 2, (N_USERS, N_ITEMS))
    check_quantiles(h, *grid_quantiles(as_predictions(h, N_USERS, N_ITEMS), quantile), quantile)


def test_the_rule_takes_its_quantile_from_both_ends():
    rates = fit(h=H, rule="quantiles", quantile=0.1)
    check_quantiles(H, rates.rho10, 1 - rates.rho01, 0.1)


def test_values_of_zero_and_one_are_counted():
    h = np.repeat([[0.0, 1.0]], N_USERS, axis=0).repeat(N_ITEMS // 2, axis=1)
    assert both_rates(fit(h=h, rule="quantiles", quantile=0.1)) == pytest.approx((0, 0), abs=1 / 65_536)


def test_quantiles_leave_single_odd_values_out():
    odd = H.copy()
    odd[0, 0], odd[0, 1] = 0.0, 1.0
    assert both_rates(fit(h=odd)) == (0.0, 0.0)
    expected = both_rates(fit(h=H, rule="quantiles"))
    assert both_rates(fit(h=odd, rule="quantiles")) == pytest.approx(expected, abs=0.005)


# Tails


@given(seed=st.integers(0, 1_000), quantile=st.floats(0.01, 0.4))
def test_tails_with_an_h_are_the_labels_of_its_lowest_and_highest_rows(seed, quantile):
    # Sorting by the label itself in part keeps the rates apart.
    h = np.random.default_rng(seed).random((N_USERS, N_ITEMS)) + WORLD.noisy_labels
    rho01, rho10, count = plain.tails(LOG.labels.tolist(), h[LOG.users, LOG.items].tolist(), quantile)
    rates = fit(h=h / 2, rule="tails", quantile=quantile)
    assert both_rates(rates) == pytest.approx((rho01, rho10))
    assert rates.diagnostics["rows_in_a_tail"] == count


def test_tails_without_an_h_go_by_a_cross_fitted_one():
    weights = 1 / PROPENSITIES.at(LOG.users, LOG.items)
    scores = vr.LabelModel().cross_fit(LOG, weights, 4, 9)
    rho01, rho10, _ = plain.tails(LOG.labels.tolist(), scores.tolist(), 0.05)
    assert both_rates(fit(rule="tails", quantile=0.05, folds=4, random_state=9)) == pytest.approx((rho01, rho10))


# Batches


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_batches_read_h_where_the_drawn_predictions_are_smallest_and_largest(seed):
    f = np.random.default_rng(seed).random((N_USERS, N_ITEMS))
    # h follows f, so that the rates are apart, but not exactly.
    h = 0.1 + 0.6 * f + 0.1 * np.random.default_rng(seed + 1).random(f.shape)
    asked = []

    def predictions(users, items):
        asked.extend(zip(users.tolist(), items.tolist(), strict=True))
        return f[users, items]

    rates = fit(h=h, predictions=predictions, rule="batches", batches=3, batch_size=50, random_state=seed)
    assert len(asked) == 150
    lowest, highest = min(asked, key=lambda pair: f[pair]), max(asked, key=lambda pair: f[pair])
    assert both_rates(rates) == (1 - h[highest], h[lowest])


def test_batches_need_predictions():
    model = vr.AnchorNoiseRates(rule="batches")
    message = '^rule="batches" needs predictions'
    check_refusal(lambda: model.fit(LOG, propensities=PROPENSITIES, h=H), ParameterError, message)


# Uncertainty


@pytest.mark.parametrize("rule", RULES)
def test_the_covariance_of_a_fitted_h_is_positive_semi_definite(rule):
    rates = fit(rule=rule, predictions=F, refits=8)
    matrix = np.array(rates.covariance)
    assert matrix.shape == (2, 2)
    assert np.isfinite(matrix).all()
    assert np.linalg.eigvalsh(matrix).min() >= -1e-12
    assert (np.diag(matrix) > 0).all()


@pytest.mark.parametrize("rule", ["extremes", "quantiles", "batches"])
def test_without_refits_or_with_an_h_of_ones_own_there_is_no_covariance(rule):
    assert fit(rule=rule, predictions=F, refits=0).covariance is None
    assert fit(rule=rule, predictions=H, h=H).covariance is None


@pytest.mark.parametrize("rule", ["extremes", "quantiles", "batches"])
def test_refits_change_the_covariance_and_not_the_rates(rule):
    few, many = (fit(rule=rule, predictions=F, refits=refits) for refits in (3, 8))
    assert both_rates(few) == both_rates(many)
    assert few.covariance != many.covariance


def test_tails_of_a_given_h_keep_their_binomial_covariance():
    rates = fit(h=WORLD.noisy_labels * 0.9, rule="tails")
    assert (np.diag(rates.covariance) > 0).all()


@pytest.mark.parametrize("rule", RULES)
def test_the_same_random_state_gives_the_same_rates(rule):
    first, again, other = (
        fit(rule=rule, predictions=F, refits=3, batches=1, batch_size=40, random_state=state) for state in (4, 4, 5)
    )
    assert first == again
    assert first != other


def test_the_covariance_is_about_the_spread_over_draws_of_the_noise():
    rates = []
    true_labels = WORLD.at(LOG.users, LOG.items).true_labels
    for seed in range(15):
        labels = WORLD.noise_rates.observe(true_labels, np.random.default_rng(seed).random(len(LOG)))
        log = vr.FeedbackLog.from_arrays(LOG.users, LOG.items, labels, n_users=N_USERS, n_items=N_ITEMS)
        rates.append(fit(log, rule="quantiles", refits=8))
    spread = np.std([both_rates(one) for one in rates], axis=0, ddof=1)
    said = np.sqrt(np.mean([np.diag(one.covariance) for one in rates], axis=0))
    # Only the noise is drawn again here, not who rates what: the spread is the smaller of the two.
    assert ((said > 0.6 * spread) & (said < 3 * spread)).all()


# Bad input


@pytest.mark.parametrize("rule", ["extremes", "quantiles", "batches"])
def test_an_h_that_is_the_same_everywhere_has_no_anchors(rule):
    model = vr.AnchorNoiseRates(rule=rule)
    message = r"^h is 0\.5 where it should be smallest and 0\.5 where it should be largest: no anchors$"
    half = np.full((N_USERS, N_ITEMS), 0.5)
    check_refusal(lambda: model.fit(LOG, propensities=PROPENSITIES, h=half, predictions=F), NoiseRateError, message)


def test_predictions_that_run_against_h_have_no_anchors():
    h = np.where(np.arange(N_USERS)[:, None] < N_USERS // 2, 0.75, 0.25) * np.ones(N_ITEMS)
    model = vr.AnchorNoiseRates(rule="batches")
    message = r"^h is 0\.75 where it should be smallest and 0\.25 where it should be largest: no anchors$"
    check_refusal(lambda: model.fit(LOG, propensities=PROPENSITIES, h=h, predictions=-h), NoiseRateError, message)


@pytest.mark.parametrize("kind", [vr.AnchorNoiseRates, vr.AuditNoiseRates])
def test_a_model_is_named_settings_that_stay_as_they_are(kind):
    with pytest.raises(TypeError, match="positional"):
        kind("tails")
    with pytest.raises(FrozenInstanceError):
        kind().folds = 3
    assert kind(folds=3) != kind()
    # Groups are arrays, so that audits' settings go by identity.
    assert (kind(folds=3) == kind(folds=3)) == (kind is vr.AnchorNoiseRates)
    assert "folds=3" in repr(kind(folds=3))


@pytest.mark.parametrize("rule", ["extremes", "quantiles", "batches"])
@pytest.mark.parametrize(("value", "said"), [(1.5, "1.5"), (-0.25, "-0.25")])
def test_an_h_that_is_no_probability_is_refused(rule, value, said):
    h = np.where(np.arange(N_USERS)[:, None] == 7, value, H)
    f = np.where(h == value, np.sign(value), 0.0)
    model = vr.AnchorNoiseRates(rule=rule)
    message = rf"^h must be a probability of each pair; got {said}$"
    check_refusal(lambda: model.fit(LOG, propensities=PROPENSITIES, h=h, predictions=f), PredictionError, message)


@pytest.mark.parametrize(
    ("options", "arguments", "error", "message"),
    [
        (
            {"rule": "guess"},
            {},
            ParameterError,
            "^rule must be one of batches, extremes, quantiles, tails; got 'guess'$",
        ),
        ({"quantile": 0}, {}, ParameterError, "^quantile must be a finite number above 0 and below 0.5; got 0$"),
        ({"quantile": 0.5}, {}, ParameterError, "^quantile must be .*; got 0.5$"),
        ({"refits": -1}, {}, ParameterError, "^refits must be a whole number from 0 to 10,000; got -1$"),
        ({"refits": 2.5}, {}, ParameterError, "^refits must be a whole number from 0 to 10,000; got 2.5$"),
        ({"rule": "tails", "folds": 1}, {}, ParameterError, "^folds must be a whole number of at least 2; got 1$"),
        (
            {"rule": "batches", "batches": 0},
            {},
            ParameterError,
            "^batches must be a whole number from 1 to 10,000; got 0$",
        ),
        (
            {"rule": "batches", "batch_size": 10_001},
            {},
            ParameterError,
            "^batch_size must be a whole number from 1 to 10,000; got 10001$",
        ),
        ({"rule": "batches", "batch_size": 0}, {}, ParameterError, "^batch_size must be a whole number .*; got 0$"),
        ({"random_state": "x"}, {}, ParameterError, "^random_state must be "),
        ({}, {"h": H.T}, PredictionError, r"must have shape \(60, 80\); got \(80, 60\)$"),
        ({}, {"h": np.full((60, 80), np.nan)}, PredictionError, "must be finite"),
        ({"rule": "batches"}, {"predictions": H.T}, PredictionError, r"must have shape \(60, 80\); got \(80, 60\)$"),
        ({"rule": "tails"}, {"log": LOG.select(np.arange(39))}, EmptyLogError, "^two tails of 20 rows need a log of"),
    ],
)
def test_bad_input_is_refused(options, arguments, error, message):
    given = {"log": LOG, "propensities": PROPENSITIES, "predictions": H} | arguments
    log = given.pop("log")
    check_refusal(lambda: vr.AnchorNoiseRates(**options).fit(log, **given), error, message)


@pytest.mark.parametrize(
    ("options", "log", "message"),
    [({}, "log.csv", "a FeedbackLog is needed; got str"), ({"model": "logistic"}, LOG, "model must be a LabelModel")],
)
def test_what_is_no_log_or_no_model_is_refused_by_name(options, log, message):
    check_refusal(lambda: vr.AnchorNoiseRates(**options).fit(log), ParameterError, message)
