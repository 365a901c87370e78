"""Models with their optimisers: what is trained."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import Final

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from verirec.models import Model, Penalties
from verirec.training.logits import BatchLogits

_EPSILON: Final = 1e-12
"""Of Adam: gradients of a mean over millions of cells are small, and must not vanish beside it."""
_MOMENTS: Final = ("step", "exp_avg", "exp_avg_sq")


class Adam:
    """Adam (Kingma and Ba 2015) of one tensor; torch's arithmetic without `torch.optim.Adam`, whose hooks cost more
    than a step of a small model, and which imports torch's compiler.

    Parameters
    ----------
    parameters
        With a gradient; changed in place.
    learning_rate
        Of a step.
    """

    def __init__(self, parameters: Tensor, learning_rate: float) -> None:
        self.parameters, self.learning_rate = parameters, learning_rate
        zeros = torch.zeros_like(parameters)
        step = torch.zeros((), dtype=torch.float32, device=parameters.device)
        self.moments = {"step": step, "exp_avg": zeros, "exp_avg_sq": zeros.clone()}

    def step(self, gradient: Tensor) -> None:
        """Take one step down."""
        step, mean, square = ([self.moments[name]] for name in _MOMENTS)
        adam(
            [self.parameters],
            [gradient],
            mean,
            square,
            [],
            step,
            foreach=False,
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=_EPSILON,
            maximize=False,
        )


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
    def _parameters(self) -> list[nn.Parameter]:
        return [one for one in self.model.parameters() if one.requires_grad]

    @cached_property
    def flat(self) -> Tensor:
        """All parameters in one tensor, of which they become views."""
        flat = torch.cat([one.detach().reshape(-1) for one in self._parameters])
        for one, place in zip(self._parameters, self._places, strict=True):
            one.data = flat[place].view(one.shape)
        return flat

    @cached_property
    def gradient(self) -> Tensor:
        """All parameters' gradients in one tensor, of which they become views."""
        gradient = torch.zeros_like(self.flat)
        for one, place in zip(self._parameters, self._places, strict=True):
            one.grad = gradient[place].view(one.shape)
        return gradient

    @cached_property
    def decay(self) -> Tensor:
        """The penalty of each parameter."""
        decay = torch.zeros_like(self.flat)
        kinds = {id(one): part.kind for part in self.model.penalised() for one in part.parameters}
        for one, place in zip(self._parameters, self._places, strict=True):
            decay[place] = self.penalties.of(kinds[id(one)]) / self.rows if id(one) in kinds else 0.0
        return decay

    @cached_property
    def _places(self) -> list[slice]:
        ends = list(accumulate(one.numel() for one in self._parameters))
        return [slice(end - one.numel(), end) for one, end in zip(self._parameters, ends, strict=True)]

    @cached_property
    def optimiser(self) -> Adam:
        """Adam, made when it is first asked for: sweeps never do."""
        return Adam(self.flat, self.learning_rate)

    def minimise(self, loss: Tensor) -> Tensor:
        """Take one step down; returns the loss as it was, detached."""
        return minimise_together(loss, self)

    def state(self) -> dict[str, Tensor]:
        """Return all that a checkpoint needs: parameters and the optimiser's moments, by name."""
        named = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        moments = self.optimiser.moments if "optimiser" in vars(self) else {}
        return named | {f"adam.{name}": value for name, value in moments.items()}

    def load(self, state: dict[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        own = {name.removeprefix("model."): value for name, value in state.items() if name.startswith("model.")}
        self.model.load_state_dict(own)
        if f"adam.{_MOMENTS[0]}" in state:
            for name, value in self.optimiser.moments.items():
                value.copy_(state[f"adam.{name}"])


def minimise_together(loss: Tensor, *learners: Learner, logits: BatchLogits | None = None) -> Tensor:
    """Take one step down with several models on one loss; returns the loss as it was, detached.

    Parameters
    ----------
    loss
        With a gradient for these models.
    learners
        The models.
    logits
        Those that the loss was made of, where their gradients stop at them.
    """
    for learner in learners:
        # Gradients start from the penalties'.
        torch.mul(learner.decay, learner.flat, out=learner.gradient)
    loss.backward()  # type: ignore[no-untyped-call]
    if logits is not None:
        logits.pull_back([learner.model for learner in learners])
    for learner in learners:
        learner.optimiser.step(learner.gradient)
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

    def minimise(self, loss: Tensor, names: tuple[str, ...], logits: BatchLogits | None = None) -> Tensor:
        """Take one step down with some of them; returns the loss as it was, detached: see `minimise_together`."""
        return minimise_together(loss, *(self.by_name[name] for name in names), logits=logits)
