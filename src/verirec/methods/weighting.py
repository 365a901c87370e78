"""Inverse propensities: IPS and SNIPS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from torch import Tensor

from verirec.methods.base import Method
from verirec.training.task import Batch


@dataclass(kw_only=True, eq=False, repr=False)
class IPS(Method):
    r"""Inverse propensity scoring: :math:`|D|^{-1} \sum_O e / \hat p`. Schnabel et al. (2016)."""

    name: ClassVar[str] = "ips"
    paper: ClassVar[str] = "Schnabel et al. 2016, Recommendations as treatments"
    summary: ClassVar[str] = "weighs rows by 1/p"
    judged_by: ClassVar[str] = "snips"

    def beyond_labels(self) -> npt.NDArray[np.float64] | None:
        """Give what corrected labels have outside of 0 and 1, weighted."""
        labels = self.errors_.targets(self.task_)
        if labels is None:
            return None
        weights = self.task_.weights.cpu().double().numpy()
        return np.asarray(weights * (labels - np.clip(labels, 0, 1)))

    def prediction_loss(self, batch: Batch) -> Tensor:
        """Give the weighted sum, per pair of the grid."""
        return self.over_log(batch.weights * self.errors_.errors(self.f(batch.users, batch.items), batch))


@dataclass(kw_only=True, eq=False, repr=False)
class SNIPS(IPS):
    r"""Self-normalised: :math:`\sum_O (e / \hat p) / \sum_O (1 / \hat p)`. Swaminathan and Joachims (2015)."""

    name: ClassVar[str] = "snips"
    paper: ClassVar[str] = "Swaminathan, Joachims 2015, The self-normalized estimator for counterfactual learning"
    summary: ClassVar[str] = "weighs rows by 1/p, which add up to 1"

    def prediction_loss(self, batch: Batch) -> Tensor:
        """Give the weighted mean."""
        errors = self.errors_.errors(self.f(batch.users, batch.items), batch)
        return (batch.weights * errors).sum() / batch.weights.sum()
