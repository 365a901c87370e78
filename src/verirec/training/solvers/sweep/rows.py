"""The sums over the log's rows that a sweep needs, by whatever is installed and on as many threads as there may be.

Rows are walked in the order of users, for sums over items too: these are added to as their rows come by. A user's row
is then at hand, and items, of which there are fewer, are what is looked up.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from verirec.training.solvers.sweep.arrays import large_array, row_parts
from verirec.training.solvers.sweep.descent import descend_together
from verirec.training.solvers.sweep.factor_blocks import Blocks, Side
from verirec.training.solvers.sweep.majorizers import Majorizer
from verirec.training.solvers.sweep.tree_sum import TreeSum
from verirec.training.sorted_rows import SortedRows
from verirec.training.threads import Pool

ROWS_A_PART: Final = 1 << 15
"""Less work than this is not worth a thread."""
_PARTS: Final = 8
_ROWS_AN_ITEM: Final = 4
"""Of a part, at least: each part has sums of all items, which are added up."""
_MORE_PARTS: Final = 256
"""Of logs that many workers may share."""
_LARGE_PART: Final = 1 << 20
_MORE_ROWS_AN_ITEM: Final = 16


def part_count(rows: int, n_items: int) -> int:
    """Return in how many parts the users of a log are: it depends on the log alone, not on who works on them.

    Examples
    --------
    >>> part_count(10_000, 500), part_count(10**6, 2_000), part_count(10**8, 10**5)
    (1, 8, 62)
    """
    few = rows // max(ROWS_A_PART, _ROWS_AN_ITEM * n_items)
    many = rows // max(_LARGE_PART, _MORE_ROWS_AN_ITEM * n_items)
    return max(1, min(_PARTS, few), min(_MORE_PARTS, many))


def compiled_rows() -> ModuleType | None:
    """Return the compiled walks over rows, or `None` without numba."""
    try:
        from verirec.training.solvers.sweep import numba_rows
    except ImportError:
        return None
    return numba_rows


class Rows:
    """A log's rows in the order of users, and sums over them.

    Users are in parts, which depend on the log alone. Sums over items are those of the parts, put together two by two
    (`tree_sum`): the same whatever the number of threads.

    Parameters
    ----------
    rows
        The rows.
    threads
        At most.
    compiled
        Whether to use numba, where it is there.
    parts
        Of the users; by default `part_count` of about as many rows each.
    """

    def __init__(
        self, rows: SortedRows, threads: int, *, compiled: bool = True, parts: list[slice] | None = None
    ) -> None:
        from verirec.training.solvers.sweep import torch_rows

        self.sorted = rows
        self.compiled = compiled_rows() if compiled else None
        self.walks: Any = torch_rows if self.compiled is None else self.compiled
        self.parts = rows.parts(part_count(len(rows), rows.shape[1])) if parts is None else parts
        self.pool = Pool(max(1, min(threads, len(self.parts))))
        starts = rows.starts
        self.row_parts = [
            part for one in self.parts for part in row_parts(int(starts[one.start]), int(starts[one.stop]))
        ]
        """Rows that are worked on at once, each of one part of the users."""

    def __len__(self) -> int:
        return len(self.sorted)

    def logits(self, factors: Blocks, out: Tensor | None = None) -> Tensor:
        """Return the logit of each row, shape (rows,), in an array that is given or a new one."""
        found = self.inner(factors.users, factors.items, factors.constant, out)
        return found if factors.covariates is None else factors.covariates.added_to(found)

    def inner(
        self,
        users: Tensor,
        items: Tensor,
        constant: float = 0.0,
        out: Tensor | None = None,
        columns: slice | None = None,
    ) -> Tensor:
        """Return the inner product of each row's user and item, and a constant: shape (rows,).

        Matrices have shapes (n, d) and (m, d), or the users' some more columns than those that are meant.
        """
        out = large_array(len(self)) if out is None else out
        first, last = (0, users.shape[1]) if columns is None else (columns.start, columns.stop)
        self._walk(self.walks.inner, users.numpy(), first, last, items.numpy(), np.float32(constant), out.numpy())
        return out

    def totals(self, values: Tensor) -> Tensor:
        """Return the sum of values of each of the parts that rows are worked on in."""
        return torch.stack([values[part].sum(dtype=torch.float64) for part in self.row_parts])

    def gather(self, items: Tensor, values: Tensor, part: slice) -> Tensor:
        """Return the sum over each user's rows of values times the item's row, for some users: shape (part, d)."""
        out = torch.empty(part.stop - part.start, items.shape[1])
        whole = self.sorted.starts, self.sorted.items, values.numpy(), items.numpy(), out.numpy()
        self.walks.gather(part.start, part.stop, *whole)
        return out

    def push(self, users: Tensor, values: Tensor, columns: slice | None = None) -> Tensor:
        """Return the sum over each item's rows of values times the user's row, or some columns of it: shape (m, d)."""
        first, last = (0, users.shape[1]) if columns is None else (columns.start, columns.stop)

        def of_part(part: slice) -> Tensor:
            out = torch.zeros(self.sorted.shape[1], last - first)
            whole = self.sorted.starts, self.sorted.items, values.numpy(), users.numpy(), first, last, out.numpy()
            self.walks.push(part.start, part.stop, *whole)
            return out

        sums = TreeSum(len(self.parts))
        for number, found in enumerate(self.pool.each(of_part, self.parts)):
            sums.add((0, number), found)
        return sums.total

    def descend(self, side: Side, number: int, above: Majorizer, damping: float = 1.0) -> None:
        r"""Improve all parameters of a side on the quadratic above the loss of its rows.

        With the change d of one's parameters, the inputs x of its rows, and slopes s and curvatures c there, it is
        :math:`\sum_O [s\,(x \cdot d) + \tfrac12 c\,(x \cdot d)^2]` and the penalties. Conjugate gradients start
        from no change: each step lowers it. They are preconditioned by what the diagonal would be, had all the inputs
        the same squares. Of the way found, a part is gone: the damping. The logits of the quadratic follow the users;
        not the items.
        """
        if number == 1:
            descend_together(side, damping, ItemSums(self, side, above))
        elif self.compiled is None:
            change = descend_together(side, damping, UserSums(self, side, above))
            above.logits.add_(self.inner(change, side.inputs))
        else:
            columns = side.columns
            self._walk(
                self.compiled.descend,
                *(side.own.numpy(), side.other.numpy(), columns.start, columns.stop, side.ridge.numpy()),
                *(side.mean_squares.numpy(), above.slopes.numpy(), above.levels.numpy(), np.float32(above.curvature)),
                *(above.steps, np.float32(damping), above.logits.numpy()),
            )

    def _walk(self, walk: Any, *given: Any) -> None:
        """Walk over all users, a part at a time."""
        starts, items = self.sorted.starts, self.sorted.items
        self.pool.map(lambda part: walk(part.start, part.stop, starts, items, *given), self.parts)


class UserSums:
    """Sums over each user's rows, for descents of all users together: see `descent.Quadratics`.

    Parameters
    ----------
    rows
        All rows.
    side
        The users'.
    above
        The quadratics of the rows.
    """

    def __init__(self, rows: Rows, side: Side, above: Majorizer) -> None:
        self.rows, self.side, self.above = rows, side, above
        self.curvature, self.steps = above.curvature, above.steps

    def start(self) -> tuple[Tensor, Tensor]:
        """Add up slopes times inputs, and levels."""
        return self._of_inputs(self.above.slopes), self._of(self.above.levels)

    def along(self, directions: Tensor, *, turning: bool) -> tuple[Tensor, Tensor | None]:
        """Return how much the quadratics bend along directions, and how that turns the slope."""
        along = self._moved(directions)
        bent = along * self.above.levels
        turns = self._of_inputs(bent) if turning else None
        return self._of(along.mul_(bent)), turns

    def _of_inputs(self, values: Tensor) -> Tensor:
        """Add up values times what users are multiplied by: shape (n, k)."""
        return self._gather(self.side.inputs, values)

    def _of(self, values: Tensor) -> Tensor:
        """Add up values: shape (n,)."""
        return self._gather(torch.ones(len(self.side.other), 1), values).squeeze(1)

    def _moved(self, directions: Tensor) -> Tensor:
        """Return how far each row's logit goes along directions: shape (rows,)."""
        return self.rows.inner(directions, self.side.inputs)

    def _gather(self, items: Tensor, values: Tensor) -> Tensor:
        return torch.cat(self.rows.pool.map(lambda part: self.rows.gather(items, values, part), self.rows.parts))


class ItemSums(UserSums):
    """Sums over each item's rows, for descents of all items together."""

    def _of_inputs(self, values: Tensor) -> Tensor:
        return self.rows.push(self.side.other, values, self.side.columns)

    def _of(self, values: Tensor) -> Tensor:
        return self.rows.push(torch.ones(len(self.side.other), 1), values).squeeze(1)

    def _moved(self, directions: Tensor) -> Tensor:
        return self.rows.inner(self.side.other, directions, columns=self.side.columns)
