"""New users in a trained model: their own parameters by their ratings, all else as it is."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from verirec.data.feedback_log import FeedbackLog
from verirec.data.ids import IdMap
from verirec.estimation.inputs import KnownNoise
from verirec.exceptions import ParameterError, UnknownIdError, UnknownIdWarning, warn_caller
from verirec.losses import GroupedNoiseRates
from verirec.models import FactorModel, Model
from verirec.models.factors import SideInformation
from verirec.models.scoring import typical
from verirec.training.heads import BINARY, Head
from verirec.training.user_fits import user_fit

Array = npt.NDArray[np.float64]


def rows_of_known_items(ratings: FeedbackLog, item_ids: IdMap) -> tuple[FeedbackLog, npt.NDArray[np.int32]]:
    """Return the rows whose items a model knows, and where these are; the others are left out, with a warning."""
    items = item_ids.find(ratings.item_ids.arrow(), name="items")[ratings.items]
    known = items >= 0
    if known.all():
        return ratings, items
    first = ratings.item_ids.ids(ratings.items[~known][:1]).tolist()[0]
    if not known.any():
        raise UnknownIdError(f"the model knows none of the {len(ratings):,} ratings' items (first: {first!r})")
    warn_caller(
        f"{int((~known).sum()):,} of {len(ratings):,} ratings are of items that the model does not know (first: "
        f"{first!r}): left out",
        UnknownIdWarning,
    )
    return ratings.select(known), items[known]


def fold_in(
    model: Model,
    ratings: FeedbackLog,
    items: npt.NDArray[np.int32],
    cold_users: npt.NDArray[np.bool_],
    parameters: Mapping[str, Any],
    rates: KnownNoise | None,
    features: Array | None = None,
    head: Head = BINARY,
) -> FactorModel:
    r"""Return a model of the ratings' users: their factors and constants by a regression each.

    Of a user's n ratings, :math:`\sum softplus(z) - \tilde r z + \tfrac12 [\lambda_f |u|^2 + \lambda_c b_u^2]` is
    minimised with :math:`z = o_i + b_u + u \cdot v_i`, all that is the items' being given: a sweep of these rows alone,
    under the penalties that the model was trained with. Of stars it is half their squared errors, of levels minus their
    log chances. Who has no rating gets what is typical, as in training.

    Parameters
    ----------
    model
        Of factors and constants.
    ratings, items
        The new users' rows, and the model's positions of their items.
    cold_users
        Of the model: which of its users had no ratings.
    parameters
        Of the method that trained it.
    rates
        Of noise, where the method corrected for it.
    features
        Of the new users, standardised as the model's, shape (n_users, p); `None` for average ones.
    head
        What scores of the model say.
    """
    if not isinstance(model, FactorModel):
        raise ParameterError(f"fold_in needs a model of factors and constants; got a {type(model).__name__}")
    fit = user_fit(head, ratings, items, _of_items(rates))
    design, penalty = _design(model, parameters)
    folded = _of_users(model, ratings.n_users, features)
    offset = _without_own(folded, ratings.users, items)
    found = np.tile(_typical(model, cold_users), (ratings.n_users, 1))
    ends = np.cumsum(np.bincount(ratings.users, minlength=ratings.n_users))
    for user, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        rows = slice(start, end)
        if end > start and design.shape[1]:
            weights = np.ones(end - start) if ratings.weights is None else ratings.weights[rows]
            found[user] = fit(rows, design[items[rows]], weights, offset[rows], penalty)
    with torch.no_grad():
        for columns, own in _own_parameters(folded):
            own.copy_(torch.as_tensor(found[:, columns], dtype=torch.float32).reshape(own.shape))
    return folded.eval()


def _of_items(rates: KnownNoise | None) -> KnownNoise | None:
    if isinstance(rates, GroupedNoiseRates) and rates.user_groups is not None:
        raise ParameterError("fold_in cannot tell new users' noise rates: those of the model are by groups of users")
    return rates


def _design(model: FactorModel, parameters: Mapping[str, Any]) -> tuple[Array, Array]:
    """Return what a user's parameters are multiplied by, shape (n_items, constants + dim), and their penalties."""
    columns, penalty = [], []
    if model.constants:
        columns.append(np.ones((model.shape[1], 1)))
        own = parameters.get("penalty_users")
        penalty.append(float(parameters["penalty_constants"] if own is None else own))
    if model.dim:
        columns.append(model.item_factors.detach().double().numpy())
        penalty += [float(parameters["penalty_factors"])] * model.dim
    design = np.column_stack(columns) if columns else np.empty((model.shape[1], 0))
    # Without any penalty some users' parameters would have no end.
    return design, np.maximum(penalty, 1e-6)


def _of_users(model: FactorModel, count: int, features: Array | None) -> FactorModel:
    """Return a model of so many other users, whose own parameters are 0; what is of items and of all is the same.

    Covariates of what was rated are average, 0, for all of them, and left out.
    """
    users = _average(model.user_features, count)
    if features is not None and model.user_features is not None:
        users = torch.as_tensor(features, dtype=torch.float32)
    folded = FactorModel(
        count,
        model.shape[1],
        model.dim,
        constants=model.constants,
        side=SideInformation(users, model.item_features),
        random=torch.Generator(),
    )
    state = {name: value for name, value in model.state_dict().items() if name != "covariate_weights"}
    for name in ("user_constants", "user_factors"):
        if name in state:
            state[name] = torch.zeros((count, *state[name].shape[1:]))
    folded.load_state_dict(state)
    return folded


def _without_own(model: FactorModel, users: npt.NDArray[Any], items: npt.NDArray[Any]) -> Array:
    """Return the logits of rows by a model whose users' own parameters are 0."""
    with torch.no_grad():
        rows = (torch.as_tensor(side.astype(np.int64)) for side in (users, items))
        return np.asarray(model(*rows).double().numpy())


def _own_parameters(model: FactorModel) -> list[tuple[slice, Tensor]]:
    """Return the users' own parameters by the columns they are in."""
    own: list[tuple[slice, Tensor]] = []
    if model.constants:
        own.append((slice(0, 1), model.user_constants))
    if model.dim:
        own.append((slice(int(model.constants), None), model.user_factors))
    return own


def _typical(model: FactorModel, cold_users: npt.NDArray[np.bool_]) -> Array:
    cold = torch.as_tensor(np.flatnonzero(cold_users))
    own = [typical(getattr(model, f"user_{part}"), cold).reshape(-1) for part in _parts(model)]
    return torch.cat(own).double().numpy() if own else np.empty(0)


def _parts(model: FactorModel) -> list[str]:
    return [part for part, there in (("constants", model.constants), ("factors", model.dim)) if there]


def _average(values: Tensor | None, count: int) -> Tensor | None:
    """Return what is average, 0 after standardisation, for so many users."""
    return None if values is None else torch.zeros((count, *values.shape[1:]), dtype=values.dtype)
