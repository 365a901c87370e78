"""Running a plan over many seeds: by several processes, each finished seed kept, a stopped run gone on with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from verirec.checks import whole_number
from verirec.engine.base import MOST_WORKERS
from verirec.engine.choice import EngineLike
from verirec.engine.revision import revision
from verirec.exceptions import DataError
from verirec.studies.processes import in_processes
from verirec.studies.semi_synthetic.plans import Plan
from verirec.studies.semi_synthetic.populations import Population
from verirec.studies.semi_synthetic.seeds import Record, run_seed
from verirec.studies.store import STORE, Row, Store, in_turns, key_of

_ARITHMETIC: Final = 1
"""A change of the arithmetic behind the records raises it."""
MOST_SEEDS: Final = 100_000


def check_seeds(seeds: int) -> int:
    """Accept a number of seeds.

    Examples
    --------
    >>> check_seeds(0)
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: seeds must be a whole number from 1 to 100,000; got 0
    """
    return whole_number("seeds", seeds, max=MOST_SEEDS)


def run_plan(
    plan: Plan,
    population: Population,
    *,
    seeds: int,
    folder: str | Path,
    workers: int = 2,
    engine: EngineLike = "processes",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[list[Record]]:
    """Run seeds 0, 1, ... of a plan, and return their records in the order of the seeds.

    Each seed is kept in `folder/store` the moment it is finished: seeds that are there are not run again, and a run
    that was stopped goes on. Workers are processes of their own with one thread for linear algebra each, so that
    results do not depend on how many there are; as many calls of this as there are may share a folder.

    Parameters
    ----------
    seeds
        How many.
    folder
        The output folder, made if need be.
    workers, engine
        How many, and of what kind: as in `verirec.estimate`. On several machines, they must share the folder.
    progress
        Told how many seeds are done, of how many.
    """
    count, workers = check_seeds(seeds), whole_number("workers", workers, max=MOST_WORKERS)
    keys = keys_of(plan, population, count)
    store = Store(Path(folder) / STORE, lambda row: row["key"] in keys and records_of(row, plan) is not None)

    def tell(done: int = 0) -> None:
        progress(len(store.rows()), count)

    tell()
    missing = [(seed, key) for key, seed in keys.items() if key not in store.rows()]
    if missing:
        shared = (plan, population, store.folder.resolve())
        in_processes(_work, shared, in_turns(missing), workers, tell, engine=engine, kept="finished seeds are kept")
    return _all_of(keys, store, plan)


def keys_of(plan: Plan, population: Population, count: int) -> dict[str, int]:
    """Return the store's keys of seeds 0, 1, ..., made of all that their records depend on."""
    facts = {"plan": asdict(plan), "population": population.fingerprint, "arithmetic": _ARITHMETIC}
    return {key_of(**facts, seed=seed): seed for seed in range(count)}


def _work(shared: tuple[Plan, Population, Path], task: tuple[int, str], wait: bool) -> None:
    """Run a seed in a worker process, unless somebody else is at it; with `wait`, as soon as nobody is."""
    plan, population, folder = shared
    seed, key = task
    store = Store(folder, lambda row: row["key"] == key and records_of(row, plan) is not None)
    with store.claim(key, wait=wait) as held:
        if held and not store.rows():
            records = run_seed(plan, population, seed)
            store.append(
                {"key": key, "study": plan.study, "seed": seed, "revision": revision(), "records": list(records)}
            )


def records_of(row: Row, plan: Plan) -> list[Record] | None:
    """Return the records that a line of the store holds; `None` if they are not what the plan's seeds leave."""
    try:
        records = [Record(*values) for values in row["records"]]
        cells = [(one.setting, one.method, one.rho, one.matrix) for one in records]
        whole = len(cells) == len(plan.cells) and set(cells) == plan.cells and all(map(_usable, records))
    except (KeyError, TypeError):
        return None
    return records if whole else None


def _usable(one: Record) -> bool:
    """Whether its numbers are finite, its truth is above 0, and it has noise rates exactly if it uses some."""
    needed: list[Any] = [one.observed, one.truth, one.estimate]
    optional: list[Any] = [one.low, one.high]
    (optional if one.rho == "none" else needed).extend((one.rho01, one.rho10))
    if one.rho == "none" and optional[2:] != [None, None]:
        return False
    needed += [value for value in optional if value is not None]
    # Not isinstance: True is no number here.
    return all(type(value) in (int, float) and math.isfinite(value) for value in needed) and one.truth > 0


def _all_of(keys: dict[str, int], store: Store, plan: Plan) -> list[list[Record]]:
    """Read all seeds, those that were run just now too: without one of them the others would pass for all."""
    rows = store.rows()
    found = {seed: records_of(rows[key], plan) for key, seed in keys.items() if key in rows}
    lost = sorted(set(keys.values()) - set(found))
    if lost:
        raise DataError(
            f"seed {lost[0]} was run just now, and {str(store.file)!r} does not hold the plan's cells of it in finite "
            "numbers; results need every seed"
        )
    return [records for seed in sorted(found) if (records := found[seed]) is not None]
