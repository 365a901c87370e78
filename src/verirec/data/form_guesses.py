"""How a text file seems to be written: its encoding, its separator, and whether it has a header."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from verirec.data.feature_columns import NUMBER
from verirec.data.files import file_ending, separator_of
from verirec.data.text_form import BLOCK_BYTES, likely_encoding
from verirec.exceptions import ParameterError
from verirec.formatting import names_in_words

_SEPARATORS: Final = (",", ";", "\t", "|")
_NAMES: Final = ("user", "item", "rating")


def guess_form(file: Path, options: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what is unlike what the file's ending says, in words, and the option of `read_log` that says it.

    Parameters
    ----------
    file
        Of text, perhaps compressed.
    options
        What was said already: `delimiter`, `columns` and `encoding`.
    """
    encoding = options["encoding"]
    if encoding == "utf-8":
        encoding = likely_encoding(file)
        if encoding != "utf-8":
            yield f"the text is not UTF-8; {encoding} reads it", {"encoding": encoding}
    with pa.input_stream(str(file)) as opened:
        start = opened.read(BLOCK_BYTES).decode(encoding, errors="replace")
    first = start.splitlines()[0].lstrip("\ufeff") if start.strip() else ""
    delimiter = options.get("delimiter")
    if delimiter is None:
        delimiter = max(_SEPARATORS, key=first.count)
        try:
            expected = separator_of(file_ending(file, is_text=False))
        except ParameterError:
            expected = None
        if delimiter != expected and first.count(delimiter) and not (expected and expected in first):
            yield f"fields are separated by {delimiter!r}", {"delimiter": delimiter}
        else:
            delimiter = expected or delimiter
    if options.get("columns") is None:
        yield from _header(next(csv.reader([first], delimiter=delimiter), []))


def _header(names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Say so where the first line has numbers in place of names."""
    if len(names) >= len(_NAMES) and any(re.match(NUMBER, name.strip()) for name in names):
        columns = [*_NAMES, *(f"column{place}" for place in range(len(_NAMES) + 1, len(names) + 1))]
        yield f"there is no header: the first line is {names_in_words(names)}", {"columns": columns}
