"""Delimited text lent to Arrow: nothing of Python's is left in Arrow's threads once the reading has ended."""

from __future__ import annotations

import atexit
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv

from verirec.data.limits import opened_text

_LOOK: Final = 0.001
"""Seconds between two looks at whether Arrow has let go."""
_LONGEST_WAIT: Final = 10.0
"""Seconds for Arrow to let go, which takes as long as one read of a block: a disk may have stopped answering."""


class TextBlocks:
    """Blocks of a text file as Arrow reads them; see `text_blocks`."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    @property
    def schema(self) -> pa.Schema:
        """Columns by the names of the header."""
        return self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        return self._reader.read_next_batch()

    def close(self) -> None:
        """Let go of Arrow's reader, whoever has these blocks still: only without it does the reading end."""
        self._reader = None


@contextmanager
def text_blocks(file: Path, **options: Any) -> Iterator[TextBlocks]:
    """Read a text file block by block, with the options of `pyarrow.csv.open_csv`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (file := Path(folder, "log.csv")).write_text("user,item\\n1,2\\n")
    ...     with text_blocks(file) as blocks:
    ...         blocks.schema.names, [len(block) for block in blocks]
    (['user', 'item'], [1])
    """
    with _lent(file, options) as loan:
        blocks = TextBlocks(pyarrow.csv.open_csv(loan.pop(), **options))
        try:
            yield blocks
        finally:
            blocks.close()


def whole_text(file: Path, **options: Any) -> pa.Table:
    """Read a text file at once, with the options of `pyarrow.csv.read_csv`; errors of a line have its number."""
    with _counting_lines(file, options), _lent(file, options) as loan:
        return pyarrow.csv.read_csv(loan.pop(), **options)


def header_of(file: Path, **options: Any) -> list[str]:
    """Return the names of a text file's columns; errors of a line, which may be in the first block, have its number."""
    with _counting_lines(file, options), text_blocks(file, **options) as blocks:
        return list(blocks.schema.names)


@contextmanager
def _counting_lines(file: Path, options: dict[str, Any]) -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid as error:
        numbered = _numbered(file, options) if " columns, got " in str(error) else None
        raise numbered or error from None


def _numbered(file: Path, options: dict[str, Any]) -> pa.ArrowInvalid | None:
    """Return the error of the first broken line again, with its number: many threads at once do not count lines."""
    read: pyarrow.csv.ReadOptions = options["read_options"]
    counting = pyarrow.csv.ReadOptions(
        use_threads=False, block_size=read.block_size, column_names=read.column_names, encoding=read.encoding
    )
    try:
        with text_blocks(file, **options | {"read_options": counting}) as blocks:
            deque(blocks, maxlen=0)
    except pa.ArrowInvalid as error:
        return error if "Row #" in str(error) else None
    return None


@contextmanager
def _lent(file: Path, options: dict[str, Any]) -> Iterator[list[Any]]:
    """Lend Arrow what it reads a file from, in a list to take it out of; at the end, wait until Arrow has let go of it.

    Arrow reads ahead in threads of its own, and goes on with that after an error, and after its reader was closed. A
    thread that comes back to Python for more, while the interpreter ends, aborts the process.
    """
    read = options.get("read_options")
    source = opened_text(file, "utf-8" if read is None else read.encoding)
    if isinstance(source, Path):
        yield [source]
        return
    lent = _Lent(source)
    known = weakref.ref(lent)
    _OUT.append(known)
    loan = [lent]
    del lent
    try:
        yield loan
    finally:
        loan.clear()
        _wait_for([known])
        _OUT.remove(known)


def _wait_for(loans: list[weakref.ref[_Lent]]) -> None:
    # By looking, not by a callback of the references: a Ctrl-C that is raised in there is lost, and so is the callback.
    end = time.monotonic() + _LONGEST_WAIT
    while any(one() is not None for one in loans) and time.monotonic() < end:
        time.sleep(_LOOK)


@atexit.register
def _wait_for_all() -> None:
    """Wait for those that a second Ctrl-C kept from being waited for."""
    _wait_for(_OUT)


class _Lent:
    """What Arrow calls of a stream, without the stream: the traceback of an error that `read` raised has only that."""

    def __init__(self, stream: Any) -> None:
        self.read, self.close, self.readable = stream.read, stream.close, stream.readable
        self.closed = False


_OUT: Final[list[weakref.ref[_Lent]]] = []
"""What Arrow may have still."""
