"""A factor model as two matrices: every logit is an inner product of a user's row and an item's, plus a constant."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from verirec.models.factors import FactorModel, Penalties
from verirec.training.solvers.sweep.arrays import large_array


class Side(NamedTuple):
    """What is improved at once, users or items, and what it meets.

    Parameters
    ----------
    own, other
        Matrices of the factor blocks, shapes (n, d) and (m, d).
    columns
        Which columns of `own` are parameters; the same ones of `other` are what they are multiplied by.
    ridge
        Their penalties, shape (k,).
    """

    own: Tensor
    other: Tensor
    columns: slice
    ridge: Tensor

    @property
    def parameters(self) -> Tensor:
        """What is improved, shape (n, k): a view."""
        return self.own[:, self.columns]

    @property
    def inputs(self) -> Tensor:
        """What it is multiplied by, shape (m, k): a view."""
        return self.other[:, self.columns]

    @property
    def mean_squares(self) -> Tensor:
        """The mean square of each input, shape (k,)."""
        return self.inputs.square().mean(0)


class Blocks(ABC):
    """Rows of users and items whose inner products, and a constant, are logits.

    Parameters
    ----------
    users, items
        Shapes (n, d) and (m, d).
    sides
        Both, to be improved.
    """

    covariates: PairCovariates | None = None

    def __init__(self, users: Tensor, items: Tensor, sides: tuple[Side, Side]) -> None:
        self.users, self.items, self.sides = users, items, sides

    @property
    @abstractmethod
    def constant(self) -> float:
        """What all logits have in common."""


class FactorBlocks(Blocks):
    r"""The rows of users and items of a factor model.

    A user's row is :math:`[b_u, u_u, 1, x_u^\top A]`, an item's :math:`[1, v_i, b_i, y_i]`, where x and y are features
    with a 1 behind them, and A holds all their weights. The model's own factors and constants become views of these
    rows: what is improved here is improved there. Covariates of pairs are no such product: they stand beside it.

    Parameters
    ----------
    model
        Whose parameters it is; they are moved here.
    penalties
        Of its parameters.
    scale
        What penalties are multiplied by: pairs of the grid for each row of the log.
    on_rows
        Covariates of the log's rows, shape (rows, c), if the model has some.
    """

    def __init__(self, model: FactorModel, penalties: Penalties, scale: float, on_rows: Tensor | None = None) -> None:
        self.model, k = model, model.dim
        self.covariates = None if on_rows is None else PairCovariates(model, penalties.features * scale, on_rows)
        self.features = Features(model, penalties.features * scale) if model.has_features else None
        width = k + 2 + (0 if self.features is None else self.features.items.shape[1])
        users, items = (large_array(n, width).zero_() for n in model.shape)
        users[:, k + 1] = items[:, 0] = 1
        factors = torch.full((k,), penalties.factors * scale)
        own = [torch.full((1 if model.constants else 0,), penalties.of(side) * scale) for side in ("users", "items")]
        start, end = (0, k + 2) if model.constants else (1, k + 1)
        of_users = Side(users, items, slice(start, k + 1), torch.cat([own[0], factors]))
        of_items = Side(items, users, slice(1, end), torch.cat([factors, own[1]]))
        super().__init__(users, items, (of_users, of_items))
        with torch.no_grad():
            if k:
                _move(model.user_factors, self.users[:, 1 : k + 1])
                _move(model.item_factors, self.items[:, 1 : k + 1])
            if model.constants:
                _move(model.user_constants, self.users[:, 0])
                _move(model.item_constants, self.items[:, k + 1])
            if self.features is not None:
                self.items[:, k + 2 :] = self.features.items
        self.refresh_features()

    @property
    def constant(self) -> float:
        """What all logits have in common."""
        return float(self.model.constant.detach()) if self.model.constants else 0.0

    def start_from(self, logit: float) -> None:
        """Set what all logits have in common."""
        if self.model.constants:
            self.model.constant.fill_(logit)

    def centre(self) -> float:
        """Move the mean of the users' and of the items' constants into that of all: it alone has no penalty.

        Gives what the users' mean was.
        """
        if not self.model.constants:
            return 0.0
        with torch.no_grad():
            means = [own.mean() for own in (self.model.user_constants, self.model.item_constants)]
            for own, mean in zip((self.model.user_constants, self.model.item_constants), means, strict=True):
                own.sub_(mean)
                self.model.constant.add_(mean)
        return float(means[0])

    def refresh_features(self) -> None:
        """Bring the users' rows up to date with the weights of features."""
        if self.features is not None:
            self.users[:, self.model.dim + 2 :] = self.features.users @ self.features.matrix()


def _move(parameter: Tensor, place: Tensor) -> None:
    place.copy_(parameter)
    parameter.data = place


class Features:
    r"""All weights of features as one matrix A between users' and items' features, :math:`x_u^\top A\, y_i`.

    x and y have a 1 behind the features: weights of a user's features alone meet the items' 1.

    Parameters
    ----------
    model
        Whose weights it is.
    ridge
        Their penalty.
    """

    def __init__(self, model: FactorModel, ridge: float) -> None:
        self.model, self.ridge = model, ridge
        self.users = self._widened(model.shape[0], model.user_features)
        self.items = self._widened(model.shape[1], model.item_features)
        names = ("interactions", "user_weights", "item_weights")
        self.names = [name for name in names if hasattr(model, name)]

    @staticmethod
    def _widened(n: int, features: Tensor | None) -> Tensor:
        return torch.cat([torch.zeros(n, 0) if features is None else features, torch.ones(n, 1)], 1)

    @property
    def weights(self) -> list[Tensor]:
        """The model's own, detached, in the order of the names."""
        return [getattr(self.model, name).detach() for name in self.names]

    def matrix(self, weights: list[Tensor] | None = None) -> Tensor:
        """Put weights, by default the model's, where they belong in A."""
        found = dict(zip(self.names, self.weights if weights is None else weights, strict=True))
        matrix = torch.zeros(self.users.shape[1], self.items.shape[1])
        if "interactions" in found:
            matrix[:-1, :-1] = found["interactions"]
        if "user_weights" in found:
            matrix[:-1, -1] = found["user_weights"]
        if "item_weights" in found:
            matrix[-1, :-1] = found["item_weights"]
        return matrix

    def parts(self, matrix: Tensor) -> list[Tensor]:
        """Take from a gradient of A those of the weights: the adjoint of `matrix`."""
        places = {
            "interactions": matrix[:-1, :-1],
            "user_weights": matrix[:-1, -1],
            "item_weights": matrix[-1, :-1],
        }
        return [places[name] for name in self.names]


class PairCovariates:
    """Covariates of pairs as sweeps see them: those of the rows at hand, those of rectangles where they are needed.

    Parameters
    ----------
    model
        Whose weights it is.
    ridge
        Their penalty.
    on_rows
        Of the log's rows, shape (rows, c).
    """

    def __init__(self, model: FactorModel, ridge: float, on_rows: Tensor) -> None:
        self.model, self.ridge, self.on_rows = model, ridge, on_rows

    @property
    def weights(self) -> Tensor:
        """The model's own, detached."""
        return self.model.covariate_weights.detach()

    def added_to(self, logits: Tensor) -> Tensor:
        """Add what they contribute to the logits of the rows, in place."""
        return logits.addmv_(self.on_rows, self.weights)

    def rectangle(self, users: Tensor, items: Tensor) -> Tensor:
        """Return those of a rectangle, shape (c, a, b)."""
        assert self.model.covariates is not None  # noqa: S101
        return self.model.covariates.rectangle(users, items)
