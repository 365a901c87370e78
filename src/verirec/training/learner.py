"""Models with their optimisers: what is trained."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import Final

import torch
from torch import Tensor, nn

from verirec.models import Model, Penalties

_EPSILON: Final = 1e-12
"""Of Adam: gradients of a mean over millions of cells are small, and must not vanish beside it."""
_MOMENTS: Final = ("step", "exp_avg", "exp_avg_sq")


class Learner:
    r"""A model that is trained.

    The gradient of the penalties :math:`\frac{\lambda}{2n}\lVert\theta\rVert^2` is added to the loss's. All methods'
    losses estimate the mean loss of a pair; n rows know it n times as well as one, and :math:`\lambda = 1/\sigma^2` is
    then the precision of a normal prior: it means the same in each method, however large the log is.

    All parameters, and their gradients, are views of one tensor: a step is then a few calls, whatever the model is made
    of, and small models are trained at the speed of their arithmetic.

    Parameters
    ----------
    model
        To be trained.
    penalties
        Strengths.
    learning_rate
        Of Adam (Kingma and Ba 2015).
    rows
        n, or what the rows are worth.
    """

    def __init__(self, model: Model, penalties: Penalties, learning_rate: float, rows: float = 1.0) -> None:
        self.model, self.penalties, self.learning_rate, self.rows = model, penalties, learning_rate, rows

    @cached_property
    def flat(self) -> nn.Parameter:
        """All parameters in one tensor, of which they become views, as do their gradients."""
        parameters = [one for one in self.model.parameters() if one.requires_grad]
        flat = nn.Parameter(torch.cat([one.detach().reshape(-1) for one in parameters]))
        flat.grad = torch.zeros_like(flat)
        for one, place in zip(parameters, self._places(parameters), strict=True):
            one.data = flat.data[place].view(one.shape)
            one.grad = flat.grad[place].view(one.shape)
        return flat

    @cached_property
    def decay(self) -> Tensor:
        """The penalty of each parameter."""
        parameters = [one for one in self.model.parameters() if one.requires_grad]
        decay = torch.zeros_like(self.flat)
        kinds = {id(one): part.kind for part in self.model.penalised() for one in part.parameters}
        for one, place in zip(parameters, self._places(parameters), strict=True):
            decay[place] = self.penalties.of(kinds[id(one)]) / self.rows if id(one) in kinds else 0.0
        return decay

    @staticmethod
    def _places(parameters: list[nn.Parameter]) -> list[slice]:
        ends = list(accumulate(one.numel() for one in parameters))
        return [slice(end - one.numel(), end) for one, end in zip(parameters, ends, strict=True)]

    @cached_property
    def optimiser(self) -> torch.optim.Adam:
        """Adam, made when it is first asked for: sweeps never do."""
        return torch.optim.Adam([self.flat], lr=self.learning_rate, eps=_EPSILON, fused=True)

    def minimise(self, loss: Tensor) -> Tensor:
        """Take one step down; returns the loss as it was, detached."""
        return minimise_together(loss, self)

    def state(self) -> dict[str, Tensor]:
        """Return all that a checkpoint needs: parameters and the optimiser's moments, by name."""
        named = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        used = "optimiser" in vars(self)
        return (
            named | {f"adam.{name}": value for name, value in self.optimiser.state[self.flat].items()}
            if used
            else named
        )

    def load(self, state: dict[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        own = {name.removeprefix("model."): value for name, value in state.items() if name.startswith("model.")}
        self.model.load_state_dict(own)
        if f"adam.{_MOMENTS[0]}" in state:
            moments = {name: state[f"adam.{name}"].to(self.flat.device, copy=True) for name in _MOMENTS}
            self.optimiser.state[self.flat] = moments


def minimise_together(loss: Tensor, *learners: Learner) -> Tensor:
    """Take one step down with several models on one loss; returns the loss as it was, detached."""
    for learner in learners:
        learner.flat.grad.zero_()  # type: ignore[union-attr]
    loss.backward()  # type: ignore[no-untyped-call]
    for learner in learners:
        learner.flat.grad.addcmul_(learner.decay, learner.flat.data)  # type: ignore[union-attr]
        learner.optimiser.step()
    return loss.detach()


class Learners:
    """All that an objective trains, by name: "prediction", and what else it has.

    Parameters
    ----------
    by_name
        The models with their optimisers.
    state
        What else changes as they are trained: counts and averages that are no parameters.
    """

    def __init__(self, by_name: dict[str, Learner], state: dict[str, Tensor]) -> None:
        self.by_name, self.state = by_name, state
        self.epoch = 0
        """The epoch that is under way."""

    def __getitem__(self, name: str) -> Model:
        return self.by_name[name].model

    def minimise(self, loss: Tensor, names: tuple[str, ...]) -> Tensor:
        """Take one step down with some of them; returns the loss as it was, detached."""
        return minimise_together(loss, *(self.by_name[name] for name in names))
