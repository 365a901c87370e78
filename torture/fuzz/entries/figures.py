"""Entries of metrics, simulated worlds and theory."""

from __future__ import annotations

from torture.fuzz.calls import either, entry, one, real, whole
from torture.fuzz.entries import pools

_LABELS = one("[0, 1, 1, 0]", "np.array([1, 0, 0, 1])", "[1, 1, 1, 1]", "[True, False, True, False]", "[0, 0, 0, 1]")
_CHANCES = one("[.1, .9, .5, .5]", "np.array([0, 1, 1, 0.])", "[.5] * 4", "np.float32([.1, .2, .3, .4])")
_SCORES = either(_CHANCES, one("[-1e308, 1e308, 0, 5]", "[3, 2, 1, 0]"))
_LOG = {"log": pools.log}
_MATRIX = one("np.full((3, 4), .3)", "np.random.default_rng(1).uniform(.1, .9, (3, 4))", "[[.1, .9]]", "np.eye(3)")
_LEVELS = one("np.arange(12).reshape(3, 4) % 5 + 1", "[[1, 2, 3, 4, 5]]", "np.ones((2, 2), int)")
_MADE = {"noise_rates": pools.rates, "random_state": pools.seed, "memory_budget": one("2**30", "10**6")}
_SQUARE = one("np.full((3, 3), .3)", "np.random.default_rng(1).uniform(.1, .9, (3, 3))", "np.full((3, 3), .999)")
_GRID = {
    "predictions": _SQUARE,
    "true_labels": one("np.arange(9).reshape(3, 3) % 2", "np.eye(3)", "np.eye(3) > 0"),
    "noise_rates": pools.rates,
}
_BIAS = _GRID | {
    "propensities": _SQUARE,
    "estimated_propensities": _SQUARE,
    "imputed_errors": _SQUARE,
}

ENTRIES = [
    entry("vr.metrics.auc", {"labels": _LABELS, "scores": _SCORES}),
    entry("vr.metrics.log_loss", {"labels": _LABELS, "probabilities": _CHANCES}),
    entry("vr.metrics.brier_score", {"labels": _LABELS, "probabilities": _CHANCES}),
    entry(
        "vr.metrics.calibration_error", {"labels": _LABELS, "probabilities": _CHANCES}, {"bins": one("1", "10", "1000")}
    ),
    entry(
        "vr.metrics.UserRankings", {"users": one("[0, 0, 1, 1]", "[5, 5, 5, 5]"), "labels": _LABELS, "scores": _SCORES}
    ),
    entry(
        "vr.metrics.evaluate",
        {"scores": pools.scores, "test_log": pools.same_log},
        {"k": one("1", "5", "[1, 2]", "10**6"), "convention": one("'paper'", "'usual'")},
        setting=_LOG,
        weight=3,
    ),
    entry(
        "vr.simulate.world",
        {"n_users": whole(1, 12), "n_items": whole(1, 12)},
        {
            "near_threshold": one("True", "False"),
            "observed": real(0.01, 0.99),
            "selectivity": real(0, 5),
            "weak_separability": one("True", "False"),
            "rank": whole(1, 4),
            **_MADE,
        },
        weight=2,
    ),
    entry(
        "vr.simulate.on_matrix",
        {"preferences": _MATRIX},
        {"observed": real(0.01, 0.99), "selectivity": real(0, 5), **_MADE},
    ),
    entry(
        "vr.simulate.on_levels",
        {"levels": _LEVELS},
        {
            "probabilities": one("(.1, .3, .5, .7, .9)", "(0, 0, 1, 1, 1)"),
            "propensities": one("(.1, .2, .3, .4, .5)", "None"),
            **_MADE,
        },
    ),
    entry(
        "vr.simulate.on_completed",
        {"log": pools.log_with("ratings")},
        {"proportions": one("(.2, .2, .2, .2, .2)", "(.53, .24, .14, .07, .02)"), **_MADE},
        setting=_LOG,
    ),
    entry(
        "vr.simulate.complete_ratings",
        {"log": pools.log_with("ratings")},
        {"rank": whole(1, 4), "penalty": one("8.", ".001", "0"), "sweeps": whole(1, 4), "random_state": pools.seed},
        setting=_LOG,
    ),
    entry("vr.simulate.level_propensities", {}, {"alpha": real(0, 1), "p": real(0.1, 2)}),
    entry(
        "vr.simulate.levels_by_rank",
        {"scores": _MATRIX},
        {"proportions": one("(.2, .2, .2, .2, .2)", "(1, 0, 0, 0, 0)")},
    ),
    entry(
        "vr.simulate.prediction_matrices",
        {"levels": one("np.arange(12).reshape(3, 4) % 5 + 1")},
        {"random_state": pools.seed},
    ),
    entry("vr.theory.double_robustness", _BIAS, {"loss": pools.loss}),
    entry("vr.theory.ome_dr_bias", _BIAS | {"estimated_rates": pools.rates}, {"loss": pools.loss}),
    entry("vr.theory.remaining_bias", _GRID | {"estimated_rates": pools.rates}, {"loss": pools.loss}),
    entry("vr.theory.surrogate_bound", {"rates": pools.rates, "clip": real(0.001, 0.5)}, {"loss": pools.loss}),
    entry(
        "vr.theory.lipschitz_constant", {"constant": real(0, 5), "rates": pools.rates}, {"tight": one("True", "False")}
    ),
    entry(
        "vr.theory.rademacher_complexity",
        {"n_users": whole(1, 9), "n_items": whole(1, 9), "user_norm": real(0, 2), "item_norm": real(0, 2)},
        {"draws": whole(1, 4), "random_state": pools.seed},
    ),
    entry(
        "vr.theory.generalisation_bound",
        {
            "estimate": real(0, 1),
            "bias": real(0, 1),
            "complexity": real(0, 1),
            "constant": real(0, 2),
            "rates": pools.rates,
            "propensity_floor": real(0.01, 1),
            "loss_bound": real(0.1, 9),
            "n_cells": whole(1, 1000),
        },
        {"eta": real(0.01, 0.9), "tight": one("True", "False")},
    ),
]
