"""Entries of the methods, and of the recommenders that they leave."""

from __future__ import annotations

import verirec as vr
from torture.fuzz.calls import either, entry, filled, one, real, whole
from torture.fuzz.entries import pools

_LOG = {"log": pools.log}
_PARAMETERS = {
    "dim": one("0", "1", "2", "3"),
    "model": one("'mf'", "'features'", "'ncf'", "'constants'"),
    "constants": one("True", "False"),
    "loss": one("'log'", "'squared'"),
    "penalty_factors": one("None", "0.", "1.", "1e6"),
    "penalty_constants": one("4.", "0.", "1e6"),
    "penalty_users": one("None", "1."),
    "covariates": one("None", "'propensity'", "'none'"),
    "solver": one("'auto'", "'gradient'", "'sweep'"),
    "learning_rate": one(".01", "10.", "1e-9"),
    "batch_size": one("1", "7", "2048"),
    "grid_cells": one("1", "50"),
    "patience": one("None", "1", "3"),
    "refit": one("True", "False"),
    "validation_estimator": one("None", "'naive'", "'ips'", "'dr'"),
    "correction": one("'none'", "'surrogate'"),
    "anchors": one("'fixed'", "'batch'", "'epoch'"),
    "refresh_after": whole(1, 3),
    "random_state": whole(0, 9),
}
_FIT = {
    "noise_rates": pools.rates,
    "audit": pools.audit,
    "propensities": pools.propensities,
    "survey": pools.survey,
}
_NAMES = [name for name in vr.methods.catalogue if name != "auto"]
_TRAINED = {
    "trained_": filled(
        "trained({method}, {seed}, {model})",
        method=one("'mf'", "'ome-dr'"),
        seed=whole(0, 1),
        model=one("'mf'", "'features'", "'ncf'"),
    )
}
_USERS = one(
    "['u0', 'u1']", "['u5']", "np.array(['u1', 'u2'])", "trained_.user_ids.ids()", "[]", "['u0', 'u0']", "'u0'"
)
_ITEMS = one("['u0', 'u1']", "trained_.item_ids.ids()[:2]", "['u6', 'u6']")
_NEW = either(
    filled("log_of(4, 7, {rows}, {seed}, 'user_features', ids='names')", rows=whole(1, 20), seed=whole(0, 99)),
    pools.log,
)

ENTRIES = [
    entry(
        lambda random: f"both(vr.methods.catalogue[{_NAMES[random.integers(len(_NAMES))]!r}])",
        {"log": pools.same_log, "epochs": one("1", "2", "2"), "dim": one("1", "2"), "validation": one("0", "0", ".2")},
        {name: pool for name, pool in (_PARAMETERS | _FIT).items() if name != "dim"},
        setting=_LOG,
        weight=10,
    ),
    entry(
        "both(vr.methods.catalogue['auto'])",
        {"log": pools.same_log, "trials": one("1", "2"), "folds": one("2", "3")},
        {"objective": one("'ranking'", "'probability'"), **_FIT},
        setting=_LOG,
        weight=0.3,
    ),
    entry(
        "vr.methods.tune",
        {
            "method": one("vr.methods.catalogue['mf'](dim=1, epochs=1)"),
            "log": pools.same_log,
            "trials": one("1", "2"),
            "folds": one("2"),
        },
        {"objective": one("'ranking'", "'probability'"), "noise_rates": pools.rates},
        setting=_LOG,
        weight=0.3,
    ),
    entry(
        "vr.methods.fit_path",
        {
            "method": one(
                "vr.methods.catalogue['mf'](dim=1, epochs=1)", "vr.methods.catalogue['ome-dr'](dim=2, epochs=1)"
            ),
            "log": pools.same_log,
            "values": one("[1., .1]", "(5,)", "np.geomspace(1, 10, 3)"),
        },
        {"parameter": one("'penalty_factors'", "'penalty_constants'"), "noise_rates": pools.rates},
        setting=_LOG,
    ),
    entry(
        "trained_.predict",
        {"users": one("['u0', 'u1']", "np.array(['u1', 'u2'])", "trained_.user_ids.ids([0, 3])"), "items": _ITEMS},
        setting=_TRAINED,
        weight=2,
    ),
    entry("trained_.recommend", {"users": _USERS, "k": whole(1, 7)}, {"exclude": _NEW}, setting=_TRAINED, weight=3),
    entry("trained_.similar_items", {"item": one("'u0'", "'u6'"), "k": whole(1, 6)}, {}, setting=_TRAINED),
    entry("trained_.fold_in", {"ratings": _NEW}, setting=_TRAINED, weight=2),
    entry("trained_.predictions_for", {"log": _NEW}, setting=_TRAINED),
    entry(
        "trained_.calibrated",
        {"survey": filled("survey_of(trained_, {pairs}, {seed})", pairs=whole(1, 30), seed=whole(0, 9))},
        {"noise_rates": pools.rates},
        setting=_TRAINED,
    ),
    entry(
        "trained_.save",
        {"folder": one("FOLDER / 'saved'", "str(FOLDER / 'a' / 'b')", "FOLDER / ('n' * 200)")},
        setting=_TRAINED,
        weight=0.5,
    ),
    entry(
        "vr.load",
        {
            "folder": one(
                "folder_of(trained())", "folder_of(trained('ome-dr', 1, 'ncf'))", "str(FOLDER)", "FOLDER / 'none'"
            )
        },
        weight=0.5,
    ),
    entry(
        "vr.load",
        {
            "folder": filled(
                "folder_of(trained('mf', 0, {model}), {{{key!s}: {value}}}{drop})",
                model=one("'mf'", "'features'", "'ncf'"),
                key=one(
                    "'user_ids'",
                    "'item_ids'",
                    "'model'",
                    "'noise_rates'",
                    "'calibration'",
                    "'user_scale'",
                    "'parameters'",
                    "'history'",
                    "'report'",
                    "'a'",
                ),
                value=one(
                    "None",
                    "[]",
                    "{}",
                    "'a'",
                    "1e999",
                    "[1, 2]",
                    "{'kind': 'mf', 'dim': 10**9, 'constants': True}",
                    "[['a']]",
                    "True",
                    "{'rates': [[2, 3]]}",
                    "-1",
                    "['u0'] * 6",
                    "list(range(6))",
                ),
                drop=one("", "", ", drop='cold_users'", ", drop='user_factors'"),
            )
        },
        weight=2,
    ),
    entry(
        "vr.load",
        {"folder": filled("folder_of(trained('mf', 0, 'features'), hurt_by={seed})", seed=whole(0, 10**6))},
        weight=2,
    ),
    entry("trained_.recommend(['u0', 'u1'], 3).to_frame", setting=_TRAINED, weight=0.3),
    entry(
        "vr.methods.catalogue['mf']().fit",
        {
            "log": pools.same_log,
            "resume": one("True", "False"),
            "checkpoint": one("FOLDER / 'c.safetensors'", "written('c.safetensors', b'x')", "None"),
        },
        {"noise_rates": pools.rates},
        setting=_LOG,
        weight=0.5,
    ),
    entry(
        "both(vr.methods.catalogue['mf'], 'get_params')",
        {},
        {"penalty_items": real(0, 5), "h": one("None", "scores_of(log_of(), 1)")},
        weight=0.3,
    ),
]
