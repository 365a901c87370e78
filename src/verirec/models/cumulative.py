r"""Cumulative logits of ordered levels: a score of each pair, and thresholds that all pairs share.

.. math:: \mathrm{logit}\, P(r^* \ge c) = z_{ui} + \theta_c, \qquad \theta_1 > \theta_2 > \dots

McCullagh (1980). The score is any model's; thresholds are kept in their order by what they are made of.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from verirec.models.scoring import Model, Penalised


class CumulativeModel(Model):
    """A model of scores, and thresholds.

    Parameters
    ----------
    scores
        Of pairs.
    thresholds
        Where they start, descending, shape (K - 1,).

    Examples
    --------
    >>> from verirec.models.factors import FactorModel
    >>> model = CumulativeModel(FactorModel(2, 3, 0, random=torch.Generator()), torch.tensor([1.0, -1.0]))
    >>> model(torch.tensor([0]), torch.tensor([2])).detach().ravel().round(decimals=3).tolist()
    [1.0, -1.0]
    """

    def __init__(self, scores: Model, thresholds: Tensor) -> None:
        super().__init__()
        self.scores = scores
        self.highest = nn.Parameter(thresholds[0].clone())
        # The inverse of softplus.
        self.distances = nn.Parameter(torch.log(torch.expm1(-thresholds.diff())))

    @property
    def thresholds(self) -> Tensor:
        """In descending order, shape (K - 1,)."""
        return self.highest - torch.cat([self.highest.new_zeros(1), softplus(self.distances).cumsum(0)])

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Return the logits of reaching each level but the lowest, shape (K - 1, n)."""
        scores: Tensor = self.scores(users, items)
        return scores + self.thresholds[:, None]

    def grid(self, users: Tensor, items: Tensor) -> Tensor:
        """Return those of a rectangle, shape (K - 1, a, b)."""
        return self.scores.grid(users, items) + self.thresholds[:, None, None]

    def penalised(self) -> Iterator[Penalised]:
        """Return what is penalised of the scores; thresholds are not."""
        yield from self.scores.penalised()

    def forget_cold(self, users: Tensor, items: Tensor) -> None:
        """Leave those without ratings with what all have in common."""
        self.scores.forget_cold(users, items)
