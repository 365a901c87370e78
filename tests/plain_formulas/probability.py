"""Metrics of probabilities, one pair at a time."""

from __future__ import annotations

import math
import sys


def log_loss(labels, probabilities):
    total = 0.0
    for label, probability in zip(labels, probabilities, strict=True):
        f = min(max(probability, sys.float_info.epsilon), 1 - sys.float_info.epsilon)
        total -= math.log(f) if label else math.log(1 - f)
    return total / len(labels)


def brier_score(labels, probabilities):
    return sum((f - label) ** 2 for label, f in zip(labels, probabilities, strict=True)) / len(labels)


def calibration_error(labels, probabilities, bins):
    """Sum over bins [b/B, (b+1)/B), the last one closed, of share x |mean prediction - mean label|."""
    total = 0.0
    for index in range(bins):
        last = index == bins - 1
        rows = [
            row
            for row, f in enumerate(probabilities)
            if index / bins <= f and (f < (index + 1) / bins or (last and f == 1))
        ]
        if rows:
            predicted = sum(probabilities[row] for row in rows) / len(rows)
            seen = sum(labels[row] for row in rows) / len(rows)
            total += len(rows) / len(labels) * abs(predicted - seen)
    return total
