"""The true prediction inaccuracy by two loops over the grid."""

from __future__ import annotations

import math

LOSSES = {
    "log": lambda f, y: -math.log(f) if y == 1 else -math.log(1 - f),
    "squared": lambda f, y: (f - y) ** 2,
    "absolute": lambda f, y: abs(f - y),
}


def true_inaccuracy(predictions, true_labels, loss):
    total, cells = 0.0, 0
    for predicted_row, label_row in zip(predictions, true_labels, strict=True):
        for f, y in zip(predicted_row, label_row, strict=True):
            total += loss(float(f), int(y))
            cells += 1
    return total / cells


def logistic_factors(user_factors, item_factors, user_constants, item_constants, constant=0.0):
    """Give the matrix of predictions of a factor model, a cell at a time."""
    return [
        [
            1 / (1 + math.exp(-(sum(a * b for a, b in zip(u, v, strict=True)) + c + d + constant)))
            for v, d in zip(item_factors, item_constants, strict=True)
        ]
        for u, c in zip(user_factors, user_constants, strict=True)
    ]
