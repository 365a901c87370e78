"""What a model is: logits of pairs, logits of rectangles, and which of its parameters are penalised how."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from verirec.exceptions import ModelError


class Penalised(NamedTuple):
    """Parameters that share a penalty, and which one: "constants", "factors" or "features"."""

    parameters: list[nn.Parameter]
    kind: str


class Model(nn.Module):
    """A model of the logit of P(r = 1) for every pair of a user and an item."""

    @abstractmethod
    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Return the logits of pairs: positions of shape (n,), result (n,)."""

    def grid(self, users: Tensor, items: Tensor) -> Tensor:
        """Return the logits of a rectangle: positions of shape (a,) and (b,), result (a, b)."""
        pairs = users.repeat_interleave(len(items)), items.repeat(len(users))
        logits: Tensor = self(*pairs)
        return logits.view(len(users), len(items))

    def penalised(self) -> Iterator[Penalised]:
        """Return the parameters by penalty; those left out have none."""
        yield Penalised([one for one in self.parameters() if one.requires_grad], "factors")

    def forget_cold(self, users: Tensor, items: Tensor) -> None:
        """Leave users and items that nobody rated, or who rated nothing, with what all have in common."""


def set_to_mean(values: Tensor, cold: Tensor) -> None:
    """Set some rows to the mean of the others, in place."""
    if 0 < len(cold) < len(values):
        warm = torch.ones(len(values), dtype=torch.bool, device=values.device)
        warm[cold] = False
        with torch.no_grad():
            values[cold] = values[warm].mean(0)


class CustomModel(Model):
    """A user's own module, held to what a model must give."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Ask the module, and look at what it says."""
        logits = self.module(users, items)
        if not isinstance(logits, Tensor) or not logits.dtype.is_floating_point:
            kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
            raise ModelError(f"the model must give a tensor of logits; got {kind}")
        if logits.shape == (len(users), 1):
            logits = logits.squeeze(1)
        if logits.shape != users.shape:
            raise ModelError(f"the model must give one logit a pair, shape ({len(users)},); got {tuple(logits.shape)}")
        return logits

    def check(self, n_users: int, n_items: int) -> None:
        """Ask for some pairs before any training: probabilities, a wrong shape or NaN are a `ModelError`."""
        random = torch.Generator().manual_seed(0)
        # The last user and the last item too: an embedding may be one short.
        users = torch.cat([torch.randint(n_users, (254,), generator=random), torch.tensor([0, n_users - 1])])
        items = torch.cat([torch.randint(n_items, (254,), generator=random), torch.tensor([0, n_items - 1])])
        try:
            with torch.random.fork_rng(devices=[]):
                logits = self(users, items)
                finite = bool(torch.isfinite(logits).all())
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                f"the model must map two tensors of positions (users, items) to logits; it raised "
                f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            ) from error
        if not finite:
            raise ModelError("the model must give finite logits; it gave NaN or infinity before any training")
        if len(logits.unique()) > 1 and bool(((logits > 0) & (logits < 1)).all()):
            raise ModelError(
                "the model must give logits; all that it gave lie between 0 and 1, as probabilities do: leave out its "
                "last sigmoid"
            )
        if not any(parameter.requires_grad for parameter in self.parameters()):
            raise ModelError("the model has no parameters to train")
        if not logits.requires_grad:
            raise ModelError("the model's logits must depend on its parameters; they have no gradient")
