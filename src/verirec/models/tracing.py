r"""Logits with the way back from their gradient to a model's parameters, in closed form where it is known.

Of :math:`z_{ui} = b + b_u + b_i + u_u \cdot v_i` and a gradient g of the logits, :math:`v_i` gets
:math:`\sum g\, u_u`, a constant the sum of its g: on a rectangle two matrix products. A general graph of the same takes
several times as many steps, each as long as its arithmetic on a small batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from verirec.models.factors import FactorModel


class Trace(NamedTuple):
    """Logits that a loss can be made of, and the way back.

    Parameters
    ----------
    logits
        A leaf of the loss's graph.
    back
        Adds to the parameters' gradients what follows from the logits' one.
    """

    logits: Tensor
    back: Callable[[Tensor], object]


def trace_by_graph(compute: Callable[[Tensor, Tensor], Tensor], users: Tensor, items: Tensor) -> Trace:
    """Return logits whose way back is autograd's."""
    with torch.enable_grad():
        logits = compute(users, items)
    return Trace(logits.detach().requires_grad_(), logits.backward)


def trace_pairs(model: FactorModel, users: Tensor, items: Tensor) -> Trace:
    """Return the logits of pairs, for a model of factors and constants."""
    with torch.no_grad():
        parts = []
        if model.dim:
            of_users, of_items = model.user_factors.index_select(0, users), model.item_factors.index_select(0, items)
            parts.append(torch.linalg.vecdot(of_users, of_items))
        if model.constants:
            parts += [model.user_constants.index_select(0, users), model.item_constants.index_select(0, items)]
            parts.append(model.constant)
        logits = _added(parts)

    def back(gradient: Tensor) -> None:
        if model.dim:
            _gradient(model.user_factors).index_add_(0, users, of_items * gradient[:, None])
            _gradient(model.item_factors).index_add_(0, items, of_users * gradient[:, None])
        if model.constants:
            _gradient(model.user_constants).index_add_(0, users, gradient)
            _gradient(model.item_constants).index_add_(0, items, gradient)
            _gradient(model.constant).add_(gradient.sum())

    return Trace(logits.requires_grad_(), back)


def trace_rectangle(model: FactorModel, users: Tensor, items: Tensor) -> Trace:
    """Return the logits of a rectangle, for a model of factors and constants."""
    with torch.no_grad():
        parts = []
        if model.dim:
            of_users, of_items = model.user_factors.index_select(0, users), model.item_factors.index_select(0, items)
            parts.append(of_users @ of_items.T)
        if model.constants:
            sides = model.user_constants.index_select(0, users), model.item_constants.index_select(0, items)
            parts += [sides[0].add_(model.constant)[:, None], sides[1][None, :]]
        logits = _added(parts) if model.dim else parts[0] + parts[1]

    def back(gradient: Tensor) -> None:
        if model.dim:
            _gradient(model.user_factors).index_add_(0, users, gradient @ of_items)
            _gradient(model.item_factors).index_add_(0, items, gradient.T @ of_users)
        if model.constants:
            by_user = gradient.sum(1)
            _gradient(model.user_constants).index_add_(0, users, by_user)
            _gradient(model.item_constants).index_add_(0, items, gradient.sum(0))
            _gradient(model.constant).add_(by_user.sum())

    return Trace(logits.requires_grad_(), back)


def _added(parts: list[Tensor]) -> Tensor:
    """Add up parts in place of the first, the largest."""
    for part in parts[1:]:
        parts[0].add_(part)
    return parts[0]


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad
