"""Plain versions of what training on levels minimises: loops, and dense normal equations."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np


def level_chances(score, thresholds):
    """Return the chance of each level, by differences of sigmoids."""
    reached = [1.0, *(1 / (1 + math.exp(-(score + one))) for one in thresholds), 0.0]
    return [high - low for high, low in pairwise(reached)]


def logged_chance(score, thresholds, matrix, level):
    """Return the chance of a logged level, given how often each true one is logged as it."""
    return sum(matrix[true][level] * chance for true, chance in enumerate(level_chances(score, thresholds)))


def user_by_rows(items, weights, labels, constant, item_factors, item_constants, ridges):
    """Minimise sum w (z - y)^2 / 2 and a user's penalties over [constant, factors], the items' being given."""
    inputs = np.column_stack([np.ones(len(items)), item_factors[items]])
    matrix, right = np.diag(ridges), np.zeros(inputs.shape[1])
    for row, item in enumerate(items):
        left = labels[row] - constant - item_constants[item]
        matrix = matrix + weights[row] * np.outer(inputs[row], inputs[row])
        right = right + weights[row] * left * inputs[row]
    return np.linalg.solve(matrix, right)


def user_on_grid(rated, weights, labels, imputed, constant, item_factors, item_constants, ridges):
    """Minimise the sum over all items of (z - g)^2 / 2, and that of rows of -w (y - g) z."""
    inputs = np.column_stack([np.ones(len(item_factors)), item_factors])
    matrix, right = np.diag(ridges), np.zeros(inputs.shape[1])
    for item in range(len(inputs)):
        matrix = matrix + np.outer(inputs[item], inputs[item])
        right = right + (imputed - constant - item_constants[item]) * inputs[item]
    for row, item in enumerate(rated):
        right = right + weights[row] * (labels[row] - imputed) * inputs[item]
    return np.linalg.solve(matrix, right)
