"""Sums over rows that are on workers, in the form that sweeps ask for."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from verirec.training.solvers.sharded import worker
from verirec.training.solvers.sharded.crew import Crew
from verirec.training.solvers.sharded.shard import ItemNews
from verirec.training.solvers.sweep.factor_blocks import FactorBlocks, Side
from verirec.training.solvers.sweep.lines import AnyGradient
from verirec.training.solvers.sweep.sweeper import grid_steps, step_on_grid


class ItemSumsElsewhere:
    """Sums over each item's rows: see `descent.Quadratics`.

    Parameters
    ----------
    crew
        Workers that have the rows.
    first
        The sums that a descent starts with, shape (m, k + 1).
    curvature, steps
        Of the quadratics.
    """

    def __init__(self, crew: Crew, first: Tensor, curvature: float, steps: int) -> None:
        self.crew, self.first, self.curvature, self.steps = crew, first, curvature, steps

    def start(self) -> tuple[Tensor, Tensor]:
        """Return sums of slopes times inputs, and of levels."""
        return self.first[:, :-1].contiguous(), self.first[:, -1].contiguous()

    def along(self, directions: Tensor, *, turning: bool) -> tuple[Tensor, Tensor | None]:
        """Ask how much the quadratics bend along directions."""
        found = self.crew.ask(worker.along, directions.numpy(), turning).sums
        return found[:, -1].contiguous(), found[:, :-1].contiguous() if turning else None


class LinearElsewhere:
    """The rows' part of a loss on the grid: see `sweeper.LinearTerm`.

    Parameters
    ----------
    crew
        Workers that have the rows.
    news
        What they have not heard of the models.
    factors
        The prediction model.
    parts
        The users of each shard.
    label
        The imputed label of all pairs; `None` where a model says it.
    """

    def __init__(
        self,
        crew: Crew,
        news: Mapping[str, ItemNews],
        factors: FactorBlocks,
        parts: list[slice],
        label: float | None,
    ) -> None:
        self.crew, self.news, self.factors, self.parts, self.label = crew, news, factors, parts, label

    def improve(self, grid: AnyGradient, side: Side, number: int, damping: float) -> Tensor:
        """Have users improved by workers; of items, have the grid's gradient worked out by them."""
        steps, nobody = grid_steps(grid, side), torch.empty(0)
        sent = grid.on(nobody, nobody)
        if number == 0:
            found = self.crew.ask(worker.users_on_grid, self.news, sent, steps.numpy(), self.label, damping)
            found.place(self.factors, self.parts)
            was, self._totals, self._pushed = *found.values, found.sums
            return was.sum(dtype=torch.float64)
        parts = grid.parts()
        gradients = self.crew.share(worker.items_on_grid, sent, parts)
        values = [
            step_on_grid(side, part, torch.from_numpy(gradient), self._pushed[part], steps, damping)
            for part, gradient in zip(parts, gradients, strict=True)
        ]
        return torch.stack(values).sum(dtype=torch.float64)

    def total(self) -> Tensor:
        """Return the sum of b, which came with the users."""
        return self._totals.sum(dtype=torch.float64)
