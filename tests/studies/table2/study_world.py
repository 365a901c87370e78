"""A small problem whose studies take seconds."""

from __future__ import annotations

import numpy as np

from verirec import FeedbackLog, simulate
from verirec.losses import NoiseRates
from verirec.studies.table2 import Problem, Study

STUDY = Study(methods=("mf", "ome-ips"), forms=("constants",), by_log=(), trials=3, seeds=2)


def small_problem(*, features: bool = False, seed: int = 0) -> Problem:
    world = simulate.world(n_users=60, n_items=50, observed=0.2, noise_rates=NoiseRates(0.0, 0.0), random_state=seed)
    random = np.random.default_rng(seed)
    users = np.repeat(np.arange(60), 8)
    items = np.concatenate([random.choice(50, 8, replace=False) for _ in range(60)])
    more = {}
    if features:
        more = {"user_features": random.normal(size=(60, 3)), "item_features": random.integers(2, size=(50, 4))}
    labels = world.true_labels[users, items]
    log = world.log
    train = FeedbackLog.from_arrays(log.users, log.items, log.labels, n_users=60, n_items=50, **more)
    return Problem("coat", train, FeedbackLog.from_arrays(users, items, labels, n_users=60, n_items=50, **more))


def lasting(rows):
    """Give runs without what differs from one time to the next."""
    return {
        key: {name: value for name, value in row.items() if name not in ("seconds", "cpu_seconds")}
        for key, row in rows.items()
    }
