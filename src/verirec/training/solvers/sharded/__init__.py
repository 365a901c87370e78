"""Sweeps on many workers: users' rows in shards that stay where they are, items here.

A log's users are in parts that depend on the log alone (`sweep.rows.part_count`), of which each worker keeps some. In a
sweep each shard improves its own users, and returns them with what its rows add to the items' part, sums of the size of
the items. These are put together in an order that does not depend on who has which shard: the result has the same bits
as that of one machine. The model as it was before the sweep is kept here: where a worker is lost, others take its
shards over, all go back to that state, and the sweep is run again.
"""

from verirec.training.solvers.sharded.solver import ShardedSolver

__all__ = ["ShardedSolver"]
