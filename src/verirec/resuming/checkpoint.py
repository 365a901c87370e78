"""A job that goes on where it was stopped, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import wraps
from inspect import signature
from pathlib import Path
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar

from verirec.engine.choice import takes_engine
from verirec.exceptions import ReusedWorkWarning, UnkeptWorkWarning, warn_caller
from verirec.progress import time_in_words
from verirec.resuming.identity import job_key
from verirec.resuming.pieces import Pieces
from verirec.sole_writer import named_place, sole_writer

Given = ParamSpec("Given")
Result = TypeVar("Result")

_NO_PART_OF_IT: Final = ("checkpoint", "engine", "progress", "ready")
"""Arguments that change no result."""


class Checkpoint(AbstractContextManager["Checkpoint"]):
    """Keeps finished pieces of one job in a folder, while it runs; a second process is refused meanwhile.

    What an earlier run of the same job left is used again, which a `ReusedWorkWarning` says; what one of another job
    (other inputs, settings or code) left is not. At the end all is removed; after an error or a stop it stays.

    Parameters
    ----------
    folder
        Where; made if need be.
    job, given
        Its name, and what it is given by argument.

    Examples
    --------
    >>> import tempfile
    >>> from verirec.resuming import kept
    >>> with tempfile.TemporaryDirectory() as home, Checkpoint(Path(home, "work"), "sum", {"of": (1, 2)}):
    ...     kept("sum", lambda: 1 + 2)
    3
    """

    def __init__(self, folder: str | Path, job: str, given: Mapping[str, Any]) -> None:
        self._folder = named_place(folder)
        self._key = job_key(job, given)
        self._entered: ExitStack
        self._pieces: Pieces

    def __enter__(self) -> Self:
        with ExitStack() as entered:
            entered.enter_context(sole_writer(self._folder))
            self._pieces = Pieces(self._folder, self._key)
            if self._pieces.count:
                warn_caller(f"going on from an earlier run: {self._told(self._pieces)}", ReusedWorkWarning)
            entered.enter_context(self._pieces.in_use())
            self._entered = entered.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._entered:
            if kind is None:
                self._pieces.remove()
        if self._pieces.refused is not None:
            reason = self._pieces.refused.strerror or self._pieces.refused
            warn_caller(
                f"finished parts could not all be kept in {str(self._folder)!r}: {reason}; a run that is stopped does "
                "them again",
                UnkeptWorkWarning,
            )

    @staticmethod
    def _told(pieces: Pieces) -> str:
        return f"{pieces.count:,} finished part{'s' * (pieces.count > 1)}, {time_in_words(pieces.seconds)} of work"

    @property
    def has_pieces(self) -> bool:
        """Whether a run that is stopped now has something to go on from."""
        return self._pieces.kept


def long_job(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Have a function's work go to the engine that its argument `engine` names, and go on where it was stopped.

    What it kept is in the folder that its argument `checkpoint` names, if it names one.
    """

    @wraps(function)
    def resumed(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        folder: Any = kwargs.get("checkpoint")
        if folder is None:
            return function(*args, **kwargs)
        bound = signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if name not in _NO_PART_OF_IT}
        with Checkpoint(folder, function.__name__, given):
            return function(*args, **kwargs)

    return takes_engine(resumed)
