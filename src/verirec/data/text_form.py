"""How a text file is written, as far as its ending does not say: separator, header, encoding, broken lines."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv

from verirec.exceptions import DroppedRowsWarning, ParameterError, warn_caller
from verirec.formatting import short

BLOCK_BYTES: Final = 2**20
"""Of text that Arrow parses at a time: a row may cross one end of a block, not two."""


@dataclass(frozen=True)
class TextForm:
    """How to read a text file.

    Parameters
    ----------
    delimiter
        One ASCII character; `None` for what the file's ending says.
    columns
        Names of the columns, if there is no header line.
    encoding
        By Python's name of it.
    skip_broken
        Leave out lines with too few or too many fields, and count them in `broken`.

    Examples
    --------
    >>> TextForm(encoding="nope")
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: encoding must be one that Python knows, such as utf-8 or cp1252; got 'nope'
    """

    delimiter: str | None = None
    columns: Sequence[str] | None = None
    encoding: str = "utf-8"
    skip_broken: bool = False
    broken: list[str] = field(default_factory=list, init=False, compare=False)

    def __post_init__(self) -> None:
        columns: Any = self.columns
        listed = isinstance(columns, Sequence) and not isinstance(columns, str)
        if columns is not None and not (listed and all(isinstance(one, str) for one in columns)):
            raise ParameterError(f"columns must be the names of a file's columns, in order; got {short(columns)}")
        refuse_odd_delimiter(self.delimiter)
        try:
            codecs.lookup(self.encoding)
        except (LookupError, TypeError, ValueError):
            raise ParameterError(
                f"encoding must be one that Python knows, such as utf-8 or cp1252; got {short(self.encoding)}"
            ) from None

    def reading(self) -> pyarrow.csv.ReadOptions:
        """Return Arrow's options of reading."""
        names = None if self.columns is None else list(self.columns)
        # A broken line that is not UTF-8 cannot be handed to `_skip`: Arrow would print a traceback. By this name of
        # the encoding all text is decoded first, and refused.
        strict = self.skip_broken and codecs.lookup(self.encoding).name == "utf-8"
        encoding = "utf-8-sig" if strict else self.encoding
        return pyarrow.csv.ReadOptions(column_names=names, block_size=BLOCK_BYTES, encoding=encoding)

    def parsing(self, delimiter: str, *, quoted: bool) -> pyarrow.csv.ParseOptions:
        """Return Arrow's options of parsing; `quoted` is whether line breaks may be inside of quotes."""
        return pyarrow.csv.ParseOptions(
            delimiter=delimiter,
            newlines_in_values=quoted,
            invalid_row_handler=self._skip if self.skip_broken else None,
        )

    def _skip(self, row: Any) -> str:
        self.broken.append(row.text)
        return "skip"

    def told_of_broken(self, file: str) -> list[str]:
        """Return how many lines were left out, in words, if any were."""
        if not self.broken:
            return []
        lines = f"{len(self.broken):,} lines do not have as many fields as there are columns, and are left out"
        return [f"{file}: {lines} (first: {short(self.broken[0])})"]

    def warn_of_broken(self, file: str) -> None:
        """Say how many lines were left out."""
        for told in self.told_of_broken(file):
            warn_caller(told, DroppedRowsWarning)


def refuse_odd_delimiter(delimiter: object) -> None:
    """Refuse what cannot be between fields; `None` is what a file's ending says."""
    if delimiter is None:
        return
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n\0"':
        raise ParameterError(f"delimiter must be one ASCII character; got {short(delimiter)}")


def likely_encoding(file: Path) -> str:
    """Return utf-8 if all of the file is, utf-16 if it starts so, and else the usual one of Windows."""
    with pa.input_stream(str(file)) as opened:
        decoder = codecs.getincrementaldecoder("utf-8")()
        start = part = opened.read(BLOCK_BYTES)
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        try:
            while part:
                decoder.decode(part)
                part = opened.read(BLOCK_BYTES)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"
