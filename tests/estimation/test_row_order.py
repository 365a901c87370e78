"""The same rows in another order give the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr

WORLD = vr.simulate.world(n_users=40, n_items=50, observed=0.3, random_state=0)
RATES = vr.NoiseRates(0.2, 0.1)


def turned(seed):
    """Give the world's log from rows in a random order."""
    log = WORLD.log
    order = np.random.default_rng(seed).permutation(len(log))
    columns = (column[order] for column in (log.users, log.items, log.labels))
    return vr.FeedbackLog.from_arrays(*columns, n_users=log.n_users, n_items=log.n_items)


RESULTS = {
    "imputation": lambda log: [
        (one.value, one.standard_error)
        for one in vr.estimate(WORLD.preferences, log, noise_rates=RATES, imputation="model", clip=1e-3).values()
    ],
    "ranking": lambda log: [one.value for one in vr.estimate_ranking(WORLD.preferences, log).values()],
    "label model": lambda log: vr.LabelModel().cross_fit(log, np.ones(len(log)), 5, 0).tolist(),
    "suspects": lambda log: vr.find_suspect_labels(log, RATES).to_frame().to_numpy().tolist(),
    "split": lambda log: vr.split(log, 0.3, random_state=0).held_out.to_frame().to_numpy().tolist(),
}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
def test_the_order_of_rows_changes_no_bit(result):
    assert result(turned(1)) == result(turned(2)) == result(WORLD.log)


@pytest.mark.parametrize("solver", ["gradient", "sweep"])
def test_a_model_is_the_same_whatever_the_order_of_its_rows(solver):
    one, other = (
        vr.methods.catalogue["mf"](solver=solver, epochs=2, dim=4).fit(turned(seed)).predictions for seed in (1, 2)
    )
    for name in ("user_factors", "item_factors", "user_constants", "item_constants", "constant"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
