"""The paper's theory by loops over cells and by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np


def surrogate_error(f, label, loss, rho01, rho10):
    """Give the noise-corrected error of a logged label."""
    kappa = 1 - rho01 - rho10
    if label == 1:
        return ((1 - rho10) * loss(f, 1) - rho01 * loss(f, 0)) / kappa
    return ((1 - rho01) * loss(f, 0) - rho10 * loss(f, 1)) / kappa


def expected_ome_dr(f, truth, p, learnt, imputed, rates, used, loss):
    """Give the mean of OME-DR over who rates what and over noise, each cell's outcomes one by one."""
    total = 0.0
    for cell in np.ndindex(f.shape):
        for observed in (0, 1):
            for label in (0, 1):
                flipped = label != truth[cell]
                rate = rates[0] if truth[cell] == 1 else rates[1]
                chance = (p[cell] if observed else 1 - p[cell]) * (rate if flipped else 1 - rate)
                value = imputed[cell]
                if observed:
                    value += (surrogate_error(f[cell], label, loss, *used) - imputed[cell]) / learnt[cell]
                total += chance * value
    return total / f.size


def true_inaccuracy(f, truth, loss):
    return sum(loss(f[cell], truth[cell]) for cell in np.ndindex(f.shape)) / f.size


def draw_ome_dr(f, truth, p, learnt, imputed, rates, used, loss, random):
    """Draw who rates what and what they say, and estimate."""
    observed = random.random(f.shape) < p
    labels = truth ^ (random.random(f.shape) < np.where(truth == 1, *rates))
    kappa = 1 - used[0] - used[1]
    corrected = (labels - used[1]) / kappa
    errors = corrected * loss(f, 1) + (1 - corrected) * loss(f, 0)
    return float((imputed + observed * (errors - imputed) / learnt).mean())


def steepest_slope(loss, rates, points):
    """Give the largest slope of either surrogate between neighbouring points."""
    slopes = []
    for label in (0, 1):
        values = [surrogate_error(f, label, loss, *rates) for f in points]
        slopes += [abs(b - a) / (y - x) for (a, b), (x, y) in zip(_pairs(values), _pairs(points), strict=True)]
    return max(slopes)


def largest_surrogate(loss, rates, points):
    return max(abs(surrogate_error(f, label, loss, *rates)) for f in points for label in (0, 1))


def mean_spectral_norm(n_users, n_items):
    """Average the spectral norm over all matrices of signs."""
    norms = [
        np.linalg.norm(np.reshape(signs, (n_users, n_items)), 2)
        for signs in itertools.product((-1, 1), repeat=n_users * n_items)
    ]
    return sum(norms) / len(norms)


def generalisation_bound(estimate, bias, complexity, constant, rates, floor, loss_bound, n_cells, eta, tight):
    kappa = 1 - rates[0] - rates[1]
    surrogate = (1 + abs(rates[0] - rates[1]) if tight else 2) * constant / kappa
    deviation = math.sqrt(2 * math.log(4 / eta) / n_cells)
    inside = 2 * surrogate * complexity + (loss_bound + 2 * surrogate) * deviation
    return estimate + abs(bias) + (1 + 2 / floor) * inside


def _pairs(values):
    return list(itertools.pairwise(values))
