"""Methods without propensities that compare the log with the grid: CVIB, DIB, DAMF."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from verirec.methods.base import Method
from verirec.methods.parameters import Limits
from verirec.training.correction import NoiseCorrection
from verirec.training.data import Batch, TrainingData
from verirec.training.fitting import ModelSpec
from verirec.training.learner import Learners
from verirec.training.objective import Objective, Step


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

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Contrast the log with the grid."""
        return _Contrast(correction, self.alpha, self.gamma)


@dataclass(frozen=True, eq=False)
class _Contrast(Objective):
    alpha: float
    gamma: float

    def loss(self, models: Learners, batch: Batch) -> Tensor:
        logits = batch.on_rows(models["prediction"])
        f = torch.sigmoid(logits)
        m, elsewhere = f.mean(), torch.sigmoid(batch.on_grid(models["prediction"])).mean()
        contrast = -m * elsewhere.log() - (1 - m) * (1 - elsewhere).log()
        return (
            self.correction.errors(logits, batch).mean()
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

    def extra_models(self) -> dict[str, ModelSpec]:
        """Add the biased part."""
        return {"biased": ModelSpec(1)}

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Train both parts on one loss."""
        return _TwoParts(correction, self.alpha, self.gamma)


@dataclass(frozen=True, eq=False)
class _TwoParts(Objective):
    alpha: float
    gamma: float

    def loss(self, models: Learners, batch: Batch) -> Tensor:
        unbiased, biased = (batch.on_rows(models[name]) for name in ("prediction", "biased"))
        parts = ((1 - self.alpha, unbiased), (self.gamma, biased), (self.alpha, unbiased + biased))
        return torch.stack([share * self.correction.errors(logits, batch).mean() for share, logits in parts]).sum()

    @property
    def steps(self) -> tuple[Step, ...]:
        return (Step(("prediction", "biased"), self.loss),)


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

    def extra_models(self) -> dict[str, ModelSpec]:
        """Add the adversary."""
        return {"adversary": ModelSpec(1)}

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Train the adversary to see a difference, then f to leave none."""
        return _Adversarial(correction, self.beta, self.adversary_steps)


@dataclass(frozen=True, eq=False)
class _Adversarial(Objective):
    beta: float
    adversary_steps: int

    def discrepancy(self, models: Learners, batch: Batch, *, of_f: bool) -> Tensor:
        """Return the difference of means, with a gradient for f or for the adversary."""
        f, g = models["prediction"], models["adversary"]
        with torch.set_grad_enabled(of_f):
            of_log, of_grid = batch.on_rows(f), batch.on_grid(f)
        with torch.set_grad_enabled(not of_f):
            log_labels, grid_labels = torch.sigmoid(batch.on_rows(g)), torch.sigmoid(batch.on_grid(g))
        return self.correction.imputed(of_grid, grid_labels).mean() - self.correction.imputed(of_log, log_labels).mean()

    def loss(self, models: Learners, batch: Batch) -> Tensor:
        """Return f's loss against the adversary as it is."""
        own = self.correction.errors(batch.on_rows(models["prediction"]), batch).mean()
        return own + self.beta * self.discrepancy(models, batch, of_f=True)

    @property
    def steps(self) -> tuple[Step, ...]:
        seen = partial(self.discrepancy, of_f=False)
        return (
            Step(("adversary",), seen, "discrepancy", maximise=True, times=self.adversary_steps),
            Step(("prediction",), self.loss),
        )
