"""Weighted rows: IPS and SNIPS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from verirec.methods.sweeping import Sweeping
from verirec.training.sweeps.links import Entropy
from verirec.training.task import Batch


@dataclass(kw_only=True, eq=False, repr=False)
class RowLoss(Sweeping):
    r"""Losses of the rows alone: :math:`|D|^{-1} \sum_O a\, e`, and what a weighs."""

    def beyond_labels(self) -> Tensor | None:
        """Return what (corrected) labels have outside of 0 and 1, weighted."""
        labels = self.errors_.labels(self.task_.whole)
        return (labels - labels.clamp(0, 1)) * self.row_weights(self.task_.whole)

    def prediction_loss(self, batch: Batch) -> Tensor:
        """Return the weighted sum, per pair of the grid."""
        return self.over_log(self.row_weights(batch) * self.errors_.errors(self.f(batch.users, batch.items), batch))

    def sweep(self) -> dict[str, Tensor]:
        """Improve f."""
        batch = self.sweeper_.batch
        labels = self.errors_.labels(batch)
        weights = self.row_weights(batch).expand_as(labels).contiguous()
        loss = self.sweeper_.on_rows(self.pairings_["prediction"], Entropy(weights, weights * labels))
        self.after_sweep()
        return {"loss": loss}


@dataclass(kw_only=True, eq=False, repr=False)
class IPS(RowLoss):
    r"""Inverse propensity scoring: :math:`|D|^{-1} \sum_O e / \hat p`. Schnabel et al. (2016)."""

    name: ClassVar[str] = "ips"
    paper: ClassVar[str] = "Schnabel et al. 2016, Recommendations as treatments"
    summary: ClassVar[str] = "weighs rows by 1/p"
    judged_by: ClassVar[str] = "snips"

    def row_weights(self, batch: Batch) -> Tensor:
        """Return 1/p."""
        return batch.weights


@dataclass(kw_only=True, eq=False, repr=False)
class SNIPS(IPS):
    r"""Self-normalised: :math:`\sum_O (e / \hat p) / \sum_O (1 / \hat p)`. Swaminathan and Joachims (2015)."""

    name: ClassVar[str] = "snips"
    paper: ClassVar[str] = "Swaminathan, Joachims 2015, The self-normalized estimator for counterfactual learning"
    summary: ClassVar[str] = "weighs rows by 1/p, which add up to 1"

    def row_weights(self, batch: Batch) -> Tensor:
        """Return 1/p, made to add up to the grid."""
        return batch.weights / (self.task_.density * batch.weights.mean())
