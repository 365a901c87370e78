"""Methods that doubt the log's labels without knowing noise rates: T-MF, R-MF, LCD-MF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from verirec.methods.base import Method
from verirec.methods.parameters import Limits
from verirec.training.correction import NoiseCorrection
from verirec.training.data import Batch, TrainingData
from verirec.training.learner import Learners
from verirec.training.objective import Objective


@dataclass(kw_only=True, eq=False, repr=False)
class TMF(Method):
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
    uses_propensities: ClassVar[bool] = False
    paper: ClassVar[str] = "Wang et al. 2021, Denoising implicit feedback for recommendation (T-CE)"
    summary: ClassVar[str] = "drops the positives that fit worst"

    limits: ClassVar[Limits] = {"drop_rate": (0, 1), "drop_most": (0, 1)}

    drop_rate: float = 1e-4
    drop_most: float = 0.1

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Leave out the positives that fit worst."""
        return _Truncated(correction, self.drop_rate, self.drop_most)


@dataclass(frozen=True, eq=False)
class _Truncated(Objective):
    drop_rate: float
    drop_most: float

    def initial_state(self) -> dict[str, Tensor]:
        return {"steps": torch.tensor(0)}

    def loss(self, models: Learners, batch: Batch) -> Tensor:
        errors = self.correction.errors(batch.on_rows(models["prediction"]), batch)
        share = min(self.drop_rate * int(models.state["steps"]), self.drop_most)
        models.state["steps"] = models.state["steps"] + 1
        positive = torch.nonzero(batch.labels == 1).squeeze(1)
        dropped = int(share * len(positive))
        if dropped == 0:
            return errors.mean()
        worst = positive[errors.detach()[positive].topk(dropped).indices]
        kept = torch.ones_like(errors)
        kept[worst] = 0.0
        return (kept * errors).sum() / kept.sum()


@dataclass(kw_only=True, eq=False, repr=False)
class RMF(Method):
    r"""Reweighted loss: rows count :math:`f^\beta` if positive, :math:`(1-f)^\beta` if not. Wang et al. (2021).

    Parameters
    ----------
    beta
        How much less a row counts that the model does not believe.
    detach
        Whether the weights are held fixed while the loss is minimised.
    """

    name: ClassVar[str] = "r-mf"
    uses_propensities: ClassVar[bool] = False
    paper: ClassVar[str] = "Wang et al. 2021, Denoising implicit feedback for recommendation (R-CE)"
    summary: ClassVar[str] = "down-weights high-loss rows"

    limits: ClassVar[Limits] = {"beta": (0, 10)}

    beta: float = 0.15
    detach: bool = True

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Count rows less that the model does not believe."""
        return _Reweighted(correction, self.beta, self.detach)


@dataclass(frozen=True, eq=False)
class _Reweighted(Objective):
    beta: float
    detach: bool

    def loss(self, models: Learners, batch: Batch) -> Tensor:
        logits = batch.on_rows(models["prediction"])
        believed = torch.sigmoid(torch.where(batch.labels == 1, logits, -logits))
        weights = believed**self.beta
        return ((weights.detach() if self.detach else weights) * self.correction.errors(logits, batch)).mean()


@dataclass(kw_only=True, eq=False, repr=False)
class LCDMF(Method):
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
    uses_propensities: ClassVar[bool] = False
    paper: ClassVar[str] = "label correction as named in the paper's Table 2; the schedule is ours"
    summary: ClassVar[str] = "mixes labels with what the model says"

    limits: ClassVar[Limits] = {"most": (0, 1), "warm_up": (1, 10**6), "memory": (0, 1)}

    most: float = 0.5
    warm_up: int = 20
    memory: float = 0.9

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Learn from a consensus of labels and the model's own output."""
        return _Consensus(correction, data.all_rows.labels.float(), self.most, self.warm_up, self.memory)


@dataclass(frozen=True, eq=False)
class _Consensus(Objective):
    labels: Tensor
    most: float
    warm_up: int
    memory: float

    def initial_state(self) -> dict[str, Tensor]:
        return {"outputs": self.labels.clone()}

    def loss(self, models: Learners, batch: Batch) -> Tensor:
        logits = batch.on_rows(models["prediction"])
        known = models.state["outputs"]
        outputs = self.memory * known[batch.rows] + (1 - self.memory) * torch.sigmoid(logits.detach())
        known[batch.rows] = outputs
        trust = self.most * min(1.0, models.epoch / self.warm_up)
        share = trust * (2 * outputs - 1).abs()
        consensus = (1 - share) * batch.labels + share * outputs
        return self.correction.imputed(logits, consensus).mean()
