r"""Training on clicks alone: all pairs count as passed over, and clicks besides by one over a power of popularity.

Saito et al. (2020), "Unbiased recommender learning from missing-not-at-random implicit feedback" (Rel-MF):
:math:`|D|^{-1} \sum_D [\frac{y}{\theta} l(f, 1) + (1 - \frac{y}{\theta}) l(f, 0)]`, y being 1 of what was clicked,
which is DR with an imputed label of 0 and :math:`\theta_i = (n_i / \max n)^\eta` for a propensity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from verirec.data.parts import counts
from verirec.methods.base import Method
from verirec.methods.parameters import Limits
from verirec.training.correction import NoiseCorrection
from verirec.training.data import Batch, TrainingData
from verirec.training.objective import ImputedLabels, Objective, PseudoLabels


@dataclass(kw_only=True, eq=False, repr=False)
class RELMF(Method):
    r"""Clicks weighed by :math:`1/\theta_i`, and everything else as not liked.

    What it gives are scores whose level is known up to a factor only, as :math:`\theta` is: rank by them, or fit with a
    survey, which puts level and slope right. Held-out clicks do not tell when to stop, so by default no rows are held
    out and training ends when it has converged. Pseudo-labels :math:`1/\theta` are above 1: the log loss has a minimum
    from `report_.penalty_bound` on, and the penalty by default is above it. Rows of 0 count as pairs without a click.

    Parameters
    ----------
    power
        :math:`\eta`, 0 for clicks that all count once (a plain model of what is clicked); .5 is the paper's.

    Examples
    --------
    >>> from verirec import FeedbackLog
    >>> clicks = FeedbackLog.from_arrays([0, 0, 1, 2], [0, 1, 0, 2], [1, 1, 1, 1], n_users=3, n_items=4)
    >>> RELMF(dim=0).fit(clicks).recommend([2], k=1, exclude=clicks).items.tolist()
    [[0]]
    """

    name: ClassVar[str] = "rel-mf"
    paper: ClassVar[str] = (
        "Saito et al. 2020, Unbiased recommender learning from missing-not-at-random implicit feedback"
    )
    summary: ClassVar[str] = "clicks by popularity, all else as not liked"
    needs_grid: ClassVar[bool] = True
    uses_propensities: ClassVar[bool] = False
    takes_clicks: ClassVar[bool] = True
    sweeps: ClassVar[bool] = True

    limits: ClassVar[Limits] = {"power": (0, 10)}

    power: float = 0.5
    validation: float = 0.0

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Impute 0, and weigh rows by the clicks of their items among these rows."""
        clicked = counts(data.log.items[data.log.labels == 1], data.log.n_items)
        popularity = torch.as_tensor(clicked, device=data.device).clamp(min=1)
        theta = (popularity / popularity.max()) ** self.power

        def weights(batch: Batch) -> torch.Tensor:
            return (1 / theta[batch.items]).to(batch.weights.dtype)

        return PseudoLabels(correction, weights, ImputedLabels(constant=torch.zeros((), device=data.device)))
