"""A shard: some users with their rows, on a worker, and what it does in a sweep."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from verirec.training.correction import NoiseCorrection
from verirec.training.data import Batch
from verirec.training.solvers.sweep.arrays import large_array
from verirec.training.solvers.sweep.factor_blocks import Blocks, Side
from verirec.training.solvers.sweep.lines import AnyGradient
from verirec.training.solvers.sweep.rows import ItemSums, Rows
from verirec.training.solvers.sweep.sweeper import step_on_grid
from verirec.training.solvers.sweep.targets import RowTargets
from verirec.training.sorted_rows import SortedRows

Array = npt.NDArray[Any]
_NOTHING: Final = torch.empty(0)


class Layout(NamedTuple):
    """How wide users' and items' rows are, which columns are parameters, and their penalties."""

    width: int
    columns: tuple[slice, slice]
    ridges: tuple[Array, Array]


class RowContents(NamedTuple):
    """The rows of a shard.

    Parameters
    ----------
    starts, items
        Where the rows of each user begin, and the item of each row: see `SortedRows`.
    shape
        Users of the shard, and items.
    weights
        w of each row, or one for all.
    imputation
        Weights of the imputed labels' squares; `None` where there are none, or they are the same.
    scale
        What these are multiplied by.
    """

    starts: Array
    items: Array
    shape: tuple[int, int]
    weights: Array
    imputation: Array | None
    scale: float


class ItemNews(NamedTuple):
    """What a model is like now, apart from the users.

    Parameters
    ----------
    items, constant
        Its items' rows, and what all logits have in common.
    shift
        What was taken off all users' constants.
    cold
        The row of users that have no rows, if they all have the same.
    """

    items: Array
    constant: float
    shift: float
    cold: Array | None


class ShardBlocks(Blocks):
    """A shard's users, and all items, of a model.

    Parameters
    ----------
    n_users
        Of the shard; their rows are set later.
    items
        All items, which shards of a worker share.
    layout
        Of both.
    """

    def __init__(self, n_users: int, items: Tensor, layout: Layout) -> None:
        users = large_array(n_users, items.shape[1])
        ridges = [owned(one) for one in layout.ridges]
        own, other = Side(users, items, layout.columns[0], ridges[0]), Side(items, users, layout.columns[1], ridges[1])
        super().__init__(users, items, (own, other))
        self.level = 0.0

    @property
    def constant(self) -> float:
        """What all logits have in common, as of the last news."""
        return self.level


class Part(NamedTuple):
    """What a shard found: of its own, and what is to be added up over shards.

    Parameters
    ----------
    sums
        What its rows add to the items' part, shape (m, d).
    users
        Its users' parameters, shape (n, k), where they have changed.
    values
        Of parts of its rows, to be added up in their order.
    """

    sums: Tensor
    users: Tensor | None = None
    values: tuple[Tensor, ...] = ()


class Shard:
    """Some users with their rows.

    Parameters
    ----------
    contents
        The rows.
    blocks
        Its models, by name.
    """

    def __init__(self, contents: RowContents, blocks: dict[str, ShardBlocks]) -> None:
        starts, items = np.array(contents.starts), np.array(contents.items)
        # As a log's own are: the walks are compiled for what may not be written to.
        items.flags.writeable = starts.flags.writeable = False
        n_users = contents.shape[0]
        self.rows = Rows(SortedRows(starts, items, contents.shape), 1, parts=[slice(0, n_users)])
        self.idle = torch.from_numpy(np.flatnonzero(np.diff(starts) == 0))
        self.blocks, self.scale = blocks, contents.scale
        self.weights = owned(contents.weights)
        self.imputation = self.weights if contents.imputation is None else owned(contents.imputation)
        self.sums: ItemSums | None = None

    def label(self, labels: Array, correction: NoiseCorrection, extremes: tuple[float, float]) -> None:
        """Take labels, how to correct them, and the smallest and largest corrected one of all rows of the log."""
        self.labels, self.correction, self.extremes = owned(labels), correction, extremes

    def _targets(self) -> RowTargets:
        """Return corrected labels and weights: made when they are needed, they take four bytes a row and not one."""
        batch = Batch(*(_NOTHING,) * 3, self.labels, *(_NOTHING,) * 3, density=0.0)
        return RowTargets(self.rows, self.correction.labels(batch), self.weights, self.extremes)

    def hear(self, name: str, news: ItemNews) -> None:
        """Take note of what a model is like now; its items have been put in place."""
        blocks = self.blocks[name]
        blocks.level = news.constant
        if news.shift:
            blocks.users[:, 0].sub_(news.shift)
        if news.cold is not None:
            blocks.users[self.idle] = owned(news.cold)

    def descend(self, name: str, damping: float) -> Part:
        """Improve users on the loss of their rows, and start on the items: see `Sweeper.on_rows`."""
        blocks, rows = self.blocks[name], self.rows
        if name == "prediction":
            loss: Any = self._targets().cross_entropy()
        else:
            loss = self._targets().squares(self.blocks["prediction"], self.correction.loss, self._imputation_weights)
        above = loss.above(rows.logits(blocks))
        rows.descend(blocks.sides[0], 0, above, damping)
        then = loss.above(above.logits)
        slopes, levels = ItemSums(rows, blocks.sides[1], then).start()
        self.sums = ItemSums(rows, blocks.sides[1], then._replace(slopes=_NOTHING, logits=_NOTHING))
        return Part(torch.cat([slopes, levels[:, None]], 1), blocks.sides[0].parameters, (above.values,))

    def _imputation_weights(self, part: slice) -> Tensor:
        return self.imputation[part] * self.scale

    def along(self, directions: Tensor, *, turning: bool) -> Part:
        """Return what the rows add to how much the items' quadratics bend, and, if asked, to how that turns slopes."""
        assert self.sums is not None  # noqa: S101
        bends, turns = self.sums.along(directions, turning=turning)
        if turns is None:
            self.sums = None
            return Part(bends[:, None])
        return Part(torch.cat([turns, bends[:, None]], 1))

    def on_grid(self, grid: AnyGradient, steps: Tensor, label: float | None, damping: float) -> Part:
        """Improve users on the loss of the grid, and start on the items: see `Sweeper.sides_on_grid`."""
        blocks, rows = self.blocks["prediction"], self.rows
        imputed = torch.tensor(0.0 if label is None else label)
        logits = _NOTHING if label is not None else rows.logits(self.blocks["imputation"])
        linear = self._targets().linear(lambda part: imputed if label is not None else torch.sigmoid(logits[part]))
        side, of_g = blocks.sides[0], blocks.users if label is not None else self.blocks["imputation"].users
        own = grid.on(blocks.users, of_g)
        was = [
            step_on_grid(side, part, own.of(part), rows.gather(side.other, linear, part), steps, damping)
            for part in own.parts()
        ]
        sums = rows.push(blocks.users, linear)
        return Part(sums, side.parameters, (torch.stack(was), rows.totals(linear)))


def owned(values: Array) -> Tensor:
    """Return a copy as a tensor: what came from elsewhere may be shared, and not to be written to."""
    return torch.from_numpy(np.array(values))
