"""What training needs to know of a method, apart from its objective."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, Self

from verirec.models import Penalties
from verirec.randomness import RandomState
from verirec.training.correction import Kind
from verirec.training.heads import HeadName
from verirec.training.schedule import AnchorRule
from verirec.training.schedule import Anchors as Anchors

ALONE: Final = 2.0
"""The factor penalty of factors alone, which have levels to explain as well."""


@dataclass(frozen=True, eq=False)
class TrainingSettings:
    """A method's name, needs and parameters at the time of training: `verirec.methods.Method` explains each."""

    name: str
    needs_grid: bool
    needs_all_propensities: bool
    uses_propensities: bool
    takes_clicks: bool
    takes_features: bool
    takes_levels: bool
    own_estimator: str
    model: Any
    dim: int
    constants: bool
    head: HeadName | None
    loss: str
    penalty_factors: float | None
    penalty_constants: float
    penalty_features: float
    penalty_users: float | None
    penalty_items: float | None
    covariates: str | None
    solver: str
    learning_rate: float
    batch_size: int
    grid_cells: int
    patience: int | None
    validation: float
    validation_estimator: str | None
    correction: Kind
    anchors: Anchors
    h: Any
    refresh_after: int
    max_rate: float
    random_state: RandomState
    device: str
    savable_parameters: dict[str, Any]

    @classmethod
    def of(cls, method: Any) -> Self:
        """Take them from a method."""
        return cls(**{one.name: getattr(method, one.name) for one in fields(cls)})

    def penalties(self, times: float = 1.0) -> Penalties:
        """Return the penalties, all of them multiplied by a number."""
        own = (self.penalty_constants, self.penalty_factors or 0.0, self.penalty_features)
        sides = (None if one is None else times * one for one in (self.penalty_users, self.penalty_items))
        return Penalties(*(times * one for one in own), *sides)

    @property
    def exposure_covariates(self) -> str:
        """Which covariates there are: by default the propensity's logit beside features, and none otherwise."""
        if self.covariates is not None:
            return self.covariates
        return "propensity" if isinstance(self.model, str) and self.model == "features" else "none"

    @property
    def anchor_rule(self) -> AnchorRule:
        """How noise rates are learnt, where they have to be."""
        return AnchorRule(self.anchors, self.refresh_after, self.max_rate)
