"""A model's predictions in the form that estimators and metrics take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit
from torch import Tensor

from verirec.data.cells import CellValues, Positions
from verirec.data.predictions import Factors
from verirec.estimation.calibration import CalibratedScores
from verirec.estimation.curves import PlattCurve
from verirec.models import FactorModel, Model


class ModelCells(CellValues):
    """The probabilities of a model.

    Parameters
    ----------
    model
        In evaluation mode.
    shape
        The grid's.
    most
        Logits beyond it are cut off; infinite for none.
    """

    parallel = False

    def __init__(self, model: Model, shape: tuple[int, int], most: float = float("inf")) -> None:
        self.model, self.shape, self.most = model, shape, most

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return probabilities."""
        return np.asarray(expit(self.cell_logits(users, items)))

    def cell_logits(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Ask the model; a rectangle at once."""
        with torch.no_grad():
            if users.ndim == 2 and users.shape[1] == 1 and items.shape[0] == 1:
                logits = self.model.grid(self._tensor(users[:, 0]), self._tensor(items[0]))
            else:
                both = np.broadcast_arrays(users, items)
                logits = self.model(*(self._tensor(side.ravel()) for side in both)).view(both[0].shape)
        return np.asarray(logits.clamp(-self.most, self.most).cpu().double().numpy())

    def _tensor(self, positions: npt.NDArray[Any]) -> Tensor:
        device = next(self.model.parameters()).device
        return torch.as_tensor(np.ascontiguousarray(positions, dtype=np.int64)).to(device)


def predictions_of(
    model: Model,
    shape: tuple[int, int],
    users: npt.NDArray[Any] | None = None,
    items: npt.NDArray[Any] | None = None,
    *,
    curve: PlattCurve | None = None,
    link: Literal["logistic", "identity"] = "logistic",
) -> Factors | CellValues:
    """Return a model's predictions as `verirec.estimate` takes them: of its own grid, or of some users and items.

    Parameters
    ----------
    model
        In evaluation mode.
    shape
        Of its grid.
    users, items
        Positions that make up another grid; both or neither.
    curve
        Puts level and slope of the logits right.
    link
        What turns them into predictions: "identity" leaves them, as stars.
    """
    if isinstance(model, FactorModel) and model.covariates is None:
        own = replace(_levelled(_as_factors(model), curve), link=link)
        return own if users is None or items is None else _at_places(own, users, items)
    cells = levelled_cells(score_cells(model, shape, users, items), curve)
    return cells if link == "logistic" else LogitCells(cells)


def marked(found: Any, trained_on: Any) -> Any:
    """Let predictions know what they were trained on, a `PairSketch`."""
    if isinstance(found, Factors):
        return replace(found, trained_on=trained_on)
    for cells in (found, found.means):
        if cells is not None:
            cells.trained_on = trained_on
    return found


def score_cells(
    model: Model, shape: tuple[int, int], users: npt.NDArray[Any] | None = None, items: npt.NDArray[Any] | None = None
) -> CellValues:
    """Return what a model says of its own grid, or of some users and items."""
    cells = ModelCells(model, shape)
    return cells if users is None or items is None else _MovedCells(cells, users, items)


def levelled_cells(cells: CellValues, curve: PlattCurve | None) -> CellValues:
    """Return a model's probabilities, level and slope put right by a curve if there is one."""
    return cells if curve is None else CalibratedScores(cells, curve)


class LogitCells(CellValues):
    """The logits of values that are made of such, as they are: scores of stars."""

    def __init__(self, own: CellValues) -> None:
        self.own, self.shape = own, own.shape
        self.parallel = own.parallel  # type: ignore[misc]

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the logits."""
        return np.asarray(self.own.cell_logits(users, items))


class _MovedCells(CellValues):
    """Values on another grid, whose positions stand for these."""

    parallel = False

    def __init__(self, cells: CellValues, users: npt.NDArray[Any], items: npt.NDArray[Any]) -> None:
        self.own, self.users, self.items, self.shape = cells, users, items, (len(users), len(items))

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return self.own.cells(self.users[users], self.items[items])

    def cell_logits(self, users: Positions, items: Positions) -> npt.NDArray[Any] | None:
        return self.own.cell_logits(self.users[users], self.items[items])


def _levelled(factors: Factors, curve: PlattCurve | None) -> Factors:
    """Put level and slope of factors right: still factors."""
    if curve is None:
        return factors
    slope = curve.slope / curve.scale

    def scaled(values: Any) -> Any:
        return None if values is None else slope * np.asarray(values)

    return Factors(
        scaled(factors.user_factors),
        factors.item_factors,
        scaled(factors.user_constants),
        scaled(factors.item_constants),
        float(curve.logits(np.asarray(factors.constant, dtype=np.float64))),
        factors.link,
    )


def _at_places(factors: Factors, users: npt.NDArray[Any], items: npt.NDArray[Any]) -> Factors:
    """Take factors and constants at places."""
    return Factors(
        np.asarray(factors.user_factors)[users],
        np.asarray(factors.item_factors)[items],
        np.asarray(factors.user_constants)[users],
        np.asarray(factors.item_constants)[items],
        factors.constant,
        factors.link,
    )


def _as_factors(model: FactorModel) -> Factors:
    """Return a factor model as its factors: features are folded in."""
    with torch.no_grad():
        n_users, n_items = model.shape
        users, items = torch.zeros(n_users, 0), torch.zeros(n_items, 0)
        if model.dim:
            users, items = model.user_factors, model.item_factors
        if model.user_features is not None and model.item_features is not None:
            users = torch.cat([users, model.user_features @ model.interactions], 1)
            items = torch.cat([items, model.item_features], 1)
        return Factors(
            users.numpy().copy(),
            items.numpy().copy(),
            model.of_users().numpy().copy() if model.has_user_part else None,
            model.of_items().numpy().copy() if model.has_item_part else None,
            float(model.constant) if model.constants else 0.0,
        )
