"""From what a user asks for to a model."""

from __future__ import annotations

import copy
from typing import Any, Literal

import torch
from torch import nn

from verirec.exceptions import ModelError, ParameterError
from verirec.formatting import short
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
        "mf": factors, with constants unless these are off. "constants": constants alone. "features": features as
        well. All three take covariates of pairs, where there are some. "ncf": a neural one. A `torch.nn.Module`, which
        is copied and never changed itself, or a function of (n_users, n_items) that gives one.
    shape
        (n_users, n_items).
    dim
        Number of factors.
    side
        Features, for "features", and covariates.

    Examples
    --------
    >>> random = torch.Generator().manual_seed(0)
    >>> model = build_model("mf", (3, 4), 2, constants=True, side=SideInformation(), random=random)
    >>> model(torch.tensor([0, 1]), torch.tensor([3, 3])).shape
    torch.Size([2])
    """
    if not isinstance(kind, str):
        return _own_model(kind, shape, random)
    if kind in ("mf", "constants"):
        pairs = SideInformation(covariates=side.covariates)
        alone = kind == "constants"
        return FactorModel(*shape, 0 if alone else dim, constants=alone or constants, side=pairs, random=random)
    if kind == "features":
        if side.users is None and side.items is None:
            raise ModelError('model="features" needs a log with user or item features')
        return FactorModel(*shape, dim, constants=constants, side=side, random=random)
    if kind == "ncf":
        return NeuralModel(*shape, dim, constants=constants, random=random)
    raise _unknown(kind)


def _own_model(given: Any, shape: tuple[int, int], random: torch.Generator) -> Model:
    """Copy a user's own module, or have it made, and hold it to what a model must give."""
    if not isinstance(given, nn.Module) and not callable(given):
        raise _unknown(given)
    try:
        # A function may draw from torch's global numbers: the same ones each time, and their state put back.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(random.initial_seed()) % 2**63)
            module = copy.deepcopy(given) if isinstance(given, nn.Module) else given(*shape)
    except Exception as error:
        what = str(error).splitlines()[0] if str(error) else ""
        raise ModelError(f"the function that makes the model raised {type(error).__name__}: {what}") from error
    if not isinstance(module, nn.Module):
        raise _unknown(module)
    wrapped = module if isinstance(module, CustomModel) else CustomModel(module)
    wrapped.check(*shape)
    return module if isinstance(module, Model) else wrapped


def _unknown(given: Any) -> ParameterError:
    return ParameterError(
        'model must be "mf", "constants", "features", "ncf", a torch.nn.Module of (users, items), or a function of '
        f"(n_users, n_items) that gives one; got {short(given)}"
    )
