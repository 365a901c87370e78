"""What a model is: logits of pairs, logits of rectangles, and which of its parameters are penalised how."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from verirec.exceptions import ModelError, ParameterError
from verirec.models.tracing import Trace


class Penalised(NamedTuple):
    """Parameters that share a penalty, and which one: a field of `Penalties`."""

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

    def trace(self, users: Tensor, items: Tensor) -> Trace | None:
        """Return the logits of pairs with the way back to the parameters; `None` where each call must be asked anew.

        So it must where two calls may differ, as with dropout.
        """
        return None

    def trace_grid(self, users: Tensor, items: Tensor) -> Trace | None:
        """Return the same of a rectangle."""
        return None

    def penalised(self) -> Iterator[Penalised]:
        """Return the parameters by penalty; those left out have none."""
        yield Penalised([one for one in self.parameters() if one.requires_grad], "factors")

    def forget_cold(self, users: Tensor, items: Tensor) -> None:
        """Leave users and items that nobody rated, or who rated nothing, with what all have in common."""

    def with_strangers(self, cold_users: Tensor, cold_items: Tensor) -> Model:
        """Return a copy with one more user and one more item, last, that have what all have in common, as cold ones do.

        Parameters
        ----------
        cold_users, cold_items
            Positions of those without ratings.
        """
        raise ParameterError(f"a {type(self).__name__} cannot predict users or items that it has not seen")


def typical(values: Tensor, cold: Tensor) -> Tensor:
    """Return the mean of all rows but the cold ones; of all rows where all are cold."""
    warm = torch.ones(len(values), dtype=torch.bool, device=values.device)
    warm[cold] = len(cold) == len(values)
    return values.detach()[warm].mean(0)


def set_to_typical(values: Tensor, cold: Tensor) -> None:
    """Set cold rows to the mean of the others, in place."""
    if 0 < len(cold) < len(values):
        with torch.no_grad():
            values[cold] = typical(values, cold)


def state_with_strangers(model: Model, cold_users: Tensor, cold_items: Tensor) -> dict[str, Tensor]:
    """Return a model's state with a typical row behind all that is of users or of items."""
    state = dict(model.state_dict())
    for side, cold in (("user", cold_users), ("item", cold_items)):
        for name in (f"{side}_factors", f"{side}_constants"):
            if name in state:
                state[name] = torch.cat([state[name], typical(state[name], cold)[None]])
    return state


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
