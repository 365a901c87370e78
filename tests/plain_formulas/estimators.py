"""The sixteen estimators by loops over all cells of a grid, from the table of their numerators and denominators."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

PLAIN = ("naive", "eib", "ips", "snips", "dr", "mrdr", "sdr", "tdr")
DENOISED = ("ome", *(f"ome-{name}" for name in PLAIN[1:]))


@dataclass(frozen=True)
class Grid:
    """Predictions and propensities of all cells, the truth behind them, and the labels of the observed cells."""

    f: np.ndarray
    p: np.ndarray
    truth: np.ndarray
    labels: dict[tuple[int, int], int]

    @property
    def cells(self):
        return [(user, item) for user in range(self.f.shape[0]) for item in range(self.f.shape[1])]

    def rows(self):
        """Give the log's columns and the grid's size."""
        users, items = zip(*self.labels, strict=True)
        size = {"n_users": self.f.shape[0], "n_items": self.f.shape[1]}
        return {"users": users, "items": items, "labels": list(self.labels.values())} | size

    def observed_again(self, random, rho01=0.0, rho10=0.0):
        """Draw who rates what once more, and which labels are wrong."""
        seen = random.random(self.p.shape) < self.p
        wrong = random.random(self.p.shape) < np.where(self.truth == 1, rho01, rho10)
        labels = {(int(u), int(i)): int(self.truth[u, i] ^ wrong[u, i]) for u, i in zip(*np.nonzero(seen), strict=True)}
        return replace(self, labels=labels)


def small_grid(seed, shape=(9, 14), p=(0.25, 0.95), rho01=0.0, rho10=0.0):
    """Draw a grid whose propensities follow its preferences."""
    random = np.random.default_rng(seed)
    preference = random.uniform(0.05, 0.95, shape)
    bare = Grid(
        f=0.05 + 0.7 * (0.6 * preference + 0.4 * random.random(shape)),
        p=p[0] + (p[1] - p[0]) * (0.6 * preference + 0.4 * random.random(shape)),
        truth=(random.random(shape) < preference).astype(int),
        labels={},
    )
    return bare.observed_again(random, rho01, rho10)


def true_inaccuracy(grid, loss):
    return sum(loss(grid.f[cell], grid.truth[cell]) for cell in grid.cells) / len(grid.cells)


def corrected_error(f, label, loss, rho01, rho10):
    """Give the paper's surrogate error, whose mean over the noise is the true error."""
    kappa = 1 - rho01 - rho10
    if label == 1:
        return ((1 - rho10) * loss(f, 1) - rho01 * loss(f, 0)) / kappa
    return ((1 - rho01) * loss(f, 0) - rho10 * loss(f, 1)) / kappa


def imputed_label(name, grid, loss, rates):
    """Give the constant label that all cells are imputed with."""
    top = bottom = 0.0
    for cell, label in grid.labels.items():
        rho01, rho10 = rates(cell)
        weight = 1 / grid.p[cell]
        if name.endswith("mrdr"):
            weight = (1 - grid.p[cell]) / grid.p[cell] ** 2 * (loss(grid.f[cell], 1) - loss(grid.f[cell], 0)) ** 2
        top += weight * (label - rho10) / (1 - rho01 - rho10)
        bottom += weight
    return top / bottom


def estimate(name, grid, loss, rates=(0.0, 0.0), imputed=None):
    """Estimate the inaccuracy of a grid's predictions.

    `rates` is (rho01, rho10) or a function of the cell; the plain estimators take no notice of it. `imputed` gives the
    imputed error of a cell; by default it follows from a constant label.
    """
    of_cell = rates if callable(rates) else lambda cell: rates
    if name not in DENOISED:
        of_cell = lambda cell: (0.0, 0.0)  # noqa: E731
    errors = {cell: corrected_error(grid.f[cell], r, loss, *of_cell(cell)) for cell, r in grid.labels.items()}
    if imputed is None:
        g = imputed_label(name, grid, loss, of_cell)
        imputed = lambda cell: g * loss(grid.f[cell], 1) + (1 - g) * loss(grid.f[cell], 0)  # noqa: E731
    plain = "naive" if name == "ome" else name.removeprefix("ome-")
    return FORMULAS[plain](grid, errors, {cell: imputed(cell) for cell in grid.cells})


def naive(grid, errors, imputed):
    return _ratio(grid, errors, numerator=lambda c, o, e: o * e, denominator=lambda c, o: o)


def eib(grid, errors, imputed):
    return _ratio(grid, errors, lambda c, o, e: o * e + (1 - o) * imputed[c], lambda c, o: 1)


def ips(grid, errors, imputed):
    return _ratio(grid, errors, lambda c, o, e: o * e / grid.p[c], lambda c, o: 1)


def snips(grid, errors, imputed):
    return _ratio(grid, errors, lambda c, o, e: o * e / grid.p[c], lambda c, o: o / grid.p[c])


def dr(grid, errors, imputed):
    return _ratio(grid, errors, lambda c, o, e: imputed[c] + o * (e - imputed[c]) / grid.p[c], lambda c, o: 1)


def tdr(grid, errors, imputed):
    top = sum((1 / grid.p[c] - 1) * (e - imputed[c]) for c, e in errors.items())
    bottom = sum((1 / grid.p[c] - 1) ** 2 for c in errors)
    epsilon = top / bottom if bottom > 0 else 0.0
    return dr(grid, errors, {c: e + epsilon * (1 / grid.p[c] - 1) for c, e in imputed.items()})


def sdr(grid, errors, imputed):
    mean = sum(imputed.values()) / len(imputed)

    def inverse(cell, tilt):
        odds = grid.p[cell] / (1 - grid.p[cell]) if grid.p[cell] < 1 else math.inf
        return 1 + 1 / (odds * math.exp(tilt * (imputed[cell] - mean)))

    def imbalance(tilt):
        left = 0.0
        for cell in grid.cells:
            weight = inverse(cell, tilt) if cell in errors else 0.0
            left += (1 - weight) * (imputed[cell] - mean)
        return left

    # More tilt gives cells with a high imputed error less weight, so that what is left grows with it.
    low, high = -1.0, 1.0
    while imbalance(low) > 0 and low > -1e3:
        low *= 2
    while imbalance(high) < 0 and high < 1e3:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if imbalance(middle) < 0 else (low, middle)
    tilt = (low + high) / 2
    return _ratio(grid, errors, lambda c, o, e: o * e * inverse(c, tilt), lambda c, o: o * inverse(c, tilt))


FORMULAS = {"naive": naive, "eib": eib, "ips": ips, "snips": snips, "dr": dr, "mrdr": dr, "sdr": sdr, "tdr": tdr}


def _ratio(grid, errors, numerator, denominator):
    top = bottom = 0.0
    for cell in grid.cells:
        o = int(cell in errors)
        top += numerator(cell, o, errors.get(cell, 0.0))
        bottom += denominator(cell, o)
    return top / bottom
