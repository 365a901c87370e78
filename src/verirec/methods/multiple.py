"""Multiply robust learning: several propensities and several imputations, of which one being right is enough."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from verirec.methods.base import Method
from verirec.methods.parameters import Limits
from verirec.nuisance.propensities import PopularityPropensity
from verirec.training.correction import NoiseCorrection
from verirec.training.data import Batch, TrainingData
from verirec.training.fitting import ModelSpec
from verirec.training.learner import Learners
from verirec.training.objective import Objective, Step


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
    own_estimator: ClassVar[str] = "dr"

    limits: ClassVar[Limits] = {"ridge": (1e-12, 1.0), "imputation_penalty": (0, 1e6)}

    by_popularity: bool = True
    ridge: float = 1e-4
    imputation_penalty: float = 3.0

    def extra_models(self) -> dict[str, ModelSpec]:
        """Add an imputation model for each propensity."""
        names = ("imputation", "second_imputation") if self.by_popularity else ("imputation",)
        return {name: ModelSpec(number, None, self.imputation_penalty) for number, name in enumerate(names, start=1)}

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Regress the errors on all candidates."""
        item_weights = None
        if self.by_popularity:
            items = np.arange(data.shape[1])
            popular = PopularityPropensity().fit(data.log).at(np.zeros(len(items), dtype=np.int64), items)
            item_weights = torch.as_tensor(1 / popular, dtype=torch.float32).to(data.device)
        return _MultiplyRobust(correction, data, item_weights, tuple(self.extra_models()), self.ridge)


@dataclass(frozen=True, eq=False)
class _MultiplyRobust(Objective):
    data: TrainingData
    item_weights: Tensor | None
    imputations: tuple[str, ...]
    ridge: float

    def _row_weights(self, batch: Batch) -> list[Tensor]:
        """Return 1/p of the rows, by each of the propensities."""
        others = [] if self.item_weights is None else [self.item_weights[batch.items]]
        return [batch.weights, *others]

    def _grid_weights(self, batch: Batch) -> list[Tensor]:
        """Return 1/p of the rectangle, by each of the propensities."""
        own = self.data.weights_on_grid(batch)
        others = [] if self.item_weights is None else [self.item_weights[batch.grid_items].expand_as(own)]
        return [own, *others]

    def _candidates(self, logits: Tensor, weights: list[Tensor], of_labels: list[Tensor]) -> Tensor:
        """Return v, shape (m, J + K), of rows or of a rectangle's cells."""
        imputed = [self.correction.imputed(logits, torch.sigmoid(one)) for one in of_labels]
        return torch.stack([one.flatten() for one in (*weights, *imputed)], dim=1)

    def loss(self, models: Learners, batch: Batch) -> Tensor:
        """Regress, and predict the grid."""
        f = models["prediction"]
        logits = batch.on_rows(f)
        with torch.no_grad():
            of_labels = [batch.on_rows(models[name]) for name in self.imputations]
        v = self._candidates(logits, self._row_weights(batch), of_labels)
        eta = self._regressed(v, self.correction.errors(logits, batch))
        of_grid, grid_weights = batch.on_grid(f), self._grid_weights(batch)
        with torch.no_grad():
            of_labels = [batch.on_grid(models[name]) for name in self.imputations]
        everywhere: Tensor = self._candidates(of_grid, grid_weights, of_labels).mean(0) @ eta
        return everywhere

    def _regressed(self, v: Tensor, errors: Tensor) -> Tensor:
        """Return eta of the errors' regression on v."""
        scale = v.detach().square().mean(0).sqrt().clamp_min(1e-6)
        scaled = v / scale
        normal = scaled.T @ scaled / len(errors) + self.ridge * torch.eye(v.shape[1], device=v.device)
        eta: Tensor = torch.linalg.solve(normal, scaled.T @ errors / len(errors)) / scale
        return eta

    def _imputation_loss(self, number: int, models: Learners, batch: Batch) -> Tensor:
        """Return the squares of what one of the imputations misses, with its own weights."""
        with torch.no_grad():
            logits = batch.on_rows(models["prediction"])
            errors = self.correction.errors(logits, batch)
        labels = torch.sigmoid(batch.on_rows(models[self.imputations[number]]))
        missed = errors - self.correction.imputed(logits, labels)
        return batch.over_log(self._row_weights(batch)[number] * missed**2)

    @property
    def steps(self) -> tuple[Step, ...]:
        own = (
            Step((name,), partial(self._imputation_loss, number), f"{name}_loss")
            for number, name in enumerate(self.imputations)
        )
        return (Step(("prediction",), self.loss), *own)
