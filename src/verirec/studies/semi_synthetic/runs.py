"""Running a plan over many seeds: by several processes, each finished seed saved, a stopped run gone on with."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import verirec
from verirec.checks import whole_number
from verirec.exceptions import DataError, ParameterError
from verirec.studies.processes import MOST_WORKERS, in_processes
from verirec.studies.semi_synthetic.plans import Plan
from verirec.studies.semi_synthetic.populations import Population
from verirec.studies.semi_synthetic.seeds import Record, run_seed

_FORMAT: Final = 1
"""Of the saved seeds; a change of the arithmetic behind them raises it."""
MOST_SEEDS: Final = 100_000


def check_counts(seeds: int, workers: int) -> tuple[int, int]:
    """Accept numbers of seeds and of worker processes.

    Examples
    --------
    >>> check_counts(20, 0)
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: workers must be a whole number from 1 to 256; got 0
    """
    return whole_number("seeds", seeds, max=MOST_SEEDS), whole_number("workers", workers, max=MOST_WORKERS)


def run_plan(
    plan: Plan,
    population: Population,
    *,
    seeds: int,
    folder: str | Path,
    workers: int = 2,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[list[Record]]:
    """Run seeds 0, 1, ... of a plan, and give their records in the order of the seeds.

    Each seed is saved in `folder/runs` the moment it is finished, under a name made of plan, population and version:
    seeds that are there whole are not run again, and a run that was stopped goes on. Workers are processes of their own
    with one thread for linear algebra each, so that results do not depend on how many there are.

    Parameters
    ----------
    seeds
        How many.
    folder
        The output folder, made if need be.
    workers
        Processes.
    progress
        Told how many seeds are done, of how many.
    """
    count, workers = check_counts(seeds, workers)
    store = Path(folder) / "runs"
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"cannot write to {str(folder)!r}: {error.strerror or error}") from None
    key = fingerprint(plan, population)
    files = [store / f"{plan.study}-{key}-{seed:04d}.json" for seed in range(count)]
    records = [_read(file, plan) for file in files]
    missing = {seed: files[seed] for seed, found in enumerate(records) if found is None}
    progress(count - len(missing), count)
    if missing:
        _run_missing(plan, population, missing, workers, progress, count)
    return [_read_now(files[seed], plan) if found is None else found for seed, found in enumerate(records)]


def fingerprint(plan: Plan, population: Population) -> str:
    """Name what a seed's records depend on, besides the seed."""
    facts = json.dumps([asdict(plan), population.fingerprint, verirec.__version__, _FORMAT], sort_keys=True)
    return hashlib.sha256(facts.encode()).hexdigest()[:12]


def _run_missing(
    plan: Plan,
    population: Population,
    files: dict[int, Path],
    workers: int,
    progress: Callable[[int, int], None],
    count: int,
) -> None:
    unfinished = {seed: file.with_suffix(f".{os.getpid()}") for seed, file in files.items()}
    there = count - len(files)
    try:
        in_processes(
            _run_and_save,
            (plan, population),
            [(seed, unfinished[seed], file) for seed, file in files.items()],
            workers,
            lambda done: progress(there + done, count),
            kept="finished seeds are kept",
        )
    finally:
        for file in unfinished.values():
            file.unlink(missing_ok=True)


def _run_and_save(shared: tuple[Plan, Population], seed: int, unfinished: Path, file: Path) -> None:
    records = run_seed(*shared, seed)
    # Written beside its place and then renamed: a seed is there whole or not at all.
    unfinished.write_text(json.dumps(records))
    unfinished.replace(file)


def _read(file: Path, plan: Plan) -> list[Record] | None:
    """Read a saved seed; `None` if it is not there, or not what the plan's seeds leave."""
    try:
        records = [Record(*values) for values in json.loads(file.read_text())]
        cells = [(one.setting, one.method, one.rho, one.matrix) for one in records]
        whole = len(cells) == len(plan.cells) and set(cells) == plan.cells and all(map(_usable, records))
    except (OSError, ValueError, TypeError, RecursionError):
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


def _read_now(file: Path, plan: Plan) -> list[Record]:
    """Read a seed that was run just now: without it the others would pass for all."""
    records = _read(file, plan)
    if records is None:
        there = "does not hold the plan's cells in finite numbers" if file.exists() else "is gone"
        raise DataError(f"{str(file)!r} was written just now and {there}; results need every seed")
    return records
