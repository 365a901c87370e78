"""The paper's surrogate error (Section 3.2), an observation at a time."""

from __future__ import annotations


def surrogate(r, if_positive, if_negative, rho01, rho10):
    kappa = 1 - rho01 - rho10
    if r == 1:
        return ((1 - rho10) * if_positive - rho01 * if_negative) / kappa
    return ((1 - rho01) * if_negative - rho10 * if_positive) / kappa


def chance(r, r_star, rho01, rho10):
    """Give P(r | r*)."""
    flips = rho01 if r_star == 1 else rho10
    return 1 - flips if r == r_star else flips
