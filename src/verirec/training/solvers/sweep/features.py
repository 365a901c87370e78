"""Weights of features: few, of all pairs at once, improved by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

from verirec.training.solvers.sweep.factor_blocks import FactorBlocks, Features
from verirec.training.solvers.sweep.grid_gradient import CURVATURE, Imputed, Sigmoids, gradient_of_grid
from verirec.training.solvers.sweep.majorizers import Majorizer
from verirec.training.solvers.sweep.rows import Rows

_STEPS: Final = 8


def improve_features(factors: FactorBlocks, rows: Rows, above: Majorizer, damping: float = 1.0) -> None:
    """Lower the loss of the rows by the weights of features, on the quadratic above it."""
    features = _features(factors)

    def curved_along(matrix: Tensor) -> Tensor:
        along = rows.inner(features.users @ matrix, features.items).mul_(above.levels).mul_(above.curvature)
        return _spread(features, rows, along)

    _improve(factors, _spread(features, rows, above.slopes), curved_along, damping)


def improve_features_on_grid(
    factors: FactorBlocks, g: Imputed, rows: Rows, linear: Tensor, chosen: Tensor | None, damping: float = 1.0
) -> Tensor:
    """Lower the loss of the grid by the weights of features; gives the grid's as it was: see `Sweeper.on_grid`."""
    features = _features(factors)
    grid, gram = gradient_of_grid(Sigmoids(factors), g, 0, chosen, features.items), features.items.T @ features.items
    slope = -_spread(features, rows, linear)
    for of_part in rows.pool.map(lambda part: features.users[part].T @ grid.of(part), grid.parts()):
        slope += of_part
    users, loss = features.users.T @ features.users, grid.loss()
    _improve(factors, slope, lambda matrix: CURVATURE * (users @ matrix @ gram), damping)
    return loss


def _features(factors: FactorBlocks) -> Features:
    assert factors.features is not None  # noqa: S101
    return factors.features


def _spread(features: Features, rows: Rows, values: Tensor) -> Tensor:
    """Add up values of rows times the products of their features."""

    def of_part(part: slice) -> Tensor:
        return features.users[part].T @ rows.gather(features.items, values, part)

    return torch.stack(rows.pool.map(of_part, rows.parts)).sum(0)


def _improve(factors: FactorBlocks, slope: Tensor, curved_along: Callable[[Tensor], Tensor], damping: float) -> None:
    """Take conjugate gradient steps from where the weights are."""
    features = _features(factors)
    weights = features.weights
    left = [part + features.ridge * own for part, own in zip(features.parts(slope), weights, strict=True)]
    direction = [-part for part in left]
    size = _product(left, left)
    start = size
    for _ in range(_STEPS):
        if not size > 1e-12 * start:
            break
        curved = [
            part + features.ridge * own
            for part, own in zip(features.parts(curved_along(features.matrix(direction))), direction, strict=True)
        ]
        resistance = _product(direction, curved)
        if not resistance > 0:
            break
        length = size / resistance
        for one, step in zip(weights, direction, strict=True):
            one += damping * length * step
        left = [part + length * more for part, more in zip(left, curved, strict=True)]
        size, before = _product(left, left), size
        direction = [-part + size / before * step for part, step in zip(left, direction, strict=True)]
    factors.refresh_features()


def _product(left: list[Tensor], right: list[Tensor]) -> float:
    return float(sum((one * two).sum() for one, two in zip(left, right, strict=True)))
