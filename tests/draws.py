"""How draws are held against the probabilities they claim to have."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm


def z_scores(outcomes, probabilities, groups=None):
    """Standardise the number of successes of independent 0/1 draws, over all of them or group by group."""
    outcomes, probabilities = np.ravel(outcomes).astype(float), np.ravel(probabilities)
    groups = np.zeros(outcomes.size, int) if groups is None else np.ravel(groups)
    excess = np.bincount(groups, outcomes - probabilities)
    variance = np.bincount(groups, probabilities * (1 - probabilities))
    return excess[variance > 0] / np.sqrt(variance[variance > 0])


def largest_z(count: int, level: float = 1e-3) -> float:
    """Bound the largest of `count` absolute z-scores (Bonferroni)."""
    return float(norm.isf(level / (2 * count)))


def fits(z) -> bool:
    """Tell whether no z-score is out of bounds."""
    return bool(np.abs(z).max() < largest_z(np.size(z)))


def bins_of(values, count: int):
    """Part cells into `count` bins of equal size by their value."""
    flat = np.ravel(values)
    bins = np.empty(flat.size, int)
    bins[np.argsort(flat, kind="stable")] = np.arange(flat.size) * count // flat.size
    return bins
