"""Work in several processes: one thread for linear algebra each, Ctrl-C for the parent alone, a lost one named."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import connection
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from verirec.exceptions import VerirecError

MOST_WORKERS: Final = 256
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerEndedError(VerirecError):
    """A process that worked was ended from outside."""


def in_processes(
    work: Callable[..., None],
    shared: Any,
    jobs: Iterable[tuple[Any, ...]],
    workers: int,
    progress: Callable[[int], None] = lambda done: None,
    *,
    every: float | None = None,
    kept: str = "what is finished is kept",
) -> None:
    """Call `work(shared, *job)` for each job, in processes of their own; raises what one raises, and ends the others.

    Parameters
    ----------
    work
        A function of a module.
    shared
        What all jobs need, sent to each process once.
    jobs
        Arguments of each call.
    workers
        Processes, at most as many as jobs.
    progress
        Told how many jobs are done after each, and, with `every`, whenever so many seconds have passed.
    kept
        What the error says, where a process was ended from outside, about what is done.
    """
    listed = list(jobs)
    try:
        _in_processes(work, shared, listed, min(workers, max(len(listed), 1)), progress, every)
    except BrokenProcessPool:
        raise WorkerEndedError(
            f"a worker was ended, often for lack of memory; use fewer, such as workers=1; {kept}"
        ) from None


def _in_processes(
    work: Callable[..., None],
    shared: Any,
    jobs: list[tuple[Any, ...]],
    workers: int,
    progress: Callable[[int], None],
    every: float | None,
) -> None:
    before = set(multiprocessing.active_children())
    # Not `wait`: a Ctrl-C within it can leave the locks of waiting jobs taken, and then the pool never ends.
    finished: SimpleQueue[Future[None]] = SimpleQueue()
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as folder,
        one_thread_each(),
        ProcessPoolExecutor(workers, context, _prepare, (Path(folder, "work"),)) as pool,
    ):
        # By a file: what is sent to a process that starts is sent when it has started, one after the other.
        Path(folder, "work").write_bytes(pickle.dumps((work, shared)))
        try:
            with _interrupts_held():
                for job in jobs:
                    pool.submit(_call, job).add_done_callback(finished.put)
            done = 0
            while done < len(jobs):
                with suppress(Empty):
                    finished.get(timeout=every).result()
                    done += 1
                progress(done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # Jobs under way are let go of; finished ones have left their results.
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()
            raise


_work: list[Any] = []
"""A worker process's function and what all jobs share, sent once and not with each job."""


def _prepare(file: Path) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _work[:] = pickle.loads(file.read_bytes())


def _end_with_parent() -> None:
    """End this process when its parent has ended, however that came: it would hold on to its work for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _call(job: tuple[Any, ...]) -> None:
    work, shared = _work
    work(shared, *job)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back, for good from processes started meanwhile: it goes to them too, and the parent decides."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Have processes started meanwhile use one thread for linear algebra: sums over threads depend on their number."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ |= dict.fromkeys(_THREADS, "1")
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
