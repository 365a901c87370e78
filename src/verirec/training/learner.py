"""A model with its optimiser: a method asks it to minimise, as often and in whatever order its paper says."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from verirec.models import Model, Penalties

_EPSILON: Final = 1e-12
"""Of Adam: gradients of a mean over millions of cells are small, and must not vanish beside it."""


class Learner:
    r"""A model that is trained.

    The penalties :math:`\frac{\lambda}{2c}\lVert\theta\rVert^2` (see `verirec.models.scoring.Penalised`) enter as
    Adam's own weight decay, which adds just their gradient. All methods' losses estimate the mean loss of a pair, so
    that a penalty means the same in each.

    Parameters
    ----------
    model
        To be trained.
    penalties
        Strengths.
    learning_rate
        Of Adam (Kingma and Ba 2015).
    """

    def __init__(self, model: Model, penalties: Penalties, learning_rate: float) -> None:
        self.model = model
        groups = [
            {"params": part.parameters, "weight_decay": penalties.of(part.kind) / part.members}
            for part in model.penalised()
        ]
        grouped = {id(one) for group in groups for one in group["params"]}  # type: ignore[attr-defined]
        free = [one for one in model.parameters() if id(one) not in grouped and one.requires_grad]
        if free:
            groups.append({"params": free, "weight_decay": 0.0})
        self.optimiser = torch.optim.Adam(groups, lr=learning_rate, eps=_EPSILON, fused=True)

    def minimise(self, loss: Tensor) -> Tensor:
        """Take one step down; gives the loss as it was, detached."""
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return loss.detach()

    def state(self) -> dict[str, Tensor]:
        """Give all that a checkpoint needs: parameters and the optimiser's moments, by name."""
        named = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            for moment, value in self.optimiser.state.get(parameter, {}).items():
                named[f"adam.{moment}.{name}"] = value
        return named

    def load(self, state: dict[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        prefix = "model."
        self.model.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
        for name, parameter in self.model.named_parameters():
            moments = {key.split(".")[1]: value.clone() for key, value in state.items() if _is_moment(key, name)}
            if moments:
                self.optimiser.state[parameter] = moments


def _is_moment(key: str, name: str) -> bool:
    kind, _, rest = key.partition(".")
    return kind == "adam" and rest.partition(".")[2] == name
