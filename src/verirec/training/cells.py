"""A model's predictions in the form that estimators and metrics take."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit
from torch import Tensor

from verirec.data.cells import CellValues, Positions
from verirec.models import Model


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
        return np.asarray(logits.clamp(-self.most, self.most).double().cpu().numpy())

    def _tensor(self, positions: npt.NDArray[Any]) -> Tensor:
        device = next(self.model.parameters()).device
        return torch.as_tensor(np.ascontiguousarray(positions, dtype=np.int64)).to(device)
