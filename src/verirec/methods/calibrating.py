r"""Propensities and imputed labels that are calibrated by experts, user by user: DCE-DR.

A logit z passes K experts, mixed by a gate that sees how the user's logits are distributed (their mean and their
standard deviation over some items, s_u):

.. math:: \bar\sigma(z) = \sum_k \mathrm{softmax}_k(W s_u + v)\; \sigma(a_k z + b_k) .
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from verirec.methods.imputing import DRJL
from verirec.methods.parameters import Limits
from verirec.models import Model
from verirec.models.scoring import Penalised
from verirec.training.correction import NoiseCorrection
from verirec.training.data import Batch, TrainingData
from verirec.training.fitting import ModelSpec
from verirec.training.learner import Learners
from verirec.training.objective import Objective, PseudoLabels, Step

_SEEN: Final = 32
"""Items that a user's logits are looked at."""
_LEAST: Final = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class DCEDR(DRJL):
    r"""Doubly calibrated: DR-JL with calibrated propensities and calibrated imputed labels. Kweon and Yu (2024).

    The propensities given are calibrated by cross-entropy with o over the grid, the imputation model's labels by
    cross-entropy with r over the log, weighted by the calibrated 1/p. Experts, f and g are trained in turn; f and g see
    the calibrated values, g through its experts.

    Parameters
    ----------
    experts
        K, of each of the two.
    """

    name: ClassVar[str] = "dce-dr"
    paper: ClassVar[str] = (
        "Kweon, Yu 2024, Doubly calibrated estimator for recommendation on data missing not at random"
    )
    summary: ClassVar[str] = "DR-JL, propensities and imputations calibrated"
    sweeps: ClassVar[bool] = False
    takes_correction: ClassVar[bool] = False
    takes_levels: ClassVar[bool] = False
    needs_all_propensities: ClassVar[bool] = True

    limits: ClassVar[Limits] = {"experts": (1, 100)}

    experts: int = 4

    def extra_models(self) -> dict[str, ModelSpec]:
        """Add g, and the experts of both."""
        own = {
            f"{name}_experts": ModelSpec(number, make=lambda: Experts(self.experts))
            for number, name in enumerate(("propensity", "imputation"), start=2)
        }
        return super().extra_models() | own

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Calibrate, then learn f and g in turn."""
        items = torch.as_tensor(_some_items(data)).to(data.device)
        users = np.arange(data.shape[0])
        p = data.propensities.block(users, items.cpu().numpy())
        distribution = _distribution(torch.logit(torch.as_tensor(p, dtype=torch.float32).to(data.device), eps=_LEAST))
        return _DoublyCalibrated(correction, self.joint_learning(data, correction), data, items, distribution)


def _some_items(data: TrainingData) -> npt.NDArray[np.int64]:
    random = np.random.default_rng([data.seed, 8])
    return random.choice(data.shape[1], size=min(_SEEN, data.shape[1]), replace=False)


def _distribution(logits: Tensor) -> Tensor:
    """Return mean and standard deviation of each user's logits, shape (n, 2)."""
    return torch.stack([logits.mean(1), logits.std(1, unbiased=False)], 1)


class Experts(Model):
    """K calibrations of a logit and the gate that mixes them; they start next to leaving it as it is.

    Parameters
    ----------
    count
        K.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        # Apart from each other, so that the gate has something to choose from.
        self.slopes = nn.Parameter(torch.linspace(0.8, 1.2, count) if count > 1 else torch.ones(1))
        self.shifts = nn.Parameter(torch.zeros(count))
        self.gate = nn.Parameter(torch.zeros(2, count))
        self.gate_constants = nn.Parameter(torch.zeros(count))

    def forward(self, logits: Tensor, distribution: Tensor, held: bool = False) -> Tensor:
        """Return calibrated probabilities of logits, shape (...), by the distributions of their users, (..., 2).

        Where they are held fixed, there is a gradient for the logits alone.
        """
        own = self.gate, self.gate_constants, self.slopes, self.shifts
        gate, gate_constants, slopes, shifts = (one.detach() if held else one for one in own)
        shares = torch.softmax(distribution @ gate + gate_constants, -1)
        calibrated = torch.sigmoid(logits[..., None] * slopes + shifts)
        return (shares * calibrated).sum(-1).clamp(_LEAST, 1 - _LEAST)

    def penalised(self) -> Iterator[Penalised]:
        """Return nothing: they are few."""
        yield from ()


@dataclass(frozen=True, eq=False)
class _DoublyCalibrated(Objective):
    base: PseudoLabels
    data: TrainingData
    items: Tensor
    """Where a user's logits are looked at."""
    p_distribution: Tensor
    """Of the given propensities' logits, of each user."""

    # Calibrated values

    def propensities(self, models: Learners, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return calibrated propensities of the rows and of the rectangle, with a gradient for their experts."""
        experts, seen = models["propensity_experts"], self.p_distribution
        of_rows = experts(_logits_of(batch.weights), seen[batch.users])
        on_grid = experts(_logits_of(self.data.weights_on_grid(batch)), seen[batch.grid_users][:, None, :])
        return of_rows, on_grid

    def weights(self, models: Learners, batch: Batch) -> Tensor:
        """Return the rows' calibrated 1/p, detached."""
        with torch.no_grad():
            p: Tensor = models["propensity_experts"](_logits_of(batch.weights), self.p_distribution[batch.users])
            return 1 / p

    def labels_of_rows(self, models: Learners, batch: Batch, trained: str) -> Tensor:
        """Return calibrated imputed labels of the rows, with a gradient for "imputation" or "imputation_experts"."""
        g = models["imputation"]
        with torch.no_grad():
            seen = _distribution(g.grid(batch.users, self.items))
        with torch.set_grad_enabled(trained == "imputation" and torch.is_grad_enabled()):
            logits = batch.on_rows(g)
        labels: Tensor = models["imputation_experts"](logits, seen, held=trained == "imputation")
        return labels

    def labels_of_grid(self, models: Learners, batch: Batch) -> Tensor:
        """Return those of the rectangle, detached."""
        g = models["imputation"]
        with torch.no_grad():
            seen = _distribution(g.grid(batch.grid_users, self.items))
            labels: Tensor = models["imputation_experts"](batch.on_grid(g), seen[:, None, :])
        return labels

    # Losses

    def propensity_loss(self, models: Learners, batch: Batch) -> Tensor:
        """Return the cross-entropy of o over the grid."""
        p, p_grid = self.propensities(models, batch)
        return -torch.log1p(-p_grid).mean() - batch.over_log(torch.logit(p))

    def label_loss(self, models: Learners, batch: Batch) -> Tensor:
        """Return the cross-entropy of r over the log, weighted by 1/p."""
        labels = self.labels_of_rows(models, batch, "imputation_experts")
        errors = torch.nn.functional.binary_cross_entropy(labels, batch.labels, reduction="none")
        return batch.over_log(self.weights(models, batch) * errors)

    def loss(self, models: Learners, batch: Batch) -> Tensor:
        """Return the doubly robust loss with calibrated propensities and labels."""
        f = models["prediction"]
        with torch.no_grad():
            labels = self.labels_of_rows(models, batch, "imputation")
        missed = self.correction.gap(batch.on_rows(f), batch, labels)
        everywhere = self.correction.imputed(batch.on_grid(f), self.labels_of_grid(models, batch)).mean()
        return everywhere + batch.over_log(self.weights(models, batch) * missed)

    def imputation_loss(self, models: Learners, batch: Batch) -> Tensor:
        """Return the weighted squares of what the calibrated imputed errors miss."""
        with torch.no_grad():
            logits = batch.on_rows(models["prediction"])
        labels = self.labels_of_rows(models, batch, "imputation")
        missed = self.correction.gap(logits, batch, labels)
        return self.base.squares(batch._replace(weights=self.weights(models, batch)), missed)

    @property
    def steps(self) -> tuple[Step, ...]:
        return (
            Step(("propensity_experts",), self.propensity_loss, "propensity_loss"),
            Step(("imputation_experts",), self.label_loss, "label_loss"),
            Step(("prediction",), self.loss),
            Step(("imputation",), self.imputation_loss, "imputation_loss"),
        )

    def target_excess(self, data: TrainingData) -> Tensor:
        """Return it of DR for the propensities given, which the calibrated ones start from."""
        return self.base.target_excess(data)


def _logits_of(weights: Tensor) -> Tensor:
    """Return the logits of p from 1/p."""
    return -torch.log((weights - 1).clamp_min(_LEAST))
