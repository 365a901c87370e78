"""The sums over the log's rows that a sweep needs, by whatever is installed and on as many threads as there may be."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from verirec.training.solvers.sweep.arrays import large_array
from verirec.training.solvers.sweep.factor_blocks import FactorBlocks, Side
from verirec.training.solvers.sweep.majorizers import Majorizer
from verirec.training.sorted_rows import RowsOf, SortedRows
from verirec.training.threads import no_denormals

ROWS_A_THREAD: Final = 1 << 18
"""Less work than this is not worth a thread."""


def compiled_rows() -> ModuleType | None:
    """Return the compiled walks over rows, or `None` without numba."""
    try:
        from verirec.training.solvers.sweep import numba_rows
    except ImportError:
        return None
    return numba_rows


class Rows:
    """A log's rows in the order of users, and sums over them.

    Parameters
    ----------
    rows
        The rows.
    threads
        At most.
    compiled
        Whether to use numba, where it is there.
    """

    def __init__(self, rows: SortedRows, threads: int, *, compiled: bool = True) -> None:
        from verirec.training.solvers.sweep import torch_rows

        self.sorted = rows
        found = compiled_rows() if compiled else None
        self.walks: Any = torch_rows if found is None else found
        self.threads = max(1, min(threads, len(self) // ROWS_A_THREAD))

    def __len__(self) -> int:
        return len(self.sorted.by_user.others)

    def logits(self, factors: FactorBlocks, out: Tensor | None = None) -> Tensor:
        """Return the logit of each row, shape (rows,), in an array that is given or a new one."""
        found = self.inner(factors.users, factors.items, factors.constant, out)
        return found if factors.covariates is None else factors.covariates.added_to(found)

    def inner(self, users: Tensor, items: Tensor, constant: float = 0.0, out: Tensor | None = None) -> Tensor:
        """Return the inner product of each row's user and item, matrices of shape (n, d) and (m, d), and a constant."""
        rows, out = self.sorted.by_user, large_array(len(self)) if out is None else out
        whole = rows.starts, rows.others, users.numpy(), items.numpy(), np.float32(constant), out.numpy()
        self._walk(rows, lambda begin, end: self.walks.logits(begin, end, *whole))
        return out

    def gather(self, other: Tensor, number: int, values: Tensor, part: slice) -> Tensor:
        """Return each one's sum over rows of values times the other's row, for a part of a side: shape (part, d)."""
        rows, out = self.sorted.sides[number], torch.empty(part.stop - part.start, other.shape[1])
        whole = rows.starts, rows.others, rows.places, values.numpy(), other.numpy()

        def work(begin: int, end: int) -> None:
            self.walks.gather(begin, end, *whole, out[begin - part.start : end - part.start].numpy())

        self._walk(rows, work, part)
        return out

    def descend(self, side: Side, number: int, above: Majorizer, damping: float = 1.0) -> None:
        r"""Improve all parameters of a side on the quadratic above the loss of its rows.

        With the change d of one's parameters, the inputs x of its rows, and slopes s and curvatures c there, it is
        :math:`\sum_O [s\,(x \cdot d) + \tfrac12 c\,(x \cdot d)^2]` and the penalties. Conjugate gradients start
        from no change: each step lowers it. They are preconditioned by what the diagonal would be, had all the inputs
        the same squares. Of the way found, a part is gone: the damping.
        """
        rows, columns = self.sorted.sides[number], side.columns
        whole = (
            *(rows.starts, rows.others, rows.places, side.own.numpy(), side.other.numpy(), columns.start, columns.stop),
            *(side.ridge.numpy(), side.inputs.square().mean(0).numpy(), above.slopes.numpy(), above.levels.numpy()),
            *(np.float32(above.curvature), above.steps, np.float32(damping)),
        )
        self._walk(rows, lambda begin, end: self.walks.descend(begin, end, *whole))

    def _walk(self, rows: RowsOf, work: Callable[[int, int], None], part: slice | None = None) -> None:
        """Do work on parts of about as many rows as there are threads."""
        begin, end = (0, len(rows)) if part is None else (part.start, part.stop)
        if self.threads == 1:
            work(begin, end)
            return
        low, high = rows.starts[begin], rows.starts[end]
        shares = np.linspace(low, high, self.threads + 1)[1:-1]
        ends = np.unique([begin, *np.clip(np.searchsorted(rows.starts, shares), begin, end), end])

        def quickly(begin: int, end: int) -> None:
            with no_denormals():
                work(begin, end)

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(quickly, ends[:-1], ends[1:]))
