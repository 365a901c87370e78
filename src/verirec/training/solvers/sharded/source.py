"""Where a shard's rows and labels come from: the log and the objective, as they are here."""

from __future__ import annotations

from dataclasses import dataclass

from verirec.training.correction import NoCorrection, Surrogate
from verirec.training.data import Batch
from verirec.training.objective import PseudoLabels
from verirec.training.solvers.sharded import worker
from verirec.training.solvers.sharded.crew import Setup
from verirec.training.solvers.sharded.shard import Layout, RowContents
from verirec.training.solvers.sweep.factor_blocks import FactorBlocks
from verirec.training.sorted_rows import SortedRows


@dataclass(frozen=True, eq=False)
class ShardSource:
    """All rows, and the users of each shard.

    Parameters
    ----------
    rows, batch
        The log's rows, and their labels and 1/p.
    parts
        The users of each shard.
    """

    rows: SortedRows
    batch: Batch
    parts: list[slice]

    def own(self, number: int) -> slice:
        """Return which rows a shard has."""
        part = self.parts[number]
        return slice(int(self.rows.starts[part.start]), int(self.rows.starts[part.stop]))

    def contents(self, number: int, objective: PseudoLabels, factors: dict[str, FactorBlocks]) -> Setup:
        """Return what gives a worker the rows of a shard."""
        own, part = self.own(number), self.parts[number]
        weights, imputation, scale = objective.row_weights(self.batch), None, 1.0
        weights = weights[own] if weights.ndim else weights
        if objective.imputed is not None and objective.learns_labels:
            given = objective.imputed.weights(self.batch.weights[own])
            imputation = None if given.data_ptr() == weights.data_ptr() else given.numpy()
            scale = float(objective.imputed.scale)
        starts = self.rows.starts[part.start : part.stop + 1]
        shape = part.stop - part.start, self.rows.shape[1]
        found = RowContents(starts - starts[0], self.rows.items[own], shape, weights.numpy(), imputation, scale)
        return [(worker.load, (found, {name: _layout(one) for name, one in factors.items()}))]

    def labels(self, number: int, objective: PseudoLabels, extremes: tuple[float, float]) -> Setup:
        """Return what gives a worker the labels of a shard; it corrects them, unless each row has a rate of its own."""
        labels, correction = self.batch.labels, objective.correction
        if isinstance(correction, Surrogate) and correction.by_row is not None:
            labels, correction = correction.by_row, NoCorrection(correction.loss)
        return [(worker.label, (labels[self.own(number)].numpy(), correction, extremes))]


def _layout(factors: FactorBlocks) -> Layout:
    users, items = factors.sides
    ridges = users.ridge.numpy(), items.ridge.numpy()
    return Layout(factors.users.shape[1], (users.columns, items.columns), ridges)
