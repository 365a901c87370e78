"""Each estimator against its loop over all cells, and what all of them must agree on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import verirec as vr
from plain_formulas import estimators as plain
from plain_formulas.inaccuracy import LOSSES
from verirec.estimation import ESTIMATORS

EVERY = (*plain.PLAIN, *plain.DENOISED)
RATES = vr.NoiseRates(0.2, 0.1)
LINEAR = [name for name in EVERY if not name.endswith("sdr") and name in plain.DENOISED]


def skewed(f, y):
    """A loss that is neither symmetric nor the same at both labels."""
    return (y - f) ** 4 + 0.3 * y * f


ALL_LOSSES = LOSSES | {"skewed": skewed}

pytestmark = pytest.mark.filterwarnings("ignore::verirec.exceptions.OverlapWarning")
misfit = pytest.mark.filterwarnings("ignore::verirec.exceptions.MisfitWarning")


def log_of(grid, **columns):
    return vr.FeedbackLog.from_arrays(**grid.rows(), **columns)


def values_of(grid, predictions=None, *, log=None, **options):
    """Give the value of every estimator that there are rates for."""
    options = {"propensities": grid.p, "estimators": "all"} | options
    result = vr.estimate(grid.f if predictions is None else predictions, log or log_of(grid), **options)
    return {name: result[name].value for name in result}


@pytest.fixture(scope="module")
def grid():
    return plain.small_grid(0, rho01=0.2, rho10=0.1)


def test_there_is_a_plain_formula_for_every_estimator():
    assert set(EVERY) == set(ESTIMATORS)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("loss", ALL_LOSSES)
@pytest.mark.parametrize("name", EVERY)
def test_it_is_its_plain_formula(name, loss, seed):
    grid = plain.small_grid(seed, rho01=0.25, rho10=0.1)
    found = values_of(grid, noise_rates=vr.NoiseRates(0.25, 0.1), loss=skewed if loss == "skewed" else loss)[name]
    assert found == pytest.approx(plain.estimate(name, grid, ALL_LOSSES[loss], (0.25, 0.1)), rel=1e-10)


@pytest.mark.parametrize("form", ["dense", "function"])
@pytest.mark.parametrize("name", EVERY)
def test_given_imputed_errors_take_the_place_of_fitted_ones(grid, name, form):
    errors = np.random.default_rng(3).uniform(0, 1.5, grid.f.shape)
    given_errors = errors if form == "dense" else lambda users, items: errors[users, items]
    expected = plain.estimate(name, grid, LOSSES["log"], (0.2, 0.1), imputed=lambda cell: errors[cell])
    assert values_of(grid, noise_rates=RATES, imputation=given_errors)[name] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", plain.DENOISED)
def test_rates_by_group_correct_each_cell_with_its_own(grid, name):
    of_group = ((0.1, 0.05), (0.3, 0.2), (0.0, 0.1))
    groups = np.arange(grid.f.shape[0]) % 3
    rates = vr.GroupedNoiseRates(tuple(vr.NoiseRates(*one) for one in of_group), user_groups=groups)
    expected = plain.estimate(name, grid, LOSSES["log"], lambda cell: of_group[groups[cell[0]]])
    assert values_of(grid, noise_rates=rates)[name] == pytest.approx(expected, rel=1e-10)


@given(st.integers(0, 10_000), st.floats(0.02, 0.4), st.floats(0, 0.45), st.floats(0, 0.45))
def test_on_any_small_grid_the_formulas_hold(seed, least, rho01, rho10):
    grid = plain.small_grid(seed, (4, 6), (least, 1.0), rho01, rho10)
    if len(set(grid.labels.values())) < 2:
        return
    found = values_of(grid, noise_rates=vr.NoiseRates(rho01, rho10), loss="squared")
    for name in EVERY:
        # Where a handful of rows has no tilt that balances them, there is nothing to compare.
        if not name.endswith("sdr"):
            expected = plain.estimate(name, grid, LOSSES["squared"], (rho01, rho10))
            assert found[name] == pytest.approx(expected, rel=1e-9, abs=1e-12), name


@pytest.mark.parametrize("name", ["mrdr", "ome-mrdr"])
@pytest.mark.parametrize("loss", ["log", "squared"])
def test_the_constant_of_mrdr_has_the_least_variance(grid, name, loss):
    of = LOSSES[loss]
    rates = (0.2, 0.1) if name == "ome-mrdr" else (0.0, 0.0)

    def spread(g):
        total = 0.0
        for cell, label in grid.labels.items():
            f, p = grid.f[cell], grid.p[cell]
            imputed = g * of(f, 1) + (1 - g) * of(f, 0)
            total += (1 - p) / p**2 * (plain.corrected_error(f, label, of, *rates) - imputed) ** 2
        return total

    options = {"propensities": grid.p, "noise_rates": RATES, "estimators": name, "loss": loss}
    facts = vr.estimate(grid.f, log_of(grid), **options)[name].diagnostics
    assert facts["imputed_label"] == pytest.approx(minimize_scalar(spread, (0, 1), tol=1e-12).x, abs=1e-6)


def test_the_other_imputed_label_is_the_weighted_mean_of_the_corrected_labels(grid):
    result = vr.estimate(grid.f, log_of(grid), propensities=grid.p, noise_rates=RATES, estimators="all")
    for name in ("eib", "dr", "sdr", "tdr", "ome-eib", "ome-dr", "ome-sdr", "ome-tdr"):
        rho01, rho10 = (0.2, 0.1) if name in plain.DENOISED else (0.0, 0.0)
        weights = {cell: 1 / grid.p[cell] for cell in grid.labels}
        corrected = {cell: (r - rho10) / (1 - rho01 - rho10) for cell, r in grid.labels.items()}
        mean = sum(weights[cell] * corrected[cell] for cell in weights) / sum(weights.values())
        assert result[name].diagnostics["imputed_label"] == pytest.approx(mean, rel=1e-12), name


@pytest.mark.parametrize("imputation", ["constant", "model"])
def test_where_everything_is_observed_for_sure_all_are_the_naive_mean(grid, imputation):
    labels = {cell: int(grid.truth[cell]) for cell in grid.cells}
    full = replace(grid, p=np.ones_like(grid.p), labels=labels)
    expected = plain.true_inaccuracy(full, LOSSES["log"])
    found = values_of(full, imputation=imputation)
    assert found == pytest.approx(dict.fromkeys(plain.PLAIN, expected), rel=1e-10)
    result = vr.estimate(full.f, log_of(full), propensities=full.p, estimators="all", imputation=imputation)
    # Nothing is left open but for naive, which knows of no propensities.
    assert all(result[name].standard_error == pytest.approx(0, abs=1e-12) for name in plain.PLAIN if name != "naive")


@misfit
@pytest.mark.parametrize("share", [0.01, 0.4, 0.999])
def test_with_the_same_propensity_everywhere_snips_is_naive(grid, share):
    found = values_of(replace(grid, p=np.full_like(grid.p, share)), noise_rates=RATES)
    assert found["snips"] == pytest.approx(found["naive"], rel=1e-12)
    assert found["ome-snips"] == pytest.approx(found["ome"], rel=1e-12)


@pytest.mark.parametrize("interval", ["delta", "bootstrap"])
@pytest.mark.parametrize("imputation", ["constant", "model"])
def test_without_noise_each_corrected_estimator_is_the_plain_one(grid, imputation, interval):
    def of(name):
        return vr.estimate(
            grid.f,
            log_of(grid),
            propensities=grid.p,
            noise_rates=vr.NoiseRates(0, 0),
            estimators=name,
            imputation=imputation,
            interval=interval,
            draws=50,
        )[name]

    for name, denoised in zip(plain.PLAIN, plain.DENOISED, strict=True):
        assert of(denoised) == of(name)


@misfit
@pytest.mark.parametrize("name", ["dr", "tdr", "eib"])
def test_perfect_imputed_errors_make_it_exact_whatever_the_propensities(grid, name):
    noiseless = replace(grid, labels={cell: int(grid.truth[cell]) for cell in grid.labels})
    errors = np.array([[LOSSES["log"](f, y) for f, y in zip(*row, strict=True)] for row in zip(grid.f, grid.truth)])  # noqa: B905
    for p in (grid.p, 1.01 - grid.p, np.full_like(grid.p, 0.03)):
        found = values_of(replace(noiseless, p=p), imputation=errors, estimators=name)[name]
        assert found == pytest.approx(plain.true_inaccuracy(grid, LOSSES["log"]), rel=1e-12)


@pytest.mark.parametrize("imputation", ["constant", "model", "given"])
@pytest.mark.parametrize("name", LINEAR)
def test_it_is_affine_in_one_over_kappa_and_rho10_over_kappa(grid, name, imputation):
    given_errors = np.random.default_rng(4).uniform(0, 1.5, grid.f.shape)
    pairs = [(0.0, 0.0), (0.3, 0.0), (0.0, 0.2), (0.25, 0.3), (0.1, 0.05)]
    values = [
        values_of(
            grid,
            noise_rates=vr.NoiseRates(*pair),
            estimators=name,
            imputation=given_errors if imputation == "given" else imputation,
        )[name]
        for pair in pairs
    ]
    design = np.array([(1, 1 / (1 - a - b), b / (1 - a - b)) for a, b in pairs])
    coefficients = np.linalg.solve(design[:3], values[:3])
    # The sweeps of a model stop at 1e-10 of its constant.
    assert design[3:] @ coefficients == pytest.approx(values[3:], rel=1e-8 if imputation == "model" else 1e-11)


@pytest.mark.filterwarnings("ignore:.* loss of these factors is:verirec.exceptions.ScoreWarning")
def test_all_forms_of_predictions_agree(grid):
    users, items = np.divmod(np.random.default_rng(5).permutation(grid.f.size), grid.f.shape[1])
    random = np.random.default_rng(6)
    factors = (
        *(random.normal(size=(size, 3)) for size in grid.f.shape),
        *(random.normal(size=n) for n in grid.f.shape),
    )
    matrix = 1 / (1 + np.exp(-(factors[0] @ factors[1].T + factors[2][:, None] + factors[3])))
    forms = {
        "list": matrix.tolist(),
        "triples": (users, items, matrix[users, items]),
        "function": lambda users, items: matrix[users, items],
        "factors": vr.Factors(*factors),
        "tuple of factors": factors,
    }
    for imputation in ("constant", "model"):
        expected = values_of(grid, matrix, noise_rates=RATES, imputation=imputation)
        for name, form in forms.items():
            found = values_of(grid, form, noise_rates=RATES, imputation=imputation)
            assert found == pytest.approx(expected, rel=1e-10), name


def test_all_forms_of_propensities_agree(grid):
    log = log_of(grid)
    expected = values_of(grid, noise_rates=RATES)
    for form in (lambda users, items: grid.p[users, items], vr.GivenPropensity(grid.p), grid.p.tolist()):
        assert values_of(grid, noise_rates=RATES, propensities=form) == pytest.approx(expected, rel=1e-12)
    own = log_of(grid, propensities=grid.p[log.users, log.items])
    names = [name for name in EVERY if not name.endswith("tdr")]
    found = values_of(grid, log=own, noise_rates=RATES, propensities=None, estimators=names)
    assert found == pytest.approx({name: expected[name] for name in names}, rel=1e-12)


def test_the_order_of_the_rows_does_not_matter(grid):
    log = log_of(grid)
    shuffled = log.select(np.random.default_rng(7).permutation(len(log)))
    for p in (grid.p, vr.LogisticPropensity(), None):
        one, other = (
            vr.estimate(grid.f, some, propensities=p, noise_rates=RATES, estimators="all") for some in (log, shuffled)
        )
        for name in EVERY:
            assert one[name].value == pytest.approx(other[name].value, rel=1e-10)
            assert one[name].standard_error == pytest.approx(other[name].standard_error, rel=1e-7)


def test_names_of_users_and_items_do_not_matter(grid):
    turned = replace(grid, f=grid.f[::-1], p=grid.p[::-1])
    last = grid.f.shape[0] - 1
    turned = replace(turned, labels={(last - user, item): label for (user, item), label in grid.labels.items()})
    assert values_of(turned, noise_rates=RATES) == pytest.approx(values_of(grid, noise_rates=RATES), rel=1e-10)


WEIGHING = ("naive", "snips", "ome", "ome-snips")


def test_rows_of_weight_n_count_n_times(grid):
    # A pair is in a log once, so that the copies are made in the plain sums only.
    weights = np.random.default_rng(8).integers(0, 4, len(grid.labels))
    found = values_of(grid, log=log_of(grid, weights=weights), noise_rates=RATES, estimators=WEIGHING)
    for name in WEIGHING:
        top = bottom = 0.0
        for (cell, label), copies in zip(grid.labels.items(), weights, strict=True):
            for _ in range(copies):
                rates = (0.2, 0.1) if name in plain.DENOISED else (0.0, 0.0)
                w = 1 / grid.p[cell] if name.endswith("snips") else 1.0
                top += w * plain.corrected_error(grid.f[cell], label, LOSSES["log"], *rates)
                bottom += w
        assert found[name] == pytest.approx(top / bottom, rel=1e-12), name


@misfit
def test_a_row_of_weight_zero_counts_for_nothing(grid):
    weights = np.arange(len(grid.labels)) % 2
    weighted = log_of(grid, weights=weights)
    options = {"propensities": grid.p, "noise_rates": RATES, "estimators": WEIGHING}
    with_zeros, without = (vr.estimate(grid.f, log, **options) for log in (weighted, log_of(grid).select(weights == 1)))
    for name in WEIGHING:
        assert with_zeros[name].value == pytest.approx(without[name].value, rel=1e-12)
        assert with_zeros[name].standard_error == pytest.approx(without[name].standard_error, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-170, 1e200, 1e308])
def test_only_the_ratios_of_weights_count_however_large_they_are(grid, scale):
    weights = np.random.default_rng(9).choice([0.25, 0.5, 1.0], len(grid.labels))
    options = {"propensities": grid.p, "noise_rates": RATES, "estimators": WEIGHING}
    plain_ones, scaled = (vr.estimate(grid.f, log_of(grid, weights=w), **options) for w in (weights, weights * scale))
    for name in WEIGHING:
        assert scaled[name].value == pytest.approx(plain_ones[name].value, rel=1e-12)
        assert scaled[name].standard_error == pytest.approx(plain_ones[name].standard_error, rel=1e-12)


@pytest.mark.parametrize("side", ["user_groups", "item_groups"])
def test_groups_with_the_same_rates_are_one(grid, side):
    rates = vr.NoiseRates(0.2, 0.1)
    size = grid.f.shape[0 if side == "user_groups" else 1]
    grouped = vr.GroupedNoiseRates((rates, rates), **{side: np.arange(size) % 2})
    log = log_of(grid)
    one, other = (
        vr.estimate(grid.f, log, propensities=grid.p, noise_rates=of, estimators=plain.DENOISED)
        for of in (rates, grouped)
    )
    for name in plain.DENOISED:
        assert one[name].value == pytest.approx(other[name].value, rel=1e-12)
        assert one[name].standard_error == pytest.approx(other[name].standard_error, rel=1e-12)


@pytest.mark.parametrize("name", ["sdr", "ome-sdr"])
def test_the_tilted_propensities_balance_the_imputed_errors(grid, name):
    facts = vr.estimate(grid.f, log_of(grid), propensities=grid.p, noise_rates=RATES, estimators=name)[name].diagnostics
    assert facts["tilt"] != 0
    assert facts["balance_residual"] == pytest.approx(0, abs=1e-8)


def test_where_no_tilt_balances_the_rows_the_residual_says_so():
    f = np.full((6, 8), 0.2)
    f[:3] = 0.9  # only the cells with high losses are seen
    log = vr.FeedbackLog.from_arrays(
        np.repeat(np.arange(3), 8), np.tile(np.arange(8), 3), np.arange(24) % 2, n_users=6, n_items=8
    )
    result = vr.estimate(f, log, propensities=np.full((6, 8), 0.5), estimators="sdr")["sdr"]
    assert np.isfinite([result.value, result.standard_error]).all()
    assert abs(result.diagnostics["balance_residual"]) > 1


def test_predictions_that_are_all_the_same_need_no_tilt(grid):
    found = values_of(grid, np.full_like(grid.f, 0.3))
    assert found["sdr"] == pytest.approx(found["snips"], rel=1e-12)
