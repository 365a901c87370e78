"""The paper's theory against loops, enumeration and chance."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from plain_formulas import theory as plain
from plain_formulas.inaccuracy import LOSSES
from refusals import check_refusal
from verirec import NoiseRates, TransitionMatrix, theory
from verirec.exceptions import (
    DataError,
    LabelError,
    MemoryBudgetError,
    ParameterError,
    PredictionError,
    PropensityError,
)
from verirec.theory import (
    double_robustness,
    generalisation_bound,
    lipschitz_constant,
    ome_dr_bias,
    rademacher_complexity,
    remaining_bias,
    surrogate_bound,
)

RATES, USED = NoiseRates(0.25, 0.1), NoiseRates(0.1, 0.15)
SHAPE = (5, 8)
VECTORISED = {
    "log": lambda f, y: -np.log(np.where(y == 1, f, 1 - f)),
    "squared": lambda f, y: (y - f) ** 2,
    "absolute": lambda f, y: np.abs(y - f),
}


def pair(rates):
    return rates.rho01, rates.rho10


def case(seed, shape=SHAPE):
    """Draw a truth, and propensities and imputed errors that are wrong."""
    random = np.random.default_rng(seed)
    p = random.uniform(0.2, 0.9, shape)
    return {
        "predictions": random.uniform(0.05, 0.95, shape),
        "true_labels": random.integers(2, size=shape),
        "propensities": p,
        "estimated_propensities": np.clip(p * random.uniform(0.6, 1.3, shape), 0.1, 1),
        "imputed_errors": random.uniform(0, 2, shape),
    }


def bias_of(given, loss="log", rates=RATES, used=USED):
    return ome_dr_bias(**given, noise_rates=rates, estimated_rates=used, loss=loss)


def expected_bias(given, loss="log", rates=RATES, used=USED):
    f, truth, *others = given.values()
    mean = plain.expected_ome_dr(f, truth, *others, pair(rates), pair(used), LOSSES[loss])
    return mean - plain.true_inaccuracy(f, truth, LOSSES[loss])


# The bias of OME-DR (Theorem 3.1)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_the_bias_is_the_mean_over_all_outcomes_of_each_cell_less_the_truth(seed, loss):
    given = case(seed)
    assert bias_of(given, loss).signed == pytest.approx(expected_bias(given, loss), abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_bias_is_what_drawing_again_and_again_gives(loss):
    given, random = case(7), np.random.default_rng(8)
    f, truth, *others = given.values()
    draws = [
        plain.draw_ome_dr(f, truth, *others, pair(RATES), pair(USED), VECTORISED[loss], random) for _ in range(20_000)
    ]
    off = np.mean(draws) - plain.true_inaccuracy(f, truth, LOSSES[loss])
    error = np.std(draws, ddof=1) / np.sqrt(len(draws))
    bias = bias_of(given, loss)
    assert abs(off - bias.signed) < 4 * error
    assert abs(bias.signed) > 5 * error


def test_the_printed_form_with_o_over_p_in_place_of_p_over_p_is_another_number():
    given, random = case(9), np.random.default_rng(10)
    bias, expected = bias_of(given), expected_bias(given)
    observed = random.random(SHAPE) < given["propensities"]
    printed = float(((1 - observed / given["estimated_propensities"]) * given["imputed_errors"]).mean())
    assert bias.signed == pytest.approx(expected, abs=1e-12)
    assert abs(printed + bias.positives + bias.negatives - expected) > 0.01


def test_the_three_terms_are_those_of_the_theorem():
    given = case(11)
    bias, truth = bias_of(given), given["true_labels"]
    ratio = given["propensities"] / given["estimated_propensities"]
    assert bias.imputation == pytest.approx(((1 - ratio) * given["imputed_errors"]).mean(), abs=1e-12)
    without = given | {"imputed_errors": np.zeros(SHAPE)}
    for own, label in ((bias.positives, 1), (bias.negatives, 0)):
        alone = 0.0
        for cell in zip(*np.nonzero(truth == label), strict=True):
            one = {name: np.full((1, 1), values[cell]) for name, values in without.items()}
            alone += expected_bias(one)
        assert own == pytest.approx(alone / truth.size, abs=1e-12)
    assert bias.signed == pytest.approx(bias.imputation + bias.positives + bias.negatives)
    assert bias.absolute == abs(bias.signed)


@pytest.mark.parametrize("used", [RATES, USED], ids=["right rates", "wrong rates"])
def test_with_imputed_errors_of_zero_it_is_the_bias_of_ome_ips(used):
    given = case(12)
    f, truth, p, learnt, _ = given.values()
    mean = 0.0
    for cell in np.ndindex(SHAPE):
        rate = RATES.rho01 if truth[cell] else RATES.rho10
        said = {truth[cell]: 1 - rate, 1 - truth[cell]: rate}
        errors = sum(said[r] * plain.surrogate_error(f[cell], r, LOSSES["log"], *pair(used)) for r in said)
        mean += p[cell] / learnt[cell] * errors / f.size
    bias = bias_of(given | {"imputed_errors": np.zeros(SHAPE)}, used=used)
    assert bias.imputation == 0
    assert bias.signed == pytest.approx(mean - plain.true_inaccuracy(f, truth, LOSSES["log"]), abs=1e-12)


@pytest.mark.parametrize("used", [RATES, USED], ids=["right rates", "wrong rates"])
def test_with_estimated_propensities_of_one_it_is_the_bias_of_ome_eib(used):
    given = case(13)
    f, truth, p, _, imputed = given.values()
    mean = 0.0
    for cell in np.ndindex(SHAPE):
        rate = RATES.rho01 if truth[cell] else RATES.rho10
        said = {truth[cell]: 1 - rate, 1 - truth[cell]: rate}
        errors = sum(said[r] * plain.surrogate_error(f[cell], r, LOSSES["log"], *pair(used)) for r in said)
        mean += (p[cell] * errors + (1 - p[cell]) * imputed[cell]) / f.size
    bias = bias_of(given | {"estimated_propensities": np.ones(SHAPE)}, used=used)
    assert bias.signed == pytest.approx(mean - plain.true_inaccuracy(f, truth, LOSSES["log"]), abs=1e-12)


# Double robustness (Corollary 3.2) and what it does not cover

FEW_CELLS = (2, 3)
RATE = st.floats(0, 0.45)
MATRICES = st.fixed_dictionaries(
    {
        "predictions": arrays(float, FEW_CELLS, elements=st.floats(0.01, 0.99)),
        "true_labels": arrays(int, FEW_CELLS, elements=st.integers(0, 1)),
        "propensities": arrays(float, FEW_CELLS, elements=st.floats(0.05, 1)),
        "estimated_propensities": arrays(float, FEW_CELLS, elements=st.floats(0.05, 1)),
        "imputed_errors": arrays(float, FEW_CELLS, elements=st.floats(-5, 5)),
    }
)


@given(MATRICES, RATE, RATE, st.sampled_from(sorted(LOSSES)))
def test_right_propensities_or_right_imputed_errors_leave_no_bias(given, rho01, rho10, loss):
    left = double_robustness(**given, noise_rates=NoiseRates(rho01, rho10), loss=loss)
    assert left == pytest.approx((0, 0), abs=1e-9)


def test_neither_right_leaves_a_bias():
    assert bias_of(case(14), used=RATES).absolute > 0.01


@given(MATRICES, st.tuples(RATE, RATE), st.tuples(RATE, RATE), st.sampled_from(sorted(LOSSES)))
def test_what_wrong_rates_leave_is_the_bias_with_right_propensities(given, rates, used, loss):
    right_p = given | {"estimated_propensities": given["propensities"]}
    rates, used = NoiseRates(*rates), NoiseRates(*used)
    left = remaining_bias(
        given["predictions"], given["true_labels"], noise_rates=rates, estimated_rates=used, loss=loss
    )
    assert left == pytest.approx(bias_of(right_p, loss, rates, used).signed, abs=1e-9)


def test_right_rates_leave_nothing():
    given = case(15)
    left = remaining_bias(given["predictions"], given["true_labels"], noise_rates=RATES, estimated_rates=RATES)
    assert left == pytest.approx(0, abs=1e-15)


# Lipschitz constants (Lemma 3.3)

CLIP = 0.05
POINTS = np.linspace(CLIP, 1 - CLIP, 4_001)
LIPSCHITZ = {
    "squared": (LOSSES["squared"], np.linspace(0, 1, 4_001), 2.0),
    "absolute": (LOSSES["absolute"], np.linspace(0, 1, 4_001), 1.0),
    "log": (LOSSES["log"], POINTS, 1 / CLIP),
}
SOME_RATES = [NoiseRates(*rates) for rates in ((0, 0), (0.2, 0.1), (0.1, 0.2), (0.3, 0.3), (0.5, 0.0), (0.0, 0.6))]


@pytest.mark.parametrize("rates", SOME_RATES, ids=str)
@pytest.mark.parametrize("name", LIPSCHITZ)
def test_no_slope_of_the_surrogate_is_above_the_tight_constant_nor_that_above_the_papers(name, rates):
    loss, points, constant = LIPSCHITZ[name]
    tight = lipschitz_constant(constant, rates)
    assert plain.steepest_slope(loss, pair(rates), points) <= tight * (1 + 1e-9)
    assert tight <= lipschitz_constant(constant, rates, tight=False)


@pytest.mark.parametrize("rates", SOME_RATES, ids=str)
def test_the_absolute_loss_attains_the_tight_constant(rates):
    loss, points, constant = LIPSCHITZ["absolute"]
    assert plain.steepest_slope(loss, pair(rates), points) == pytest.approx(
        lipschitz_constant(constant, rates), rel=1e-3
    )


def test_the_constants_are_their_formulas_and_grow_with_that_of_the_loss():
    for rates in SOME_RATES:
        rho01, rho10 = pair(rates)
        kappa = 1 - rho01 - rho10
        assert lipschitz_constant(3.0, rates) == pytest.approx(3 * (1 + abs(rho01 - rho10)) / kappa)
        assert lipschitz_constant(3.0, rates, tight=False) == pytest.approx(6 / kappa)
        assert lipschitz_constant(0, rates) == 0


@pytest.mark.parametrize("rates", SOME_RATES, ids=str)
@pytest.mark.parametrize("clip", [0.01, 0.2, 0.5])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_bound_of_the_surrogate_is_the_largest_over_a_fine_grid(loss, clip, rates):
    points = np.linspace(clip, 1 - clip, 2_001)
    largest = plain.largest_surrogate(LOSSES[loss], pair(rates), points)
    assert surrogate_bound(rates, clip, loss) == pytest.approx(largest, rel=1e-9)


def test_a_loss_that_peaks_between_the_ends_has_its_bound_there():
    def peaked(f, y):
        return np.exp(-50 * (f - 0.5) ** 2) * (1 + y)

    points = np.linspace(0.1, 0.9, 2_001)
    largest = plain.largest_surrogate(peaked, pair(RATES), points)
    assert surrogate_bound(RATES, 0.1, peaked) == pytest.approx(largest, rel=1e-6)


def test_a_bounded_loss_needs_no_clip():
    assert surrogate_bound(RATES, 0, "squared") == pytest.approx(0.9 / 0.65)


# Rademacher complexity


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 2), (2, 3), (3, 2), (3, 3)])
def test_the_complexity_is_the_mean_over_all_matrices_of_signs(shape):
    exact = 2 * 0.5 * plain.mean_spectral_norm(*shape) / (shape[0] * shape[1])
    value, error = rademacher_complexity(*shape, user_norm=2, item_norm=0.5, draws=1_500, random_state=1)
    assert abs(value - exact) < 4 * error + 1e-6


def test_no_factors_of_those_norms_exceed_what_the_leading_singular_vectors_attain():
    random = np.random.default_rng(0)
    for _ in range(20):
        signs = random.choice([-1.0, 1.0], (4, 6))
        left, values, right = np.linalg.svd(signs)
        a, b = 1.5, 0.7
        best = a * b * values[0]
        attained = (signs * np.outer(a * left[:, 0], b * right[0])).sum()
        assert attained == pytest.approx(best)
        for rank in (1, 2, 5):
            u, v = random.normal(size=(4, rank)), random.normal(size=(6, rank))
            u, v = a * u / np.linalg.norm(u), b * v / np.linalg.norm(v)
            assert (signs * (u @ v.T)).sum() <= best + 1e-9


def test_one_user_has_the_norm_of_a_vector_of_signs():
    value, error = rademacher_complexity(1, 400, user_norm=3, item_norm=5)
    assert value == pytest.approx(15 / 20, rel=1e-6)
    assert error == pytest.approx(0, abs=1e-6)


def test_larger_matrices_have_the_norm_that_their_singular_values_give():
    random = np.random.default_rng(5)
    norms = [np.linalg.norm(random.choice([-1.0, 1.0], (60, 90)), 2) for _ in range(100)]
    value, error = rademacher_complexity(60, 90, user_norm=1, item_norm=1, draws=100, random_state=6)
    spread = np.std(norms, ddof=1) / 10 / 5_400
    assert abs(value - np.mean(norms) / 5_400) < 4 * np.hypot(error, spread)
    assert error == pytest.approx(spread, rel=0.5)


def test_the_complexity_scales_with_both_norms_and_repeats_with_its_seed():
    one = np.array(rademacher_complexity(7, 9, user_norm=1, item_norm=1, random_state=3))
    other = np.array(rademacher_complexity(7, 9, user_norm=4, item_norm=2.5, random_state=3))
    assert other == pytest.approx(10 * one)
    assert rademacher_complexity(7, 9, user_norm=0, item_norm=1) == (0, 0)
    assert one[0] != rademacher_complexity(7, 9, user_norm=1, item_norm=1, random_state=4)[0]


def test_more_draws_make_the_error_smaller():
    few, many = (rademacher_complexity(8, 8, user_norm=1, item_norm=1, draws=draws)[1] for draws in (20, 500))
    assert many < few / 2


# The generalisation bound (Theorem 3.4)

BOUND = {
    "estimate": 0.5,
    "bias": 0.02,
    "complexity": 0.001,
    "constant": 1.0,
    "rates": RATES,
    "propensity_floor": 0.1,
    "loss_bound": 5.9,
    "n_cells": 100_000,
    "eta": 0.05,
}


@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("rates", SOME_RATES, ids=str)
def test_the_bound_is_its_formula(rates, tight):
    values = list((BOUND | {"rates": pair(rates)}).values())
    expected = plain.generalisation_bound(*values, tight)
    assert generalisation_bound(**BOUND | {"rates": rates}, tight=tight) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "other", "grows"),
    [
        ("estimate", 0.6, True),
        ("bias", 0.03, True),
        ("bias", -0.03, True),
        ("complexity", 0.002, True),
        ("constant", 2.0, True),
        ("loss_bound", 6.0, True),
        ("rates", NoiseRates(0.3, 0.1), True),
        ("rates", NoiseRates(0.25, 0.05), False),
        ("propensity_floor", 0.2, False),
        ("n_cells", 200_000, False),
        ("eta", 0.1, False),
        ("tight", True, False),
    ],
)
def test_the_bound_grows_with_what_makes_it_weaker(name, other, grows):
    change = generalisation_bound(**BOUND | {name: other}) - generalisation_bound(**BOUND)
    assert (change > 0) is grows
    assert change != 0


def test_the_paper_s_constant_is_the_default():
    assert generalisation_bound(**BOUND) == generalisation_bound(**BOUND, tight=False)


# What is refused


def bad_bias(**change):
    return lambda: bias_of(case(0) | change)


def bad_bound(**change):
    return lambda: generalisation_bound(**BOUND | change)


def bad_complexity(*shape, **change):
    return lambda: rademacher_complexity(*shape, **{"user_norm": 1, "item_norm": 1} | change)


def remaining(labels, f=0.5):
    matrix = np.full((1, 2), f)
    return lambda: remaining_bias(matrix, labels, noise_rates=RATES, estimated_rates=USED)


REFUSED = [
    (
        bad_bias(predictions=np.full((5, 7), 0.5)),
        ParameterError,
        r"must have one shape; got predictions \(5, 7\), true",
    ),
    (bad_bias(predictions=np.full(5, 0.5)), ParameterError, r"^predictions must be a matrix; got shape \(5,\)$"),
    (bad_bias(predictions=np.full(SHAPE, np.nan)), DataError, r"^predictions must be finite numbers"),
    (bad_bias(predictions=np.zeros(SHAPE)), PredictionError, r"strictly between 0 and 1; 40 of 40"),
    (bad_bias(true_labels=np.full(SHAPE, 2)), LabelError, r"^true_labels must be 0/1$"),
    (bad_bias(true_labels=np.full(SHAPE, "a")), ParameterError, r"^true_labels must be numbers"),
    (bad_bias(propensities=np.full(SHAPE, 1.1)), PropensityError, r"within 0 and 1, and estimated ones above 0$"),
    (bad_bias(propensities=np.full(SHAPE, -0.1)), PropensityError, r"within 0 and 1"),
    (bad_bias(estimated_propensities=np.zeros(SHAPE)), PropensityError, r"estimated ones above 0$"),
    (bad_bias(estimated_propensities=np.full(SHAPE, 2.0)), PropensityError, r"within 0 and 1"),
    (bad_bias(imputed_errors=np.full(SHAPE, np.inf)), DataError, r"^imputed_errors must be finite"),
    (lambda: bias_of({n: v[:0] for n, v in case(0).items()}), DataError, r"at least one$"),
    (lambda: bias_of(case(0), loss="hinge"), ParameterError, r"^loss must be one of absolute, log, squared"),
    (remaining([[0, 1, 1]]), ParameterError, r"must have one shape"),
    (remaining([[0, 1]], f=1.0), PredictionError, r"strictly between 0 and 1"),
    (lambda: lipschitz_constant(-1, RATES), ParameterError, r"^constant must be .*at least 0; got -1$"),
    (lambda: lipschitz_constant(np.nan, RATES), ParameterError, r"^constant must be"),
    (lambda: surrogate_bound(RATES, 0.6), ParameterError, r"^clip must be"),
    (lambda: surrogate_bound(RATES, -0.1), ParameterError, r"^clip must be"),
    (lambda: surrogate_bound(RATES, 0), PredictionError, r"strictly between 0 and 1; 2 of 10,001"),
    (bad_complexity(0, 3), ParameterError, r"^n_users must be a whole number"),
    (bad_complexity(3, 2.5), ParameterError, r"^n_items must be a whole number"),
    (bad_complexity(3, 3, user_norm=-1), ParameterError, r"^user_norm must be"),
    (bad_complexity(3, 3, item_norm=np.inf), ParameterError, r"^item_norm must be"),
    (bad_complexity(3, 3, draws=1), ParameterError, r"^draws must be a whole number (of at least|from) 2"),
    (bad_complexity(3, 3, random_state="x"), ParameterError, r"random_state"),
    (bad_complexity(10_000, 5_001), MemoryBudgetError, r"^a matrix of 10,000 x 5,001 signs is above 50,000,000 cells"),
    (bad_bound(propensity_floor=0), ParameterError, r"^propensity_floor must be"),
    (bad_bound(eta=0), ParameterError, r"^eta must be"),
    (bad_bound(eta=1), ParameterError, r"^eta must be"),
    (bad_bound(n_cells=0), ParameterError, r"^n_cells must be"),
    (bad_bound(complexity=-1), ParameterError, r"^complexity must be"),
    (bad_bound(loss_bound=-1), ParameterError, r"^loss_bound must be"),
    (bad_bound(constant=-1), ParameterError, r"^constant must be"),
    (bad_bound(estimate=np.nan), ParameterError, r"^estimate must be"),
    (bad_bound(bias=np.inf), ParameterError, r"^bias must be"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_bad_input_is_refused_in_one_line(call, error, message):
    check_refusal(call, error, message)


def test_the_remaining_bias_wants_labels_of_zero_and_one():
    check_refusal(remaining([[0, 2]]), LabelError, r"^true_labels must be 0/1$")


def test_a_propensity_floor_above_one_is_refused():
    check_refusal(bad_bound(propensity_floor=1.5), ParameterError, r"^propensity_floor must be")


@pytest.mark.parametrize(
    "call",
    [
        lambda: bias_of(case(0), used=(0.1, 0.1)),
        lambda: lipschitz_constant(1.0, (0.1, 0.1)),
        lambda: surrogate_bound(None, 0.1),
        bad_bound(rates=(0.1, 0.1)),
    ],
    ids=["bias", "Lipschitz constant", "surrogate bound", "generalisation bound"],
)
def test_rates_of_another_kind_are_refused(call):
    check_refusal(call, ParameterError, r"^noise rates must be a NoiseRates; got (tuple|NoneType)$")


def test_every_function_of_the_module_is_tested_here():
    functions = {name for name in theory.__all__ if inspect.isfunction(getattr(theory, name))}
    assert functions <= set(globals())


def test_of_levels_the_norm_of_the_inverse_takes_the_place_of_kappa():
    rates = NoiseRates(0.2, 0.1)
    matrix = TransitionMatrix.of_rates(rates)
    assert theory.lipschitz_constant(3.0, matrix) == pytest.approx(theory.lipschitz_constant(3.0, rates))
    band = TransitionMatrix.band(5, 0.3)
    losses = np.random.default_rng(0).uniform(0, 1, (2, 5, 1000))
    apart = np.abs(losses[0] - losses[1]).max(axis=0)
    corrected = np.abs(band.inverse @ losses[0] - band.inverse @ losses[1]).max(axis=0)
    assert (corrected <= theory.lipschitz_constant(1.0, band) * apart + 1e-12).all()
    bounds = [
        theory.generalisation_bound(
            0.5,
            0.0,
            complexity=0.001,
            constant=1.0,
            rates=one,
            propensity_floor=0.1,
            loss_bound=6,
            n_cells=1000,
            tight=True,
        )
        for one in (rates, matrix)
    ]
    assert bounds[0] == pytest.approx(bounds[1])
