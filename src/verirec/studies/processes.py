"""The runs of a study, shared out among workers: what is finished is kept, a loss of workers named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from verirec.engine.choice import EngineLike, running_on
from verirec.exceptions import WorkerEndedError


def in_processes(
    work: Callable[..., None],
    shared: Any,
    jobs: Iterable[tuple[Any, ...]],
    workers: int,
    progress: Callable[[int], None] = lambda done: None,
    *,
    engine: EngineLike = "processes",
    kept: str = "what is finished is kept",
) -> None:
    """Call `work(shared, *job)` for each job, by workers; raises what one raises, and ends the others.

    Parameters
    ----------
    work
        A function of a module.
    shared
        What all jobs need, sent to each worker once.
    jobs
        Arguments of each call.
    workers
        How many, at most as many as jobs.
    progress
        Told how many jobs are done after each, and every few seconds.
    engine
        Which workers these are; on several machines, they must share the folder of results.
    kept
        What the error says, where workers were ended from outside, about what is done.
    """
    listed, done = list(jobs), [0]
    try:
        with running_on(engine, min(workers, max(len(listed), 1))) as chosen:
            calls = partial(_call, work, shared)
            for _ in chosen.map(calls, listed, waiting=lambda: progress(done[0]), singly=True):
                done[0] += 1
                progress(done[0])
    except WorkerEndedError as error:
        raise WorkerEndedError(f"{error}, such as workers=1; {kept}") from None


def _call(work: Callable[..., None], shared: Any, job: tuple[Any, ...]) -> None:
    work(shared, *job)
