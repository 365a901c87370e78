"""Workers that keep shards, and what is asked of all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from verirec.engine.base import Engine, Host
from verirec.exceptions import WorkerEndedError
from verirec.training.solvers.sharded.shard import Array
from verirec.training.solvers.sharded.worker import Found
from verirec.training.solvers.sweep.factor_blocks import FactorBlocks
from verirec.training.solvers.sweep.tree_sum import TreeSum

Setup = Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]
"""Functions of a worker's state and a shard's number, and what else they are given."""


class Gathered(NamedTuple):
    """What all shards found, in their order: see `Part`."""

    sums: Tensor
    users: list[Array]
    values: list[Tensor]

    def place(self, factors: FactorBlocks, parts: Sequence[slice]) -> None:
        """Put the users, those of each shard, where the model has them."""
        for part, own in zip(parts, self.users, strict=True):
            factors.sides[0].parameters[part] = torch.from_numpy(own)


class Crew:
    """Workers, and which shards each has.

    Parameters
    ----------
    engine
        Starts them.
    count
        How many shards there are.
    """

    def __init__(self, engine: Engine, count: int) -> None:
        self.engine, self.count = engine, count
        self.shards: dict[Host, list[int]] = {}
        self._lost: list[int] = list(range(count))

    def fill(self, make_rows: Callable[[int], Setup]) -> None:
        """Give shards that no worker has to workers: evenly, to those that are there, or to new ones.

        Parameters
        ----------
        make_rows
            Returns what gives a worker the rows of a shard: functions to call there.
        """
        lost, self._lost = sorted(self._lost), []
        hosts = list(self.shards) or self.engine.hosts(self.count)
        for host, some in zip(hosts, np.array_split(lost, len(hosts)), strict=True):
            self.shards.setdefault(host, []).extend(some.tolist())
        try:
            self.tell(make_rows, lost)
        except WorkerEndedError:
            # Nobody knows who has which.
            self.end()
            raise

    @property
    def complete(self) -> bool:
        """Whether all shards are at workers."""
        return not self._lost

    def tell(self, make: Callable[[int], Setup], numbers: Sequence[int] | None = None) -> None:
        """Have functions called for shards, all or some, one shard after the other at each worker."""
        wanted = set(range(self.count) if numbers is None else numbers)
        queues = [(host, [number for number in own if number in wanted]) for host, own in self.shards.items()]
        for turn in range(max((len(own) for _, own in queues), default=0)):
            self._together(
                [
                    (host, function, (own[turn], *given))
                    for host, own in queues
                    if turn < len(own)
                    for function, given in make(own[turn])
                ]
            )

    def ask(self, function: Callable[..., Found], *given: Any) -> Gathered:
        """Ask all shards at once, and put together what they found."""
        replies = self._together([(host, function, (self.count, *given)) for host in self.shards])
        sums = TreeSum(self.count)
        users: dict[int, Array] = {}
        values: dict[int, tuple[Array, ...]] = {}
        for found in replies:
            for place, one in found.sums.items():
                sums.add(place, torch.from_numpy(np.array(one)))
            users |= found.users
            values |= found.values
        in_order = [values[number] for number in range(self.count)]
        joined = [torch.from_numpy(np.concatenate(one)) for one in zip(*in_order, strict=True)]
        return Gathered(sums.total, [users[number] for number in sorted(users)], joined)

    def share(self, function: Callable[..., list[Any]], given: Any, parts: Sequence[Any]) -> list[Any]:
        """Have parts of some work done, by all workers; results in the order of the parts."""
        shares = [one.tolist() for one in np.array_split(np.arange(len(parts)), len(self.shards))]
        work = [
            (host, function, (given, [parts[number] for number in own]))
            for host, own in zip(self.shards, shares, strict=True)
        ]
        return [one for found in self._together(work) for one in found]

    def _together(self, work: list[tuple[Host, Callable[..., Any], tuple[Any, ...]]]) -> list[Any]:
        """Call functions at workers; raises `WorkerEndedError` when all have replied or are known to be lost."""
        waiting = [(host, host.begin(function, *given)) for host, function, given in work]
        found, ended = [], None
        for host, wait in waiting:
            try:
                found.append(wait())
            except WorkerEndedError as error:
                ended = error
                self._lost += self.shards.pop(host, [])
                host.end()
        if ended is not None:
            raise ended
        return found

    def end(self) -> None:
        """Let go of the workers."""
        for host in self.shards:
            host.end()
        self.shards, self._lost = {}, list(range(self.count))
