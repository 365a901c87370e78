r"""Logits with the way back from their gradient to a model's parameters, in closed form where it is known.

Of :math:`z_{ui} = b + b_u + b_i + u_u \cdot v_i` and a gradient g of the logits, :math:`v_i` gets
:math:`\sum g\, u_u`, a constant the sum of its g: on a rectangle two matrix products. A general graph of the same takes
several times as many steps, each as long as its arithmetic on a small batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


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


class FactorParts(NamedTuple):
    """Factors, shapes (n_users, d) and (n_items, d), and constants; either may be missing, as empty."""

    factors: tuple[Tensor, Tensor] | tuple[()]
    constants: tuple[Tensor, Tensor, Tensor] | tuple[()]
    """Of users, of items and of all."""


def trace_by_graph(compute: Callable[[Tensor, Tensor], Tensor], users: Tensor, items: Tensor) -> Trace:
    """Return logits whose way back is autograd's."""
    with torch.enable_grad():
        logits = compute(users, items)
    return Trace(logits.detach().requires_grad_(), logits.backward)


def trace_pairs(parts: FactorParts, users: Tensor, items: Tensor) -> Trace:
    """Return the logits of pairs, for a model of factors and constants."""
    added = []
    with torch.no_grad():
        if parts.factors:
            of_users, of_items = _looked_up(*parts.factors, users, items)
            added.append(torch.linalg.vecdot(of_users, of_items))
        if parts.constants:
            added += [*_looked_up(*parts.constants[:2], users, items), parts.constants[2]]
        logits = _added(added)

    def back(gradient: Tensor) -> None:
        if parts.factors:
            slopes = gradient[:, None]
            _add_at(parts.factors[0], users, of_items * slopes)
            _add_at(parts.factors[1], items, of_users * slopes)
        if parts.constants:
            _add_at(parts.constants[0], users, gradient)
            _add_at(parts.constants[1], items, gradient)
            _gradient(parts.constants[2]).add_(gradient.sum())

    return Trace(logits.requires_grad_(), back)


def trace_rectangle(parts: FactorParts, users: Tensor, items: Tensor) -> Trace:
    """Return the logits of a rectangle, for a model of factors and constants."""
    added = []
    with torch.no_grad():
        if parts.factors:
            of_users, of_items = _looked_up(*parts.factors, users, items)
            added.append(of_users @ of_items.T)
        if parts.constants:
            user_constants, item_constants = _looked_up(*parts.constants[:2], users, items)
            added += [user_constants.add_(parts.constants[2])[:, None], item_constants[None, :]]
        logits = _added(added) if parts.factors else added[0] + added[1]

    def back(gradient: Tensor) -> None:
        if parts.factors:
            _add_at(parts.factors[0], users, gradient @ of_items)
            _add_at(parts.factors[1], items, gradient.T @ of_users)
        if parts.constants:
            by_user = gradient.sum(1)
            _add_at(parts.constants[0], users, by_user)
            _add_at(parts.constants[1], items, gradient.sum(0))
            _gradient(parts.constants[2]).add_(by_user.sum())

    return Trace(logits.requires_grad_(), back)


def _looked_up(of_users: Tensor, of_items: Tensor, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
    return of_users.index_select(0, users), of_items.index_select(0, items)


def _added(parts: list[Tensor]) -> Tensor:
    """Add up parts in place of the first, the largest."""
    for part in parts[1:]:
        parts[0].add_(part)
    return parts[0]


def _add_at(parameter: Tensor, places: Tensor, slopes: Tensor) -> None:
    _gradient(parameter).index_add_(0, places, slopes)


def _gradient(parameter: Tensor) -> Tensor:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad
