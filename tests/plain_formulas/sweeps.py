"""What sweeps lower, in NumPy and double precision: losses of all pairs' logits, penalties, and their gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit

KINDS = {"factors": ("user_factors", "item_factors"), "constants": ("user_constants", "item_constants")}
WEIGHTS = ("user_weights", "item_weights", "interactions", "covariate_weights")


def entropy(level, pull):
    """Sum of a softplus(z) - b z over all pairs, and its slope."""

    def of(z):
        return (level * np.logaddexp(0, z) - pull * z).sum(), level * expit(z) - pull

    return of


def squares(weights, labels):
    """Sum of a (sigmoid(z) - y)^2 over all pairs, and its slope."""

    def of(z):
        p = expit(z)
        return (weights * (p - labels) ** 2).sum(), 2 * weights * (p - labels) * p * (1 - p)

    return of


def on_grid(shape, users, items, values):
    """Put values of rows where they belong, and 0 elsewhere."""
    grid = np.zeros(shape)
    grid[users, items] = values
    return grid


class Objective:
    """A loss of all logits of a factor model, and its penalties times the number of pairs.

    Parameters
    ----------
    loss
        Of a matrix of logits: value and slope.
    model
        Says which parts there are, and has the features.
    penalties, scale
        By kind, and what they are multiplied by: pairs for each row.
    """

    def __init__(self, loss: Callable, model, penalties, scale: float) -> None:
        self.loss, self.shape = loss, model.shape
        self.shapes = {name: tuple(value.shape) for name, value in model.named_parameters()}
        self.known = {name: value.double().numpy() for name, value in model.named_buffers()}
        everywhere = np.arange(model.shape[0])[:, None], np.arange(model.shape[1])[None, :]
        columns = () if model.covariates is None else model.covariates.columns
        self.columns = [np.asarray(column.cells(*everywhere), dtype=np.float64) for column in columns]
        ridge = dict.fromkeys(KINDS["factors"], penalties.factors)
        ridge |= dict.fromkeys(KINDS["constants"], penalties.constants)
        ridge |= dict.fromkeys(WEIGHTS, penalties.features)
        self.ridge = {name: scale * value for name, value in ridge.items()}

    def side(self, values, one):
        total = np.zeros(self.shape[one == "item"])
        if f"{one}_constants" in values:
            total = total + values[f"{one}_constants"]
        if f"{one}_weights" in values:
            total = total + self.known[f"{one}_features"] @ values[f"{one}_weights"]
        return total

    def logits(self, values):
        z = self.side(values, "user")[:, None] + self.side(values, "item")[None, :] + values.get("constant", 0.0)
        if "user_factors" in values:
            z = z + values["user_factors"] @ values["item_factors"].T
        if "interactions" in values:
            z = z + self.known["user_features"] @ values["interactions"] @ self.known["item_features"].T
        for weight, column in zip(values.get("covariate_weights", ()), self.columns, strict=True):
            z = z + weight * column
        return z

    def __call__(self, values) -> float:
        penalty = sum(ridge / 2 * (values[name] ** 2).sum() for name, ridge in self.ridge.items() if name in values)
        return float(self.loss(self.logits(values))[0] + penalty)

    def gradient(self, values):
        slope = self.loss(self.logits(values))[1]
        by_user, by_item = slope.sum(1), slope.sum(0)
        found = {}
        for name in self.shapes:
            if name == "constant":
                found[name] = slope.sum()
            elif name in ("user_factors", "user_constants"):
                found[name] = by_user if name.endswith("constants") else slope @ values["item_factors"]
            elif name in ("item_factors", "item_constants"):
                found[name] = by_item if name.endswith("constants") else slope.T @ values["user_factors"]
            elif name == "user_weights":
                found[name] = self.known["user_features"].T @ by_user
            elif name == "item_weights":
                found[name] = self.known["item_features"].T @ by_item
            elif name == "interactions":
                found[name] = self.known["user_features"].T @ slope @ self.known["item_features"]
            elif name == "covariate_weights":
                found[name] = np.array([(column * slope).sum() for column in self.columns])
        return {name: found[name] + self.ridge.get(name, 0.0) * values[name] for name in self.shapes}

    def size(self, values) -> float:
        """The norm of the gradient."""
        return float(np.sqrt(sum((np.asarray(one) ** 2).sum() for one in self.gradient(values).values())))

    def minimised(self, values, starts=2):
        """Minimise by L-BFGS from some values, and from random ones; gives the best."""
        names = list(self.shapes)

        def split(flat):
            parts = np.split(flat, np.cumsum([int(np.prod(self.shapes[name])) for name in names])[:-1])
            return {name: part.reshape(self.shapes[name]) for name, part in zip(names, parts, strict=True)}

        def together(values):
            return np.concatenate([np.ravel(values[name]) for name in names])

        def run(start):
            options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-14, "gtol": 1e-6, "maxcor": 30}
            both = lambda flat: (self(split(flat)), together(self.gradient(split(flat))))  # noqa: E731
            return minimize(both, start, jac=True, method="L-BFGS-B", options=options)

        first = together(values)
        random = np.random.default_rng(0)
        found = [run(first), *(run(first + 0.3 * random.normal(size=first.shape)) for _ in range(starts - 1))]
        return split(min(found, key=lambda one: one.fun).x)


def values_of(model):
    """A model's parameters by name."""
    with torch.no_grad():
        return {name: value.double().numpy().copy() for name, value in model.named_parameters()}
