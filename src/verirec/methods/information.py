"""Methods without propensities that compare the log with the grid: CVIB, DIB, DAMF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from verirec.methods.base import Method
from verirec.methods.parameters import Limits
from verirec.training.learner import minimise_together
from verirec.training.task import Batch


@dataclass(kw_only=True, eq=False, repr=False)
class CVIB(Method):
    r"""Counterfactual information bottleneck. Wang et al. (2020).

    .. math:: |O|^{-1} \sum_O e + \alpha\,[-m \log m' - (1-m) \log(1-m')] + \gamma\, |O|^{-1} \sum_O f \log f

    with m and m' the mean of f over a batch of the log and of the grid.

    Parameters
    ----------
    alpha, gamma
        See above.
    """

    name: ClassVar[str] = "cvib"
    paper: ClassVar[str] = "Wang et al. 2020, Information theoretic counterfactual learning"
    summary: ClassVar[str] = "pulls the grid's mean to the log's"
    uses_propensities: ClassVar[bool] = False
    needs_grid: ClassVar[bool] = True

    limits: ClassVar[Limits] = {"alpha": (0, 100), "gamma": (0, 100)}

    alpha: float = 0.1
    gamma: float = 0.01

    def prediction_loss(self, batch: Batch) -> Tensor:
        """Return all three parts."""
        logits = self.f(batch.users, batch.items)
        f = torch.sigmoid(logits)
        m, elsewhere = f.mean(), torch.sigmoid(self.over_grid(self.f, batch)).mean()
        contrast = -m * elsewhere.log() - (1 - m) * (1 - elsewhere).log()
        return (
            self.errors_.errors(logits, batch).mean()
            + self.alpha * contrast
            + self.gamma * (f * logsigmoid(logits)).mean()
        )


@dataclass(kw_only=True, eq=False, repr=False)
class DIB(Method):
    r"""Debiased information bottleneck: two parts, of which the unbiased one predicts. Liu et al. (2021).

    .. math:: |O|^{-1} \sum_O [(1-\alpha)\, l(f_u, r) + \gamma\, l(f_b, r) + \alpha\, l(f_{all}, r)]

    :math:`f_{all}` from the sum of both parts' logits.

    Parameters
    ----------
    alpha, gamma
        See above.
    """

    name: ClassVar[str] = "dib"
    paper: ClassVar[str] = "Liu et al. 2021, Mitigating confounding bias in recommendation via information bottleneck"
    summary: ClassVar[str] = "splits off a biased part"
    uses_propensities: ClassVar[bool] = False

    limits: ClassVar[Limits] = {"alpha": (0, 1), "gamma": (0, 100)}

    alpha: float = 0.1
    gamma: float = 0.2

    def build(self) -> None:
        """Make the biased part."""
        self.biased_ = self.learner(1)

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Train both parts on the same loss."""
        return {"loss": minimise_together(self.prediction_loss(batch), self.prediction_, self.biased_)}

    def prediction_loss(self, batch: Batch) -> Tensor:
        """Return the three losses, weighted."""
        unbiased, biased = (model(batch.users, batch.items) for model in (self.f, self.biased_.model))
        parts = ((1 - self.alpha, unbiased), (self.gamma, biased), (self.alpha, unbiased + biased))
        return torch.stack([share * self.errors_.errors(logits, batch).mean() for share, logits in parts]).sum()


@dataclass(kw_only=True, eq=False, repr=False)
class DAMF(Method):
    r"""Domain adversary: the loss on the log, plus how differently an adversary can make log and grid look.

    .. math:: |O|^{-1} \sum_O l(f, r) + \beta \max_g \big[\, |D|^{-1} \sum_D l(f, g) - |O|^{-1} \sum_O l(f, g)\,\big]

    No propensity is used. Saito and Nomura (2022).

    Parameters
    ----------
    beta
        What the difference counts.
    adversary_steps
        The adversary's steps to one of f's.
    """

    name: ClassVar[str] = "damf"
    paper: ClassVar[str] = "Saito, Nomura 2022, Towards resolving propensity contradiction"
    summary: ClassVar[str] = "an adversary holds log and grid together"
    uses_propensities: ClassVar[bool] = False
    needs_grid: ClassVar[bool] = True

    limits: ClassVar[Limits] = {"beta": (0, 100), "adversary_steps": (1, 1_000)}

    beta: float = 0.1
    adversary_steps: int = 1

    def build(self) -> None:
        """Make the adversary."""
        self.adversary_ = self.learner(1)

    def discrepancy(self, batch: Batch, *, of_f: bool) -> Tensor:
        """Return the difference of means, with a gradient for f or for the adversary."""
        f, g = self.f, self.adversary_.model
        with torch.set_grad_enabled(of_f):
            of_log, of_grid = f(batch.users, batch.items), self.over_grid(f, batch)
        with torch.set_grad_enabled(not of_f):
            log_labels = torch.sigmoid(g(batch.users, batch.items))
            grid_labels = torch.sigmoid(self.over_grid(g, batch))
        return self.errors_.imputed(of_grid, grid_labels).mean() - self.errors_.imputed(of_log, log_labels).mean()

    def prediction_loss(self, batch: Batch) -> Tensor:
        """Return f's loss against the adversary as it is."""
        own = self.errors_.errors(self.f(batch.users, batch.items), batch).mean()
        return own + self.beta * self.discrepancy(batch, of_f=True)

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Train the adversary to see a difference, then f to leave none."""
        for _ in range(self.adversary_steps):
            seen = self.adversary_.minimise(-self.discrepancy(batch, of_f=False))
        return {"loss": self.prediction_.minimise(self.prediction_loss(batch)), "discrepancy": -seen}
