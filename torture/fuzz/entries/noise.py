"""Entries of noise rates, propensities and the label model."""

from __future__ import annotations

from torture.fuzz.calls import entry, one, real, whole
from torture.fuzz.entries import pools

_LOG = {"log": pools.log}
_FITTED = _LOG | {
    "found": one(
        "vr.LogisticPropensity().fit(log)",
        "vr.PopularityPropensity(floor=.01).fit(log)",
        "vr.GivenPropensity(scores_of(log, 1))",
        "vr.ConstantPropensity().fit(log)",
    )
}
_PAIRS = {"users": one("[0, 0]", "np.arange(2) % log.n_users", "range(2)"), "items": one("[0, 0]", "np.zeros(2, int)")}
_FLOOR = one("None", ".01", "0", "1e-9", ".5")

ENTRIES = [
    entry(
        "vr.NoiseRates",
        {"rho01": real(0, 0.6), "rho10": real(0, 0.6)},
        {"covariance": one("((.01, 0), (0, .01))", "None")},
    ),
    entry("vr.NoiseRates(.1, .2, ((.01, 0), (0, .01))).interval", {}, {"confidence": pools.confidence}, weight=0.5),
    entry("vr.NoiseRegion", {"rho01_most": real(0, 0.5), "rho10_most": real(0, 0.5)}),
    entry(
        "vr.GroupedNoiseRates",
        {
            "rates": one("(vr.NoiseRates(.1, .2), vr.NoiseRates(0, .3))"),
            "user_groups": one("[0, 1, 0]", "np.array([0, 1])"),
        },
        {"item_groups": one("[0, 0, 1]", "None")},
    ),
    entry(
        "vr.identified_region",
        {"log": pools.same_log},
        {
            "scores": pools.probabilities,
            "quantile": real(0.001, 0.4),
            "confidence": pools.confidence,
            "random_state": pools.seed,
        },
        setting=_LOG,
        weight=2,
    ),
    entry(
        "vr.weak_separability_test",
        {"log": pools.same_log, "rates": pools.rates},
        {"scores": pools.probabilities, "quantile": real(0.001, 0.4), "random_state": pools.seed},
        setting=_LOG,
        weight=2,
    ),
    entry(
        "vr.find_suspect_labels",
        {"log": pools.same_log, "noise_rates": pools.rates},
        {"h": pools.scores, "folds": whole(2, 6), "random_state": pools.seed},
        setting=_LOG,
        weight=2,
    ),
    entry(
        "both(vr.AuditNoiseRates)",
        {"log": pools.same_log, "audit": pools.audit},
        {
            "method": one("'joint'", "'direct'"),
            "strata": whole(1, 12),
            "folds": whole(2, 6),
            "user_groups": one("np.arange(log.n_users) % 2", "None"),
            "item_groups": one("np.zeros(log.n_items, int)", "None"),
            "propensities": pools.propensities,
            "scores": pools.probabilities,
            "random_state": pools.seed,
        },
        setting=_LOG,
        weight=4,
    ),
    entry(
        "both(vr.ReaskNoiseRates)",
        {"log": pools.same_log, "reask": pools.reask},
        {
            "strata": whole(1, 12),
            "folds": whole(2, 6),
            "propensities": pools.propensities,
            "scores": pools.probabilities,
        },
        setting=_LOG,
        weight=3,
    ),
    entry(
        "both(vr.AnchorNoiseRates)",
        {"log": pools.same_log},
        {
            "rule": one("'extremes'", "'quantiles'", "'batches'"),
            "quantile": real(0.001, 0.4),
            "folds": whole(2, 6),
            "refits": one("1", "3"),
            "batches": whole(1, 12),
            "batch_size": one("1", "8", "2048"),
            "propensities": pools.propensities,
            "h": pools.probabilities,
            "predictions": pools.probabilities,
            "random_state": pools.seed,
        },
        setting=_LOG,
        weight=2,
    ),
    entry(
        "both(vr.LogisticPropensity)",
        {"log": pools.same_log},
        {"l2": one("None", ".1", "1e-9", "1e9"), "features": one("True", "False"), "floor": _FLOOR},
        setting=_LOG,
        weight=3,
    ),
    entry(
        "both(vr.PopularityPropensity)", {"log": pools.same_log}, {"power": real(0, 3), "floor": _FLOOR}, setting=_LOG
    ),
    entry(
        "both(vr.NaiveBayesPropensity)",
        {"log": pools.same_log},
        {"unbiased": one("log", "log_of(*log.shape, 99, 4)"), "floor": _FLOOR},
        setting=_LOG,
    ),
    entry("vr.ConstantPropensity().fit", {"log": pools.same_log}, setting=_LOG, weight=0.5),
    entry("vr.LoggedPropensity", {"log": pools.log_with("propensities")}, {"floor": _FLOOR}, setting=_LOG, weight=0.5),
    entry(
        "vr.GivenPropensity",
        {"values": one("np.full((3, 4), .2)", "np.ones((1, 1))", "[[.1, 1e-300]]", ".3")},
        {"floor": one("0", ".01"), "known": one("True", "False")},
    ),
    entry("found.at", _PAIRS, setting=_FITTED),
    entry("found.block", _PAIRS, setting=_FITTED),
    entry("found.diagnostics", {"log": pools.same_log}, setting=_FITTED),
    entry("found.count_floored", {"log": pools.same_log}, setting=_FITTED, weight=0.5),
    entry(
        "both(vr.LabelModel)",
        {"log": pools.same_log, "weights": one("np.ones(len(log))", "np.arange(len(log)) + .5")},
        {
            "penalty": one("10.", ".01", "1e6"),
            "sweeps": whole(1, 30),
            "tolerance": one("1e-5", "1e-12"),
            "rates": pools.rates,
        },
        setting=_LOG,
    ),
    entry(
        "suspects.to_frame",
        {},
        {"most": one("None", "0", "1", "5", "10**6")},
        setting=_LOG | {"suspects": one("vr.find_suspect_labels(log, vr.NoiseRates(.1, .2))")},
        weight=0.5,
    ),
]
