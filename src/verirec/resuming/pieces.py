"""Pieces of a job: worked out once and kept in a folder, or taken from what an earlier run left there."""

from __future__ import annotations

import builtins
import hashlib
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from verirec.atomic_write import replace_file
from verirec.exceptions import VerirecWarning, warn_caller
from verirec.resuming.values import CannotBeKeptError, DamagedError, as_parts, label_in, value_in

Result = TypeVar("Result")

WORTH_KEEPING: float = 1.0
"""Seconds of work from which on a piece is kept: a small job never touches the disk."""
_ENDING: Final = ".piece"
_A_KEY: Final = re.compile("[0-9a-f]{64}")


class _Label(NamedTuple):
    """What is to be known of a piece before it is asked for.

    Parameters
    ----------
    name
        The job's key, and the piece's name with those of the pieces that it is part of.
    seconds
        How long it took.
    """

    name: str
    seconds: float


class _Piece(NamedTuple):
    """A result, with what it takes to have it again as if it were worked out.

    Parameters
    ----------
    warned
        Categories and messages of warnings on the way.
    value
        The result.
    """

    warned: tuple[tuple[str, str], ...]
    value: Any


class Pieces:
    """The pieces of one job in a folder; those of other jobs stay there until one of them is done.

    Parameters
    ----------
    root
        The folder, which is made when the first piece is kept.
    key
        Of the job.
    """

    def __init__(self, root: Path, key: str) -> None:
        self.root, self.folder = root, root / key
        self.refused: OSError | None = None
        self._named: Counter[str] = Counter()
        _remove(self.folder.glob(f".*{_ENDING}-*"))
        self._seconds = self._finished()

    @property
    def count(self) -> int:
        """How many an earlier run left."""
        return len(self._seconds)

    @property
    def seconds(self) -> float:
        """How long these took."""
        return sum(self._seconds.values())

    @property
    def kept(self) -> bool:
        """Whether there are pieces now."""
        return any(self.folder.glob(f"*{_ENDING}"))

    def remove(self) -> None:
        """Remove all, those of other jobs too: what the folder was for is done."""
        for job in self.root.glob("*"):
            if _A_KEY.fullmatch(job.name):
                _remove_pieces(job)
        with suppress(OSError):  # Something else is in it.
            self.root.rmdir()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Have `kept` go by these."""
        before = _scope.set(_Scope(self))
        try:
            yield
        finally:
            _scope.reset(before)

    def _finished(self) -> dict[str, float]:
        """Look through what is there: parts of a piece that is whole are of no more use."""
        found = {}
        for file in self.folder.glob(f"*{_ENDING}"):
            label = _label(file)
            key, _, name = ("", "", "") if label is None else label.name.partition("/")
            if label is not None and key == self.folder.name and self._file(name) == file:
                found[name] = label.seconds
        for name in list(found):
            if any(name.startswith(f"{other}/") for other in found):
                _remove([self._file(name)])
                del found[name]
        return found

    def _file(self, name: str) -> Path:
        return self.folder / f"{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:32]}{_ENDING}"

    def piece(self, scope: _Scope, name: str, compute: Callable[[], Result]) -> Result:
        """Take a piece from the folder, or work it out and put it there."""
        path = self.claimed(scope, name)
        there = _opened(self._file(path)) if path in self._seconds else None
        if there is not None:
            scope.take_in([path], self._seconds[path])
            with _warnings_kept():  # They are said as often as after the work.
                for category, message in there.warned:
                    _warn(_category_called(category) or VerirecWarning, message)
            return there.value  # type: ignore[no-any-return]
        own, began = _Scope(self, f"{path}/", scope.around or scope), time.monotonic()
        with _warnings_kept() as warned:
            with own.entered():
                value = compute()
            seconds = time.monotonic() - began + own.reused
            whole = seconds >= WORTH_KEEPING and self._keep(path, seconds, warned, value)
            scope.take_in([path] if whole else own.names, own.reused)
        if whole:
            _remove(map(self._file, own.names))
        return value

    def claimed(self, scope: _Scope, name: str) -> str:
        """Return a piece's whole name: of several that are called the same there, the later ones are numbered."""
        path = scope.path + _plain(name)
        self._named[path] += 1
        return path if self._named[path] == 1 else f"{path}%n{self._named[path]}"

    def claimed_once(self, scope: _Scope, name: str) -> str:
        """Return the whole name of what is done apart.

        It has no number: one that was asked for first by a piece that is taken from the folder would not be counted,
        and the next one that is called the same would be taken for it.
        """
        path = f"{scope.path}%a{_plain(name)}"
        if path in self._named:
            raise RuntimeError(f"two pieces of work are done apart as {name!r}: each must have a name of its own")
        self._named[path] = 1
        return path

    def _keep(self, name: str, seconds: float, warned: list[warnings.WarningMessage], value: Any) -> bool:
        """Write a piece, if it can be; where the disk refuses it, the work goes on."""
        try:
            told = tuple((_category(one.category), str(one.message)) for one in warned)
            parts = as_parts(_Label(f"{self.folder.name}/{name}", seconds), tuple(_Piece(told, value)))
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_file(self._file(name), parts)
        except CannotBeKeptError:
            return False
        except OSError as error:
            self.refused = error
            return False
        return True


@dataclass
class _Scope:
    """Where in a job the work is.

    Parameters
    ----------
    pieces
        Of the job.
    path
        Names of the pieces around, each with a slash behind.
    around
        The innermost scope around that is no piece, where it is not this one.
    reused
        Seconds that the pieces inside took in an earlier run, less those of what was done apart.
    names
        Pieces inside that are on disk.
    """

    pieces: Pieces
    path: str = ""
    around: _Scope | None = None
    reused: float = 0.0
    names: list[str] = field(default_factory=list)

    def take_in(self, names: list[str], reused: float) -> None:
        """Hear of what is inside."""
        self.names += names
        self.reused += reused

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Work inside of it."""
        before = _scope.set(self)
        try:
            yield
        finally:
            _scope.reset(before)


_scope: Final[ContextVar[_Scope | None]] = ContextVar("pieces", default=None)


def kept(name: str, compute: Callable[[], Result]) -> Result:
    """Return what an earlier run of the same job left under a name, or work it out and keep it if that took long.

    Without a checkpoint in use, in threads and in workers, it is worked out. Of work inside other pieces the name is
    that within these. Warnings on the way are kept with it, and said again.

    Parameters
    ----------
    name
        Of the piece, the same each time; where several have it, the order counts in which they are asked for.
    compute
        Makes it, the same each time.

    Examples
    --------
    >>> kept("sum", lambda: 1 + 1)
    2
    """
    scope = _scope.get()
    return compute() if scope is None else scope.pieces.piece(scope, name, compute)


@contextmanager
def within(name: str) -> Iterator[None]:
    """Let pieces inside have names of their own, as if they were parts of a piece of this name."""
    scope = _scope.get()
    if scope is None:
        yield
        return
    with _inside(scope, scope.pieces.claimed(scope, name)):
        yield


@contextmanager
def apart(name: str) -> Iterator[None]:
    """Let pieces inside be parts of none of those around: what several of them go by, whichever asks first.

    Parameters
    ----------
    name
        What it is, and of what: no other work that is done apart in the same job, or the same `within`, has it.
    """
    scope = _scope.get()
    if scope is None:
        yield
        return
    around, began = scope.around or scope, time.monotonic()
    with _inside(around, scope.pieces.claimed_once(around, name)):
        yield
    if around is not scope:
        scope.reused -= time.monotonic() - began


@contextmanager
def _inside(scope: _Scope, path: str) -> Iterator[None]:
    own = _Scope(scope.pieces, f"{path}/")
    with own.entered():
        yield
    scope.take_in(own.names, own.reused)


def _plain(name: str) -> str:
    """Names may be a user's: a slash of theirs parts nothing."""
    return name.replace("%", "%25").replace("/", "%2F")


def _remove_pieces(folder: Path) -> None:
    """Remove a job's pieces, and nothing else that somebody may have in a folder."""
    _remove([*folder.glob(f"*{_ENDING}"), *folder.glob(f".*{_ENDING}-*")])
    with suppress(OSError):
        folder.rmdir()


def _remove(files: Iterable[Path]) -> None:
    """Remove files that are of no more use; where that fails they stay, and are right if they are found again."""
    for file in files:
        with suppress(OSError):
            file.unlink()


def _label(file: Path) -> _Label | None:
    """Read what a piece is; `None` of one that is missing, damaged or something else."""
    try:
        with file.open("rb") as opened:
            return _Label(*label_in(opened))
    except (OSError, DamagedError, TypeError):
        return None


def _opened(file: Path) -> _Piece | None:
    """Read a piece; `None` of one that is missing, damaged or something else."""
    try:
        with file.open("rb") as opened:
            return _Piece(*value_in(opened))
    except (OSError, DamagedError, TypeError):
        return None


@contextmanager
def _warnings_kept() -> Iterator[list[warnings.WarningMessage]]:
    """Keep the warnings of some work, and say them at its end, whatever that is."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                yield heard
            finally:
                caught += heard
    finally:
        for one in caught:
            _warn(one.category, str(one.message))


def _category(category: type[Warning]) -> str:
    """Return a warning's category by name; a piece that warned of something else is not kept."""
    if _category_called(category.__name__) is not category:
        raise CannotBeKeptError(category.__name__)
    return category.__name__


def _category_called(name: str) -> type[Warning] | None:
    found = vars(sys.modules[VerirecWarning.__module__]).get(name, vars(builtins).get(name))
    return found if isinstance(found, type) and issubclass(found, Warning) else None


def _warn(category: type[Warning], message: str) -> None:
    """Warn as the work did, or would."""
    if issubclass(category, VerirecWarning):
        warn_caller(message, category)
    else:
        warnings.warn(message, category, stacklevel=2)
