"""Ranking metrics over a whole grid, and their estimates from a log, by loops over cells.

A grid is that of `plain_formulas.estimators`: f are the scores.
"""

from __future__ import annotations

import math


def names(k):
    return [f"{metric}@{k}" for metric in ("dcg", "ndcg", "precision", "recall")]


def places(scores, item):
    """Give the places that an item of a user shares with those that tie with it, counting from 0."""
    above = sum(1 for other in scores if other > scores[item])
    tied = sum(1 for other in scores if other == scores[item])
    return range(above, above + tied)


def gain_at(metric, place, k, n_items):
    """Give what a liked item adds at a place."""
    if place >= k:
        return 0.0
    discount = 1 / math.log2(place + 2)
    if metric == "dcg":
        return discount
    if metric == "ndcg":
        return discount / sum(1 / math.log2(j + 2) for j in range(min(k, n_items)))
    return 1 / k if metric == "precision" else 1.0


def gain(metric, scores, item, k):
    """Give what a liked item adds on average over all orders of tied items."""
    shared = places(scores, item)
    return sum(gain_at(metric, place, k, len(scores)) for place in shared) / len(shared)


def true_value(name, grid):
    """Give a metric where the truth of all cells is known."""
    if name == "auc":
        return _auc({cell: (1.0, float(grid.truth[cell])) for cell in grid.cells}, grid.f)
    metric, k = name.split("@")
    gained = sum(gain(metric, grid.f[cell[0]], cell[1], int(k)) * grid.truth[cell] for cell in grid.cells)
    return gained / (grid.truth.sum() if metric == "recall" else len(grid.f))


def estimate(name, grid, rates=(0.0, 0.0)):
    """Estimate a metric; `rates` is (rho01, rho10), or a function of the cell."""
    of_cell = rates if callable(rates) else lambda cell: rates
    weighted = {}
    for cell, label in grid.labels.items():
        rho01, rho10 = of_cell(cell)
        weighted[cell] = 1 / grid.p[cell], (label - rho10) / (1 - rho01 - rho10)
    if name == "auc":
        return _auc(weighted, grid.f)
    metric, k = name.split("@")
    top = _doubly_robust(grid, weighted, lambda cell: gain(metric, grid.f[cell[0]], cell[1], int(k)))
    if metric == "recall":
        return top / _doubly_robust(grid, weighted, lambda cell: 1.0)
    return top / len(grid.f)


def _doubly_robust(grid, weighted, gain_of):
    """Estimate the sum over all cells of what the liked ones gain, with one imputed label."""
    imputed = sum(w * label for w, label in weighted.values()) / sum(w for w, _ in weighted.values())
    total = 0.0
    for cell in grid.cells:
        total += imputed * gain_of(cell)
        if cell in weighted:
            w, label = weighted[cell]
            total += w * (label - imputed) * gain_of(cell)
    return total


def _auc(weighted, scores):
    top = bottom = 0.0
    for one, (w, label) in weighted.items():
        for other, (v, opposite) in weighted.items():
            if one != other:
                comparison = w * v * label * (1 - opposite)
                bottom += comparison
                top += comparison * (0.5 if scores[one] == scores[other] else float(scores[one] > scores[other]))
    return top / bottom
