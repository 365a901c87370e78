"""Torch's global settings, borrowed and put back.

One intra-op thread for small work: more cost up to a hundred times the time on tensors of a batch's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


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
    """Let torch's global random numbers, of the processor, be those of a seed, and put their state back."""
    seed = int(np.random.SeedSequence(numbers).generate_state(1, np.uint32)[0])
    before = torch.get_rng_state()
    # torch.manual_seed would also remember, with a trace of the stack each time, to seed devices that are never used.
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before)
