r"""Matrix factorisation with constants and features: the model of most methods, in one class.

.. math:: z_{ui} = b + b_u + b_i + u_u \cdot v_i + x_u^\top A\, y_i + a \cdot x_u + c \cdot y_i + w \cdot c_{ui}

with features x and y, and covariates :math:`c_{ui}` of the pair, such as the logit of its propensity. Each part can be
left out; without constants and features it is the paper's form (Section 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from verirec.models.covariates import Covariates
from verirec.models.scoring import Model, Penalised, set_to_typical, state_with_strangers
from verirec.models.tracing import FactorParts, Trace, trace_by_graph, trace_pairs, trace_rectangle

_SPREAD = 0.1
"""Standard deviation of an inner product at the start."""


@dataclass(frozen=True)
class Penalties:
    r"""Strengths of the penalties by kind: precisions :math:`1/\sigma^2` of normal priors around 0.

    Constants of users and of items may have strengths of their own in place of the one for both.
    """

    constants: float
    factors: float
    features: float
    users: float | None = None
    items: float | None = None

    def of(self, kind: str) -> float:
        """Look a kind up: "users" and "items" are their constants."""
        own = getattr(self, kind)
        return float(self.constants if own is None else own)

    @property
    def least_of_constants_and_features(self) -> float:
        """The smallest of all but the factors'."""
        return min(self.of(kind) for kind in ("users", "items", "features"))


@dataclass(frozen=True, eq=False)
class SideInformation:
    """Features of users and items as tensors, and covariates of pairs; each may be missing.

    Parameters
    ----------
    users, items
        Standardised features, shapes (n_users, p) and (n_items, q).
    covariates
        Of pairs.
    """

    users: Tensor | None = None
    items: Tensor | None = None
    covariates: Covariates | None = None


def _sum(parts: list[Tensor]) -> Tensor:
    """Add up parts that broadcast, small ones first."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


class FactorModel(Model):
    """Matrix factorisation with constants, features and covariates of pairs.

    Parameters
    ----------
    n_users, n_items
        The grid's size.
    dim
        Number of factors; 0 for constants (and features) alone.
    constants
        Whether users, items and all have a constant.
    side
        Features and covariates.
    random
        Where the factors start from.
    """

    def __init__(
        self,
        n_users: int,
        n_items: int,
        dim: int,
        *,
        constants: bool = True,
        side: SideInformation | None = None,
        random: torch.Generator,
    ) -> None:
        super().__init__()
        self.shape, self.dim, self.constants = (n_users, n_items), dim, constants
        if dim:
            scale = (_SPREAD**0.5) / dim**0.25
            self.user_factors = nn.Parameter(scale * torch.randn(n_users, dim, generator=random))
            self.item_factors = nn.Parameter(scale * torch.randn(n_items, dim, generator=random))
        if constants:
            self.constant = nn.Parameter(torch.zeros(()))
            self.user_constants = nn.Parameter(torch.zeros(n_users))
            self.item_constants = nn.Parameter(torch.zeros(n_items))
        self._add_features(side or SideInformation())

    def _add_features(self, side: SideInformation) -> None:
        self.user_features: Tensor | None
        self.item_features: Tensor | None
        self.register_buffer("user_features", side.users, persistent=False)
        self.register_buffer("item_features", side.items, persistent=False)
        self.covariates = side.covariates
        if side.users is not None:
            self.user_weights = nn.Parameter(torch.zeros(side.users.shape[1]))
        if side.items is not None:
            self.item_weights = nn.Parameter(torch.zeros(side.items.shape[1]))
        if side.users is not None and side.items is not None:
            self.interactions = nn.Parameter(torch.zeros(side.users.shape[1], side.items.shape[1]))
        if side.covariates is not None:
            self.covariate_weights = nn.Parameter(torch.zeros(len(side.covariates)))

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Add up all parts for pairs."""
        parts: list[Tensor] = [self.constant] if self.constants else []
        if self.dim:
            # Unlike indexing, this has a quick way back.
            factors = self.user_factors.index_select(0, users), self.item_factors.index_select(0, items)
            parts.append(torch.linalg.vecdot(*factors))
        if self.has_user_part:
            parts.append(self.of_users().index_select(0, users))
        if self.has_item_part:
            parts.append(self.of_items().index_select(0, items))
        if self.user_features is not None and self.item_features is not None:
            parts.append(torch.linalg.vecdot(self.user_features[users] @ self.interactions, self.item_features[items]))
        if self.covariates is not None:
            weights = self.covariate_weights
            parts.append(self.covariates.pairs(users, items).to(weights.dtype) @ weights)
        return _sum(parts).expand(len(users))

    def grid(self, users: Tensor, items: Tensor) -> Tensor:
        """Add up all parts for a rectangle, by matrix products."""
        parts: list[Tensor] = [self.constant] if self.constants else []
        if self.has_user_part:
            parts.append(self.of_users().index_select(0, users)[:, None])
        if self.has_item_part:
            parts.append(self.of_items().index_select(0, items)[None, :])
        if self.dim:
            parts.append(self.user_factors.index_select(0, users) @ self.item_factors.index_select(0, items).T)
        if self.user_features is not None and self.item_features is not None:
            parts.append((self.user_features[users] @ self.interactions) @ self.item_features[items].T)
        if self.covariates is not None:
            parts.append(self.of_covariates(users, items))
        return _sum(parts).expand(len(users), len(items))

    def trace(self, users: Tensor, items: Tensor) -> Trace:
        """Return the logits of pairs with the way back."""
        parts = self._parts()
        return trace_by_graph(self, users, items) if parts is None else trace_pairs(parts, users, items)

    def trace_grid(self, users: Tensor, items: Tensor) -> Trace:
        """Return the same of a rectangle."""
        parts = self._parts()
        return trace_by_graph(self.grid, users, items) if parts is None else trace_rectangle(parts, users, items)

    def _parts(self) -> FactorParts | None:
        """Return factors and constants; `None` where there is more to it."""
        if self.has_features or self.covariates is not None:
            return None
        factors = (self.user_factors, self.item_factors) if self.dim else ()
        return FactorParts(factors, (self.user_constants, self.item_constants, self.constant) if self.constants else ())

    def of_covariates(self, users: Tensor, items: Tensor) -> Tensor:
        """Return what covariates add to a rectangle, shape (a, b); there must be some."""
        assert self.covariates is not None  # noqa: S101
        weights = self.covariate_weights
        return torch.einsum("cab,c->ab", self.covariates.rectangle(users, items).to(weights.dtype), weights)

    @property
    def factors_alone(self) -> bool:
        """Whether it is the paper's form: factors, and nothing else."""
        parts = self.has_user_part or self.has_item_part or self.covariates is not None
        return bool(self.dim) and not parts

    @property
    def has_features(self) -> bool:
        """Whether it has features of users or items."""
        return self.user_features is not None or self.item_features is not None

    @property
    def has_user_part(self) -> bool:
        """Whether anything belongs to the user alone."""
        return self.constants or self.user_features is not None

    @property
    def has_item_part(self) -> bool:
        """Whether anything belongs to the item alone."""
        return self.constants or self.item_features is not None

    def of_users(self) -> Tensor:
        """Return what belongs to each user alone, shape (n_users,)."""
        return self._side("user")

    def of_items(self) -> Tensor:
        """Return what belongs to each item alone, shape (n_items,)."""
        return self._side("item")

    def _side(self, side: str) -> Tensor:
        parts = []
        if self.constants:
            parts.append(getattr(self, f"{side}_constants"))
        if getattr(self, f"{side}_features") is not None:
            parts.append(getattr(self, f"{side}_features") @ getattr(self, f"{side}_weights"))
        return torch.stack(parts).sum(0) if len(parts) > 1 else parts[0]

    def penalised(self) -> Iterator[Penalised]:
        """Return factors, constants and feature weights; the global constant has no penalty."""
        if self.dim:
            yield Penalised([self.user_factors, self.item_factors], "factors")
        if self.constants:
            yield Penalised([self.user_constants], "users")
            yield Penalised([self.item_constants], "items")
        names = ("user_weights", "item_weights", "interactions", "covariate_weights")
        weights = [getattr(self, name, None) for name in names]
        if any(one is not None for one in weights):
            yield Penalised([one for one in weights if one is not None], "features")

    def forget_cold(self, users: Tensor, items: Tensor) -> None:
        """Return users and items without ratings the mean factors and the mean constant of the others."""
        for side, cold in (("user", users), ("item", items)):
            for part in ("factors", "constants"):
                if hasattr(self, f"{side}_{part}"):
                    set_to_typical(getattr(self, f"{side}_{part}"), cold)

    def with_strangers(self, cold_users: Tensor, cold_items: Tensor) -> FactorModel:
        """Return a copy with one more user and one more item: mean factors and constants, and no features."""
        sides = (self.user_features, self.item_features)
        users, items = (None if one is None else torch.cat([one, torch.zeros_like(one[:1])]) for one in sides)
        shape = (self.shape[0] + 1, self.shape[1] + 1)
        side = SideInformation(users, items, self.covariates)
        model = FactorModel(*shape, self.dim, constants=self.constants, side=side, random=torch.Generator())
        model.load_state_dict(state_with_strangers(self, cold_users, cold_items))
        return model.eval()
