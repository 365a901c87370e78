"""Entries of estimation, assessment and plans."""

from __future__ import annotations

from torture.fuzz.calls import either, entry, filled, one, real, whole
from torture.fuzz.entries import pools

_LOG = {"log": pools.log}
_HOW = {
    "propensities": pools.propensities,
    "noise_rates": pools.noise,
    "audit": pools.audit,
    "survey": pools.survey,
    "exclude": pools.exclude,
    "confidence": pools.confidence,
}
_ERRORS = _HOW | {
    "selection": pools.selection,
    "estimators": pools.estimators,
    "loss": pools.loss,
    "imputation": one("'constant'", "'model'", "scores_of(log, 3)"),
    "clip": pools.clip,
    "sample": pools.sample,
    "random_state": pools.seed,
}
_NAMED = filled("{{{name}: {scores}}}", name=one("'a'", "'<b>'", "'é'", "'=1'"), scores=pools.scores)
_TWO = filled("{{'a': {first}, 'b': {second}}}", first=pools.probabilities, second=pools.scores)
_PLAN = {
    "recommenders": either(_NAMED, _TWO, pools.probabilities),
    "purpose": one("'level'", "'difference'", "'ndcg@2'", "'ndcg@1000'"),
    "confidence": pools.confidence,
    "pilot": pools.survey,
    "exclude": pools.exclude,
    "propensities": pools.propensities,
    "guess": pools.rates,
    "loss": pools.loss,
    "clip": pools.clip,
    "random_state": pools.seed,
}

ENTRIES = [
    entry(
        "vr.estimate",
        {"predictions": pools.scores, "log": pools.same_log},
        _ERRORS | {"interval": one("'delta'", "'bootstrap'"), "draws": one("20", "30"), "contributions": one("True")},
        setting=_LOG,
        weight=16,
    ),
    entry(
        "vr.compare",
        {"first": pools.probabilities, "second": pools.scores, "log": pools.same_log},
        _ERRORS,
        setting=_LOG,
        weight=8,
    ),
    entry(
        "vr.estimate_ranking",
        {"scores": pools.scores, "log": pools.same_log},
        _HOW | {"k": one("1", "5", "[1, 3]", "1000", "range(1, 4)")},
        setting=_LOG,
        weight=8,
    ),
    entry(
        "vr.compare_rankings",
        {"first": pools.scores, "second": pools.scores, "log": pools.same_log},
        _HOW | {"k": one("1", "5", "[1, 3]", "1000", "range(1, 4)")},
        setting=_LOG,
        weight=4,
    ),
    entry(
        "vr.sensitivity",
        {"predictions": either(pools.probabilities, _TWO), "log": pools.same_log},
        {
            **{
                name: _ERRORS[name] for name in ("propensities", "loss", "imputation", "clip", "sample", "random_state")
            },
            "noise_rates": pools.noise,
            "estimator": one("'ome-dr'", "'ome-ips'", "'ome'", "'ome-snips'"),
            "rho01": one("[0, .1, .2]", "np.linspace(0, .5, 3)", "[0]"),
            "rho10": one("[0, .1]", "[.45]"),
            "gammas": one("(1.0, 2.0)", "[1]", "(1, 1e6)"),
        },
        setting=_LOG,
        weight=4,
    ),
    entry(
        "vr.calibrate",
        {"scores": pools.scores, "log": pools.same_log},
        {"survey": pools.survey, "method": one("'platt'", "'isotonic'")},
        setting=_LOG,
        weight=3,
    ),
    entry(
        "vr.selection_strength",
        {"log": pools.same_log, "survey": pools.survey},
        {name: _HOW[name] for name in ("noise_rates", "propensities", "exclude", "confidence")},
        setting=_LOG,
        weight=3,
    ),
    entry(
        "vr.plan_labels",
        {"log": pools.same_log, "budget": one("10", "12", "20", "10**6")},
        _PLAN,
        setting=_LOG,
        weight=4,
    ),
    entry(
        "vr.plan_labels",
        {"log": pools.same_log, "half_width": one(".5", ".2", ".05", "1e-9")},
        _PLAN,
        setting=_LOG,
        weight=2,
    ),
    entry(
        "plan.survey",
        {"true_labels": one("np.arange(len(plan)) % 2", "[1] * len(plan)", "np.ones(len(plan), bool)")},
        {"clusters": one("plan.users"), "noisy": one("True")},
        setting=_LOG
        | {"plan": filled("vr.plan_labels(log, {one}, budget={n})", one=pools.probabilities, n=whole(10, 12))},
    ),
    entry(
        "plan.audit",
        {"true_labels": one("np.arange(len(plan)) % 2", "[0] * len(plan)")},
        setting=_LOG | {"plan": filled("vr.plan_labels(log, budget={n})", n=whole(10, 20))},
    ),
    entry(
        "vr.assess",
        {"log": pools.same_log, "predictions": either(_NAMED, _TWO)},
        {name: pool for name, pool in _ERRORS.items() if name not in ("estimators", "imputation")}
        | {
            "noise_rates": pools.rates,
            "hold_out": real(0.1, 0.6),
            "k": whole(1, 5),
            "calibrate": one("'platt'", "'isotonic'"),
        },
        setting=_LOG,
        weight=0.35,
    ),
    entry("vr.SelectionRange", {}, {"low": real(-3, 3), "high": real(0, 6)}),
    entry(
        "found.to_frame",
        setting=_LOG | {"found": filled("vr.estimate({one}, log)", one=pools.probabilities)},
        weight=0.5,
    ),
]
