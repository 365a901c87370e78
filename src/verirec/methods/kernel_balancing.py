r"""Propensities that balance functions of a kernel, those on which the present error loads most: AKB-DR.

Weights :math:`o/\hat p` should make the log look like the grid to every function that errors are made of. Gaussian
kernels around pairs of the log span them: with :math:`x_{ui}` the embeddings of a user and an item side by side,
:math:`K_j(x) = \exp(-\lVert x - x_j \rVert^2 / 2 \sigma^2)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import torch
from torch import Tensor

from verirec.exceptions import ModelError
from verirec.methods.balancing import EstimatedPropensities, PropensityObjective, propensity_loss
from verirec.methods.imputing import DRJL
from verirec.methods.parameters import Limits
from verirec.models import Model
from verirec.nuisance.propensities.base import default_floor
from verirec.training.correction import NoiseCorrection
from verirec.training.data import Batch, TrainingData
from verirec.training.learner import Learners
from verirec.training.objective import Objective, PseudoLabels, Step

_LEAST: Final = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class AKBDR(EstimatedPropensities, DRJL):
    r"""Adaptive kernel balancing: DR-JL whose propensities balance the kernels that matter. Li et al. (2024).

    To the propensities' cross-entropy is added the mean of :math:`b_j^2` times `balance_weight`, with
    :math:`b_j = |D|^{-1} \sum_D (o/\hat p - 1)\, K_j(x)`. Of `candidates` kernels, around the first pairs of each
    batch, the `balanced` ones are those with the largest coefficients in a ridge regression of the present errors. The
    embeddings are those of f, as they are; :math:`\sigma^2` is half the mean squared distance of rows and centres. The
    paper bounds :math:`|b_j|`, with slack; squares are its penalised form.

    Parameters
    ----------
    candidates, balanced
        Kernels to choose from, and how many are balanced.
    ridge
        Of the regression, relative to the kernels' own size.
    """

    name: ClassVar[str] = "akb-dr"
    paper: ClassVar[str] = "Li et al. 2024, Debiased collaborative filtering with kernel-based causal balancing"
    summary: ClassVar[str] = "DR-JL, propensities balance kernels of embeddings"

    limits: ClassVar[Limits] = {"candidates": (1, 2_048), "balanced": (1, 2_048), "ridge": (1e-9, 1e3)}

    balance_weight: float = 10.0
    candidates: int = 64
    balanced: int = 16
    ridge: float = 0.1

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Balance kernels, then learn f and g as in DR-JL."""
        floor, base = default_floor(data.log, self.propensity_floor), self.joint_learning(data, correction)
        return _KernelBalanced(correction, floor, self.balance_weight, base, self.candidates, self.balanced, self.ridge)


@dataclass(frozen=True, eq=False)
class _KernelBalanced(PropensityObjective):
    base: PseudoLabels
    candidates: int
    balanced: int
    ridge: float

    def balances(self, models: Learners, batch: Batch) -> Tensor:
        """Return b of the chosen kernels, with a gradient for the propensities."""
        with torch.no_grad():
            of_rows, of_grid = self.kernels(models, batch)
            chosen = self.chosen(models, batch, of_rows)
        weights = self.inverse_propensities(batch.on_rows(models["propensity"]))
        return batch.density * (weights @ of_rows[:, chosen]) / len(weights) - of_grid[chosen]

    def kernels(self, models: Learners, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the candidates on the rows, shape (b, m), and their means over the rectangle, shape (m,).

        A Gaussian kernel of two vectors side by side is the product of each one's: so is its mean over a rectangle.
        """
        model = _with_embeddings(models)
        users, items = embeddings(model, "user"), embeddings(model, "item")
        of_users, of_items = users[batch.users[: self.candidates]], items[batch.items[: self.candidates]]
        apart = _distances(users[batch.users], of_users) + _distances(items[batch.items], of_items)
        scale = apart.mean().clamp_min(_LEAST)

        def kernel(left: Tensor, centres: Tensor) -> Tensor:
            return torch.exp(-_distances(left, centres) / scale)

        on_grid = kernel(users[batch.grid_users], of_users).mean(0) * kernel(items[batch.grid_items], of_items).mean(0)
        return torch.exp(-apart / scale), on_grid

    def chosen(self, models: Learners, batch: Batch, kernels: Tensor) -> Tensor:
        """Return the kernels that the errors of the rows load on most, shape (balanced,)."""
        errors = self.correction.errors(batch.on_rows(models["prediction"]), batch)
        gram = kernels.T @ kernels / len(errors)
        # In single precision, kernels that are all alike need a ridge however small the one that was asked for is.
        gram.diagonal().add_(max(self.ridge, _LEAST) * gram.diagonal().mean() + _LEAST)
        loads = torch.linalg.solve(gram, kernels.T @ (errors - errors.mean()) / len(errors))
        largest: Tensor = loads.abs().topk(min(self.balanced, len(loads))).indices
        return largest

    def propensity_loss(self, models: Learners, batch: Batch) -> Tensor:
        """Return the cross-entropy of o, and the squared balances."""
        return propensity_loss(models, batch) + self.balance_weight * self.balances(models, batch).square().mean()

    def loss(self, models: Learners, batch: Batch) -> Tensor:
        """Return the doubly robust loss with 1/p as estimated."""
        return self.base.loss_with(self.own_weights(models, batch), models, batch)

    def imputation_loss(self, models: Learners, batch: Batch) -> Tensor:
        return self.base.imputation_loss(models, self.with_own_weights(models, batch))

    @property
    def steps(self) -> tuple[Step, ...]:
        return (
            Step(("propensity",), self.propensity_loss, "propensity_loss"),
            Step(("prediction",), self.loss),
            Step(("imputation",), self.imputation_loss, "imputation_loss"),
        )

    def target_excess(self, data: TrainingData) -> Tensor:
        """Return it of DR for the propensities given, which the estimated ones start from."""
        return self.base.target_excess(data)


def embeddings(model: Model, side: str) -> Tensor:
    """Return what a model knows of each user, or item: factors and constants side by side, shape (n, d)."""
    factors, constants = (getattr(model, f"{side}_{part}", None) for part in ("factors", "constants"))
    parts = [factors] if factors is not None else []
    return torch.cat([*parts, *([] if constants is None else [constants[:, None]])], 1).detach()


def _with_embeddings(models: Learners) -> Model:
    """Return the first model that has embeddings: f or, of modules of a user's own, the propensities'."""
    for name in ("prediction", "propensity"):
        if any(hasattr(models[name], part) for part in ("user_factors", "user_constants")):
            return models[name]
    raise ModelError("akb-dr needs embeddings: a model or a propensity_model with factors or constants")


def _distances(left: Tensor, right: Tensor) -> Tensor:
    """Return squared distances, shape (n, m)."""
    return torch.cdist(left, right).square()
