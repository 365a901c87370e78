"""Weighted ridge regression on a user's and an item's indicator, as one dense system with a free constant."""

from __future__ import annotations

import numpy as np


def ridge(users, items, labels, weights, penalty, n_users, n_items):
    """Give the constant, the users' constants and the items'."""
    design = np.zeros((len(labels), 1 + n_users + n_items))
    for row, (user, item) in enumerate(zip(users, items, strict=True)):
        design[row, 0] = design[row, 1 + user] = design[row, 1 + n_users + item] = 1
    penalties = np.diag([0.0] + [penalty] * (n_users + n_items))
    solved = np.linalg.solve(design.T @ np.diag(weights) @ design + penalties, design.T @ (weights * labels))
    return solved[0], solved[1 : 1 + n_users], solved[1 + n_users :]
