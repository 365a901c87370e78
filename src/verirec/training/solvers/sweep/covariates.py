"""Weights of covariates: a few, of all pairs at once, each time the minimum of a quadratic above the loss."""

from __future__ import annotations

import torch
from torch import Tensor

from verirec.training.solvers.sweep.factor_blocks import FactorBlocks, PairCovariates
from verirec.training.solvers.sweep.grid_gradient import CURVATURE, Imputed, Sigmoids, gradient_of_grid
from verirec.training.solvers.sweep.majorizers import Majorizer


def improve_covariates(covariates: PairCovariates, above: Majorizer, damping: float = 1.0) -> None:
    """Lower the loss of the rows by the weights of covariates, on the quadratic above it."""
    on_rows = covariates.on_rows
    curved = on_rows * (above.curvature * above.levels)[:, None]
    _improve(covariates, on_rows.T @ above.slopes, curved.T @ on_rows, damping)


def improve_covariates_on_grid(
    factors: FactorBlocks, g: Imputed, linear: Tensor, chosen: Tensor | None, damping: float = 1.0
) -> None:
    """Lower the loss of the grid by the weights of covariates: see `Sweeper.on_grid`."""
    covariates, grid = factors.covariates, gradient_of_grid(Sigmoids(factors), g, 0, chosen)
    assert covariates is not None and grid.f.pairs is not None  # noqa: S101, PT018
    slope, squares = -(covariates.on_rows.T @ linear), torch.zeros(len(covariates.weights), len(covariates.weights))
    for part in grid.parts():
        missed = grid.f.at(part) - grid.g.at(part)
        pairs = grid.f.pairs[0](part)
        slope += grid.times * torch.einsum("cab,ab->c", pairs, missed)
        squares += grid.times * torch.einsum("cab,dab->cd", pairs, pairs)
    _improve(covariates, slope, CURVATURE * squares, damping)


def _improve(covariates: PairCovariates, slope: Tensor, curvature: Tensor, damping: float) -> None:
    """Go to the quadratic's minimum; along what has no curvature, such as a covariate twice, by least squares."""
    weights, ridge = covariates.weights, covariates.ridge
    matrix = curvature.double() + ridge * torch.eye(len(weights), dtype=torch.float64)
    if bool(torch.isfinite(matrix).all()):
        inverse = torch.linalg.pinv(matrix, rtol=1e-6, hermitian=True)
        weights -= (damping * (inverse @ (slope + ridge * weights).double())).float()
