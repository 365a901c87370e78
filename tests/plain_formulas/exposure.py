"""Which items are rated together, by loops: each item's column regressed on all others, a pair at a time left out."""

from __future__ import annotations

import numpy as np


def co_rating(rated, user, item, ridge):
    """The score of a pair in the model that is fitted as if the pair had not been rated."""
    without = rated.astype(float).copy()
    without[user, item] = 0
    others = [one for one in range(rated.shape[1]) if one != item]
    inputs, target = without[:, others], without[:, item]
    weights = np.linalg.solve(inputs.T @ inputs + ridge * np.eye(len(others)), inputs.T @ target)
    return float(without[user, others] @ weights)


def rating_logit(rated, user, item, steps=200):
    """The two-way logit of a pair in the model that is fitted as if the pair had not been rated, by Newton."""
    without = rated.astype(float).copy()
    without[user, item] = 0
    n, m = rated.shape
    a, b = np.zeros(n), np.zeros(m)
    for _ in range(steps):
        for axis, own in ((1, a), (0, b)):
            p = 1 / (1 + np.exp(-(a[:, None] + b)))
            own += (without - p).sum(axis) / np.maximum((p * (1 - p)).sum(axis), 1e-9)
    return float(a[user] + b[item])
