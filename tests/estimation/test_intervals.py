"""Standard errors and intervals: each source of variance by its own plain sum, the bootstrap, and ranges."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

import verirec as vr
from draws import largest_z
from plain_formulas import estimators as plain
from plain_formulas.inaccuracy import LOSSES
from verirec.data.predictions import as_predictions
from verirec.estimation import ESTIMATORS
from verirec.estimation.cell_losses import CellLosses
from verirec.estimation.intervals import normal_interval
from verirec.estimation.problem import EstimationProblem
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import OverlapWarning
from verirec.losses import get_loss
from verirec.nuisance.propensities import as_propensities

EVERY = (*plain.PLAIN, *plain.DENOISED)
SOURCES = ["selection", "noise", "propensities", "noise_rates", "sample"]
COVARIANCE = ((4e-4, -1e-4), (-1e-4, 2e-4))
ESTIMATED = vr.NoiseRates(0.2, 0.1, COVARIANCE)
REGION = vr.NoiseRegion(0.3, 0.2)
LOG = LOSSES["log"]

# The grids are small.
pytestmark = [
    pytest.mark.filterwarnings("ignore:a bootstrap over:verirec.exceptions.OverlapWarning"),
    pytest.mark.filterwarnings("ignore:only .* logged pairs are among:verirec.exceptions.OverlapWarning"),
]


def quartic(f, y):
    """A loss of one's own, of which no smallest value is known."""
    return (f - y) ** 4


def log_of(grid):
    return vr.FeedbackLog.from_arrays(**grid.rows())


@pytest.fixture(scope="module")
def grid():
    return plain.small_grid(0, rho01=0.2, rho10=0.1)


def estimated(grid, **options):
    return vr.estimate(
        grid.f, log_of(grid), **({"propensities": grid.p, "noise_rates": ESTIMATED, "estimators": "all"} | options)
    )


def errors_of(grid, name):
    rates = (0.2, 0.1) if name in plain.DENOISED else (0.0, 0.0)
    return {cell: plain.corrected_error(grid.f[cell], r, LOG, *rates) for cell, r in grid.labels.items()}


def influences(grid, name):
    """Give what each row changes by being observed, from the formulas of the plain sums."""
    errors, size = errors_of(grid, name), len(grid.cells)
    value = plain.estimate(name, grid, LOG, (0.2, 0.1))
    if name in ("naive", "ome"):
        return {cell: (e - value) / len(errors) for cell, e in errors.items()}
    if name.endswith("snips"):
        mass = sum(1 / grid.p[cell] for cell in errors)
        return {cell: (e - value) / grid.p[cell] / mass for cell, e in errors.items()}
    if name.endswith("ips"):
        return {cell: e / grid.p[cell] / size for cell, e in errors.items()}
    rates = (0.2, 0.1) if name in plain.DENOISED else (0.0, 0.0)
    g = plain.imputed_label(name, grid, LOG, lambda cell: rates)
    imputed = {cell: g * LOG(grid.f[cell], 1) + (1 - g) * LOG(grid.f[cell], 0) for cell in errors}
    if name.endswith("tdr"):
        lever = {cell: 1 / grid.p[cell] - 1 for cell in errors}
        epsilon = sum(lever[c] * (errors[c] - imputed[c]) for c in errors) / sum(one**2 for one in lever.values())
        imputed = {cell: imputed[cell] + epsilon * lever[cell] for cell in errors}
    through = through_imputed(grid, name, rates)
    return {cell: (e - imputed[cell]) / grid.p[cell] / size + through[cell] for cell, e in errors.items()}


def through_imputed(grid, name, rates=(0.0, 0.0)):
    """Give what each row does to a doubly robust estimate by moving the label that all cells are imputed with."""
    gain = 0.0
    for cell in grid.cells:
        times = 1 - (1 / grid.p[cell] if cell in grid.labels else 0.0)
        gain += times * (LOG(grid.f[cell], 1) - LOG(grid.f[cell], 0))
    g = plain.imputed_label(name, grid, LOG, lambda cell: rates)
    pulls = {}
    for cell in grid.labels:
        p, difference = grid.p[cell], LOG(grid.f[cell], 1) - LOG(grid.f[cell], 0)
        pulls[cell] = (1 - p) / p**2 * difference**2 if name.endswith("mrdr") else 1 / p
    whole, (rho01, rho10) = sum(pulls.values()), rates
    residuals = {cell: (r - rho10) / (1 - rho01 - rho10) - g for cell, r in grid.labels.items()}
    return {cell: gain * pull / whole * residuals[cell] / len(grid.cells) for cell, pull in pulls.items()}


# Selection and noise


SUMMED = ["ips", "snips", "dr", "mrdr", "tdr"]


@pytest.mark.parametrize("name", [*SUMMED, *(f"ome-{name}" for name in SUMMED)])
def test_selections_part_is_the_variance_of_poisson_sampling(grid, name):
    expected = sum((1 - grid.p[cell]) * a**2 for cell, a in influences(grid, name).items())
    assert estimated(grid)[name].diagnostics["variance"]["selection"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["naive", "ome"])
def test_an_estimate_that_takes_the_log_for_a_sample_has_the_error_of_a_mean(grid, name):
    errors = list(errors_of(grid, name).values())
    known = estimated(grid, noise_rates=vr.NoiseRates(0.2, 0.1))[name]
    assert known.standard_error == pytest.approx(np.std(errors) / math.sqrt(len(errors)), rel=1e-10)


@pytest.mark.parametrize("name", ["ome-ips", "ome-snips", "ome-dr", "ome-mrdr"])
def test_noises_part_is_what_wrong_labels_leave_in_the_corrected_ones(grid, name):
    expected = 0.0
    for cell, r in grid.labels.items():
        # All of them are linear in each label.
        ends = (replace(grid, labels=grid.labels | {cell: label}) for label in (0, 1))
        if_negative, if_positive = (plain.estimate(name, end, LOG, (0.2, 0.1)) for end in ends)
        slope = 0.7 * (if_positive - if_negative)
        corrected = (r - 0.1) / 0.7
        variance = ((1 - corrected) * 0.1 * 0.9 + corrected * 0.2 * 0.8) / 0.7**2
        expected += grid.p[cell] * slope**2 * variance
    assert estimated(grid)[name].diagnostics["variance"]["noise"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["dr", "ome-dr", "mrdr", "ome-mrdr"])
def test_the_slopes_by_propensity_are_those_of_the_plain_formula(grid, name):
    log = log_of(grid)
    losses = CellLosses(as_predictions(grid.f, *grid.f.shape), get_loss("log"))
    study = EstimationProblem(LoggedPairs(log, as_propensities(grid.p, log)), losses, "constant", None, 0)
    rates = vr.NoiseRates(0.2, 0.1) if name in plain.DENOISED else None
    found = study.linearised(ESTIMATORS[name], rates)[0].p_slopes

    def value(cell, log_p):
        p = grid.p.copy()
        p[cell] = math.exp(log_p)
        return plain.estimate(name, replace(grid, p=p), LOG, (0.2, 0.1))

    at = {cell: math.log(grid.p[cell]) for cell in grid.labels}
    expected = [(value(cell, log_p + 1e-5) - value(cell, log_p - 1e-5)) / 2e-5 for cell, log_p in at.items()]
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("name", ["dr", "mrdr", "tdr", "ome-dr", "ome-mrdr", "ome-tdr"])
def test_no_row_does_anything_through_imputed_errors_that_are_given(grid, name):
    given = np.random.default_rng(1).uniform(0, 1.5, grid.f.shape)
    errors, lever = errors_of(grid, name), {cell: 1 / grid.p[cell] - 1 for cell in grid.labels}
    epsilon = 0.0
    if name.endswith("tdr"):
        epsilon = sum(lever[c] * (errors[c] - given[c]) for c in errors) / sum(one**2 for one in lever.values())
    expected = [(e - given[c] - epsilon * lever[c]) / grid.p[c] / grid.f.size for c, e in errors.items()]
    found = estimated(grid, estimators=name, imputation=given, contributions=True)[name].contributions
    assert found == pytest.approx(expected, rel=1e-9)


def test_plain_labels_have_no_part_of_noise_or_of_its_rates(grid):
    result = estimated(grid)
    for name in plain.PLAIN:
        parts = result[name].diagnostics["variance"]
        assert parts["noise"] == parts["noise_rates"] == 0


@pytest.mark.parametrize("imputation", ["constant", "model"])
@pytest.mark.parametrize("options", [{}, {"sample": 30}, {"propensities": vr.LogisticPropensity(l2=1.0)}])
@pytest.mark.filterwarnings("ignore::verirec.exceptions.OverlapWarning")
def test_the_parts_add_up_to_the_squared_standard_error(grid, imputation, options):
    result = estimated(grid, imputation=imputation, **options)
    for name in EVERY:
        parts = result[name].diagnostics["variance"]
        assert list(parts) == SOURCES
        assert sum(parts.values()) == pytest.approx(result[name].standard_error ** 2, rel=1e-12)
        assert all(value >= 0 for source, value in parts.items() if source != "propensities")


@pytest.mark.parametrize("name", ["ips", "snips", "dr", "ome-dr"])
def test_known_propensities_add_nothing_and_learnt_ones_change_the_variance(grid, name):
    known, learnt = estimated(grid), estimated(grid, propensities=vr.LogisticPropensity(l2=1.0))
    assert known[name].diagnostics["variance"]["propensities"] == 0
    assert learnt[name].diagnostics["variance"]["propensities"] != 0


@pytest.mark.parametrize("name", ["ips", "snips", "dr", "ome-ips", "ome-dr", "eib", "ome-eib"])
def test_contributions_are_what_the_variance_is_made_of(grid, name):
    result = estimated(grid, contributions=True)[name]
    p = np.array([grid.p[cell] for cell in grid.labels])
    assert (1 - p) @ result.contributions**2 == pytest.approx(result.diagnostics["variance"]["selection"], rel=1e-12)
    assert estimated(grid)[name].contributions is None
    if name != "eib" and name != "ome-eib":
        assert result.contributions == pytest.approx(list(influences(grid, name).values()), rel=1e-9)


# Noise rates: the delta method


def gradient(function, at, step=1e-5):
    """Differentiate numerically."""
    found = []
    for place in range(len(at)):
        low, high = list(at), list(at)
        low[place], high[place] = at[place] - step, at[place] + step
        found.append((function(*high) - function(*low)) / (2 * step))
    return np.array(found)


@pytest.mark.parametrize("name", plain.DENOISED)
def test_the_noise_rates_part_is_the_delta_method_on_the_plain_formula(grid, name):
    g = gradient(lambda rho01, rho10: plain.estimate(name, grid, LOG, (rho01, rho10)), (0.2, 0.1))
    found = estimated(grid)[name].diagnostics["variance"]["noise_rates"]
    assert found == pytest.approx(g @ np.array(COVARIANCE) @ g, rel=1e-3 if name == "ome-sdr" else 1e-6)


@pytest.mark.parametrize("name", plain.DENOISED)
def test_given_imputed_errors_do_not_move_with_the_rates(grid, name):
    errors = np.random.default_rng(1).uniform(0, 1.5, grid.f.shape)

    def value(rho01, rho10):
        return plain.estimate(name, grid, LOG, (rho01, rho10), imputed=lambda cell: errors[cell])

    g = gradient(value, (0.2, 0.1))
    found = estimated(grid, imputation=errors)[name].diagnostics["variance"]["noise_rates"]
    assert found == pytest.approx(g @ np.array(COVARIANCE) @ g, rel=1e-6)


@pytest.mark.parametrize("name", plain.DENOISED)
def test_each_groups_rates_add_their_own_part(grid, name):
    groups = np.arange(grid.f.shape[1]) % 2
    of_group = (vr.NoiseRates(0.2, 0.1, COVARIANCE), vr.NoiseRates(0.1, 0.25, ((1e-4, 5e-5), (5e-5, 6e-4))))
    rates = vr.GroupedNoiseRates(of_group, item_groups=groups)

    def value(a, b, c, d):
        return plain.estimate(name, grid, LOG, lambda cell: ((a, b), (c, d))[groups[cell[1]]])

    g = gradient(value, (0.2, 0.1, 0.1, 0.25))
    expected = sum(part @ np.array(one.covariance) @ part for part, one in zip((g[:2], g[2:]), of_group, strict=True))
    found = estimated(grid, noise_rates=rates)[name].diagnostics["variance"]["noise_rates"]
    assert found == pytest.approx(expected, rel=1e-3 if name == "ome-sdr" else 1e-6)


def whole_audit(grid, log, groups=None):
    audit = vr.AuditSample(log.users, log.items, grid.truth[log.users, log.items])
    return vr.AuditNoiseRates(method="direct", user_groups=groups).fit(log, audit=audit)


def without_source(rates):
    """The same rates and covariance, of which nothing says where they come from."""
    if isinstance(rates, vr.GroupedNoiseRates):
        return vr.GroupedNoiseRates([without_source(one) for one in rates.rates], user_groups=rates.user_groups)
    return vr.NoiseRates(rates.rho01, rates.rho10, rates.covariance)


def rates_parts(grid, log, rates, kept=1.0):
    """What the rates' uncertainty adds to each estimate, ranking estimates among them."""
    options = {"propensities": kept * grid.p, "noise_rates": rates}
    found = vr.estimate(grid.f, log, estimators=plain.DENOISED, **options)
    ranked = vr.estimate_ranking(grid.f, log, k=3, **options)
    return {name: one.diagnostics["variance"]["noise_rates"] for name, one in {**found, **ranked}.items()}


@pytest.fixture(scope="module", params=[False, True], ids=["one for all", "by group"])
def audited(request):
    """A grid, two logs of it, and rates from an audit of all rows of the first."""
    grid = plain.small_grid(5, (30, 40), p=(0.3, 0.7))
    first, second = (log_of(grid.observed_again(np.random.default_rng(seed), 0.2, 0.1)) for seed in (6, 7))
    return grid, first, second, whole_audit(grid, first, np.arange(30) % 2 if request.param else None)


def test_rates_from_an_audit_of_the_log_itself_cancel_in_part(audited):
    grid, first, _, rates = audited
    own, apart = (rates_parts(grid, first, of) for of in (rates, without_source(rates)))
    for name, part in apart.items():
        assert part > 0
        # All rows were audited: 1 - 2f would be -1.
        assert own[name] == 0


def test_rates_from_an_audit_of_another_log_keep_their_full_covariance(audited):
    grid, _, second, rates = audited
    assert rates_parts(grid, second, rates) == rates_parts(grid, second, without_source(rates))


@pytest.mark.parametrize("start", [0, 1], ids=["every other row", "all rows but one"])
def test_rates_from_an_audit_keep_their_full_covariance_on_a_part_of_the_log(audited, start):
    grid, first, _, rates = audited
    part = first.select(np.arange(start, len(first), 2 - start))
    kept = len(part) / len(first)
    assert rates_parts(grid, part, rates, kept) == rates_parts(grid, part, without_source(rates), kept)


def test_each_groups_rates_cancel_only_on_the_log_of_their_own_audit():
    grid, groups = plain.small_grid(5, (30, 40), p=(0.3, 0.7)), np.arange(30) % 2
    first, second = (log_of(grid.observed_again(np.random.default_rng(seed), 0.2, 0.1)) for seed in (6, 7))
    (here, _), (_, there) = (whole_audit(grid, log, groups).rates for log in (first, second))
    mixed, said = (vr.GroupedNoiseRates((here, of), user_groups=groups) for of in (there, without_source(there)))
    assert rates_parts(grid, first, mixed) == rates_parts(grid, first, said)


@pytest.mark.parametrize("imputation", ["constant", "model"])
def test_rates_known_without_error_are_rates_with_no_covariance(grid, imputation):
    known, exact = (
        estimated(grid, noise_rates=vr.NoiseRates(0.2, 0.1, covariance), imputation=imputation)
        for covariance in (None, ((0, 0), (0, 0)))
    )
    for name in EVERY:
        assert known[name].value == exact[name].value
        assert known[name].standard_error == pytest.approx(exact[name].standard_error, rel=1e-12)


# Intervals


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
def test_the_interval_is_the_normal_one(grid, confidence):
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    result = estimated(grid, confidence=confidence)
    for name in EVERY:
        one = result[name]
        ends = (one.value - z * one.standard_error, one.value + z * one.standard_error)
        assert one.interval == pytest.approx(ends, rel=1e-12)
        assert one.interval == normal_interval(one.value, one.standard_error, confidence)
        assert one.confidence == confidence


def test_an_estimate_is_of_plain_floats_and_cannot_be_changed(grid):
    for one in estimated(grid).values():
        assert all(type(value) is float for value in (one.value, one.standard_error, *one.interval, one.confidence))
        with pytest.raises(AttributeError):
            one.value = 0.0


# The bootstrap over users


@pytest.fixture(scope="module")
def clustered():
    """A larger grid whose users rate alike: some are much easier to predict than others."""
    grid = plain.small_grid(3, (60, 40), p=(0.1, 0.5))
    easy = np.random.default_rng(4).random(60)[:, None]
    sure = np.where(grid.truth == 1, 0.9, 0.1)
    grid.f[:] = easy * sure + (1 - easy) * (1 - sure)
    return grid


def sandwich(grid, name):
    """Give the standard error that sums by user have."""
    value = plain.estimate(name, grid, LOG)
    errors, (n_users, _) = errors_of(grid, name), grid.f.shape
    g = plain.imputed_label(name, grid, LOG, lambda cell: (0.0, 0.0))
    mass, through = sum(1 / grid.p[cell] for cell in errors), through_imputed(grid, name)
    by_user = [0.0 if name == "snips" else -value / n_users for _ in range(n_users)]
    for cell in grid.cells:
        user, weight = cell[0], 1 / grid.p[cell]
        imputed = g * LOG(grid.f[cell], 1) + (1 - g) * LOG(grid.f[cell], 0)
        if name == "snips" and cell in errors:
            by_user[user] += weight * (errors[cell] - value) / mass
        elif name == "dr":
            correction = weight * (errors[cell] - imputed) if cell in errors else 0.0
            by_user[user] += (imputed + correction) / len(grid.cells) + through.get(cell, 0.0)
    return math.sqrt(sum(part**2 for part in by_user))


@pytest.mark.parametrize("name", ["snips", "dr"])
def test_the_bootstraps_error_is_the_sandwich_by_user(clustered, name):
    found = estimated(clustered, estimators=name, noise_rates=None, interval="bootstrap", draws=6_000)[name]
    # An error of 6,000 draws is within 1% of the bootstrap's own; the rest is the ratio's second order.
    assert found.standard_error == pytest.approx(sandwich(clustered, name), rel=0.05)


@pytest.mark.parametrize("name", ["naive", "snips", "dr", "ips", "eib"])
def test_users_who_rate_alike_make_the_bootstraps_interval_wider(clustered, name):
    by_user = estimated(clustered, estimators=name, interval="bootstrap", draws=500)[name]
    by_pair = estimated(clustered, estimators=name)[name]
    assert by_user.standard_error > 1.1 * by_pair.standard_error
    assert by_user.value == by_pair.value


def test_the_same_seed_gives_the_same_bootstrap_and_another_another(grid):
    first, second, other = (estimated(grid, interval="bootstrap", draws=100, random_state=seed) for seed in (1, 1, 2))
    for name in EVERY:
        assert first[name] == second[name]
        assert first[name].value == other[name].value
        assert first[name].interval != other[name].interval


@pytest.mark.parametrize("name", EVERY)
def test_an_estimators_bootstrap_does_not_depend_on_what_else_is_asked_for(grid, name):
    options = {"interval": "bootstrap", "draws": 50}
    beside = estimated(grid, estimators=["snips", name, "ome-eib"], **options)[name]
    assert estimated(grid, estimators=name, **options)[name] == beside == estimated(grid, **options)[name]


def test_an_estimator_and_its_noise_corrected_form_draw_the_same_users(grid):
    # Without noise both are the same estimate.
    found = estimated(grid, noise_rates=vr.NoiseRates(0, 0), interval="bootstrap", draws=50)
    for name, denoised in zip(plain.PLAIN, plain.DENOISED, strict=True):
        assert found[name].interval == pytest.approx(found[denoised].interval, rel=1e-9)
        assert found[name].standard_error == pytest.approx(found[denoised].standard_error, rel=1e-9)


def test_different_estimators_draw_different_users(grid):
    # mrdr with given errors is dr with given errors.
    options = {"imputation": np.full(grid.f.shape, 0.6), "estimators": ["dr", "mrdr"], "noise_rates": None}
    found = estimated(grid, interval="bootstrap", draws=50, **options)
    assert found["dr"].value == found["mrdr"].value
    assert found["dr"].interval != found["mrdr"].interval


def test_the_bootstraps_interval_is_by_percentiles(clustered):
    inner, outer = (
        estimated(clustered, estimators="snips", interval="bootstrap", confidence=level, draws=4_000)["snips"]
        for level in (0.5, 0.95)
    )
    assert outer.interval[0] < inner.interval[0] < inner.value < inner.interval[1] < outer.interval[1]
    assert inner.standard_error == outer.standard_error
    # Of the draws of a near normal ratio, the quartiles are .674 and the outer percentiles 1.96 errors away.
    for one, z in ((inner, 0.674), (outer, 1.96)):
        assert one.interval[1] - one.interval[0] == pytest.approx(2 * z * one.standard_error, rel=0.08)


def test_the_bootstrap_carries_the_uncertainty_of_the_noise_rates(grid):
    def error(rates):
        options = {"noise_rates": rates, "estimators": "ome-dr", "draws": 3_000}
        return estimated(grid, interval="bootstrap", **options)["ome-dr"].standard_error

    part = estimated(grid, noise_rates=vr.NoiseRates(0.2, 0.1, ((0.01, 0), (0, 0.01))), estimators="ome-dr")
    added = part["ome-dr"].diagnostics["variance"]["noise_rates"]
    wide = error(vr.NoiseRates(0.2, 0.1, ((0.01, 0), (0, 0.01))))
    assert wide**2 == pytest.approx(error(vr.NoiseRates(0.2, 0.1)) ** 2 + added, rel=0.15)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("imputation", ["constant", "model"])
def test_bootstrapped_estimates_lie_around_the_estimate(grid, name, imputation):
    one = estimated(grid, estimators=name, interval="bootstrap", draws=400, imputation=imputation)[name]
    middle = sum(one.interval) / 2
    assert one.interval[0] < one.value < one.interval[1]
    assert abs(middle - one.value) < one.standard_error


@pytest.mark.parametrize("n_users", [9, 10])
def test_a_bootstrap_over_few_users_is_warned_of(n_users):
    grid = plain.small_grid(0, (n_users + 2, 14))
    # Users without rows do not count.
    grid = replace(grid, labels={cell: label for cell, label in grid.labels.items() if cell[0] < n_users})
    options = {"propensities": vr.ConstantPropensity(), "estimators": "naive", "interval": "bootstrap", "draws": 20}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        vr.estimate(grid.f, log_of(grid), **options)
    expected = "a bootstrap over 9 users with rows says next to nothing: take interval='delta'"
    assert [(str(one.message), one.category) for one in told] == ([(expected, OverlapWarning)] if n_users < 10 else [])


# Ranges over what the rates may be


@pytest.mark.parametrize("name", [name for name in plain.DENOISED if name != "ome-sdr"])
@pytest.mark.parametrize("region", [REGION, vr.NoiseRegion(0.5, 0.05), vr.NoiseRegion(0.0, 0.3)], ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_range_is_that_of_all_rates_inside_the_region(name, region, seed):
    grid = plain.small_grid(seed, rho01=0.1, rho10=0.1)
    found = estimated(grid, noise_rates=region, estimators=name)[name]
    inside = [
        plain.estimate(name, grid, LOG, (rho01, rho10))
        for rho01 in np.linspace(0, region.rho01_most, 5)
        for rho10 in np.linspace(0, region.rho10_most, 5)
    ]
    assert isinstance(found, vr.EstimateRange)
    # The log loss is never negative, so that rates which would make it so are not possible.
    assert found.range == pytest.approx((max(min(inside), 0), max(inside)), rel=1e-10)


def test_the_range_of_sdr_holds_its_value_at_all_rates_inside_the_region():
    grid = plain.small_grid(1, (12, 20), p=(0.05, 0.9), rho01=0.2, rho10=0.1)
    low, high = estimated(grid, noise_rates=REGION, estimators="ome-sdr")["ome-sdr"].range
    for rates in [(0.1, 0.1), (0.15, 0.15), (0.15, 0.2), (0.3, 0.1)]:
        assert low - 1e-9 <= plain.estimate("ome-sdr", grid, LOG, rates) <= high + 1e-9


@pytest.mark.parametrize("name", [name for name in plain.DENOISED if name != "ome-sdr"])
def test_the_range_of_rates_that_leave_no_signal_together_is_that_of_the_part_that_leaves_some(grid, name):
    found = estimated(grid, noise_rates=vr.NoiseRegion(0.6, 0.5), estimators=name, loss=quartic)[name]
    corners = [(0.0, 0.0), (0.0, 0.5), (0.6, 0.0), (0.4, 0.5), (0.6, 0.3)]
    values = [plain.estimate(name, grid, quartic, rates) for rates in corners]
    # kappa is .1 but for 1e-9 where the region is cut.
    assert found.range == pytest.approx((min(values), max(values)), rel=1e-6)
    for rho01 in np.linspace(0, 0.6, 5):
        for rho10 in np.linspace(0, min(0.5, 0.9 - rho01), 5):
            inside = plain.estimate(name, grid, quartic, (rho01, rho10))
            assert found.range[0] - 1e-6 <= inside <= found.range[1] + 1e-6


@pytest.mark.parametrize(("loss", "cut"), [("log", True), ("squared", True), (lambda f, y: (f - y) ** 2, False)])
def test_a_range_ends_where_a_loss_cannot_be_smaller(loss, cut):
    grid = plain.small_grid(0, (12, 20), rho01=0.2, rho10=0.1)
    found = estimated(grid, noise_rates=vr.NoiseRegion(0.45, 0.4), estimators="ome-dr", loss=loss)["ome-dr"]
    assert found.lowest.value < 0
    assert found.range[0] == (0 if cut else found.lowest.value)
    assert found.interval[0] == (0 if cut else found.lowest.interval[0])


@pytest.mark.parametrize("interval", ["delta", "bootstrap"])
def test_the_interval_of_a_range_holds_the_interval_at_every_rate(grid, interval):
    names, draws = ("ome-ips", "ome-dr"), 4_000
    options = {"estimators": names, "interval": interval, "draws": draws}
    found = estimated(grid, noise_rates=REGION, **options)
    at = [estimated(grid, noise_rates=vr.NoiseRates(a, b), **options) for a in (0.0, 0.3) for b in (0.0, 0.2)]
    # Another bootstrap's 2.5% point is off by so many standard errors: sqrt(.025 x .975 / draws) over the density.
    of_draws = math.sqrt(2 * 0.025 * 0.975 / draws) / NormalDist().pdf(1.96) if interval == "bootstrap" else 0.0
    for name in names:
        one, (low, high) = found[name], found[name].interval
        slacks = [largest_z(16) * of_draws * corner[name].standard_error for corner in at]
        for corner, slack in zip(at, slacks, strict=True):
            assert low - slack <= corner[name].interval[0] < corner[name].interval[1] <= high + slack
        ends = min(corner[name].interval[0] for corner in at), max(corner[name].interval[1] for corner in at)
        assert one.interval == pytest.approx(ends, abs=max(slacks) + 1e-12)
        assert one.interval[0] <= one.range[0] <= one.range[1] <= one.interval[1]
        assert (one.lowest.value, one.highest.value) == one.range
        assert one.confidence == 0.95


def test_estimates_that_need_no_rates_stay_points(grid):
    found = estimated(grid, noise_rates=REGION)
    without = estimated(grid, noise_rates=None)
    assert list(found) == list(EVERY)
    for name in EVERY:
        assert isinstance(found[name], vr.EstimateRange if name in plain.DENOISED else vr.Estimate)
    assert {name: found[name] for name in plain.PLAIN} == dict(without)


def test_a_region_of_one_point_has_a_range_of_one_point(grid):
    found = estimated(grid, noise_rates=vr.NoiseRegion(0, 0), estimators=("dr", "ome-dr"))
    assert found["ome-dr"].range == (found["dr"].value, found["dr"].value)
    assert found["ome-dr"].interval == found["dr"].interval


def test_a_frame_shows_ranges_beside_points(grid):
    found = estimated(grid, noise_rates=REGION, estimators=("dr", "ome-dr"))
    frame = found.to_frame().set_index("estimator")
    assert frame.loc["dr", "value"] == found["dr"].value
    assert frame.loc["dr", ["range_low", "range_high"]].isna().all()
    assert frame.loc["ome-dr", ["value", "standard_error"]].isna().all()
    assert tuple(frame.loc["ome-dr", ["range_low", "range_high"]]) == found["ome-dr"].range
    assert tuple(frame.loc["ome-dr", ["low", "high"]]) == found["ome-dr"].interval


@pytest.mark.parametrize(("sample", "imputation"), [(30, "constant"), (None, "model")])
def test_all_corners_of_a_region_rest_on_the_same_draws(grid, sample, imputation):
    options = {"noise_rates": REGION, "estimators": "ome-dr", "sample": sample, "imputation": imputation}
    by_seed, by_generator = (
        estimated(grid, random_state=state, **options)["ome-dr"] for state in (7, np.random.default_rng(7))
    )
    assert by_generator.range == pytest.approx(by_seed.range, rel=1e-12)
    # With the same seed, the estimate at one corner draws what the region's has drawn.
    at = [estimated(grid, random_state=7, **(options | {"noise_rates": corner}))["ome-dr"] for corner in REGION.corners]
    assert by_seed.range == pytest.approx((min(one.value for one in at), max(one.value for one in at)), rel=1e-12)
    assert by_seed.interval == pytest.approx(
        (min(one.interval[0] for one in at), max(one.interval[1] for one in at)), rel=1e-12
    )


def test_estimates_are_small_tables_in_a_notebook():
    one = vr.Estimate(0.512345678, 0.01, (0.49, 0.53))
    assert "<td>0.51235</td>" in one._repr_html_()
    assert "<th>0.95 interval</th><td>0.49 to 0.53</td>" in one._repr_html_()
    wide = vr.EstimateRange((0.3, 0.7), (0.25, 0.75), 0.9, one, one)
    assert "<td>0.3 to 0.7</td></tr><tr><th>0.9 interval</th><td>0.25 to 0.75</td>" in wide._repr_html_()
