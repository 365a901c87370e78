"""What a worker is asked to do with its shards: functions of the state that it keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from verirec.training.correction import NoiseCorrection
from verirec.training.solvers.sharded.shard import (
    Array,
    ItemNews,
    Layout,
    Part,
    RowContents,
    Shard,
    ShardBlocks,
    owned,
)
from verirec.training.solvers.sweep.arrays import large_array
from verirec.training.solvers.sweep.lines import AnyGradient
from verirec.training.solvers.sweep.tree_sum import Place, TreeSum
from verirec.training.threads import no_denormals

State = dict[str, Any]
News = Mapping[str, ItemNews]


class Found(NamedTuple):
    """What a worker's shards found.

    Parameters
    ----------
    sums
        What is left to be added up, with its place in a `TreeSum` of all shards.
    users, values
        Of each shard: see `Part`.
    """

    sums: dict[Place, Array]
    users: dict[int, Array]
    values: dict[int, tuple[Array, ...]]


def load(state: State, number: int, contents: RowContents, layouts: Mapping[str, Layout]) -> None:
    """Take the rows of a shard."""
    n_users, n_items = contents.shape
    items = state.setdefault("items", {name: large_array(n_items, one.width) for name, one in layouts.items()})
    blocks = {name: ShardBlocks(n_users, items[name], one) for name, one in layouts.items()}
    state.setdefault("shards", {})[number] = Shard(contents, blocks)


def label(state: State, number: int, labels: Array, correction: NoiseCorrection, extremes: tuple[float, float]) -> None:
    """Take the labels of a shard's rows."""
    state["shards"][number].label(labels, correction, extremes)


def place_users(state: State, number: int, users: Mapping[str, Array]) -> None:
    """Put a shard's users where they are."""
    for name, own in users.items():
        state["shards"][number].blocks[name].users.copy_(owned(own))


def descend(state: State, count: int, news: News, name: str, damping: float) -> Found:
    """Improve users on the loss of their rows."""
    _hear(state, news)
    return _each(state, count, lambda shard: shard.descend(name, damping))


def along(state: State, count: int, directions: Array, turning: bool) -> Found:
    """Look how much the items' quadratics bend along directions."""
    given = owned(directions)
    return _each(state, count, lambda shard: shard.along(given, turning=turning))


def users_on_grid(
    state: State, count: int, news: News, grid: AnyGradient, steps: Array, imputed: float | None, damping: float
) -> Found:
    """Improve users on the loss of the grid."""
    _hear(state, news)
    given = owned(steps)
    return _each(state, count, lambda shard: shard.on_grid(grid, given, imputed, damping))


def items_on_grid(state: State, grid: AnyGradient, parts: list[slice]) -> list[Array]:
    """Return the gradient of the grid's part of the loss for some parts of the items."""
    items = state["items"]
    own = grid.on(items["prediction"], items.get("imputation", items["prediction"]))
    with torch.no_grad(), no_denormals():
        return [own.of(part).numpy() for part in parts]


def _hear(state: State, news: News) -> None:
    for name, one in news.items():
        state["items"][name].copy_(owned(one.items))
        for shard in state["shards"].values():
            shard.hear(name, one)


def _each(state: State, count: int, work: Callable[[Shard], Part]) -> Found:
    """Do some work on all shards, one after the other."""
    sums, users, values = TreeSum(count), {}, {}
    with torch.no_grad(), no_denormals():
        for number, shard in sorted(state["shards"].items()):
            part = work(shard)
            sums.add((0, number), part.sums)
            if part.users is not None:
                users[number] = part.users.contiguous().numpy()
            values[number] = tuple(one.numpy() for one in part.values)
    return Found({where: one.numpy() for where, one in sums.left.items()}, users, values)
