"""From what a user asks for to a model."""

from __future__ import annotations

import copy
from typing import Any, Literal

import torch
from torch import nn

from verirec.exceptions import ModelError, ParameterError
from verirec.models.factors import FactorModel, SideInformation
from verirec.models.ncf import NeuralModel
from verirec.models.scoring import CustomModel, Model

ModelKind = Literal["mf", "constants", "features", "ncf"]


def build_model(
    kind: Any,
    shape: tuple[int, int],
    dim: int,
    *,
    constants: bool,
    side: SideInformation,
    random: torch.Generator,
) -> Model:
    """Build a model for a grid.

    Parameters
    ----------
    kind
        "mf": factors, with constants unless these are off. "constants": constants alone. "features": all of `side` as
        well. "ncf": a neural one. A `torch.nn.Module`, which is copied and never changed itself, or a function of
        (n_users, n_items) that gives one.
    shape
        (n_users, n_items).
    dim
        Number of factors.
    side
        Features, for "features".

    Examples
    --------
    >>> random = torch.Generator().manual_seed(0)
    >>> model = build_model("mf", (3, 4), 2, constants=True, side=SideInformation(), random=random)
    >>> model(torch.tensor([0, 1]), torch.tensor([3, 3])).shape
    torch.Size([2])
    """
    if kind == "mf":
        return FactorModel(*shape, dim, constants=constants, random=random)
    if kind == "constants":
        return FactorModel(*shape, 0, constants=True, random=random)
    if kind == "features":
        if side.users is None and side.items is None and side.user_logits is None:
            raise ModelError('model="features" needs a log with user or item features')
        return FactorModel(*shape, dim, constants=constants, side=side, random=random)
    if kind == "ncf":
        return NeuralModel(*shape, dim, constants=constants, random=random)
    if isinstance(kind, Model):
        return copy.deepcopy(kind)
    module = copy.deepcopy(kind) if isinstance(kind, nn.Module) else kind(*shape) if callable(kind) else None
    if not isinstance(module, nn.Module):
        raise ParameterError(
            'model must be "mf", "constants", "features", "ncf", a torch.nn.Module of (users, items), or a function of '
            f"(n_users, n_items) that gives one; got {kind!r}"
        )
    model = CustomModel(module)
    model.check(*shape)
    return model
