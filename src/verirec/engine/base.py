"""What an engine is: a map over parts whose results come in the order of the parts, wherever they are worked out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, Final, Self, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

MOST_WORKERS: Final = 256
EVERY: Final = 5.0
"""Seconds of silence after which who waits is told."""
_CHUNKS_A_WORKER: Final = 8
"""Messages for each worker, if there are enough parts: few enough to be cheap, many enough to even out."""

_LARGEST_CHUNK: Final = 64


def nothing() -> None:
    """Do nothing while waiting."""


class Engine(ABC):
    """Applies functions to parts of some work, by a number of workers.

    What is added up over parts is added up by who asks, in the order of the parts: the same bits for any engine and
    number of workers. Use it as a context, or close it: workers wait for more work until then.

    Attributes
    ----------
    workers
        How many parts are worked on at once.
    """

    name: ClassVar[str]
    elsewhere: ClassVar[bool] = True
    """Whether parts leave this process."""
    workers: int

    @abstractmethod
    def map(
        self,
        function: Callable[[Part], Result],
        parts: Sequence[Part],
        *,
        waiting: Callable[[], None] = nothing,
        singly: bool = False,
    ) -> Iterator[Result]:
        """Apply a function to each part; results in the order of the parts.

        What is raised for a part is raised here, and the others are let go of: those of another map too that has the
        same workers at the time. A part whose worker was lost is done again by another.

        Parameters
        ----------
        function
            Sent to each worker once. It must not change what it holds: workers may share it.
        parts
            Sent some at a time.
        waiting
            Called every few seconds while nothing comes.
        singly
            Send parts one by one: for long ones, of which the first are wanted first.
        """

    @abstractmethod
    def hosts(self, count: int) -> list[Host]:
        """Start at most so many workers that keep a state between calls.

        Until all are let go of, `map` may be refused: they may have all cores.
        """

    @abstractmethod
    def close(self) -> None:
        """End the workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Host(ABC):
    """A worker that keeps a state: a dictionary that is handed to each function it is asked to call."""

    @abstractmethod
    def begin(self, function: Callable[..., Any], *given: Any) -> Callable[[], Any]:
        """Start `function(state, *given)` there; what is returned waits for its result.

        It raises what the function raised, and `WorkerEndedError` where the host was lost with its state.
        """

    @abstractmethod
    def end(self) -> None:
        """Let go of the worker: its state is forgotten, and the engine may hand it out again."""


class Serial(Engine):
    """This process, one part after the other; walks over the grid by threads.

    Examples
    --------
    >>> list(Serial().map(len, ["a", "bcd"]))
    [1, 3]
    """

    name = "serial"
    elsewhere = False
    workers = 1

    def map(
        self,
        function: Callable[[Part], Result],
        parts: Sequence[Part],
        *,
        waiting: Callable[[], None] = nothing,
        singly: bool = False,
    ) -> Iterator[Result]:
        """Apply a function to each part."""
        return map(function, parts)

    def hosts(self, count: int) -> list[Host]:
        """Return one that is this process."""
        return [_Here()]

    def close(self) -> None:
        """Do nothing: no worker was started."""


class _Here(Host):
    """This process as a host."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def begin(self, function: Callable[..., Any], *given: Any) -> Callable[[], Any]:
        found = function(self.state, *given)
        return lambda: found

    def end(self) -> None:
        self.state.clear()


def chunked(parts: Sequence[Part], workers: int, *, singly: bool = False) -> list[Sequence[Part]]:
    """Put parts into messages: several for each worker, so that those that are done early take over.

    Examples
    --------
    >>> [len(chunk) for chunk in chunked(range(40), 2)]
    [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1]
    """
    even = -(-len(parts) // (_CHUNKS_A_WORKER * workers))
    size = 1 if singly else max(1, min(_LARGEST_CHUNK, even))
    return [parts[start : start + size] for start in range(0, len(parts), size)]


_SERIAL: Final = Serial()
engine_in_use: Final[ContextVar[Engine | None]] = ContextVar("engine", default=None)


def current_engine() -> Engine:
    """Return the engine that was chosen, by whoever called; the serial one by default."""
    return engine_in_use.get() or _SERIAL
