"""A Ray cluster, by Ray Core alone: tasks for parts, actors for what keeps a state."""

from __future__ import annotations

import os
import pickle
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakSet

from verirec.checks import whole_number
from verirec.engine.base import EVERY, MOST_WORKERS, Engine, Host, chunked, nothing
from verirec.engine.ray_worker import apart, together
from verirec.engine.worker import (
    Reply,
    Versions,
    in_pieces,
    naming_what_stays,
    reissued,
    sendable,
    usable_cores,
    versions,
)
from verirec.exceptions import EngineError, MissingExtraError, WorkerEndedError
from verirec.scratch import memory_limit

Part = TypeVar("Part")
Result = TypeVar("Result")

_ATTEMPTS: Final = 10
"""Times that a part is done again whose worker or node was lost."""
_AHEAD: Final = 4
"""Messages for each worker that may be under way, or done before those that come first."""
_ANSWER: Final = 5.0
"""Seconds in which an address must answer."""
_GREETING: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
"""How a connection to a Ray cluster begins (gRPC, over HTTP/2): its opening and empty settings."""
_LOST: Final = "was lost, with its node or for lack of memory"


class Ray(Engine):
    """A Ray cluster.

    Parameters
    ----------
    address
        HOST:PORT of a cluster that this machine is a node of, "auto" for the one that runs on this machine, or
        ray://HOST:PORT for Ray's client. By default the cluster that this process is connected to, else the one that
        RAY_ADDRESS names, else one that is started on this machine, and ended with this engine.
    workers
        Parts that are worked on at once, each by one core; by default as many as the cluster has cores.
    """

    name = "ray"

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self.address = address
        self._wanted = None if workers is None else whole_number("workers", workers, min=1, max=MOST_WORKERS)
        self._ray: Any = None
        self._own = self._started = False
        self._session: Path | None = None
        self._task: Any = None
        self._idle: list[_RayHost] = []
        self._out: WeakSet[_RayHost] = WeakSet()

    @property
    def workers(self) -> int:  # type: ignore[override]
        """Cores that work."""
        return self._wanted or max(1, int(self._connected().cluster_resources().get("CPU", 1)))

    def _connected(self) -> Any:
        """Return Ray's module, connected."""
        if self._ray is None or not self._ray.is_initialized():
            try:
                import ray
            except ImportError:
                raise MissingExtraError("engine='ray' needs ray: pip install 'verirec[ray]'") from None
            if not ray.is_initialized():
                self._connect(ray)
            self._ray = ray
        return self._ray

    def knock(self) -> None:
        """Raise `EngineError` where nobody answers at the address: it may be long until there is work to send."""
        address = self.address or os.environ.get("RAY_ADDRESS") or None
        if address is not None:
            _knock(address)

    def _connect(self, ray: Any) -> None:
        address = self.address or os.environ.get("RAY_ADDRESS") or None
        here: dict[str, Any] = {}
        if address is None:
            here = {"num_cpus": self._wanted or usable_cores(), "include_dashboard": False}
        else:
            _knock(address)
        try:
            joined = ray.init(address or "local", log_to_driver=False, logging_level="ERROR", **here)
        except Exception as error:
            place = "cannot be started on this machine" if address is None else f"at {address}"
            raise EngineError(f"Ray {place}: {' '.join(str(error).split())[:300]}") from None
        self._started = address is None
        self._session = Path(joined.address_info["session_dir"]) if self._started else None
        self._own = True

    def map(
        self,
        function: Callable[[Part], Result],
        parts: Sequence[Part],
        *,
        waiting: Callable[[], None] = nothing,
        singly: bool = False,
    ) -> Iterator[Result]:
        """Apply a function to each part; see `Engine.map`."""
        if parts:
            yield from reissued(self._replies(function, chunked(parts, self.workers, singly=singly), waiting))

    def _replies(
        self, function: Callable[..., Any], chunks: list[Sequence[Any]], waiting: Callable[[], None]
    ) -> Iterator[Reply]:
        ray = self._connected()
        if self._out:
            raise EngineError("Ray's workers keep a state, and have no cores left for parts: let go of them first")
        self._end_idle()
        # In a list it is fetched by the worker, once for all parts, and not for each before it starts.
        shared = [ray.put(message("the work", function))]
        if self._task is None:
            self._task = ray.remote(num_cpus=1, max_retries=_ATTEMPTS)(make_task(versions()))
        ahead = _AHEAD * self.workers
        # A cluster that was started here has no more cores than there are to be workers.
        at_once = self._wanted if self._wanted and not self._started else ahead
        under_way: dict[Any, int] = {}
        early: dict[int, Reply] = {}
        sent = 0
        try:
            for number in range(len(chunks)):
                while True:
                    while len(under_way) < at_once and sent < min(number + ahead, len(chunks)):
                        given = sendable("a part of the work", chunks[sent])
                        under_way[self._task.remote(shared, given, memory_limit())] = sent
                        sent += 1
                    if number in early:
                        break
                    done, _ = ray.wait(list(under_way), timeout=EVERY)
                    early |= {under_way.pop(one): received(ray, one) for one in done}
                    if not done:
                        waiting()
                yield early.pop(number)
        finally:
            for one in under_way if ray.is_initialized() else ():
                ray.cancel(one, force=True)

    def hosts(self, count: int) -> list[Host]:
        """Start actors, or take those that were let go of; no more than there are cores, or some would never start."""
        ray = self._connected()
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        wanted = min(count, self.workers, cores)
        found = [self._idle.pop() for _ in range(min(wanted, len(self._idle)))]
        actor = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(make_actor(versions()))
        found += [_RayHost(ray, actor.remote(), self._idle, self._out) for _ in range(wanted - len(found))]
        self._out.update(found)
        return [*found]

    def _end_idle(self) -> None:
        """End actors that were let go of: they hold cores."""
        for host in self._idle:
            with suppress(Exception):
                host.ray.kill(host.actor)
        self._idle.clear()

    def close(self) -> None:
        """Leave the cluster, and end it if it was started here."""
        self._end_idle()
        if self._own and self._ray is not None:
            self._ray.shutdown()
            self._out.clear()
            if self._session is not None:
                _remove_session(self._session)
        self._ray, self._task, self._own, self._started, self._session = None, None, False, False, None


def _remove_session(folder: Path) -> None:
    """Remove what Ray left of a cluster that was started here: its logs, and the link to them if no other has it."""
    shutil.rmtree(folder, ignore_errors=True)
    link = folder.with_name("session_latest")
    with suppress(OSError):
        if link.is_symlink() and link.readlink() == folder:
            link.unlink()


class _RayHost(Host):
    """An actor.

    Parameters
    ----------
    ray, actor
        Ray's module, and the actor.
    idle
        Where it goes, without its state, when it is let go of.
    out
        Where it is until then.
    """

    def __init__(self, ray: Any, actor: Any, idle: list[_RayHost], out: WeakSet[_RayHost]) -> None:
        self.ray, self.actor, self.idle, self.out, self.lost = ray, actor, idle, out, False

    def begin(self, function: Callable[..., Any], *given: Any) -> Callable[[], Any]:
        pending = self.actor.call.remote(message("the work", (function, given)), memory_limit())

        def wait() -> Any:
            try:
                return received(self.ray, pending).result()
            except WorkerEndedError:
                self.lost = True
                raise

        return wait

    def end(self) -> None:
        self.out.discard(self)
        if not self.lost and self.ray.is_initialized():
            self.begin(dict.clear)
            self.idle.append(self)


def message(what: str, value: Any) -> Any:
    """Pickle what is sent, so that any worker can take it in, whatever it has installed."""
    with naming_what_stays(what):
        return together(in_pieces(value))


def received(ray: Any, reference: Any) -> Reply:
    """Return what a task or an actor replied; say so where it was lost, or is not what is here."""
    try:
        found = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise EngineError(f"a Ray worker failed: {' '.join(str(error.cause or error).split())[:300]}") from None
    except ray.exceptions.RayError as error:
        raise WorkerEndedError(f"a Ray worker {_LOST} ({type(error).__name__})") from None
    if isinstance(found, str):
        raise EngineError(found)
    sent, *rest = pickle.loads(found) if isinstance(found, bytes) else found
    # They are Ray's: its store is small, and nobody may write to it.
    return Reply([bytearray(one) for one in apart(sent)], *rest)


def make_task(here: Versions) -> Callable[..., Any]:
    """Make what a Ray task does.

    It is sent as code, and so can say of a worker that it has no verirec, or another.
    """
    check, expected, paths = make_check(), tuple(here), list(sys.path)

    def task(shared: list[Any], chunk: bytes, memory: int | None) -> Any:
        wrong = check(expected)
        if wrong is not None:
            return wrong
        from verirec.engine.ray_worker import of_parts

        return of_parts(shared[0], chunk, paths, memory)

    return task


def make_actor(here: Versions) -> type:
    """Make what keeps a state, sent as code likewise."""
    check, expected, paths = make_check(), tuple(here), list(sys.path)

    class Actor:
        def __init__(self) -> None:
            self.state: dict[str, Any] = {}

        def call(self, sent: Any, memory: int | None) -> Any:
            wrong = check(expected)
            if wrong is not None:
                return wrong
            from verirec.engine.ray_worker import of_state

            return of_state(self.state, sent, paths, memory)

    return Actor


def make_check() -> Callable[[tuple[Any, ...]], str | None]:
    """Make what tells whether a worker has what this process has; it refers to nothing of verirec's."""

    def check(expected: tuple[Any, ...]) -> str | None:
        import socket

        try:
            from verirec.engine.worker import Versions, versions
        except ImportError as error:
            return f"the Ray worker on {socket.gethostname()} has no verirec to work with ({error}): install it there"
        apart = Versions(*expected).difference(versions())
        if apart is None:
            return None
        return f"the Ray worker on {socket.gethostname()} has {apart}: install the same there"

    return check


def _knock(address: str) -> None:
    """Raise `EngineError` for an address that does not answer as a Ray cluster does: Ray would wait for minutes."""
    if address in ("auto", "local"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()):
        raise EngineError(f"a Ray address is HOST:PORT, such as ray:10.0.0.1:6379; got {address!r}")
    try:
        with socket.create_connection((host, int(port)), timeout=_ANSWER) as connection:
            connection.sendall(_GREETING)
            # The answer begins with settings too: three bytes of length, and their type.
            if len(answer := connection.recv(9)) < 4 or answer[3] != _GREETING[27]:
                raise EngineError(f"what answers at {address} is no Ray cluster")
    except (OSError, OverflowError) as error:
        raise EngineError(f"no Ray cluster answers at {address} ({error})") from None
