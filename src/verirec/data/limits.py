"""How much a file may hold: limits that keep a small file from filling memory, and by which they are raised."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from verirec.checks import one_of, real_number
from verirec.data.ids import is_text
from verirec.exceptions import FileLimitError, MemoryBudgetError
from verirec.formatting import bytes_in_words

COMPRESSION_NAMES: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
"""Arrow's, by the endings of files."""
COMPRESSIONS: Final = tuple(COMPRESSION_NAMES)
_ROW_BYTES: Final = 100
"""Of memory that a row takes while it is read: 33 million rows took 3.3 GB, whatever they held."""
_SMALL: Final = 2**26
"""Bytes that a file may unpack to whatever its own size."""
_MEMINFO, _CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class ReadLimits:
    """What readers of logs, predictions, answers and features refuse to go beyond.

    Parameters
    ----------
    rows
        Of a file.
    columns
        Of a file.
    field_bytes
        Of an id, or of another text, in UTF-8.
    expansion
        How many times its own size a compressed file, or one that stores repeated values once, may unpack to; up to
        64 MB always.
    memory
        Bytes that reading may take, at 100 a row; `None` for what the system says is available.

    Examples
    --------
    >>> ReadLimits(rows=0)
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: rows must be a finite number above 0; got 0
    """

    rows: float = 2_000_000_000
    columns: float = 10_000
    field_bytes: float = 100_000
    expansion: float = 200
    memory: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (name == "memory" and value is None):
                real_number(name, value, above=0)

    def check_columns(self, file: Path, count: int) -> None:
        """Refuse a file with too many columns."""
        self._check("columns", file, f"has {count:,} columns", count)

    def check_rows(self, file: Path, rows: float, word: str = "at least") -> None:
        """Refuse a file with so many rows, or with more than memory can take; `word` is how well they are known."""
        what = f"has {word} {rows:,.0f} rows".replace("  ", " ")
        self._check("rows", file, what, rows)
        self.check_memory(file, rows * _ROW_BYTES, what)

    def check_memory(self, file: Path, size: float, what: str) -> None:
        """Refuse a file that takes so many bytes of memory."""
        if self.memory is not None and size > self.memory:
            raise MemoryBudgetError(
                f"{file.name} {what}: to read it takes {bytes_in_words(size)} of memory, above the "
                f"{bytes_in_words(self.memory)} that there are; read a part of it, or raise the budget by "
                f"read_limits(memory=...)"
            )

    def check_expansion(self, file: Path, packed: float, unpacked: float) -> None:
        """Refuse a file that unpacks to far more than it takes."""
        if unpacked > _SMALL:
            share = unpacked / max(packed, 1)
            self._check("expansion", file, f"unpacks to {share:,.0f} times its {bytes_in_words(packed)} or more", share)

    def check_fields(self, file: Path, table: pa.Table) -> None:
        """Refuse texts that are too long."""
        for column in table.columns:
            for chunk in column.chunks:
                values = chunk.dictionary if isinstance(chunk, pa.DictionaryArray) else chunk
                longest = _longest(values) if is_text(values.type) else 0
                self._check("field_bytes", file, f"has a text of {bytes_in_words(longest)}", longest)

    def _check(self, name: str, file: Path, what: str, value: float) -> None:
        limit = getattr(self, name)
        if value > limit:
            raise FileLimitError(
                f"{file.name} {what}, above the limit of {limit:,.0f}; if it is sound, raise that by "
                f"read_limits({name}=...)"
            )


def _longest(texts: pa.Array) -> int:
    """Return how many bytes the longest text has."""
    known = texts.cast(pa.large_string()) if pa.types.is_string_view(texts.type) else texts
    return int(pc.max(pc.binary_length(known)).as_py() or 0)


_USUAL: Final = ReadLimits()
_CURRENT: Final[ContextVar[ReadLimits]] = ContextVar("read_limits", default=_USUAL)


def current_limits() -> ReadLimits:
    """Return the limits that hold here; memory as it is now, before anything is read."""
    found = _CURRENT.get()
    return replace(found, memory=_available()) if found.memory is None else found


@contextmanager
def read_limits(**limits: float) -> Iterator[ReadLimits]:
    """Read files with other limits: see `ReadLimits` for their names, and for what they are otherwise.

    Examples
    --------
    >>> with read_limits(rows=10) as limits:
    ...     limits.rows, limits.columns
    (10, 10000)
    """
    for name in limits:
        one_of("a limit", name, [*ReadLimits.__dataclass_fields__])
    token = _CURRENT.set(replace(_CURRENT.get(), **limits))
    try:
        yield _CURRENT.get()
    finally:
        _CURRENT.reset(token)


def opened_text(file: Path, encoding: str = "utf-8") -> Any:
    """Return what Arrow reads a text file from: its path, or a stream that counts what it unpacks to.

    A file that is to be decoded is such a stream too: Arrow calls Python for that, and who lends it a stream knows when
    that has ended.
    """
    plain = file.suffix.lower() not in COMPRESSIONS and codecs.lookup(encoding).name == "utf-8"
    return file if plain else _Unpacked(file)


class _Unpacked(io.RawIOBase):
    """A compressed file as it is unpacked; what raises in `read` comes out of Arrow as it is."""

    def __init__(self, file: Path) -> None:
        self._file, self._limits, self._packed, self._count = file, current_limits(), file.stat().st_size, 0
        self._stream = pa.input_stream(str(file), compression="detect")

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        found: bytes = self._stream.read(None if size < 0 else size)
        self._count += len(found)
        self._limits.check_expansion(self._file, self._packed, self._count)
        return found

    def close(self) -> None:
        self._stream.close()
        super().close()


def _available() -> float | None:
    """Return the bytes of memory that there are for this process, as far as the system says."""
    found: list[float] = []
    try:
        lines = _MEMINFO.read_text().splitlines()
        found += [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
        found.append(float(_CGROUP.read_text()))
    except (OSError, ValueError):  # Not Linux, or no limit: "max".
        pass
    return min(found, default=None)
