"""Logits of a batch: worked out once, for as long as a model stays as it is, however often a method's losses ask."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import torch
from torch import Tensor

from verirec.models import Model
from verirec.models.tracing import Trace


class _Place(NamedTuple):
    """Pairs or a rectangle of a model, by identity."""

    model: int
    users: int
    items: int


class BatchLogits:
    """A batch's logits by model; where a model knows the way back to its parameters, losses' gradients stop at them.

    A loss's graph is then one of the logits alone. What several terms and steps ask for is made, and goes back, once.
    """

    def __init__(self) -> None:
        self._known: dict[_Place, tuple[Model, Trace, Tensor, Tensor]] = {}

    def of(self, model: Model, users: Tensor, items: Tensor, *, rectangle: bool) -> Tensor:
        """Return a model's logits of pairs or of a rectangle; losses must not change them in place."""
        # The positions are kept with what was found, so that their identities are nobody else's.
        place = _Place(id(model), id(users), id(items))
        if place not in self._known:
            trace = (model.trace_grid if rectangle else model.trace)(users, items)
            if trace is None:
                logits: Tensor = model.grid(users, items) if rectangle else model(users, items)
                return logits
            self._known[place] = model, trace, users, items
        found = self._known[place][1].logits
        return found if torch.is_grad_enabled() else found.detach()

    def pull_back(self, trained: Collection[Model]) -> None:
        """Hand a loss's gradient on to the parameters of some models, whose logits are then out of date."""
        for place, (model, trace, _, _) in list(self._known.items()):
            gradient, trace.logits.grad = trace.logits.grad, None
            if model in trained:
                del self._known[place]
                if gradient is not None:
                    trace.back(gradient)
