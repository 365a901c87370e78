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
from verirec.models import FactorModel
from verirec.nuisance.propensities.base import default_floor
from verirec.training.learner import minimise_together
from verirec.training.task import Batch


@dataclass(kw_only=True, eq=False, repr=False)
class LearntPropensities(Method):
    """What these methods share: a model of propensities that is trained on.

    Parameters
    ----------
    propensity_model
        Its kind, as `model`; by default user and item constants, which start from the propensities given if these are
        such a sum.
    propensity_floor
        Learnt propensities below it are raised to it; by default a hundredth of the log's density.
    balance_weight
        What the squared balance counts in the propensity's loss.
    """

    limits: ClassVar[Limits] = {"propensity_floor": (0, 0.5), "balance_weight": (0, 1e6)}

    propensity_model: Any = "constants"
    propensity_floor: float | None = None
    balance_weight: float = 1.0

    def build_propensity(self) -> None:
        """Make the model, as near to the given propensities as it can start."""
        self.floor_ = default_floor(self.task_.log, self.propensity_floor)
        # Its penalty is small: it is to fit, and starts from a fit.
        self.propensity_ = self.learner(2, model=self.propensity_model, penalty=1e-3)
        model, sides = self.propensity_.model, self.task_.propensities.side_logits()
        if isinstance(model, FactorModel) and model.constants:
            with torch.no_grad():
                model.constant.fill_(_logit(self.task_.density) if sides is None else _mean_of(sides))
                if sides is not None:
                    model.user_constants.copy_(torch.as_tensor(sides[0] - sides[0].mean()))
                    model.item_constants.copy_(torch.as_tensor(sides[1] - sides[1].mean()))

    def inverse_propensities(self, logits: Tensor) -> Tensor:
        """Return 1/p of logits, p not below the floor."""
        return 1 / torch.sigmoid(logits).clamp_min(self.floor_)

    def learnt_weights(self, batch: Batch) -> Tensor:
        """Return 1/p of a batch's rows, as learnt, for losses that do not change them."""
        with torch.no_grad():
            return self.inverse_propensities(self.propensity_.model(batch.users, batch.items))

    def propensity_loss(self, batch: Batch) -> Tensor:
        r"""Return the cross-entropy of o over the grid: :math:`|D|^{-1} [\sum_D softplus(z) - \sum_O z]`."""
        model = self.propensity_.model
        logits = self.over_grid(model, batch)
        return softplus(logits).mean() - self.over_log(model(batch.users, batch.items))


def _logit(share: float) -> float:
    return math.log(share / (1 - share)) if share < 1 else 10.0


def _mean_of(sides: tuple[Any, Any]) -> float:
    return float(sides[0].mean() + sides[1].mean())


@dataclass(kw_only=True, eq=False, repr=False)
class SDR(LearntPropensities, DRJL):
    r"""Stable doubly robust. Li et al. (2023).

    Propensities are learnt with the square of :math:`|D|^{-1} \sum_D (1 - o/\hat p)(\hat e - \bar e)` added to their
    loss, :math:`\bar e` the mean imputed error; f by self-normalised inverse propensities; g as in DR-JL, with them.
    """

    name: ClassVar[str] = "sdr"
    paper: ClassVar[str] = "Li et al. 2023, StableDR: stabilized doubly robust learning"
    summary: ClassVar[str] = "self-normalised, propensities held to a balance"
    sweeps: ClassVar[bool] = False
    judged_by: ClassVar[str] = "sdr"

    def build(self) -> None:
        """Make g and the propensities."""
        super().build()
        self.build_propensity()

    def beyond_labels(self) -> None:
        """Say that there is nothing: a weighted mean of errors against labels is bounded."""

    def balance(self, batch: Batch) -> Tensor:
        """Return the balance of imputed errors, with a gradient for the propensities."""
        with torch.no_grad():
            everywhere = self.errors_.imputed(self.over_grid(self.f, batch), self.grid_labels(batch))
            labels = torch.sigmoid(self.imputation_.model(batch.users, batch.items))
            imputed = self.errors_.imputed(self.f(batch.users, batch.items), labels)
        weights = self.inverse_propensities(self.propensity_.model(batch.users, batch.items))
        # Over the grid, what is centred adds up to nothing.
        return -self.over_log(weights * (imputed - everywhere.mean()))

    def prediction_loss(self, batch: Batch) -> Tensor:
        """Return the self-normalised loss."""
        weights = self.learnt_weights(batch)
        return (weights * self.errors_.errors(self.f(batch.users, batch.items), batch)).sum() / weights.sum()

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Train the propensities, g, then f."""
        loss = self.propensity_loss(batch) + self.balance_weight * self.balance(batch) ** 2
        propensity_loss = self.propensity_.minimise(loss)
        learnt = batch._replace(weights=self.learnt_weights(batch))
        imputation_loss = self.imputation_.minimise(self.imputation_loss(learnt))
        return {
            "loss": self.prediction_.minimise(self.prediction_loss(batch)),
            "imputation_loss": imputation_loss,
            "propensity_loss": propensity_loss,
        }


class Balanced(LearntPropensities):
    r"""Propensities and predictions learnt together. Li et al. (2023), "Propensity matters".

    To the loss of f are added the cross-entropy of o, that of :math:`\hat p f` against o r, and the square of
    :math:`|D|^{-1} \sum_D [o/\hat p - (1-o)/(1-\hat p)]\, f`.
    """

    def joint_loss(self, batch: Batch) -> Tensor:
        """Return all but f's own loss."""
        model = self.propensity_.model
        logits, of_grid = self.f(batch.users, batch.items), self.over_grid(self.f, batch)
        p_logits, p_of_grid = model(batch.users, batch.items), self.over_grid(model, batch)
        p, p_grid = (torch.sigmoid(one).clamp(self.floor_, 1 - 1e-4) for one in (p_logits, p_of_grid))
        f, f_grid = torch.sigmoid(logits), torch.sigmoid(of_grid)
        entire = softplus(p_of_grid).mean() - self.over_log(p_logits)
        # log(1 - p f) everywhere, and on O the rest of the cross-entropy of p f against r.
        both, both_grid = (p * f).clamp(1e-6, 1 - 1e-6), (p_grid * f_grid).clamp(1e-6, 1 - 1e-6)
        clicks = -torch.log1p(-both_grid).mean() - self.over_log(batch.labels * (both.log() - torch.log1p(-both)))
        balance = self.over_log(f * (1 / p + 1 / (1 - p))) - (f_grid / (1 - p_grid)).mean()
        return entire + clicks + self.balance_weight * balance**2

    def step_together(self, batch: Batch) -> dict[str, Tensor]:
        """Train f and the propensities on the sum of all losses."""
        loss = self.prediction_loss(batch) + self.joint_loss(batch)
        return {"loss": minimise_together(loss, self.prediction_, self.propensity_)}


@dataclass(kw_only=True, eq=False, repr=False)
class IPSV2(Balanced):
    """IPS with propensities learnt together with f, held to a balance."""

    name: ClassVar[str] = "ips-v2"
    paper: ClassVar[str] = "Li et al. 2023, Propensity matters: towards achieving balanced causal inference (IPS-V2)"
    summary: ClassVar[str] = "IPS, propensities learnt along"
    needs_grid: ClassVar[bool] = True
    judged_by: ClassVar[str] = "snips"

    def build(self) -> None:
        """Make the propensities."""
        self.build_propensity()

    def prediction_loss(self, batch: Batch) -> Tensor:
        """Return the weighted sum, per pair of the grid."""
        errors = self.errors_.errors(self.f(batch.users, batch.items), batch)
        return self.over_log(self.learnt_weights(batch) * errors)

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Train all on one loss."""
        return self.step_together(batch)


@dataclass(kw_only=True, eq=False, repr=False)
class DRV2(Balanced, DRJL):
    """DR-JL with propensities learnt together with f, held to a balance."""

    name: ClassVar[str] = "dr-v2"
    paper: ClassVar[str] = "Li et al. 2023, Propensity matters: towards achieving balanced causal inference (DR-V2)"
    summary: ClassVar[str] = "DR-JL, propensities learnt along"
    sweeps: ClassVar[bool] = False

    def build(self) -> None:
        """Make g and the propensities."""
        super().build()
        self.build_propensity()

    def beyond_labels(self) -> Tensor:
        """Return it for the propensities given, which the learnt ones start from."""
        return self.beyond_with(self.task_.weights)

    def row_weights(self, batch: Batch) -> Tensor:
        """Return 1/p as learnt."""
        return self.learnt_weights(batch)

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Train f and the propensities together, then g."""
        losses = self.step_together(batch)
        learnt = batch._replace(weights=self.learnt_weights(batch))
        return losses | {"imputation_loss": self.imputation_.minimise(self.imputation_loss(learnt))}
