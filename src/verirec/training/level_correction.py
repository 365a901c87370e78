r"""Errors of logs that keep their levels: stars by their values, or by what stands for them, and chances of levels.

Of stars the correction for noise is exact: with :math:`\tilde v = T^{-1} v` of the levels' values v the squared loss of
:math:`\tilde v_r` has the expected gradient of that of the true star, whatever the score. Chances of levels are
corrected forward.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from verirec.losses import TransitionMatrix
from verirec.training.correction import NoiseCorrection
from verirec.training.data import Batch
from verirec.training.losses import LogitLoss, OrdinalLoss, StarsLoss


@dataclass(frozen=True, eq=False)
class StarValues(NoiseCorrection):
    """Squared loss of a value for each level.

    Parameters
    ----------
    table
        The values, or what stands for them, shape (K,).
    """

    table: Tensor

    @property
    def loss(self) -> LogitLoss:  # type: ignore[override]
        """The squared loss."""
        return StarsLoss()

    @property
    def bounded(self) -> bool:
        """Tell that squares are, whatever the labels are."""
        return True

    def labels(self, batch: Batch) -> Tensor:
        """Return the value of each row's level."""
        return self.table.index_select(0, batch.labels.int())


@dataclass(frozen=True, eq=False)
class LevelChances(NoiseCorrection):
    """Minus the log chance of the logged level: of the true one, or of what noise makes of it.

    Parameters
    ----------
    n_levels
        K.
    matrix
        T, shape (K, K); `None` for no noise.
    """

    n_levels: int
    matrix: Tensor | None = None

    @classmethod
    def of(cls, n_levels: int, noise: TransitionMatrix | None, device: torch.device) -> LevelChances:
        """Take noise, if there is any."""
        if noise is None:
            return cls(n_levels)
        return cls(n_levels, torch.tensor(noise.matrix, dtype=torch.float32).to(device))

    @property
    def loss(self) -> LogitLoss:  # type: ignore[override]
        """The ordinal loss, of what noise makes of a prediction."""
        return OrdinalLoss(None if self.matrix is None else self.matrix.log())

    def labels(self, batch: Batch) -> Tensor:
        """Return whether each level but the lowest is reached, shape (K - 1, b)."""
        levels = torch.arange(1, self.n_levels, device=batch.labels.device)
        return (batch.labels >= levels[:, None]).float()

    def soft(self, soft_labels: Tensor) -> Tensor:
        """Return imputed chances of reaching levels as noise would have left them."""
        return soft_labels if self.matrix is None else _moved(soft_labels, self.matrix.T)

    def without_noise(self, labels: Tensor) -> Tensor:
        """Return the chances of reaching levels that noise leaves as these."""
        return labels if self.matrix is None else _moved(labels, torch.linalg.inv(self.matrix.double()).T.float())


def _moved(reached: Tensor, by: Tensor) -> Tensor:
    """Multiply the chances of levels by a matrix, given and returned as those of reaching each but the lowest."""
    levels = -torch.cat([torch.ones_like(reached[:1]), reached, torch.zeros_like(reached[:1])]).diff(dim=0)
    moved = torch.tensordot(by, levels, dims=1)
    found: Tensor = moved.flip(0).cumsum(0).flip(0)[1:]
    return found
