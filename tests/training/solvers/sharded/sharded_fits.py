"""Small logs in many shards, and what training leaves of them."""

from __future__ import annotations

import verirec as vr

RATES = vr.NoiseRates(0.2, 0.1)
# Items and users without rows, too; the second grid is too large to be looked at whole.
LOGS = {
    shape: vr.simulate.world(*shape, observed=observed, noise_rates=RATES, random_state=0).log
    for shape, observed in (((130, 60), 0.06), ((900, 400), 0.012))
}
SOME = {"epochs": 5, "dim": 3, "solver": "sweep"}


def model_bits(method):
    states = {kind: model.state_dict() for kind, model in method.models_.items()}
    return {(kind, one): value.numpy().tobytes() for kind, state in states.items() for one, value in state.items()}


def fitted(name, log, engine, noise_rates=RATES, **parameters):
    """Train; returns the bits of all models, and the history."""
    method = vr.methods.catalogue[name](**{**SOME, **parameters})
    method.fit(log, noise_rates=noise_rates, engine=engine)
    return model_bits(method), method.report_.history
