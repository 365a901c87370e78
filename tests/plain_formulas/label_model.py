"""The penalised loss of a logistic model with constants of users and items, a row at a time."""

from __future__ import annotations

import math


def penalised_loss(rows, weights, penalty, level, user_constants, item_constants):
    """Weighted log loss of (user, item, label) rows plus half the penalty times the squared constants."""
    total = 0.0
    for (user, item, label), weight in zip(rows, weights, strict=True):
        logit = level + user_constants[user] + item_constants[item]
        total += weight * (math.log1p(math.exp(logit)) - label * logit)
    for constant in (*user_constants, *item_constants):
        total += penalty * constant**2 / 2
    return total
