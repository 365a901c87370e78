"""From a log to a recommender: what that takes."""

from __future__ import annotations

import verirec as vr
from held import HALF_A_NUMBER, held_a_row

RATES = vr.NoiseRates(0.2, 0.1)


def test_training_by_sweeps_holds_nothing_as_long_as_the_log(in_small_parts):
    method = vr.methods.OMEDR(dim=2, epochs=1, solver="sweep", validation=0, penalty_factors=1_000.0)
    assert held_a_row(lambda log: lambda: method.fit(log, noise_rates=RATES)) < HALF_A_NUMBER
