"""Entries of stars: logs that keep their levels, matrices of their noise, and what is judged by them."""

from __future__ import annotations

from torture.fuzz.calls import either, entry, filled, one, whole
from torture.fuzz.entries import pools

_LOG = {
    "log": filled(
        "stars_of({users}, {items}, {rows}, {seed}, {levels})",
        users=one("3", "8", "8", "13"),
        items=one("2", "7", "12"),
        rows=either(whole(1, 6), whole(20, 90)),
        seed=whole(0, 99),
        levels=one("(1, 2, 3, 4, 5)", "(1, 2, 3, 4, 5)", "(0, 1)", "(.5, 1, 1.5)", "(-1, 0, 7)", "tuple(range(12))"),
    )
}
_MATRIX = one(
    *["band_of(log)"] * 4,
    "np.eye(len(log.levels))",
    "np.full((len(log.levels),) * 2, 1 / len(log.levels))",
    "band_of(log, .6)",
    "np.eye(3)",
)
_AUDIT = filled("levels_asked(vr.AuditSample, log, {pairs}, {seed})", pairs=whole(1, 60), seed=whole(0, 99))
_SURVEY = filled("levels_surveyed(log, {pairs}, {seed})", pairs=either(whole(1, 9), whole(10, 60)), seed=whole(0, 99))
_PREDICTED = filled(
    "stars_predicted(log, {seed}, {form})",
    seed=whole(0, 99),
    form=one("'stars'", "'stars'", "'one'", "'outside'", "'factors'", "'distribution'", "'distribution'", "'rows'"),
)
_LOSS = one("'rmse'", "'mae'", "'squared'", "'absolute'", "'log'", "'rps'")
_HOW = {
    "noise_rates": filled("vr.TransitionMatrix({matrix})", matrix=_MATRIX),
    "audit": _AUDIT,
    "survey": _SURVEY,
    "estimators": one("None", "'all'", "'naive'", "['ips', 'dr']", "['ome-dr']", "'survey-ppi'", "['audited-dr']"),
    "propensities": pools.propensities,
    "confidence": pools.confidence,
    "clip": pools.clip,
    "random_state": pools.seed,
}

ENTRIES = [
    entry(
        "vr.estimate",
        {"predictions": _PREDICTED, "log": pools.same_log, "loss": _LOSS},
        _HOW | {"interval": one("'delta'", "'bootstrap'"), "draws": one("20")},
        setting=_LOG,
        weight=6,
    ),
    entry(
        "vr.compare",
        {"first": _PREDICTED, "second": _PREDICTED, "log": pools.same_log, "loss": _LOSS},
        _HOW,
        setting=_LOG,
        weight=3,
    ),
    entry("vr.TransitionMatrix", {"matrix": _MATRIX}, {"covariance": one("None", "np.zeros((20, 20))")}, setting=_LOG, weight=2),
    entry(
        "both(vr.AuditTransitionMatrix)",
        {"log": pools.same_log, "audit": _AUDIT},
        {"form": one("'auto'", "'free'", "'band'", "'symmetric'", "'ordinal'", "'x'")},
        setting=_LOG,
        weight=3,
    ),
    entry(
        "vr.simulate.stars",
        {"n_users": whole(1, 12), "n_items": whole(1, 12), "random_state": pools.seed},
        {"rank": whole(1, 3), "proportions": one("(.5, .5)", "(.2,) * 5", "(1,)", "(.5, .6)")},
        weight=1,
    ),
    entry(
        "vr.FeedbackLog.from_arrays",
        {
            "users": one("[0, 1, 2, 2]"),
            "items": one("[0, 1, 1, 2]"),
            "labels": one("[1, 5, 3, 2]", "[.5, 1, 4.5, 5]", "['1', '2', '3', '4']", "[0, 1, 2, 3]", "[1, 1, 1, 1]"),
            "n_users": one("3"),
            "n_items": one("4"),
            "levels": one("[1, 2, 3, 4, 5]", "np.arange(.5, 5.5, .5)", "[5, 4, 3, 2, 1]", "[1, 1]", "[1]", "range(6)"),
        },
        {"duplicates": one("'last'", "'highest'"), "positive_from": one("3")},
        weight=2,
    ),
]  # fmt: skip
