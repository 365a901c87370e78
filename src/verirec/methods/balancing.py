"""Methods that learn propensities along with predictions, held to a balance: SDR, IPS-V2, DR-V2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import softplus

from verirec.methods.base import Method
from verirec.methods.imputing import DRJL
from verirec.methods.parameters import Limits
from verirec.models import FactorModel, Model
from verirec.nuisance.propensities.base import default_floor
from verirec.training.correction import NoiseCorrection
from verirec.training.data import Batch, TrainingData
from verirec.training.fitting import ModelSpec
from verirec.training.learner import Learners
from verirec.training.objective import Objective, PseudoLabels, Step


@dataclass(kw_only=True, eq=False, repr=False)
class EstimatedPropensities(Method):
    """What these methods share: a model of propensities that is trained on.

    Parameters
    ----------
    propensity_model
        Its kind, as `model`; by default user and item constants, which start from the propensities given if these are
        such a sum.
    propensity_floor
        Estimated propensities below it are raised to it; by default a hundredth of the log's density.
    balance_weight
        What the squared balance counts in the propensity's loss.
    """

    takes_correction: ClassVar[bool] = False
    takes_levels: ClassVar[bool] = False
    sweeps: ClassVar[bool] = False
    limits: ClassVar[Limits] = {"propensity_floor": (0, 0.5), "balance_weight": (0, 1e6)}

    propensity_model: Any = "constants"
    propensity_floor: float | None = None
    balance_weight: float = 1.0

    def extra_models(self) -> dict[str, ModelSpec]:
        """Add the propensities; their penalty is small: they are to fit, and start from a fit."""
        return super().extra_models() | {"propensity": ModelSpec(2, self.propensity_model, 1e-3, start_propensities)}


def start_propensities(model: Model, data: TrainingData) -> None:
    """Set a model of propensities as near to the given ones as it can start."""
    sides = data.propensities.side_logits()
    if not isinstance(model, FactorModel) or not model.constants:
        return
    with torch.no_grad():
        model.constant.fill_(_logit(data.density) if sides is None else float(sides[0].mean() + sides[1].mean()))
        if sides is not None:
            model.user_constants.copy_(torch.as_tensor(sides[0] - sides[0].mean(), dtype=torch.float32))
            model.item_constants.copy_(torch.as_tensor(sides[1] - sides[1].mean(), dtype=torch.float32))


def _logit(share: float) -> float:
    return math.log(share / (1 - share)) if share < 1 else 10.0


@dataclass(frozen=True, eq=False)
class PropensityObjective(Objective):
    """What losses with a model "propensity" are made of.

    Parameters
    ----------
    floor
        Below which no propensity is taken to be.
    balance_weight
        See `EstimatedPropensities`.
    """

    floor: float
    balance_weight: float

    def inverse_propensities(self, logits: Tensor) -> Tensor:
        """Return 1/p of logits, p not below the floor."""
        return 1 / torch.sigmoid(logits).clamp_min(self.floor)

    def own_weights(self, models: Learners, batch: Batch) -> Tensor:
        """Return 1/p of a batch's rows, as estimated, for losses that do not change them."""
        with torch.no_grad():
            return self.inverse_propensities(batch.on_rows(models["propensity"]))

    def with_own_weights(self, models: Learners, batch: Batch) -> Batch:
        """Return a batch with 1/p as estimated."""
        return batch._replace(weights=self.own_weights(models, batch))


def propensity_loss(models: Learners, batch: Batch) -> Tensor:
    r"""Return the cross-entropy of o over the grid: :math:`|D|^{-1} [\sum_D softplus(z) - \sum_O z]`."""
    model = models["propensity"]
    return softplus(batch.on_grid(model)).mean() - batch.over_log(batch.on_rows(model))


@dataclass(kw_only=True, eq=False, repr=False)
class SDR(EstimatedPropensities, DRJL):
    r"""Stable doubly robust. Li et al. (2023).

    Propensities are estimated with the square of :math:`|D|^{-1} \sum_D (1 - o/\hat p)(\hat e - \bar e)` added to their
    loss, :math:`\bar e` the mean imputed error; f by self-normalised inverse propensities; g as in DR-JL, with them.
    """

    name: ClassVar[str] = "sdr"
    paper: ClassVar[str] = "Li et al. 2023, StableDR: stabilized doubly robust learning"
    summary: ClassVar[str] = "self-normalised, propensities held to a balance"
    own_estimator: ClassVar[str] = "sdr"

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Hold propensities to a balance of imputed errors."""
        floor = default_floor(data.log, self.propensity_floor)
        return _Stable(correction, floor, self.balance_weight, self.joint_learning(data, correction))


@dataclass(frozen=True, eq=False)
class _Stable(PropensityObjective):
    base: PseudoLabels

    def balance(self, models: Learners, batch: Batch) -> Tensor:
        """Return the balance of imputed errors, with a gradient for the propensities."""
        f, g = models["prediction"], models["imputation"]
        with torch.no_grad():
            everywhere = self.correction.imputed(batch.on_grid(f), torch.sigmoid(batch.on_grid(g)))
            imputed = self.correction.imputed(batch.on_rows(f), torch.sigmoid(batch.on_rows(g)))
        weights = self.inverse_propensities(batch.on_rows(models["propensity"]))
        # Over the grid, what is centred adds up to nothing.
        return -batch.over_log(weights * (imputed - everywhere.mean()))

    def propensity_loss(self, models: Learners, batch: Batch) -> Tensor:
        return propensity_loss(models, batch) + self.balance_weight * self.balance(models, batch) ** 2

    def imputation_loss(self, models: Learners, batch: Batch) -> Tensor:
        return self.base.imputation_loss(models, self.with_own_weights(models, batch))

    def loss(self, models: Learners, batch: Batch) -> Tensor:
        weights = self.own_weights(models, batch)
        return (weights * self.correction.errors(batch.on_rows(models["prediction"]), batch)).sum() / weights.sum()

    @property
    def steps(self) -> tuple[Step, ...]:
        return (
            Step(("propensity",), self.propensity_loss, "propensity_loss"),
            Step(("imputation",), self.imputation_loss, "imputation_loss"),
            Step(("prediction",), self.loss),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class IPSV2(EstimatedPropensities):
    r"""IPS with propensities estimated together with f, held to a balance. Li et al. (2023), "Propensity matters".

    To the loss of f are added the cross-entropy of o, that of :math:`\hat p f` against o r, and the square of
    :math:`|D|^{-1} \sum_D [o/\hat p - (1-o)/(1-\hat p)]\, f`.
    """

    name: ClassVar[str] = "ips-v2"
    paper: ClassVar[str] = "Li et al. 2023, Propensity matters: towards achieving balanced causal inference (IPS-V2)"
    summary: ClassVar[str] = "IPS, propensities estimated along"
    needs_grid: ClassVar[bool] = True
    own_estimator: ClassVar[str] = "snips"

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Learn f and propensities on one loss."""
        rows_alone = PseudoLabels(correction, lambda batch: batch.weights)
        floor = default_floor(data.log, self.propensity_floor)
        return _Balanced(correction, floor, self.balance_weight, rows_alone)


@dataclass(kw_only=True, eq=False, repr=False)
class DRV2(EstimatedPropensities, DRJL):
    """DR-JL with propensities estimated together with f, held to a balance: see IPS-V2."""

    name: ClassVar[str] = "dr-v2"
    paper: ClassVar[str] = "Li et al. 2023, Propensity matters: towards achieving balanced causal inference (DR-V2)"
    summary: ClassVar[str] = "DR-JL, propensities estimated along"

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Learn f and propensities on one loss, then g."""
        floor = default_floor(data.log, self.propensity_floor)
        return _Balanced(correction, floor, self.balance_weight, self.joint_learning(data, correction))


@dataclass(frozen=True, eq=False)
class _Balanced(PropensityObjective):
    base: PseudoLabels

    def loss(self, models: Learners, batch: Batch) -> Tensor:
        """Return f's own loss, with 1/p as estimated, and all that holds f and p together."""
        own = self.base.loss_with(self.own_weights(models, batch), models, batch)
        return own + self.joint_loss(models, batch)

    def joint_loss(self, models: Learners, batch: Batch) -> Tensor:
        """Return all but f's own loss."""
        logits, of_grid = batch.on_rows(models["prediction"]), batch.on_grid(models["prediction"])
        p_logits, p_of_grid = batch.on_rows(models["propensity"]), batch.on_grid(models["propensity"])
        p, p_grid = (torch.sigmoid(one).clamp(self.floor, 1 - 1e-4) for one in (p_logits, p_of_grid))
        f, f_grid = torch.sigmoid(logits), torch.sigmoid(of_grid)
        entire = softplus(p_of_grid).mean() - batch.over_log(p_logits)
        # log(1 - p f) everywhere, and on O the rest of the cross-entropy of p f against r.
        both, both_grid = (p * f).clamp(1e-6, 1 - 1e-6), (p_grid * f_grid).clamp(1e-6, 1 - 1e-6)
        clicks = -torch.log1p(-both_grid).mean() - batch.over_log(batch.labels * (both.log() - torch.log1p(-both)))
        balance = batch.over_log(f * (1 / p + 1 / (1 - p))) - (f_grid / (1 - p_grid)).mean()
        return entire + clicks + self.balance_weight * balance**2

    def imputation_loss(self, models: Learners, batch: Batch) -> Tensor:
        return self.base.imputation_loss(models, self.with_own_weights(models, batch))

    @property
    def steps(self) -> tuple[Step, ...]:
        together = Step(("prediction", "propensity"), self.loss)
        own = Step(("imputation",), self.imputation_loss, "imputation_loss")
        return (together, own) if self.base.learns_labels else (together,)

    def target_excess(self, data: TrainingData) -> Tensor | None:
        """Return it of DR for the propensities given, which the estimated ones start from."""
        return self.base.target_excess(data) if self.base.learns_labels else None
