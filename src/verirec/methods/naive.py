"""Methods that take the log for the world: MF, and three that doubt its labels without knowing noise rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from verirec.methods.parameters import Limits
from verirec.methods.weighting import RowLoss
from verirec.training.task import Batch


@dataclass(kw_only=True, eq=False, repr=False)
class MF(RowLoss):
    r"""Matrix factorisation on the log as it stands: :math:`|O|^{-1} \sum_O e`. Koren et al. (2009)."""

    name: ClassVar[str] = "mf"
    paper: ClassVar[str] = "Koren, Bell, Volinsky 2009, Matrix factorization techniques for recommender systems"
    summary: ClassVar[str] = "the log taken for the world"
    uses_propensities: ClassVar[bool] = False

    def row_weights(self, batch: Batch) -> Tensor:
        """Return one for all rows, so that their errors are averaged."""
        return torch.tensor(1 / self.task_.density)


@dataclass(kw_only=True, eq=False, repr=False)
class TMF(MF):
    r"""Truncated loss: of each batch's positives, those with the largest losses are left out. Wang et al. (2021).

    After t steps a share :math:`\min(\alpha t, \epsilon_{\max})` of them; negatives all count.

    Parameters
    ----------
    drop_rate
        :math:`\alpha`, a step.
    drop_most
        :math:`\epsilon_{\max}`.
    """

    name: ClassVar[str] = "t-mf"
    sweeps: ClassVar[bool] = False
    paper: ClassVar[str] = "Wang et al. 2021, Denoising implicit feedback for recommendation (T-CE)"
    summary: ClassVar[str] = "drops the positives that fit worst"

    limits: ClassVar[Limits] = {"drop_rate": (0, 1), "drop_most": (0, 1)}

    drop_rate: float = 1e-4
    drop_most: float = 0.1

    def build(self) -> None:
        """Start counting steps."""
        self.steps_ = 0

    def prediction_loss(self, batch: Batch) -> Tensor:
        """Return the mean error of the rows that are kept."""
        errors = self.errors_.errors(self.f(batch.users, batch.items), batch)
        share = min(self.drop_rate * self.steps_, self.drop_most)
        self.steps_ += 1
        positive = torch.nonzero(batch.labels == 1).squeeze(1)
        dropped = int(share * len(positive))
        if dropped == 0:
            return errors.mean()
        worst = positive[errors.detach()[positive].topk(dropped).indices]
        kept = torch.ones_like(errors)
        kept[worst] = 0.0
        return (kept * errors).sum() / kept.sum()

    def more_state(self) -> dict[str, Tensor]:
        """Keep the count."""
        return {"steps": torch.tensor(self.steps_)}

    def load_more(self, state: dict[str, Tensor]) -> None:
        """Go on counting."""
        self.steps_ = int(state["steps"])


@dataclass(kw_only=True, eq=False, repr=False)
class RMF(MF):
    r"""Reweighted loss: rows count :math:`f^\beta` if positive, :math:`(1-f)^\beta` if not. Wang et al. (2021).

    Parameters
    ----------
    beta
        How much less a row counts that the model does not believe.
    detach
        Whether the weights are held fixed while the loss is minimised.
    """

    name: ClassVar[str] = "r-mf"
    sweeps: ClassVar[bool] = False
    paper: ClassVar[str] = "Wang et al. 2021, Denoising implicit feedback for recommendation (R-CE)"
    summary: ClassVar[str] = "counts rows less that fit badly"

    limits: ClassVar[Limits] = {"beta": (0, 10)}

    beta: float = 0.15
    detach: bool = True

    def prediction_loss(self, batch: Batch) -> Tensor:
        """Return the weighted mean error."""
        logits = self.f(batch.users, batch.items)
        believed = torch.sigmoid(torch.where(batch.labels == 1, logits, -logits))
        weights = believed**self.beta
        return ((weights.detach() if self.detach else weights) * self.errors_.errors(logits, batch)).mean()


@dataclass(kw_only=True, eq=False, repr=False)
class LCDMF(MF):
    r"""Label correction: a consensus of the label and the model's own output, :math:`(1 - c)\,r + c\,\bar f`.

    :math:`\bar f` is the model's output on the row, averaged over epochs with weight 1 - `memory`; c grows to `most`
    over `warm_up` epochs and with the model's confidence :math:`|2 \bar f - 1|`. What is published leaves the schedule
    open; this one is ours.

    Parameters
    ----------
    most, warm_up, memory
        See above.
    """

    name: ClassVar[str] = "lcd-mf"
    sweeps: ClassVar[bool] = False
    paper: ClassVar[str] = "label correction as named in the paper's Table 2; the schedule is ours"
    summary: ClassVar[str] = "mixes labels with what the model says"

    limits: ClassVar[Limits] = {"most": (0, 1), "warm_up": (1, 10**6), "memory": (0, 1)}

    most: float = 0.5
    warm_up: int = 20
    memory: float = 0.9

    def build(self) -> None:
        """Start from the labels."""
        self.outputs_ = self.task_.labels.clone()
        self.trust_ = 0.0

    def begin_epoch(self, epoch: int) -> None:
        """Trust the model a little more."""
        self.trust_ = self.most * min(1.0, epoch / self.warm_up)

    def prediction_loss(self, batch: Batch) -> Tensor:
        """Return the mean error against the consensus."""
        logits = self.f(batch.users, batch.items)
        outputs = self.memory * self.outputs_[batch.rows] + (1 - self.memory) * torch.sigmoid(logits.detach())
        self.outputs_[batch.rows] = outputs
        share = self.trust_ * (2 * outputs - 1).abs()
        consensus = (1 - share) * batch.labels + share * outputs
        return self.errors_.imputed(logits, consensus).mean()

    def more_state(self) -> dict[str, Tensor]:
        """Keep the outputs."""
        return {"outputs": self.outputs_}

    def load_more(self, state: dict[str, Tensor]) -> None:
        """Take them back."""
        self.outputs_ = state["outputs"].to(self.task_.device)
