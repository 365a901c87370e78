"""Weights of features: few, of all pairs at once, improved by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import torch
from torch import Tensor

from verirec.training.sweeps.grid import GridPull, Sigmoids
from verirec.training.sweeps.links import Quadratic
from verirec.training.sweeps.pairing import Features, Pairing
from verirec.training.sweeps.rows import Rows

_STEPS: Final = 8
_ROWS_AT_ONCE: Final = 1 << 16


def improve_features(pairing: Pairing, rows: Rows, above: Quadratic) -> None:
    """Lower the loss of the rows by the weights of features, on the quadratic above it."""
    features = _features(pairing)

    def bent(matrix: Tensor) -> Tensor:
        total = torch.zeros_like(matrix)
        for part, x, y in _parts(features, rows):
            along = above.bend * above.levels[part] * torch.linalg.vecdot(x @ matrix, y)
            total += x.T @ (along[:, None] * y)
        return total

    _improve(pairing, _spread(features, rows, above.slopes), bent)


def improve_features_on_grid(f: Sigmoids, g: Sigmoids, rows: Rows, pull: Tensor, chosen: Tensor | None) -> None:
    """Lower the loss of the grid by the weights of features: see `Sweeper.on_grid`."""
    pairing, features = f.pairing, _features(f.pairing)
    grid = GridPull(f, g, 0, chosen)
    seen = features.items if chosen is None else features.items[chosen]
    slope = -_spread(features, rows, pull)
    for part in grid.parts():
        left = f.at(part) - g.at(part)
        slope += grid.times * (features.users[part].T @ (left @ seen))
    users, items = features.users.T @ features.users, features.items.T @ features.items
    _improve(pairing, slope, lambda matrix: 0.25 * (users @ matrix @ items))


def _features(pairing: Pairing) -> Features:
    assert pairing.features is not None  # noqa: S101
    return pairing.features


def _parts(features: Features, rows: Rows) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Give the features of users and items of the rows, some rows at a time."""
    by_user = rows.sorted.by_user
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(start, min(start + _ROWS_AT_ONCE, len(rows)))
        users = np.searchsorted(by_user.starts, np.arange(part.start, part.stop), side="right") - 1
        yield part, features.users[torch.from_numpy(users)], features.items[torch.from_numpy(by_user.others[part])]


def _spread(features: Features, rows: Rows, values: Tensor) -> Tensor:
    """Add up values of rows times the products of their features."""
    total = torch.zeros(features.users.shape[1], features.items.shape[1])
    for part, x, y in _parts(features, rows):
        total += x.T @ (values[part, None] * y)
    return total


def _improve(pairing: Pairing, slope: Tensor, bent: Callable[[Tensor], Tensor]) -> None:
    """Take conjugate gradient steps from where the weights are."""
    features = _features(pairing)
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
            for part, own in zip(features.parts(bent(features.matrix(direction))), direction, strict=True)
        ]
        resistance = _product(direction, curved)
        if not resistance > 0:
            break
        length = size / resistance
        for one, step in zip(weights, direction, strict=True):
            one += length * step
        left = [part + length * more for part, more in zip(left, curved, strict=True)]
        size, before = _product(left, left), size
        direction = [-part + size / before * step for part, step in zip(left, direction, strict=True)]
    pairing.refresh_features()


def _product(left: list[Tensor], right: list[Tensor]) -> float:
    return float(sum((one * two).sum() for one, two in zip(left, right, strict=True)))
