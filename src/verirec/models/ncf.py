"""Neural collaborative filtering (He et al. 2017): embeddings, a layer on both together, and one logit."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from verirec.models.scoring import Model, Penalised, set_to_typical, state_with_strangers
from verirec.models.tracing import Trace, trace_by_graph


class NeuralModel(Model):
    """Embeddings of user and item, side by side, through one hidden layer; constants beside it.

    Parameters
    ----------
    n_users, n_items, dim
        The grid's size, and the width of embeddings and hidden layer.
    constants
        Whether users, items and all have a constant.
    random
        Where embeddings and weights start from.
    """

    def __init__(self, n_users: int, n_items: int, dim: int, *, constants: bool, random: torch.Generator) -> None:
        super().__init__()
        self.shape, self.dim, self.constants = (n_users, n_items), dim, constants
        self.user_factors = nn.Parameter(0.1 * torch.randn(n_users, dim, generator=random))
        self.item_factors = nn.Parameter(0.1 * torch.randn(n_items, dim, generator=random))
        self.hidden = nn.Parameter(torch.randn(2 * dim, dim, generator=random) / (2 * dim) ** 0.5)
        self.hidden_constant = nn.Parameter(torch.zeros(dim))
        self.output = nn.Parameter(torch.randn(dim, generator=random) / dim**0.5)
        if constants:
            self.constant = nn.Parameter(torch.zeros(()))
            self.user_constants = nn.Parameter(torch.zeros(n_users))
            self.item_constants = nn.Parameter(torch.zeros(n_items))

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Go through the layer."""
        both = torch.cat([self.user_factors[users], self.item_factors[items]], 1)
        logits: Tensor = torch.relu(both @ self.hidden + self.hidden_constant) @ self.output
        if self.constants:
            logits = logits + self.user_constants[users] + self.item_constants[items] + self.constant
        return logits

    def trace(self, users: Tensor, items: Tensor) -> Trace:
        """Return the logits of pairs with the way back."""
        return trace_by_graph(self, users, items)

    def trace_grid(self, users: Tensor, items: Tensor) -> Trace:
        """Return the same of a rectangle."""
        return trace_by_graph(self.grid, users, items)

    def penalised(self) -> Iterator[Penalised]:
        """Return embeddings, constants and layer weights."""
        yield Penalised([self.user_factors, self.item_factors], "factors")
        yield Penalised([self.hidden, self.output], "features")
        if self.constants:
            yield Penalised([self.user_constants], "users")
            yield Penalised([self.item_constants], "items")

    def forget_cold(self, users: Tensor, items: Tensor) -> None:
        """Return users and items without ratings the mean embedding and the mean constant of the others."""
        for side, cold in (("user", users), ("item", items)):
            for part in ("factors", "constants") if self.constants else ("factors",):
                set_to_typical(getattr(self, f"{side}_{part}"), cold)

    def with_strangers(self, cold_users: Tensor, cold_items: Tensor) -> NeuralModel:
        """Return a copy with one more user and one more item: mean embeddings and constants."""
        shape = (self.shape[0] + 1, self.shape[1] + 1)
        model = NeuralModel(*shape, self.dim, constants=self.constants, random=torch.Generator())
        model.load_state_dict(state_with_strangers(self, cold_users, cold_items))
        return model.eval()
