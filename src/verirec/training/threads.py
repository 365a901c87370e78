"""Threads, and torch's global settings, borrowed and put back.

One intra-op thread for small work: more cost up to a hundred times the time on tensors of a batch's size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import torch

Part = TypeVar("Part")
Found = TypeVar("Found")


@contextmanager
def no_denormals() -> Iterator[None]:
    """Let this thread take numbers next to 0 for 0: factors may shrink to such, and arithmetic on them is slow."""
    before = float(torch.tensor(1e-39) * 1.0) == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch work on one thread, and put its setting back."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def seeded(*numbers: int) -> Iterator[None]:
    """Let torch's global random numbers be those of a seed, and put the processor's state back."""
    seed = int(np.random.SeedSequence(numbers).generate_state(1, np.uint32)[0])
    before = torch.get_rng_state()
    # Where there is no device, torch.manual_seed writes down to seed them later, with a trace of the stack each time.
    devices = torch.cuda.is_available() or torch.backends.mps.is_available()
    (torch.manual_seed if devices else torch.default_generator.manual_seed)(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before)


class Pool:
    """Threads that do parts of the work; what they give comes in the order of the parts, whatever their number.

    They end with the pool. They see numbers next to 0 as 0 and keep no gradients, as who trains by sweeps does.

    Parameters
    ----------
    threads
        At most; with one the work is done by who asks for it.

    Examples
    --------
    >>> Pool(2).map(abs, [-1, 2, -3])
    [1, 2, 3]
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._executor = ThreadPoolExecutor(threads, initializer=_begin_thread) if threads > 1 else None

    def map(self, work: Callable[[Part], Found], parts: Iterable[Part]) -> list[Found]:
        """Do all parts."""
        return list(self.each(work, parts))

    def each(self, work: Callable[[Part], Found], parts: Iterable[Part]) -> Iterator[Found]:
        """Do all parts; what each gives can be let go of before the last is done."""
        return map(work, parts) if self._executor is None else self._executor.map(work, parts)


def _begin_thread() -> None:
    torch.set_flush_denormal(True)
    torch.set_grad_enabled(False)
