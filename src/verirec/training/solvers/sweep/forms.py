"""How sweeps lower each loss: its rows' part, the grid's, that of imputed labels, and where they start."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import torch
from torch import Tensor

from verirec.training.losses import LogitLoss, LogLoss, StarsLoss
from verirec.training.solvers.sweep.factor_blocks import Blocks
from verirec.training.solvers.sweep.lines import MakeGradient, line_gradient, sigmoid_gradient
from verirec.training.solvers.sweep.majorizers import RowsLoss
from verirec.training.solvers.sweep.targets import RowTargets

PartWeights = Callable[[slice], Tensor]


class Form(NamedTuple):
    """What sweeps need to know of a loss.

    Parameters
    ----------
    of_rows
        The loss of rows where no error is imputed.
    of_imputation
        That of imputed labels, given f and weights of some rows.
    gradient
        Of the grid's part.
    start
        From the labels' mean to what all scores start from.
    """

    of_rows: Callable[[RowTargets], RowsLoss]
    of_imputation: Callable[[RowTargets, Blocks, PartWeights], RowsLoss]
    gradient: MakeGradient
    start: Callable[[float], float]


def _logit(share: float) -> float:
    inside = min(max(share, 0.01), 0.99)
    return math.log(inside / (1 - inside))


def _cross_entropy_missed(targets: RowTargets, f: Blocks, weights: PartWeights) -> RowsLoss:
    return targets.squares(f, LogLoss(), weights)


def _stars_missed(targets: RowTargets, f: Blocks, weights: PartWeights) -> RowsLoss:
    return targets.least_squares(2 * torch.as_tensor(weights(slice(None))))


FORMS: Final[dict[type[LogitLoss], Form]] = {
    LogLoss: Form(RowTargets.cross_entropy, _cross_entropy_missed, sigmoid_gradient, _logit),
    StarsLoss: Form(RowTargets.least_squares, _stars_missed, line_gradient, float),
}
"""By the loss of logits."""
