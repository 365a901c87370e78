"""Calls that ended in a raw exception, a foreign warning or a NaN without a word when they were found, each reduced."""

from __future__ import annotations

import pytest
from torture.fuzz import judge, material
from torture.fuzz.calls import Call

LOG = {"log": "log_of()"}
SCORES = {"predictions": "scores_of(log)", "log": "log"}
FOUND = [
    Call("vr.metrics.evaluate", LOG, {"scores": "scores_of(log)", "test_log": "log", "k": "torch.as_tensor(5)"}),
    Call("vr.metrics.evaluate", LOG, {"scores": "scores_of(log)", "test_log": "log", "k": "scipy.sparse.eye(3)"}),
    Call("vr.plan_labels", LOG, {"log": "log", "half_width": ".1", "recommenders": "scores_of(log)", "guess": "(1,)"}),
    Call("vr.plan_labels", LOG, {"log": "log", "half_width": "1e-320", "recommenders": "scores_of(log)"}),
    Call(
        "vr.theory.lipschitz_constant", {}, {"constant": "2.", "rates": "vr.NoiseRates(.1, .2)", "tight": "np.eye(2)"}
    ),
    Call("vr.IdMap.of", {}, {"ids": "['a', 'b']", "from_text": "pd.NA"}),
    Call("vr.estimate", LOG, {**SCORES, "noise_rates": "vr.NoiseRegion(.2, .1)", "survey": "object()"}),
    Call("vr.simulate.world", {}, {"n_users": "5", "n_items": "6", "rank": "2**31"}),
    Call(
        "vr.methods.fit_path", LOG, {"method": "vr.methods.catalogue['mf']()", "log": "log", "values": "np.array(nan)"}
    ),
    Call(
        "vr.read_log",
        {},
        {
            "path": "written('l.csv', b'user,item,rating\\nu,i,1\\n')",
            "user_features": "written('f.csv', b'user,x,x\\nu,1,1\\n')",
        },
    ),
    Call("vr.sensitivity", LOG, {**SCORES, "gammas": "np.asarray([1]) * 1e300"}),
    Call("vr.load_dataset", {}, {"name": "'yahoo-r3'", "download": "np.append(False, 0)"}),
    Call(
        "vr.estimate_ranking",
        {"log": "log_of(3, 5, 5, 159)"},
        {"scores": "scores_of(log)", "log": "log", "audit": "asked_of(vr.AuditSample, log, 10, 53)", "k": "1"},
    ),
    Call(
        "vr.estimate",
        {"log": "log_of(5, 8, 16, 795)"},
        {
            "predictions": "scores_of(log, 9, 'identity')",
            "log": "log",
            "survey": "survey_of(log, 41, 80, 'noisy')",
            "audit": "asked_of(vr.AuditSample, log, 40, 6)",
            "estimators": "'all'",
            "loss": "'squared'",
        },
    ),
    Call("vr.sensitivity", LOG, {**SCORES, "gammas": "np.array(nan)"}),
    Call(
        "vr.methods.catalogue['mf']().fit",
        LOG,
        {"log": "log", "resume": "Broken()", "checkpoint": "written('c.safetensors', b'')"},
    ),
    Call(
        "vr.selection_strength",
        {"log": "log_of(5, 5, 11, 25)"},
        {
            "log": "log",
            "survey": "survey_of(log, 4, 87, 'one class')",
            "noise_rates": "vr.NoiseRates(.289, .234)",
            "exclude": "log.select([0])",
            "confidence": ".999",
        },
    ),
    Call(
        "vr.prepare_log",
        {},
        {"paths": "written('l.csv', b'user,item,rating\\nu,i,1\\nv,i,0\\n')", "out": "np.array('')"},
    ),
    Call("vr.prepare_log", {}, {"paths": "written('l.csv', b'user,item,rating\\nu,i,1\\nv,i,0\\n')", "out": "''"}),
    *(
        Call("vr.check_file", {}, {"path": "written('l.csv', b'user,item,rating\\nu,i,1\\nv,i,0\\n')", **odd})
        for odd in (
            {"encoding": "'utf-16'"},
            {"encoding": "'no'"},
            {"encoding": "nan"},
            {"delimiter": "nan"},
            {"clean_ids": "np.array([True, False])"},
            {"drop_missing": "strided(True)", "scale": "-np.asarray((0, 1))"},
        )
    ),
    Call("vr.check_file", {}, {"path": "np.float16(.1)"}),
    Call("vr.check_file", {}, {"path": "written('l.csv.gz', gzip.compress(b'user,item,rating\\nu,i,1\\n', 1) + b'x')"}),
    Call("verb('check')", {}, {"_log": "written('l.csv', b'user,item,rating\\n')", "json": "True"}),
    Call(
        "vr.estimate",
        {"log": "stars_of(8, 2, 85, 10, (0, 1))"},
        {"predictions": "stars_predicted(log)", "log": "log", "loss": "lambda *given: given"},
    ),
    Call(
        "vr.theory.generalisation_bound",
        {},
        {
            "estimate": ".3",
            "bias": ".3",
            "complexity": "0",
            "constant": ".2",
            "rates": "vr.NoiseRates(.2, .4)",
            "propensity_floor": ".01",
            "loss_bound": "5",
            "n_cells": "10**400",
        },
    ),
    Call(
        "vr.scan_log",
        {},
        {"paths": "written('l.csv', b'user,item,rating\\nu,i,1\\n')", "positive_from": "np.asarray(1) + 1"},
    ),
    Call("vr.scan_log", {}, {"paths": "written('l.csv', b'user,item,rating\\nu,i,1\\n')", "user": "pd.Series('user')"}),
    Call("vr.check_file", {}, {"path": "written('l.csv', b'user,item,rating\\nu,i,1\\n')", "scale": "np.eye(3)"}),
    Call("vr.check_file", {}, {"path": "'x' * 5000"}),
    Call("vr.estimate", LOG, {**SCORES, "estimators": "scipy.sparse.eye(3)"}),
    Call("vr.sensitivity", LOG, {**SCORES, "gammas": "Nested()"}),
    Call("vr.plan_labels", LOG, {"log": "log", "half_width": "5e299", "recommenders": "scores_of(log)"}),
    Call("both(vr.AnchorNoiseRates)", LOG, {"log": "log", "refits": "10**400"}),
    Call("trained('mf').save", {}, {"folder": "'\\ud800'"}),
    Call("vr.scan_log", {}, {"paths": "'x' * 5000"}),
    Call("vr.check_file", {}, {"path": "written('a.csv', b'')", "encoding": "'\\0'"}),
    Call("vr.methods.catalogue['mf']().fit", LOG, {"log": "log", "checkpoint": "'\\ud800'"}),
    Call("both(vr.methods.catalogue['ips'])", LOG, {"log": "log", "dim": "0", "constants": "False"}),
]


@pytest.mark.parametrize("call", FOUND, ids=str)
def test_it_is_a_defect_no_more(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    material.use_folder(tmp_path)
    outcome = judge.judged(call)
    assert outcome.kind in ("result", "refused"), outcome.detail
