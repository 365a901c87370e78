"""Multiply robust learning: several propensities and several imputations, of which one being right is enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from verirec.methods.base import Method
from verirec.methods.parameters import Limits
from verirec.nuisance.propensities import PopularityPropensity
from verirec.training.learner import Learner
from verirec.training.task import Batch


@dataclass(kw_only=True, eq=False, repr=False)
class MR(Method):
    r"""Multiply robust. Li et al. (2023).

    Errors are regressed on :math:`v = (1/\hat p^1, .., 1/\hat p^J, \hat e^1, .., \hat e^K)` over O, and the loss is
    :math:`|D|^{-1} \sum_D v^\top \eta`, f learning through v and :math:`\eta`. The propensities are those given and, if
    `by_popularity`, those by item; there is an imputation model for each, learnt with its weights.

    With least squares :math:`\sum_O v\,(e - v^\top \eta) = 0`, so that it is DR with imputed errors
    :math:`v^\top \eta`, for every one of the propensities at once.

    Parameters
    ----------
    by_popularity
        Whether there is a second propensity and a second imputation.
    ridge
        Keeps the regression solvable where candidates are alike.
    imputation_penalty
        As in DR-JL.
    """

    name: ClassVar[str] = "mr"
    paper: ClassVar[str] = "Li et al. 2023, Multiple robust learning for recommendation"
    summary: ClassVar[str] = "several propensities and imputations at once"
    needs_grid: ClassVar[bool] = True
    needs_all_propensities: ClassVar[bool] = True
    judged_by: ClassVar[str] = "dr"

    limits: ClassVar[Limits] = {"ridge": (1e-12, 1.0), "imputation_penalty": (0, 1e6)}

    by_popularity: bool = True
    ridge: float = 1e-4
    imputation_penalty: float = 3.0

    def build(self) -> None:
        """Make the candidates."""
        task = self.task_
        self.imputation_ = self.learner(1, penalty=self.imputation_penalty)
        self.item_weights_ = torch.empty(0)
        if self.by_popularity:
            users = np.zeros(task.shape[1], dtype=np.int64)
            popular = PopularityPropensity().fit(task.log).at(users, np.arange(task.shape[1]))
            self.item_weights_ = torch.as_tensor(1 / popular).to(task.device, torch.float32)
            self.second_imputation_ = self.learner(2, penalty=self.imputation_penalty)

    def _imputations(self) -> list[Learner]:
        return [self.imputation_, self.second_imputation_] if self.by_popularity else [self.imputation_]

    def _candidates(self, batch: Batch, *, grid: bool) -> tuple[Tensor, Tensor]:
        """Return f's logits (m,) and v (m, J + K), of the rows or of the rectangle's cells."""
        if grid:
            logits = self.over_grid(self.f, batch)
            weights = [self.task_.weights_on_grid(batch)]
            others = [self.item_weights_[batch.grid_items].expand_as(logits)] if self.by_popularity else []
        else:
            logits = self.f(batch.users, batch.items)
            weights, others = [batch.weights], [self.item_weights_[batch.items]] if self.by_popularity else []
        with torch.no_grad():
            models = [learner.model for learner in self._imputations()]
            labels = [self.over_grid(g, batch) if grid else g(batch.users, batch.items) for g in models]
        imputed = [self.errors_.imputed(logits, torch.sigmoid(one)) for one in labels]
        return logits.flatten(), torch.stack([one.flatten() for one in (*weights, *others, *imputed)], dim=1)

    def prediction_loss(self, batch: Batch) -> Tensor:
        """Regress, and predict the grid."""
        logits, v = self._candidates(batch, grid=False)
        errors = self.errors_.errors(logits, batch)
        scale = v.detach().square().mean(0).sqrt().clamp_min(1e-6)
        scaled = v / scale
        normal = scaled.T @ scaled / len(errors) + self.ridge * torch.eye(v.shape[1], device=v.device)
        eta = torch.linalg.solve(normal, scaled.T @ errors / len(errors)) / scale
        _, everywhere = self._candidates(batch, grid=True)
        everywhere_mean: Tensor = everywhere.mean(0) @ eta
        return everywhere_mean

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Train f, then each imputation with its own weights."""
        loss = self.prediction_.minimise(self.prediction_loss(batch))
        with torch.no_grad():
            logits = self.f(batch.users, batch.items)
            errors = self.errors_.errors(logits, batch)
        weights = [batch.weights, self.item_weights_[batch.items]] if self.by_popularity else [batch.weights]
        losses = []
        for learner, own in zip(self._imputations(), weights, strict=True):
            missed = errors - self.errors_.imputed(logits, torch.sigmoid(learner.model(batch.users, batch.items)))
            losses.append(learner.minimise(self.over_log(own * missed**2)))
        return {"loss": loss, "imputation_loss": torch.stack(losses).mean()}
