"""Work on many parts by threads: results in order, and the same whatever the number of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Event, RLock
from typing import Any, Final, TypeVar

from verirec.engine.worker import in_worker, usable_cores
from verirec.progress import end_work_once

Part = TypeVar("Part")
Result = TypeVar("Result")

_AHEAD: Final = 4
"""Parts a thread that are worked on before their turn: results that nobody has asked for yet take room."""


def mapped(
    function: Callable[[Part], Result], parts: Sequence[Part], *, threads: int | None = None
) -> Iterator[Result]:
    """Apply a function to each part, by as many threads as there are cores; results in the order of the parts.

    For functions that spend their time inside NumPy, which lets go of the lock there. Meanwhile a matrix product keeps
    to its own thread: products that each start threads of their own wait for each other.

    Examples
    --------
    >>> list(mapped(len, ["a", "bcd"]))
    [1, 3]
    """
    count = min(usable_cores() if threads is None or in_worker() else threads, len(parts))
    with one_product_thread():
        if count < 2:
            yield from map(function, parts)
            return
        unwanted = Event()
        with ThreadPoolExecutor(max_workers=count, initializer=end_work_once, initargs=(unwanted,)) as workers:
            waiting: deque[Future[Result]] = deque()
            try:
                for part in parts:
                    waiting.append(workers.submit(function, part))
                    if len(waiting) > _AHEAD * count:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            except BaseException:
                # Somebody may have pressed Ctrl-C: what nobody waits for any more would take its time.
                unwanted.set()
                workers.shutdown(wait=False, cancel_futures=True)
                raise


@contextmanager
def one_product_thread() -> Iterator[None]:
    """Hold matrix and scalar products to one thread each, until the last of several walks has ended.

    Around work of many short walks too: to change the number takes longer than a short product.
    """
    _PRODUCTS.enter()
    try:
        yield
    finally:
        _PRODUCTS.leave()


class _ProductThreads:
    """The threads of the libraries behind NumPy's products, of which each walk wants one."""

    def __init__(self) -> None:
        self._lock, self._walks = RLock(), 0
        self._before: Any = None

    def enter(self) -> None:
        with self._lock:
            self._walks += 1
            if self._walks == 1:
                self._before = _libraries().limit(limits=1, user_api="blas")

    def leave(self) -> None:
        with self._lock:
            self._walks -= 1
            if self._walks == 0:
                self._before.restore_original_limits()


_PRODUCTS: Final = _ProductThreads()


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # Looks through all libraries that are loaded.

    return ThreadpoolController()
