"""What a method trains on: the log's rows as tensors, prepared once, and batches of them and of the grid."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import counts, parts_of
from verirec.exceptions import TrainingError
from verirec.models import Model
from verirec.nuisance.propensities import Propensities
from verirec.scratch import each, long_array
from verirec.training.logits import BatchLogits
from verirec.training.sorted_rows import SortedRows

_AT_ONCE: Final = 1 << 20
"""Rows that are looked up, or worked on, together."""


class Batch(NamedTuple):
    r"""A random part of the log, O, and a random rectangle of the grid, D.

    A mean over D of something that differs on O, :math:`|D|^{-1} \sum_D [a + o\, b]`, is the mean of a over the
    rectangle plus the log's density times the mean of b over the rows: no pair of D is ever looked up in the log.

    Parameters
    ----------
    rows
        Numbers of the rows, shape (b,); empty for all rows, in their order.
    users, items, labels, weights
        Of these rows: positions, 0/1, and 1/p.
    grid_users, grid_items
        Positions that span the rectangle; empty for methods that do not look at the grid.
    density
        Share of the grid in the log.
    rectangle
        The rectangle's positions in the processor's memory, where propensities are worked out.
    logits
        Keeps what models say of the batch while it is trained on.
    """

    rows: Tensor
    users: Tensor
    items: Tensor
    labels: Tensor
    weights: Tensor
    grid_users: Tensor
    grid_items: Tensor
    density: float
    rectangle: tuple[Tensor, Tensor] | None = None
    logits: BatchLogits | None = None

    def on_rows(self, model: Model) -> Tensor:
        """Return a model's logits on the rows, shape (b,)."""
        if self.logits is not None:
            return self.logits.of(model, self.users, self.items, rectangle=False)
        logits: Tensor = model(self.users, self.items)
        return logits

    def on_grid(self, model: Model) -> Tensor:
        """Return a model's logits on the rectangle, shape (a, c)."""
        if not len(self.grid_users):
            raise TrainingError("there is no rectangle of the grid: a method whose loss looks at it sets needs_grid")
        if self.logits is not None:
            return self.logits.of(model, self.grid_users, self.grid_items, rectangle=True)
        return model.grid(self.grid_users, self.grid_items)

    def over_log(self, values: Tensor) -> Tensor:
        r"""Return :math:`|D|^{-1} \sum_O` of values of the rows: their mean, times the density."""
        return self.density * values.mean()


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The rows to train on, with their propensities.

    Parameters
    ----------
    log
        The rows.
    propensities
        Of the grid, for this part of the log.
    batch_size
        Rows of a batch.
    grid_cells
        Cells of a batch's rectangle; 0 for none.
    seed
        Of all that is drawn.
    device
        Where the tensors are.
    """

    log: FeedbackLog
    propensities: Propensities
    batch_size: int
    grid_cells: int
    seed: int
    device: torch.device

    @property
    def shape(self) -> tuple[int, int]:
        """The grid's size."""
        return self.log.n_users, self.log.n_items

    @property
    def density(self) -> float:
        """Share of the grid in the log."""
        return self.log.density

    @cached_property
    def weights(self) -> Tensor:
        """1/p of the rows."""
        p, log = self.propensities, self.log
        found = each(lambda users, items: 1 / p.cells(users, items), log.users, log.items, dtype=np.float32)
        return torch.from_numpy(found).to(self.device)

    @cached_property
    def effective_rows(self) -> float:
        """How many equally weighted rows the rows, weighted by 1/p, are worth: sum(w)^2 / sum(w^2)."""
        weights = self.weights.cpu()  # not every device has double precision
        squares = torch.from_numpy(each(np.square, weights.numpy(), dtype=np.float32))
        return float(weights.sum(dtype=torch.float64) ** 2 / squares.sum(dtype=torch.float64))

    @cached_property
    def cold(self) -> tuple[Tensor, Tensor]:
        """Positions of the users and of the items that have no row."""
        log = self.log
        rows = counts(log.users, log.n_users), counts(log.items, log.n_items)
        users, items = (self._tensor(np.flatnonzero(count == 0), torch.int64) for count in rows)
        return users, items

    def weights_on_grid(self, batch: Batch) -> Tensor:
        """Return 1/p on a batch's rectangle, shape (a, b)."""
        sides = batch.rectangle or (batch.grid_users.cpu(), batch.grid_items.cpu())
        p = self.propensities.block(*(side.numpy() for side in sides))
        return self._tensor(1 / p, torch.float32)

    @cached_property
    def sorted_rows(self) -> SortedRows:
        """The rows, and where each user's are."""
        return SortedRows.of(self.log)

    @cached_property
    def all_rows(self) -> Batch:
        """All rows as one batch, without a rectangle; positions and labels are whole numbers of few bytes."""
        none = torch.empty(0, device=self.device)
        users, items, labels = (self._whole(column) for column in (self.log.users, self.log.items, self.log.labels))
        return Batch(none, users, items, labels, self.weights, none, none, self.density)

    def of_rows(self, function: Callable[[Batch], Tensor]) -> Tensor:
        """Return what a function of a batch, row by row, gives of all rows: part by part, as there may be many.

        Rows are on the last axis; one number for all stays one. On a device of its own memory all are asked at once.
        """
        found: Tensor | None = None
        done = 0
        for batch in self.row_parts():
            part = function(batch)
            if part.ndim == 0 or len(batch.users) == len(self.log):
                return part
            if found is None:
                found = torch.from_numpy(long_array((*part.shape[:-1], len(self.log)), part.numpy().dtype))
            found[..., done : done + len(batch.users)] = part
            done += len(batch.users)
        assert found is not None  # noqa: S101
        return found

    def row_parts(self) -> Iterator[Batch]:
        """Return all rows in parts, in their order; on a device of its own memory all at once."""
        whole = self.all_rows
        if self.device.type != "cpu" or len(self.log) <= _AT_ONCE:
            yield whole
            return
        for at in parts_of(len(self.log), size=_AT_ONCE):
            users, items, labels, weights = (one[at] for one in whole[1:5])
            rows = torch.arange(at.start, at.stop)
            yield whole._replace(rows=rows, users=users, items=items, labels=labels, weights=weights)

    def _whole(self, values: npt.NDArray[Any]) -> Tensor:
        """Return whole numbers as a tensor that shares their memory: nobody writes to it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of arrays that may not be written to
            return torch.from_numpy(values).to(self.device)

    def _tensor(self, values: npt.NDArray[Any], dtype: torch.dtype) -> Tensor:
        # In this order: not every device has double precision.
        return torch.tensor(values, dtype=dtype).to(self.device)

    def generator(self, *stream: int) -> torch.Generator:
        """Return random numbers of a stream of their own, the same whenever they are asked for."""
        seed = np.random.SeedSequence([self.seed, *stream]).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(seed >> np.uint64(1)))

    @cached_property
    def _rectangle(self) -> tuple[int, int]:
        """Sides of a batch's rectangle: in the grid's own shape, so that users and items come up equally often."""
        n_users, n_items = self.shape
        width = min(n_items, self.grid_cells, max(1, round((self.grid_cells * n_items / n_users) ** 0.5)))
        return min(n_users, max(1, self.grid_cells // width)), width

    def sample_batch(self, epoch: int) -> Batch:
        """Return one batch of random rows and a rectangle, without the rest of the epoch."""
        random = np.random.default_rng([self.seed, 6, epoch])
        rows = random.integers(len(self.log), size=min(self.batch_size, len(self.log)))
        pairs = self._tensor(self.log.users[rows], torch.int64), self._tensor(self.log.items[rows], torch.int64)
        numbers = self._tensor(rows, torch.int64)
        sizes = self._rectangle if self.grid_cells else (0, 0)
        sides = (random.integers(n, size=m) for n, m in zip(self.shape, sizes, strict=True))
        grid_users, grid_items = (self._tensor(side, torch.int64) for side in sides)
        labels = self._tensor(self.log.labels[rows], torch.float32)
        return Batch(numbers, *pairs, labels, self.weights[numbers], grid_users, grid_items, self.density)

    @property
    def steps(self) -> int:
        """Batches of an epoch."""
        return -(-len(self.log) // self.batch_size)

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Return an epoch's batches: every row once, in random order, and a fresh rectangle each."""
        random = self.generator(1, epoch)
        order = _in_random_order(len(self.log), random)
        height, width = self._rectangle if self.grid_cells else (0, 0)
        all_users = _drawn(self.shape[0], (self.steps, height), random)
        all_items = _drawn(self.shape[1], (self.steps, width), random)
        for steps in parts_of(self.steps, size=max(1, _AT_ONCE // self.batch_size)):
            first, last = self._edge(steps.start), self._edge(steps.stop)
            columns = self._rows(order[first:last])
            for step in range(steps.start, steps.stop):
                own = slice(self._edge(step) - first, self._edge(step + 1) - first)
                rows, users, items, labels, weights = (column[own] for column in columns)
                rectangle = all_users[step], all_items[step]
                sides = rectangle[0].to(self.device), rectangle[1].to(self.device)
                yield Batch(rows, users, items, labels, weights, *sides, self.density, rectangle)

    def _edge(self, step: int) -> int:
        """Return where the rows of a step begin: the first ones have one more, where not all can have as many."""
        least, more = divmod(len(self.log), self.steps)
        return step * least + min(step, more)

    def _rows(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return rows as a batch has them: numbers, users, items, labels and weights."""
        own = rows.to(self.device)
        kinds = (torch.int64, torch.int64, torch.float32, torch.float32)
        looked_up = (one.index_select(0, own).to(kind) for one, kind in zip(self.all_rows[1:5], kinds, strict=True))
        return own.long(), *looked_up


def multiplied(one: Tensor, other: Tensor) -> Tensor:
    """Return a product of numbers of all rows; in a file, where memory is limited.

    Examples
    --------
    >>> multiplied(torch.tensor([1.0, 2.0]), torch.tensor(3.0)).tolist()
    [3.0, 6.0]
    """
    if other.device.type != "cpu":
        return one * other
    shape = np.broadcast_shapes(one.shape, other.shape)
    return torch.mul(one, other, out=torch.from_numpy(long_array(shape, np.float32)))


def _in_random_order(count: int, random: torch.Generator) -> Tensor:
    """Return row numbers in random order: 4 bytes a row, in a file once they are drawn where memory is limited."""
    rows = torch.randperm(count, generator=random, dtype=torch.int32 if count < 2**31 else torch.int64).numpy()
    return torch.from_numpy(each(np.positive, rows, dtype=rows.dtype))


def _drawn(most: int, shape: tuple[int, int], random: torch.Generator) -> Tensor:
    """Draw positions of rectangles, as many as an epoch has."""
    return torch.randint(most, shape, generator=random, out=torch.from_numpy(long_array(shape, np.int64)))
