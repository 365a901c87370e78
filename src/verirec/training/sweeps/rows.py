"""The sums over the log's rows that a sweep needs, by whatever is installed and on as many threads as there may be."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from verirec.data.feedback_log import FeedbackLog
from verirec.training.sweeps.pairing import Pairing, Side
from verirec.training.sweeps.sorted_rows import RowsOf, SortedRows

STEPS: Final = 2
"""Conjugate gradient steps of each user and each item in a sweep: more cost more than they gain."""
ROWS_A_THREAD: Final = 1 << 18
"""Less work than this is not worth a thread."""


def compiled_rows() -> ModuleType | None:
    """Give the compiled walks over rows, or `None` without numba."""
    try:
        from verirec.training.sweeps import numba_rows
    except ImportError:
        return None
    return numba_rows


class Rows:
    """A log's rows in the order of users, and sums over them.

    Parameters
    ----------
    log
        The rows.
    threads
        At most.
    compiled
        Whether to use numba, where it is there.
    """

    def __init__(self, log: FeedbackLog, threads: int, *, compiled: bool = True) -> None:
        from verirec.training.sweeps import torch_rows

        self.sorted = SortedRows.of(log)
        found = compiled_rows() if compiled else None
        self.walks: Any = torch_rows if found is None else found
        self.threads = max(1, min(threads, len(log) // ROWS_A_THREAD))

    def __len__(self) -> int:
        return len(self.sorted.by_user.others)

    def logits(self, pairing: Pairing) -> Tensor:
        """Give the logit of each row, shape (rows,)."""
        rows, out = self.sorted.by_user, np.empty(len(self), np.float32)
        own, other, constant = pairing.users.numpy(), pairing.items.numpy(), np.float32(pairing.constant)
        self._walk(
            rows, lambda begin, end: self.walks.logits(begin, end, rows.starts, rows.others, own, other, constant, out)
        )
        return torch.from_numpy(out)

    def gather(self, side: Side, number: int, values: Tensor, part: slice) -> Tensor:
        """Give the sum of inputs times values over each one's rows, for a part of a side: shape (part, k)."""
        rows, columns = self.sorted.sides[number], side.columns
        out = np.empty((part.stop - part.start, columns.stop - columns.start), np.float32)
        other, given = side.other.numpy(), values.numpy()

        def work(begin: int, end: int) -> None:
            whole = rows.starts, rows.others, rows.places, given, other, columns.start, columns.stop
            self.walks.gather(begin, end, *whole, out[begin - part.start : end - part.start])

        self._walk(rows, work, part)
        return torch.from_numpy(out)

    def descend(self, side: Side, number: int, constant: float, level: Tensor, pull: Tensor, bend: float = 0.0) -> None:
        r"""Improve all parameters of a side, given the other, by a quadratic above the loss of their rows.

        That is :math:`\sum_O [a\,\mathrm{softplus}(z) - b z]` with a and b the level and the pull of each row, the
        quadratic by Jaakkola and Jordan (2000); with `bend`, :math:`\sum_O a (\sigma(z) - b)^2`, `bend` being the
        largest second derivative of a square. Conjugate gradients start from no change: each step lowers the quadratic.
        """
        rows, columns = self.sorted.sides[number], side.columns
        whole = (
            *(rows.starts, rows.others, rows.places, side.own.numpy(), side.other.numpy()),
            *(columns.start, columns.stop, np.float32(constant), side.ridge.numpy(), level.numpy(), pull.numpy()),
            *(np.float32(bend), STEPS),
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
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(work, ends[:-1], ends[1:]))
