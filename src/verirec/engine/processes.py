"""Other processes of this machine: one thread each, Ctrl-C for the parent alone, lost ones started again."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, Final, NamedTuple, TypeVar

from verirec.checks import whole_number
from verirec.engine.base import EVERY, MOST_WORKERS, Engine, Host, chunked, nothing
from verirec.engine.parcels import write_parcel
from verirec.engine.replies import read_reply
from verirec.engine.worker import (
    ONE_THREAD,
    Reply,
    Versions,
    pickled_error,
    reissued,
    sendable,
    usable_cores,
    versions,
)
from verirec.exceptions import EngineError, WorkerEndedError
from verirec.scratch import memory_limit

Part = TypeVar("Part")
Result = TypeVar("Result")

_ATTEMPTS: Final = 3
"""Workers that a part may cost before it is taken to be the reason."""
_AHEAD: Final = 4
"""Messages for each worker that may be done before those that come first."""
_PATIENCE: Final = 5.0
"""Seconds to wait for a process that was ended."""
_COMMAND: Final = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
try:
    from verirec.engine.process_worker import main
except Exception as error:
    import pickle
    sys.stdout.buffer.write(pickle.dumps(str(error)))
else:
    main()
"""


class Request(NamedTuple):
    """What a process is asked to do.

    Parameters
    ----------
    parcel
        The file of a function; `None` for one that comes with what it is given, and keeps a state.
    given
        Pickled: the parts, or a function and its arguments.
    memory
        What long arrays are bounded by, there as here.
    """

    parcel: Path | None
    given: bytes
    memory: int | None


class Processes(Engine):
    """Processes of this machine.

    Parameters
    ----------
    workers
        How many; by default one a core.

    Examples
    --------
    >>> with Processes(2) as engine:
    ...     list(engine.map(len, ["a", "bcd"]))
    [1, 3]
    """

    name = "processes"

    def __init__(self, workers: int | None = None) -> None:
        given = usable_cores() if workers is None else workers
        self.workers = whole_number("workers", given, min=1, max=MOST_WORKERS)
        self._crew: list[_Worker] = []
        self._idle: list[_ProcessHost] = []
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._numbers = count()
        versions()  # of now: workers that are started when files have changed have others

    def map(
        self,
        function: Callable[[Part], Result],
        parts: Sequence[Part],
        *,
        waiting: Callable[[], None] = nothing,
        singly: bool = False,
    ) -> Iterator[Result]:
        """Apply a function to each part; see `Engine.map`."""
        try:
            yield from reissued(self._replies(function, chunked(parts, self.workers, singly=singly), waiting))
        except BaseException:
            # Parts under way are let go of: nobody waits for them.
            self.close()
            raise

    def _replies(
        self, function: Callable[..., Any], chunks: list[Sequence[Any]], waiting: Callable[[], None]
    ) -> Iterator[Reply]:
        if not chunks:
            return
        jobs, parcel = self._started(), self._parcel(function)
        done: SimpleQueue[tuple[int, Reply]] = SimpleQueue()
        early: dict[int, Reply] = {}
        sent = 0
        try:
            for number in range(len(chunks)):
                while sent < min(number + _AHEAD * self.workers, len(chunks)):
                    given = sendable("a part of the work", chunks[sent])
                    jobs.put(_Job(sent, Request(parcel, given, memory_limit()), done))
                    sent += 1
                while number not in early:
                    try:
                        found, reply = done.get(timeout=EVERY)
                        early[found] = reply
                    except Empty:
                        waiting()
                yield early.pop(number)
        finally:
            parcel.unlink(missing_ok=True)

    def _parcel(self, function: Callable[..., Any]) -> Path:
        """Write the function for all to read: by a file, which is in memory once, whoever reads it."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="verirec-")
        file = Path(self._folder.name, str(next(self._numbers)))
        write_parcel(file, function, "the work")
        return file

    def _started(self) -> SimpleQueue[_Job | None]:
        while len(self._crew) < self.workers:
            self._crew.append(_Worker(self._jobs))
        return self._jobs

    def hosts(self, count: int) -> list[Host]:
        """Start processes that keep a state, or take those that were let go of: imports take seconds."""
        wanted = min(count, self.workers)
        found = [self._idle.pop() for _ in range(min(wanted, len(self._idle)))]
        return [*found, *(_ProcessHost(self._idle) for _ in range(wanted - len(found)))]

    def close(self) -> None:
        """End the processes."""
        crew, self._crew = [*self._crew, *(host.worker for host in self._idle)], []
        self._idle.clear()
        for one in crew:
            one.end()
        for one in crew:
            one.thread.join(_PATIENCE)
        self._jobs = SimpleQueue()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


class _Job(NamedTuple):
    number: int
    request: Request
    done: SimpleQueue[tuple[int, Reply]]


class _Worker:
    """A process, and the thread that waits for it; one that was lost is started again, and asked again."""

    def __init__(self, jobs: SimpleQueue[_Job | None]) -> None:
        self.jobs, self.child = jobs, Child()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self) -> None:
        hold_interrupts()
        while (job := self.jobs.get()) is not None:
            try:
                reply = self._asked(job.request)
            except Exception as error:  # whatever it is: somebody waits for the reply
                self.child.stop()
                reply = Reply([pickled_error(error)], True)
            job.done.put((job.number, reply))
        self.child.stop()

    def _asked(self, request: Request) -> Reply:
        for _ in range(_ATTEMPTS - 1):
            with suppress(WorkerEndedError):
                return self.child.ask(request)
        return self.child.ask(request)

    def end(self) -> None:
        """End the process, and then the thread."""
        self.child.end()
        self.jobs.put(None)


class _ProcessHost(Host):
    """A process with a state.

    Parameters
    ----------
    idle
        Where it goes, without its state, when it is let go of.
    """

    def __init__(self, idle: list[_ProcessHost]) -> None:
        self.idle = idle
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.worker = _HostWorker(self.jobs)

    def begin(self, function: Callable[..., Any], *given: Any) -> Callable[[], Any]:
        done: SimpleQueue[tuple[int, Reply]] = SimpleQueue()
        self.jobs.put(_Job(0, Request(None, sendable("the work", (function, given)), memory_limit()), done))
        return lambda: done.get()[1].result()

    def end(self) -> None:
        if self.worker.child.runs:
            self.begin(dict.clear)
            self.idle.append(self)
        else:
            self.worker.end()


class _HostWorker(_Worker):
    """A process that is not started again: its state is lost with it."""

    def _asked(self, request: Request) -> Reply:
        try:
            return self.child.ask(request)
        except Exception:
            self.child.end()
            raise


class Child:
    """A process that answers requests, started when it is first asked."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False

    def ask(self, request: Request) -> Reply:
        """Send a request and wait for the reply; raises `WorkerEndedError` where the process ends before it."""
        try:
            if self._process is None:
                self._start()
            inbound, outbound = self._pipes()
            pickle.dump(request, outbound, protocol=5)
            outbound.flush()
            return read_reply(inbound)
        except (OSError, EOFError, pickle.UnpicklingError, ValueError):
            self.stop()
            raise WorkerEndedError("a worker was ended, often for lack of memory; use fewer workers") from None

    @property
    def runs(self) -> bool:
        """Whether the process was started, and has not ended."""
        return self._process is not None and self._process.poll() is None

    def _start(self) -> None:
        if self._ended:
            raise EOFError
        environment = {**os.environ, **ONE_THREAD}
        # Its own group would escape a terminal's Ctrl-C and its hang-up too; the signal alone is held back.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self._check(pickle.load(self._pipes()[0]))

    def _check(self, theirs: Any) -> None:
        """Refuse a process that has no verirec, or another: it may have changed since this one was started."""
        if isinstance(theirs, str):
            raise EngineError(f"a worker has no verirec to work with ({theirs}): install it again")
        apart = versions().difference(Versions(*theirs))
        if apart is not None:
            raise EngineError(f"a worker has {apart}: start again, with one version")

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        process = self._process
        if process is None or process.stdout is None or process.stdin is None:
            raise EOFError
        return process.stdout, process.stdin

    def stop(self) -> None:
        """End the process, if it runs, and close what led to it."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()

    def end(self) -> None:
        """End the process for good; whoever waits for it is told."""
        self._ended = True
        process = self._process
        if process is not None:
            process.kill()


def hold_interrupts() -> None:
    """Hold Ctrl-C back from this thread, and from processes that it starts: the parent decides when they end."""
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
