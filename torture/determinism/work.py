"""What is computed once more in each setting: `python -m torture.determinism.work ROW_ORDER ENGINE`, a JSON of numbers."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import numpy as np

import verirec as vr

METHODS = ("mf", "ips", "ome-dr", "dr-jl")
SHAPE = (60, 40)


def made_log(order: int) -> Any:
    """Make a log of the same rows, in one order or another."""
    world = vr.simulate.world(n_users=SHAPE[0], n_items=SHAPE[1], observed=0.3, random_state=5)
    log = world.log
    rows = np.arange(len(log)) if order == 0 else np.random.default_rng(order).permutation(len(log))
    return vr.FeedbackLog.from_arrays(
        log.users[rows], log.items[rows], log.labels[rows], n_users=SHAPE[0], n_items=SHAPE[1]
    )


def results(order: int, engine: str) -> dict[str, list[float]]:
    """Return numbers by name: estimates, noise rates, propensities, trained models, plans and lists."""
    log = made_log(order)
    random = np.random.default_rng(0)
    factors = vr.Factors(random.normal(size=(SHAPE[0], 3)), random.normal(size=(SHAPE[1], 3)))
    dense = random.uniform(0.05, 0.95, SHAPE)
    rates = vr.NoiseRates(0.1, 0.1)
    found: dict[str, Any] = {}
    with vr.engine.running_on(engine, 2 if engine != "serial" else None):
        for name, given in (("factors", factors), ("dense", dense)):
            for one, value in vr.estimate(given, log, noise_rates=rates, imputation="model", random_state=1).items():
                found[f"estimate {name} {one}"] = [value.value, *value.interval]
        drawn = vr.estimate(dense, log, interval="bootstrap", draws=30, random_state=1, estimators=("ips", "dr"))
        found["bootstrap"] = [end for value in drawn.values() for end in value.interval]
        found["ranking"] = [one.value for one in vr.estimate_ranking(dense, log, noise_rates=rates).values()]
        for method in METHODS:
            given = {"noise_rates": rates} if method.startswith("ome") else {}
            for solver in ("sweep", "gradient"):
                try:
                    made = vr.methods.catalogue[method](dim=3, epochs=4, solver=solver, random_state=3)
                    model = made.fit(log, **given).recommender_
                except vr.exceptions.VerirecError:
                    continue
                found[f"trained {method} {solver}"] = np.asarray(model.predict(np.arange(20), np.arange(20))).tolist()
        plan = vr.plan_labels(log, dense, budget=20, random_state=1)
        found["plan"] = [*map(float, plan.users), *map(float, plan.items), *plan.probabilities]
    found["anchors"] = [vr.AnchorNoiseRates().fit(log).rho01]
    return found


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(json.dumps(results(int(sys.argv[1]), sys.argv[2])))
