"""Which engine is meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from verirec.checks import whole_number
from verirec.engine.base import MOST_WORKERS, Engine, Serial, current_engine, engine_in_use
from verirec.engine.processes import Processes
from verirec.engine.ray_core import Ray
from verirec.exceptions import ParameterError
from verirec.formatting import short

Given = ParamSpec("Given")
Result = TypeVar("Result")

EngineLike = Engine | str | None
"""An engine, "serial", "processes", "ray", "ray:HOST:PORT"; or `None` for the one that is in use."""
_KNOWN: Final = 'engine must be "serial", "processes", "ray", "ray:HOST:PORT" or an engine of verirec.engine'


def as_engine(engine: EngineLike, workers: int | None = None) -> Engine:
    """Make an engine of what a user names.

    Parameters
    ----------
    engine
        "serial"; "processes" of this machine; "ray": the cluster that this process is connected to, or the one that
        RAY_ADDRESS names, or one that is started on this machine for as long as it is needed; "ray:HOST:PORT"; or an
        engine, as it is.
    workers
        How many; by default one a core, or as many as the cluster has.

    Examples
    --------
    >>> as_engine("processes", 3).workers
    3
    >>> as_engine("threads")
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: engine must be "serial", "processes", "ray", "ray:HOST:PORT" or an engine of \
verirec.engine; got 'threads'
    """
    if isinstance(engine, Engine):
        return engine
    if engine is None:
        return current_engine()
    if engine == "serial":
        if workers is not None:
            whole_number("workers", workers, max=MOST_WORKERS)
        return Serial()
    if engine == "processes":
        return Processes(workers)
    if isinstance(engine, str) and (engine == "ray" or engine.startswith("ray:")):
        found = Ray(engine if engine.startswith("ray://") else engine[4:] or None, workers)
        found.knock()
        return found
    raise ParameterError(f"{_KNOWN}; got {short(engine)}")


@contextmanager
def running_on(engine: EngineLike, workers: int | None = None) -> Iterator[Engine]:
    """Have all work inside go to an engine; one that was named rather than given is closed afterwards.

    Examples
    --------
    >>> from verirec.engine import current_engine
    >>> with running_on("processes", 2):
    ...     current_engine().name
    'processes'
    """
    chosen = as_engine(engine, workers)
    before = engine_in_use.set(chosen)
    try:
        yield chosen
    finally:
        engine_in_use.reset(before)
        if isinstance(engine, str):
            chosen.close()


def takes_engine(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Have a function's work go to the engine that its argument `engine` names."""

    @wraps(function)
    def on_engine(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        given: Any = kwargs.get("engine")
        with running_on(given):
            return function(*args, **kwargs)

    return on_engine
